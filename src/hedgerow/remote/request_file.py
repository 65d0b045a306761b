"""A paid request that has not been answered, kept beside its output: its key is on disk before it is sent, so that the same command goes
on with it and nothing is paid twice. When the service has taken it as a job, a second line has the id of that.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from hedgerow.errors import CuratorError, HedgerowError

FORMAT, VERSION = "hedgerow-request", 1
ANSWERED = ".answered"
FORGOTTEN = "forgotten"  # a code
BUSY, TOO_MANY = ("busy", "stopping"), 429  # codes, and a status: try again


def digest(url: str, asked: Mapping[str, Any]) -> str:
    """By which a request is known to be the same."""
    return hashlib.sha256(msgspec.json.encode([url, dict(sorted(asked.items()))], order="sorted")).hexdigest()


def refused(error: HedgerowError) -> bool:
    """Whether a service has said that it does not take a request, and not that it is busy: what was sent again after a lost connection may
    have been taken the first time.
    """
    status, code = (error.status, error.code) if isinstance(error, CuratorError) else (400, "")
    return 400 <= status < 500 and status != TOO_MANY and code not in BUSY


def forgotten(url: str, what: str, path: Path) -> CuratorError:
    """What the service has taken, and does not know any more: sent again it would be another request, which is paid for."""
    return CuratorError(
        f"{url}: the service has taken this request before ({what}), and does not know it any more. Was the service put back from a copy, "
        f"or is this another token? Nothing was spent now. Ask its owner; to pay for the request anew: rm {shlex.quote(str(path))}",
        code=FORGOTTEN,
    )


class State(msgspec.Struct, forbid_unknown_fields=True):
    """request: a hash of all that was asked for, and of whom; what: the same in words."""

    format: str
    version: int
    url: str
    what: str
    request: str
    key: str


class Taken(msgspec.Struct, tag="job"):
    id: str


class RequestFile:
    """One request. resumed: an earlier run has sent it, or was about to; answered: and had its answers; job: as which the service took it
    then, where that is known
    """

    def __init__(self, path: Path, key: str, resumed: bool, job: str = "", answered: bool = False) -> None:
        self.path, self.key, self.resumed, self.job, self.answered = path, key, resumed, job, answered

    @classmethod
    def open(cls, output: Path, url: str, what: str, asked: Mapping[str, Any], again: bool = True) -> RequestFile:
        """The request beside this output, written down now if there is none. Another one, which may be paid for, is not given up.

        again: False goes on with one that was answered and kept (`keep`), if it is the same: then nothing is sent, and nothing paid
        """
        path = output.with_name(f"{output.name}.request")
        hash_ = digest(url, asked)
        done, answered = path.with_suffix(ANSWERED), False
        if not again and not path.exists():
            with contextlib.suppress(CuratorError, FileNotFoundError):  # none, or no request
                if _read(done)[0].request == hash_:
                    os.replace(done, path)
                    answered = True
        state = State(FORMAT, VERSION, url, what, hash_, str(uuid.uuid4()))
        try:
            with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                file.write(msgspec.json.encode(state) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            _sync_folder(path.resolve().parent)
        except FileExistsError:
            found, job = _read(path)
            if found.request != hash_:
                raise CuratorError(
                    f"{path} holds another request, which was not answered and may be paid for: {found.what[:200]!r} at {found.url[:200]}. "
                    f"This one does not go on with it. Nothing was spent. Give the command of then to fetch its answer, take another "
                    f"--output, or give that one up: rm {shlex.quote(str(path))}"
                ) from None
            return cls(path, found.key, True, job, answered)
        except OSError as error:
            raise CuratorError(f"{path}: the key of the request cannot be kept ({error.strerror}). Nothing was spent.") from None
        return cls(path, state.key, False)

    def taken(self, job: str) -> None:
        """Note the job, once. Where that cannot be written, the key alone has to do."""
        if not self.job:
            self.job = job
            with contextlib.suppress(OSError), self.path.open("ab") as file:
                file.write(msgspec.json.encode(Taken(job)) + b"\n")

    def keep(self) -> None:
        """It was answered and shown: the same command finds its answers, until another takes its place."""
        os.replace(self.path, self.path.with_suffix(ANSWERED))

    def forget(self) -> None:
        """It was answered and saved, or was refused, or there will never be an answer."""
        self.path.unlink(missing_ok=True)


def _sync_folder(path: Path) -> None:
    """The name of a file is on disk when its folder is."""
    with contextlib.suppress(OSError):  # some systems cannot sync a folder
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _read(path: Path) -> tuple[State, str]:
    job = ""
    try:
        with path.open("rb") as file:
            state = msgspec.json.decode(file.readline(100_000), type=State)
            with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):  # none, or the session of other requests
                job = msgspec.json.decode(file.readline(10_000), type=Taken).id
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        state = State("", 0, "", "", "", "")
    if (state.format, state.version) != (FORMAT, VERSION) or not state.key:
        raise CuratorError(
            f"{path} cannot be read; expected the key of a request that an earlier run may have sent. Nothing was spent. Take another "
            f"--output, or pay for the request anew: rm {shlex.quote(str(path))}"
        )
    return state, job
