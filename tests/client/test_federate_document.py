"""The services and the command of docs/SEVERAL_OWNERS.md, as a user would type them: real processes, at other ports."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import hedgerow
from hedgerow import Release

SOURCES = str(Path(hedgerow.__file__).parents[1])
TEXT = (Path(__file__).parents[2] / "docs" / "SEVERAL_OWNERS.md").read_text(encoding="utf-8")
NETWORK = TEXT.split("## Over the network")[1].split("\n## ")[0]
LINES = [line.strip() for line in NETWORK.splitlines() if line.startswith("    ")]


def command(words: list[str]) -> list[str]:
    return [sys.executable, "-m", "hedgerow", *words]


def run(words: list[str], folder: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": SOURCES}
    done = subprocess.run(command(words), cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


@contextmanager
def serving(commands: list[list[str]], folder: Path) -> Iterator[list[str]]:
    """Services while they run, and the tokens that they print. They start and stop together."""
    environment = {**os.environ, "PYTHONPATH": SOURCES, "PYTHONUNBUFFERED": "1"}
    with ExitStack() as open_:
        processes = []
        for words in commands:
            log = open_.enter_context((folder / f"{words[1]}.log").open("w"))
            process = subprocess.Popen(command(words), cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
            processes.append(open_.enter_context(process))
        try:
            said = ["".join(process.stdout.readline() for _ in range(3)) for process in processes if process.stdout is not None]
            yield [found for text in said for found in re.findall(r"hrw_[\w-]{43}", text)]
        finally:
            for process in processes:
                process.terminate()


def free_ports(number: int) -> list[int]:
    with ExitStack() as probes:
        found = [probes.enter_context(socket.socket()) for _ in range(number)]
        for probe in found:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in found]


def wait_for(port: int) -> None:
    import urllib3

    retries = urllib3.Retry(connect=100, backoff_factor=0.1, backoff_max=0.3)
    assert urllib3.request("GET", f"http://127.0.0.1:{port}/ready", retries=retries).status in (200, 503)


def test_the_network_of_the_document(tmp_path: Path) -> None:
    run(["demo", "--tables", ".", "--rows", "1000"], tmp_path)
    run(["plan", "--schema", "schema.toml", "--epsilon", "0.5", "--rows", "3000", "--owners", "3", "--save", "plan.json"], tmp_path)
    serves = [line for line in LINES if line.startswith("hedgerow serve")]
    (federate,) = [line for line in LINES if line.startswith("hedgerow federate")]
    setup = "\n".join(line for line in LINES if not line.startswith("hedgerow "))
    ports = dict(zip(("8301", "8302", "8303"), map(str, free_ports(3)), strict=True))

    def moved(text: str) -> str:
        return re.sub("|".join(ports), lambda found: ports[found[0]], text)

    with serving([shlex.split(moved(line))[1:] for line in serves], tmp_path) as owners:
        lines = []
        for (port, token), office in zip(zip(ports, owners, strict=True), "abc", strict=True):
            wait_for(int(ports[port]))
            text = setup.replace("8301", ports[port]).replace("office-a", f"office-{office}")
            text = text.replace("schema.toml", str(tmp_path / "schema.toml"))
            known = {"OWNERS_TOKEN": token}
            exec(text, known)
            lines.append(f"http://127.0.0.1:{ports[port]} {known['token']}")
        (tmp_path / "tokens.txt").write_text("\n".join(lines))
        (tmp_path / "tokens.txt").chmod(0o600)
        said = run(shlex.split(moved(federate))[1:], tmp_path)
    assert said.count("answered") == 3
    certificate = Release.load(tmp_path / "federated.json").certificate
    assert (certificate.epsilon, [part.owner for part in certificate.parts]) == ("0.5", ["Office A", "Office B", "Office C"])
    assert {part.id for part in certificate.parts} == {"visits"}
    assert (tmp_path / "federated.federation" / "federation.json").exists()
