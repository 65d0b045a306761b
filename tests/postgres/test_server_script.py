"""The script that starts the server: the command's own exit code, and nothing left behind whatever ends it."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

pytestmark = pytest.mark.postgres

SCRIPT = Path(__file__).parents[2] / "scripts" / "postgres.py"
SAY = 'echo "$HEDGEROW_POSTGRES_FOLDER $HEDGEROW_POSTGRES"'


@pytest.fixture(autouse=True)
def _only_where_servers_run(address: str) -> None:
    """As the other tests here."""


def test_the_command_gets_an_address_and_its_exit_code_is_passed_on() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "run", "sh", "-c", f"{SAY}; exit 7"], capture_output=True, text=True, check=False)
    folder, address = done.stdout.split()
    assert done.returncode == 7
    assert address.startswith("postgresql://hedgerow:")
    assert not Path(folder).exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_no_server_behind(number: signal.Signals) -> None:
    words = [sys.executable, SCRIPT, "run", "--fsync", "sh", "-c", f"{SAY}; exec sleep 60"]
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        folder, address = started.stdout.readline().split()
        port = urlsplit(address).port
        assert port is not None
        assert listens(port)
        started.send_signal(number)
        assert started.wait(60) == 128 + number
    assert not Path(folder).exists()
    for _ in range(200):  # its last moments
        if not listens(port):
            break
        time.sleep(0.05)
    assert not listens(port)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_start_and_stop() -> None:
    started = subprocess.run([sys.executable, SCRIPT, "start"], capture_output=True, text=True, check=True)
    folder, port = Path(started.stderr.split()[-1]), urlsplit(started.stdout.strip()).port
    assert port is not None
    for verb in ("start", "run"):  # a folder in use is refused, and the server there goes on
        words = [sys.executable, SCRIPT, verb, "--folder", folder, *(["true"] if verb == "run" else [])]
        again = subprocess.run(words, capture_output=True, check=False)
        assert again.returncode == 1
        assert listens(port)
    assert folder.is_dir()
    subprocess.run([sys.executable, SCRIPT, "stop", folder], check=True)
    assert not folder.exists()


def test_a_folder_that_is_not_the_scripts_own_is_never_removed(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    for words in (["stop", tmp_path], ["start", "--folder", tmp_path]):
        assert subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, check=False).returncode == 1
    assert (tmp_path / "mine").exists()
