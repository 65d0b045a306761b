"""Workers: long work runs in a subprocess, so that requests are answered meanwhile and the work can be killed; in tests, in this process.

A job worker handles one job after the other, a session worker (session_worker.py) one query after the other. What a process must spill
to disk, rows and ids of persons among it, goes to a folder of its own in the curator's folder, which is removed with the process.
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
from hedgerow.curator.http.logs import error_fields, write_to_stderr
from hedgerow.curator.http.service_context import Curator
from hedgerow.curator.http.work import Progress, perform
from hedgerow.errors import LedgerError

NICE = 15  # requests come first
STEP = 0.1  # seconds between two checks of a worker's deadline
KILL_SECONDS = 6  # in which a worker is gone after its deadline
TOO_LONG = "it did not end in time, and was cut off"
WORK = "work"  # in the curator's folder: what processes spill


class WorkFailed(Exception):
    """Work that did not end well. fields: for the owner's log."""

    def __init__(self, **fields: Any) -> None:
        super().__init__("the job failed")
        self.fields = fields


Handler = Callable[[Any, Progress], Any]
HandlerFactory = Callable[[Curator, Limits], Handler]
"""Makes the function that handles each message of a worker; importable by name, so that it can be sent to a process."""


class Worker(Protocol):
    def start(self) -> None: ...

    def call(self, message: Any, progress: Progress, deadline: Callable[[], float]) -> Any: ...

    def close(self) -> None: ...


def job_handler(curator: Curator, limits: Limits) -> Handler:
    """Runs jobs: each message is a task, its reservation and what its person calls it."""
    warm_up()
    return lambda message, progress: perform(curator, limits, message[0], message[1], message[2], progress)


class InProcessWorker:
    """Runs its handler in the calling thread."""

    def __init__(self, curator: Curator, limits: Limits, factory: HandlerFactory) -> None:
        self._handle = factory(curator, limits)

    def start(self) -> None:
        """Nothing is needed."""

    def call(self, message: Any, progress: Progress, deadline: Callable[[], float]) -> Any:
        def in_time(share: float) -> None:
            if time.monotonic() > deadline():
                raise WorkFailed(kind="TakenTooLong", message=TOO_LONG)
            progress(share)

        return self._handle(message, in_time)

    def close(self) -> None:
        """Nothing is held."""


class SubprocessWorker:
    """Runs its handler in a subprocess, which is started once, and again after it was lost."""

    def __init__(self, curator: Curator, limits: Limits, factory: HandlerFactory, name: str) -> None:
        assert curator.address is not None
        self._arguments, self._name = (*curator.address, limits, factory), name
        self._process: SpawnProcess | None = None
        self._pipe: Connection | None = None
        self._spills: Path | None = None

    def start(self) -> None:
        """Now, so that the first job need not wait for it."""
        self._started()

    def _started(self) -> Connection:
        if self._pipe is None or self._process is None or not self._process.is_alive():
            self.close()
            self._spills = _new_spill_folder(self._arguments[0])
            context = multiprocessing.get_context("spawn")
            self._pipe, other = context.Pipe()
            arguments = (other, str(self._spills), *self._arguments)
            self._process = context.Process(target=_worker_main, args=arguments, daemon=True, name=self._name)
            self._process.start()
            other.close()
        return self._pipe

    def call(self, message: Any, progress: Progress, deadline: Callable[[], float]) -> Any:
        try:
            pipe = self._started()
            pipe.send(message)
            while True:
                if time.monotonic() > deadline():
                    self.close()
                    raise WorkFailed(kind="TakenTooLong", message=TOO_LONG)
                if pipe.poll(STEP):
                    kind, content = pipe.recv()
                    if kind == "done":
                        return content
                    if kind == "failed":
                        raise WorkFailed(**content)
                    progress(content)
        except (EOFError, OSError):
            self.close()
            raise WorkFailed(kind="WorkerLost", message="its process ended: killed, or out of memory?") from None

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


def new_worker(curator: Curator, limits: Limits, factory: HandlerFactory = job_handler, name: str = "hedgerow job") -> Worker:
    if curator.address is None:
        return InProcessWorker(curator, limits, factory)
    return SubprocessWorker(curator, limits, factory, name)


def _new_spill_folder(curator: str) -> Path:
    found = Path(curator) / WORK / uuid.uuid4().hex
    found.parent.mkdir(mode=0o700, exist_ok=True)
    found.mkdir(mode=0o700)
    return found


def remove_stale_spills(curator: str | os.PathLike[str]) -> None:
    """Remove what the processes of a killed service have spilled; only for a service that holds the lock of the folder."""
    folder = Path(curator) / WORK
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        raise LedgerError(
            f"folder {str(folder)!r} cannot be removed ({error.strerror or error}); a killed process may have left rows there. Remove it."
        ) from None


def _exit_with_service() -> None:
    """A job of a service that was killed goes no further: nobody could ever get its answer, and another service may have begun."""
    service = multiprocessing.parent_process()
    if service is not None:
        service.join()
        os._exit(1)


def _worker_main(pipe: Connection, spills: str, folder: str, ledger: str | None, limits: Limits, factory: HandlerFactory) -> None:
    """The main function of the subprocess. It ends when the service does, however that ends: the pipe is then closed."""
    for name in (signal.SIGINT, signal.SIGTERM):  # of the whole group: the service decides how long a job may go on
        signal.signal(name, signal.SIG_IGN)
    with contextlib.suppress(OSError, AttributeError):
        os.nice(NICE)
    threading.Thread(target=_exit_with_service, daemon=True, name="hedgerow watch").start()
    tempfile.tempdir = os.environ["TMPDIR"] = spills
    write_to_stderr()
    handle = factory(Curator.open(folder, ledger), limits)
    last_share = -1.0

    def send_progress(share: float) -> None:
        nonlocal last_share
        if abs(share - last_share) >= 0.05:
            last_share = share
            pipe.send(("share", share))

    with contextlib.suppress(EOFError, OSError):
        while True:
            message = pipe.recv()
            try:
                answer = ("done", handle(message, send_progress))
            except Exception as error:
                pipe.send(("failed", error_fields(error)))
            else:
                pipe.send(answer)
