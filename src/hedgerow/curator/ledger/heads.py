"""The file of heads: the end of the chain at each change, kept outside the database and signed with the key of the service.

A database that was put back to an older copy, or whose chain was computed anew, does not have the heads that this file has, and one to
which somebody without the key has added an entry has a head that this file has not. After a first line with the public key come lines

    begun NUMBER:HASH TIME SIGNATURE SPENT      before a change is written to the database: it may never come there
    kept NUMBER:HASH TIME SIGNATURE             when it is there

Lines are only added, by whoever holds the write lock of the database. SPENT is what the accounts that the change is about have spent by
then, and their ceilings, so that it is known where the end of a ledger is lost; "-" where it is about none, "?" where these are many;
older lines have none.
"""

from __future__ import annotations

import contextlib
import io
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from hedgerow.curator.ledger.chain import NOTHING_YET, Head
from hedgerow.errors import LedgerError
from hedgerow.release.signing import Signature, holds, load_private_key, make_key, public_text, sign

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

DATABASE = "curator.sqlite"  # in a folder that is given
ENDING = ".heads"  # behind the name of the database's file
ON_A_SERVER = "ledger.heads"  # in the curator's folder, where the database is elsewhere
KEY_FILE = "service.key"  # in the curator's folder
FORMAT = "hedgerow-heads 1"
BEGUN, KEPT = "begun", "kept"
TAIL = 1 << 15  # bytes: some lines
LONGEST = 1 << 16  # bytes of a line
NONE, NOT_SAID, MOST_SAID = "-", "?", 12_000  # of what was spent: about no account; about many, in more characters than this


@dataclass(frozen=True)
class HeadLine:
    """One line of the file; number: 1 is the first after the key's; word: begun or kept; spent: as text, "" in lines without."""

    number: int
    word: str
    head: Head
    when: str
    signature: str
    spent: str = ""

    def __str__(self) -> str:
        return f"{self.word} {self.head} {self.when} {self.signature} {self.spent}".rstrip()

    def signed_by(self, key: str) -> bool:
        return holds(Signature(key, self.signature), _message(self.word, self.head, self.when, self.spent))


def _message(word: str, head: Head, when: str, spent: str) -> bytes:
    return f"hedgerow head\n{word}\n{head}\n{when}\n{spent}{chr(10) if spent else ''}".encode()


def signed_line(head: Head, key: Ed25519PrivateKey, word: str = KEPT, spent: str = "") -> HeadLine:
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return HeadLine(0, word, head, when, sign(key, _message(word, head, when, spent)).value, spent)


