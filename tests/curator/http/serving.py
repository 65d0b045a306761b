"""`hedgerow serve` as a process of its own, that can be asked, stopped and killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

PATIENCE = 180.0  # seconds, where something must happen soon: other work may hold all cores
LAST = "sign in there with a token\n"  # of what is said at a start


class Served:
    """One process, in a group of its own. What it says and logs is in files: nobody must empty a pipe."""

    def __init__(self, folder: Path, ledger: str | None = None, *options: str) -> None:
        self.folder = folder
        beside = folder.parent / f"{folder.name}.said"
        self.said, self.logged = beside.with_suffix(".out"), beside.with_suffix(".log")
        command = [sys.executable, "-m", "hedgerow", "serve", str(folder), "--port", "0", *options]
        with self.said.open("w") as out, self.logged.open("w") as log:
            where = [] if ledger is None else ["--ledger", ledger]
            self.process = subprocess.Popen([*command, *where], stdout=out, stderr=log, start_new_session=True)

    @property
    def address(self) -> str | None:
        """None until everything that is said at a start has been said."""
        said = self.said.read_text()
        found = re.search(r"serving at (\S+)", said) if LAST in said else None
        return None if found is None else found[1]

    @property
    def token(self) -> str:
        """The first owner's: no terminal is there, so it is in a file."""
        return (self.folder / "owner.token").read_text().strip()

    def ready(self, seconds: float = PATIENCE) -> Served:
        wait_until(lambda: self.address is not None or self.process.poll() is not None, seconds)
        assert self.address is not None, self.logged.read_text()
        return self

    def client(self) -> httpx.Client:
        assert self.address is not None
        return httpx.Client(base_url=self.address, timeout=60)

    def log(self) -> list[dict[str, Any]]:
        """The lines that are whole by now and are JSON: people are told some things too."""
        lines = self.logged.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    def workers(self) -> list[int]:
        """The processes of jobs that it has now."""
        try:
            children = Path(f"/proc/{self.process.pid}/task").glob("*/children")
            found = [int(pid) for text in [child.read_text() for child in children] for pid in text.split()]
        except OSError:
            return []
        return [pid for pid in found if b"spawn_main" in command_of(pid)]

    def kill_workers(self) -> None:
        for pid in self.workers():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def kill_service(self) -> None:
        """Alone: its workers must end by themselves."""
        left = self.workers()
        self.process.kill()
        self.process.wait(PATIENCE)
        wait_until(lambda: not any(command_of(pid) for pid in left))

    def kill_all(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)

    def stop(self, how: signal.Signals = signal.SIGTERM, seconds: float = PATIENCE) -> int:
        self.process.send_signal(how)
        return self.process.wait(seconds)


def command_of(pid: int) -> bytes:
    """Empty where the process has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@contextmanager
def served(folder: Path, ledger: str | None = None, *options: str) -> Iterator[Served]:
    """A service that is ready, and gone afterwards."""
    started = Served(folder, ledger, *options)
    try:
        yield started.ready()
    finally:
        started.kill_all()


def wait_until(true: Callable[[], bool], seconds: float = PATIENCE, step: float = 0.01) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it took too long"
        time.sleep(step)


def books_at(address: str, tmp_path: Path) -> tuple[Path, str | None]:
    """Where a service on the books of the fixture `address` has its folder, and its ledger if that is elsewhere."""
    return (tmp_path / "curator", address) if "://" in address else (Path(address), None)
