"""Who works for long: a process of its own, so that requests are answered meanwhile and the work can be ended; or, in tests, this one.

A worker of jobs is asked for one job after the other; a worker of a session (`looking.py`) for one look after the other. What a process
must spill to disk, rows and ids of persons among it, goes to a folder of its own beside the books, and that is gone when the process is.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, Protocol

from hedgerow.curator.http.forests import warm_up
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.logs import told, write_to_stderr
from hedgerow.curator.http.service_context import Curator
from hedgerow.curator.http.work import Progress, perform
from hedgerow.errors import LedgerError

NICE = 15  # requests come first
STEP = 0.1  # seconds after which a worker is looked after
KILL_SECONDS = 6  # in which a worker whose time is over is gone
WORK = "work"  # in the curator's folder: what processes spill


class Failed(Exception):
    """A job that did not end well. fields: what the owner's log is told."""

    def __init__(self, **fields: Any) -> None:
        super().__init__("the job failed")
        self.fields = fields


Doing = Callable[[Any, Progress], Any]
Work = Callable[[Curator, Limits], Doing]
"""From what a process has to what it does with each message; known by its name in a module, so that it can be sent to a process."""


class Worker(Protocol):
    def start(self) -> None: ...

    def ask(self, message: Any, progress: Progress, ends: Callable[[], float]) -> Any: ...

    def close(self) -> None: ...


def jobs(curator: Curator, limits: Limits) -> Doing:
    """Each message is a task and its reservation."""
    warm_up()
    return lambda message, progress: perform(curator, limits, message[0], message[1], progress)


class Here:
    """In the thread that asks."""

    def __init__(self, curator: Curator, limits: Limits, work: Work) -> None:
        self._do = work(curator, limits)

    def start(self) -> None:
        """Nothing is needed."""

    def ask(self, message: Any, progress: Progress, ends: Callable[[], float]) -> Any:
        def in_time(share: float) -> None:
            if time.monotonic() > ends():
                raise Failed(kind="TakenTooLong")
            progress(share)

        return self._do(message, in_time)

    def close(self) -> None:
        """Nothing is held."""


class Apart:
    """In a process that is started once and again after it was lost."""

    def __init__(self, curator: Curator, limits: Limits, work: Work, name: str) -> None:
        assert curator.address is not None
        self._given, self._name = (*curator.address, limits, work), name
        self._process: SpawnProcess | None = None
        self._pipe: Connection | None = None
        self._spills: Path | None = None

    def start(self) -> None:
        """Now, so that the first job need not wait for it."""
        self._started()

    def _started(self) -> Connection:
        if self._pipe is None or self._process is None or not self._process.is_alive():
            self.close()
            self._spills = _new_folder(self._given[0])
            context = multiprocessing.get_context("spawn")
            self._pipe, other = context.Pipe()
            given = (other, str(self._spills), *self._given)
            self._process = context.Process(target=_serve, args=given, daemon=True, name=self._name)
            self._process.start()
            other.close()
        return self._pipe

    def ask(self, message: Any, progress: Progress, ends: Callable[[], float]) -> Any:
        try:
            pipe = self._started()
            pipe.send(message)
            while True:
                if time.monotonic() > ends():
                    self.close()
                    raise Failed(kind="TakenTooLong")
                if pipe.poll(STEP):
                    kind, content = pipe.recv()
                    if kind == "done":
                        return content
                    if kind == "failed":
                        raise Failed(**content)
                    progress(content)
        except (EOFError, OSError):
            self.close()
            raise Failed(kind="WorkerLost", message="its process ended: killed, or out of memory?") from None

    def close(self) -> None:
        """End it; what was opened and did not settle stays spent."""
        process, pipe, spills = self._process, self._pipe, self._spills
        self._process = self._pipe = self._spills = None
        if process is not None:
            process.kill()
            process.join(5)
        if pipe is not None:
            pipe.close()
        if spills is not None:
            shutil.rmtree(spills, ignore_errors=True)  # what cannot be removed now, the next start removes


def worker_of(curator: Curator, limits: Limits, work: Work = jobs, name: str = "hedgerow job") -> Worker:
    return Here(curator, limits, work) if curator.address is None else Apart(curator, limits, work, name)


def _new_folder(curator: str) -> Path:
    found = Path(curator) / WORK / uuid.uuid4().hex
    found.parent.mkdir(mode=0o700, exist_ok=True)
    found.mkdir(mode=0o700)
    return found


def remove_left(curator: str | os.PathLike[str]) -> None:
    """What the processes of a service that was killed have spilled; for whoever is alone with the folder."""
    folder = Path(curator) / WORK
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        raise LedgerError(
            f"folder {str(folder)!r} cannot be removed ({error.strerror or error}); a killed process may have left rows there. Remove it."
        ) from None


def _end_with_the_service() -> None:
    """A job of a service that was killed goes no further: nobody could ever get its answer, and another service may have begun."""
    service = multiprocessing.parent_process()
    if service is not None:
        service.join()
        os._exit(1)


def _serve(pipe: Connection, spills: str, folder: str, ledger: str | None, limits: Limits, work: Work) -> None:
    """The life of such a process. It ends when the service does, however that ends: the pipe is then closed."""
    for name in (signal.SIGINT, signal.SIGTERM):  # of the whole group: the service decides how long a job may go on
        signal.signal(name, signal.SIG_IGN)
    with contextlib.suppress(OSError, AttributeError):
        os.nice(NICE)
    threading.Thread(target=_end_with_the_service, daemon=True, name="hedgerow watch").start()
    tempfile.tempdir = os.environ["TMPDIR"] = spills
    write_to_stderr()
    do = work(Curator.open(folder, ledger), limits)
    told_last = -1.0

    def tell(share: float) -> None:
        nonlocal told_last
        if abs(share - told_last) >= 0.05:
            told_last = share
            pipe.send(("share", share))

    with contextlib.suppress(EOFError, OSError):
        while True:
            message = pipe.recv()
            try:
                answer = ("done", do(message, tell))
            except Exception as error:
                pipe.send(("failed", told(error)))
            else:
                pipe.send(answer)
