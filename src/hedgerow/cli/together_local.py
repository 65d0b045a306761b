"""`hedgerow together --local`: all owners as processes of this machine, with keys that are made for one run and thrown away."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.errors import TogetherError

if TYPE_CHECKING:
    from hedgerow.release.release import Release


GRACE = 5.0  # seconds after one owner has failed in which the others may end by themselves


def run_local(plan: Path, data: Sequence[str], budgets: Sequence[Path], tolerated: int, more: Sequence[str]) -> Release:
    """The release that all owners have saved, byte for byte the same; or the first owner's error. Each owner is a process of its own."""
    from hedgerow.multiparty.certificates import make_certificate
    from hedgerow.multiparty.parties import Party, add_party
    from hedgerow.release.release import Release

    with tempfile.TemporaryDirectory(prefix="hedgerow-together-") as name:
        folder = Path(name)
        file = folder / "parties.toml"
        for number, port in enumerate(_free_ports(len(data)), start=1):
            owner = f"owner-{number}"
            add_party(file, Party(owner, f"localhost:{port}", make_certificate(folder / f"{owner}.key", owner)), tolerated)
        commands = []
        for number, rows in enumerate(data, start=1):
            own = ["--party", str(number), "--parties", str(file), "-o", str(folder / f"{number}.json"), "--jobs", "1"]
            pays = ["--budget", str(budgets[number - 1])] if budgets else []
            commands.append(["run", str(plan), rows, *own, *pays, *more])
        said = _run([[sys.executable, "-m", "hedgerow", "together", *words] for words in commands])
        failed = failures(said)
        if failed:
            raise TogetherError(failed)
        releases = [folder / f"{number}.json" for number in range(1, len(data) + 1)]
        if len({each.read_bytes() for each in releases}) != 1:
            raise TogetherError("the owners' releases differ, which must not be. Do not use them; what was charged stays charged.")
        return Release.load(releases[0])


def failures(said: Sequence[tuple[int, str]]) -> str:
    """What went wrong, from exit codes and errors: what several owners say, once."""
    owners: dict[str, list[str]] = {}
    for number, (code, text) in enumerate(said, start=1):
        if code:
            owners.setdefault(text, []).append(f"owner-{number}")
    return "; ".join(f"{', '.join(names)}: {text}" for text, names in owners.items())


def _run(commands: Sequence[Sequence[str]]) -> list[tuple[int, str]]:
    """Exit code and last line of the errors of each; all are ended if this one is, and soon after one has failed, as all must come.

    Of those that were ended for that, 0 and nothing: they have only waited for the other.
    """
    with ExitStack() as open_:
        how: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        running = [open_.enter_context(subprocess.Popen(each, **how)) for each in commands]
        ended: list[subprocess.Popen[str]] = []
        ending = threading.Timer(GRACE, lambda: _end(running, ended))
        pool = open_.enter_context(ThreadPoolExecutor(len(running)))  # waits for them before the processes are left
        try:
            told = {pool.submit(process.communicate): process for process in running}
            for each in as_completed(told):
                if told[each].returncode and ending.ident is None:
                    ending.start()
        except BaseException:
            _end(running, ended)
            raise
        finally:
            ending.cancel()
        said = {process: each.result()[1].strip().rpartition("\n")[2] for each, process in told.items()}
        return [(0, "") if process in ended else (process.returncode, said[process]) for process in running]


def _end(running: Sequence[subprocess.Popen[str]], ended: list[subprocess.Popen[str]]) -> None:
    for process in running:
        if process.poll() is None:
            ended.append(process)
            process.terminate()


def _free_ports(n: int) -> list[int]:
    sockets = [socket.create_server(("localhost", 0)) for _ in range(n)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
