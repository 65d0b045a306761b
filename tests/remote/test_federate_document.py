"""The services and commands of docs/SEVERAL_OWNERS.md and docs/TOGETHER.md, as a user would type them: real processes, at other ports."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from multiparty.owners import free_ports

import hedgerow
from hedgerow import Release

SOURCES = str(Path(hedgerow.__file__).parents[1])
TEXT = (Path(__file__).parents[2] / "docs" / "SEVERAL_OWNERS.md").read_text(encoding="utf-8")
TOGETHER = (Path(__file__).parents[2] / "docs" / "TOGETHER.md").read_text(encoding="utf-8")
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
def serving(commands: list[list[str]], folder: Path) -> Iterator[list[tuple[str, str]]]:
    """Services while they run: the addresses and the tokens of their owners. They start and stop together."""
    environment = {**os.environ, "PYTHONPATH": SOURCES, "PYTHONUNBUFFERED": "1"}
    with ExitStack() as open_:
        processes = []
        for words in commands:
            log = open_.enter_context((folder / f"{words[1]}.log").open("w"))
            process = subprocess.Popen(command(words), cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
            processes.append(open_.enter_context(process))
        try:
            yield [said_by(process, words, folder) for process, words in zip(processes, commands, strict=True)]
        finally:
            for process in processes:
                process.terminate()


def said_by(process: subprocess.Popen[str], words: list[str], folder: Path) -> tuple[str, str]:
    """The address, which is said when requests are answered, and the token, which is in a file."""
    said = ""
    while (found := re.search(r"serving at (\S+)", said)) is None:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "the service has ended"
        said += line
    return found[1], (folder / words[1] / "owner.token").read_text().strip()


def network(folder: Path, serves: list[str], federate: str) -> str:
    """Start the services, set each up as its owner, ask them, and give what was said."""
    setup = "\n".join(line for line in LINES if not line.startswith("hedgerow "))
    with serving([shlex.split(re.sub("830[123]", "0", line))[1:] for line in serves], folder) as owners:  # each at a port of its own
        lines = []
        for (address, token), office, port in zip(owners, "abc", ("8301", "8302", "8303"), strict=True):
            text = setup.replace("http://127.0.0.1:8301", address).replace("office-a", f"office-{office}")
            text = text.replace("schema.toml", str(folder / "schema.toml"))
            known = {"OWNERS_TOKEN": token}
            exec(text, known)
            lines.append(f"{address} {known['token']}")
            federate = federate.replace(f"http://127.0.0.1:{port}", address)
        (folder / "tokens.txt").write_text("\n".join(lines))
        (folder / "tokens.txt").chmod(0o600)
        return run(shlex.split(federate)[1:], folder)


@pytest.mark.slow
def test_the_network_of_the_document(tmp_path: Path) -> None:
    run(["demo", "--tables", ".", "--rows", "1000"], tmp_path)
    run(["plan", "--schema", "schema.toml", "--epsilon", "0.5", "--rows", "3000", "--owners", "3", "--save", "plan.json"], tmp_path)
    serves = [line for line in LINES if line.startswith("hedgerow serve")]
    (federate,) = [line for line in LINES if line.startswith("hedgerow federate")]
    said = network(tmp_path, serves, federate)
    assert said.count("answered") == 3
    certificate = Release.load(tmp_path / "federated.json").certificate
    assert (certificate.epsilon, [part.owner for part in certificate.parts]) == ("0.5", ["Office A", "Office B", "Office C"])
    assert {part.id for part in certificate.parts} == {"visits"}
    assert (tmp_path / "federated.federation" / "federation.json").exists()


@pytest.mark.slow
def test_the_services_that_count_together(tmp_path: Path) -> None:
    lines = [line.strip() for line in TOGETHER.splitlines() if line.startswith("    hedgerow ")]
    ports = dict(zip(("7701", "7702", "7703"), map(str, free_ports(3)), strict=True))
    run(["demo", "--tables", ".", "--rows", "1000"], tmp_path)
    for line in lines:
        if line.startswith(("hedgerow plan", "hedgerow together init")):
            run(shlex.split(re.sub(r"770[123]", lambda found: ports[found[0]], line))[1:], tmp_path)
    (federate,) = [line for line in lines if line.startswith("hedgerow federate")]
    said = network(tmp_path, [line for line in lines if line.startswith("hedgerow serve")], federate)
    assert said.count("answered") == 3
    release = Release.load(tmp_path / "federated.json")
    (part,) = release.certificate.parts
    assert (release.certificate.epsilon, part.owners) == ("0.5", ["office-a", "office-b", "office-c"])
    assert len(release.signatures) == 3  # each service has signed it
