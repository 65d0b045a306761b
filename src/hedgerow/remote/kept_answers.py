"""The answers of a session that were paid for, kept in the file of its request (`request_file.py`) until what is made of them is saved: so
that the same command goes on where an earlier run has ended. After the first line come, in order,

    {"type": "session", …}    before its first query is sent; after: how many answers there were by then
    {"type": "answer", …}     query: by which it is known to be the same
"""

from __future__ import annotations

import hashlib
import os
import shlex
from contextlib import suppress
from typing import IO

import msgspec

from hedgerow.errors import CuratorError
from hedgerow.remote.codec import SessionForm
from hedgerow.remote.request_file import RequestFile


class KeptSession(msgspec.Struct, frozen=True, tag="session"):
    after: int
    form: SessionForm


class KeptAnswer(msgspec.Struct, frozen=True, tag="answer"):
    query: str
    content: bytes


class KeptAnswers:
    """asked: a query was sent by this run; free: the service has said that all of its session cost nothing."""

    def __init__(self, request: RequestFile) -> None:
        self.request, self.asked, self.free = request, False, False
        self.answers: list[KeptAnswer] = []
        self.session: KeptSession | None = None
        self._file: IO[bytes] | None = request.path.open("r+b")
        with suppress(ModuleNotFoundError):  # no such locks here
            import fcntl

            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise CuratorError(f"{request.path} is used by another command, which goes on with it. Wait for that one.") from None
        self._file.readline()
        good = self._file.tell()
        for line in self._file:
            try:
                found = msgspec.json.decode(line, type=KeptSession | KeptAnswer)
            except msgspec.MsgspecError:
                break  # half a line, which a crash has left
            if isinstance(found, KeptAnswer):
                self.answers.append(found)
            else:
                self.session = found
            good += len(line)
        self._file.seek(good)
        self._file.truncate()

    @property
    def key(self) -> str:
        """Of the next session: the first has the request's, and each number of answers one of its own."""
        return f"{self.request.key}-{len(self.answers)}" if self.answers else self.request.key

    def answer(self, index: int, name: str, form: bytes) -> bytes | None:
        """That of the query with this number, from 0, where it was kept."""
        if index >= len(self.answers):
            return None
        if self.answers[index].query != _digest(name, form):
            raise CuratorError(
                f"{self.request.path} holds an answer to another query than this one; expected the same command, with the files and the "
                "version of hedgerow of then. Nothing was spent now. To give up what was paid for: rm "
                f"{shlex.quote(str(self.request.path))}"
            )
        return self.answers[index].content

    def begin(self, form: SessionForm) -> None:
        """Written before it is used: otherwise nobody could fetch its last answer."""
        self.session = KeptSession(len(self.answers), form)
        try:
            self._add(self.session)
        except OSError as error:
            raise CuratorError(f"{self.request.path}: the session cannot be kept ({error.strerror}). Nothing was spent.") from None

    def keep(self, name: str, form: bytes, content: bytes) -> None:
        """Where it cannot be written, this run goes on all the same: it is paid for."""
        self.answers.append(KeptAnswer(_digest(name, form), content))
        try:
            self._add(self.answers[-1])
        except OSError:
            self._file = None

    def _add(self, kept: KeptSession | KeptAnswer) -> None:
        if self._file is not None:
            self._file.write(msgspec.json.encode(kept) + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _digest(name: str, form: bytes) -> str:
    return hashlib.sha256(name.encode() + b"\0" + form).hexdigest()