class Heads:
    """A file of heads and the key beside it. Whoever has the key adds lines; without it the file is only read.

    expected: whether it is missed where it is not there; not beside a backup
    """

    def __init__(self, path: Path, key_path: Path, expected: bool = True) -> None:
        self.path, self.key_path, self.expected = path, key_path, expected
        self._lock = threading.Lock()
        self._key: Ed25519PrivateKey | None = None

    @classmethod
    def beside(cls, database: Path) -> Heads:
        """The heads of a database in a file. Lines are added where the file and the key are there."""
        return cls(database.with_name(database.name + ENDING), database.with_name(KEY_FILE), database.name == DATABASE).ready()

    def ready(self) -> Heads:
        """Add lines from now on, if the file and the key are there."""
        if self.path.exists() and os.access(self.key_path, os.R_OK):
            self._key = load_private_key(self.key_path)
        return self

    @property
    def exists(self) -> bool:
        return self.path.exists()

    @property
    def own_key(self) -> str | None:
        """The public half of the key beside the file; None where there is none, or it is not for us to read."""
        return public_text(load_private_key(self.key_path)) if os.access(self.key_path, os.R_OK) else None

    def make_own_key(self) -> str:
        """The same, with a new key where there is none."""
        if not self.key_path.exists():
            make_key(self.key_path, "hedgerow service")
        return self.own_key or ""

    def begin(self) -> None:
        """A new file, where a link points if there is one; from now on every change adds a line."""
        self._key = load_private_key(self.key_path)
        try:
            with open(os.open(self.path.resolve(), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(f"{FORMAT} {public_text(self._key)}\n".encode())
        except OSError as error:
            raise self._failed(error) from None

    def set_aside(self) -> Path | None:
        """Give the file another name, so that a new one can begin; nothing of it is lost."""
        self._key = None
        if not self.exists:
            return None
        real = self.path.resolve()
        other = real.with_name(f"{real.name}.{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}")
        while other.exists():
            other = other.with_name(f"{other.name}+")
        try:
            return real.rename(other)
        except OSError as error:
            raise self._failed(error) from None

    # ------------------------------------------------------------ lines are added

    @property
    def keeping(self) -> bool:
        """Whether lines are added here."""
        return self._key is not None

    def check(self, head: Head) -> int:
        """Before a change: that the database ends where this file says, so that nobody else has written. The last number that was kept."""
        with self._lock, self._locked() as file:
            lines = self._end_of(file)
            if not any(line.word == KEPT for line in lines):
                lines = self.good_lines()
            kept = next((line.head for line in reversed(lines) if line.word == KEPT), Head(0, NOTHING_YET))
            if head != kept and head not in {line.head for line in lines if line.word == BEGUN and line.head.seq > kept.seq}:
                raise LedgerError(
                    f"ledger: it ends at {head}, and the file of heads {str(self.path)!r} at {kept}: it was put back, or somebody without "
                    "the key of the service has written to it. Nothing was changed. Look with `hedgerow ledger verify`."
                )
            return kept.seq

    def begun(self, head: Head, spent: str = "") -> None:
        """A change is about to be written. When this returns the line is on disk."""
        self._add(BEGUN, head, NOT_SAID if len(spent) > MOST_SAID else spent or NONE)

    def kept(self, head: Head) -> None:
        """It is written. Should this fail, the line before tells enough."""
        with contextlib.suppress(LedgerError):
            self._add(KEPT, head)

    def _add(self, word: str, head: Head, spent: str = "") -> None:
        assert self._key is not None
        with self._lock, self._locked() as file:
            if word == KEPT and any(line.word == KEPT and line.head.seq >= head.seq for line in self._end_of(file)):
                return  # another process was faster, with a later head
            try:
                file.seek(0, os.SEEK_END)
                file.write(f"{signed_line(head, self._key, word, spent)}\n".encode())
                if word == BEGUN:
                    os.fsync(file.fileno())
            except OSError as error:
                raise self._failed(error) from None

    @contextmanager
    def _locked(self) -> Iterator[io.FileIO]:
        try:
            file = self.path.open("r+b", buffering=0)
        except OSError as error:
            raise self._failed(error) from None
        with file:
            try:
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX)
            except ModuleNotFoundError:  # no such locks here
                pass
            yield file

    def _end_of(self, file: io.FileIO) -> list[HeadLine]:
        """The last lines. Half a line, which a power failure has left, is cut off."""
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - TAIL))
        tail = file.read(TAIL)
        if b"\n" in tail and not tail.endswith(b"\n"):
            file.truncate(size - len(tail) + tail.rindex(b"\n") + 1)
        lines = tail.decode("utf-8", "replace").split("\n")[:-1]
        return [line for line in (parsed_line(text, 0) for text in lines) if line is not None]

    def _failed(self, error: OSError) -> LedgerError:
        return LedgerError(
            f"heads {str(self.path)!r} cannot be written ({error.strerror}); expected the file of heads beside the ledger. "
            "Nothing was changed. Put it back, or see `hedgerow curator accept`."
        )

    # ------------------------------------------------------------ lines are read

    def key_of_file(self) -> str:
        """The public key in its first line; empty where it has none."""
        with self._reading() as file:
            first = file.readline(LONGEST).decode("utf-8", "replace").rstrip("\n")
        return first.removeprefix(FORMAT).strip() if first.startswith(f"{FORMAT} ") else ""

    def lines(self) -> Iterator[HeadLine | int]:
        """The lines in order; the number of a line that is none. What has no line end was never written whole."""
        with self._reading() as file:
            file.readline(LONGEST)
            for number, line in enumerate(iter(lambda: file.readline(LONGEST), b""), 1):
                if not line.endswith(b"\n"):
                    return
                yield parsed_line(line.decode("utf-8", "replace").rstrip("\n"), number) or number

    def good_lines(self) -> list[HeadLine]:
        """Those that are lines."""
        return [line for line in self.lines() if isinstance(line, HeadLine)]

    @contextmanager
    def _reading(self) -> Iterator[BinaryIO]:
        try:
            file = self.path.open("rb")
        except OSError as error:
            raise LedgerError(f"heads {str(self.path)!r} cannot be read ({error.strerror}); expected a file of heads.") from None
        with file:
            yield file


def parsed_line(text: str, number: int) -> HeadLine | None:
    parts = text.split(" ")
    said = parts.pop() if len(parts) == 5 and parts[0] == BEGUN and parts[4] else ""
    if len(parts) != 4 or parts[0] not in (BEGUN, KEPT):
        return None
    seq, _, hash = parts[1].partition(":")
    if not (seq.isascii() and seq.isdigit()) or len(seq) > 18 or len(hash) != 64:
        return None
    return HeadLine(number, parts[0], Head(int(seq), hash), parts[2], parts[3], said)


def existing_heads(path: Path) -> Heads:
    """Heads from a file that is given: a copy, or what was sent elsewhere."""
    found = Heads(path, path.with_name(KEY_FILE), expected=False)
    if not found.key_of_file():
        raise LedgerError(f"heads {str(path)!r}: not a file of heads; expected one that begins with {FORMAT!r}.")
    return found
