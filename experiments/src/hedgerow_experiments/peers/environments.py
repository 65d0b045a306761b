"""The environments that the peers need: diffprivlib does not import with current scikit-learn; interpret and dpmm bring their own pins.

They live in a cache folder: $HEDGEROW_PEERS, or hedgerow/peers in $XDG_CACHE_HOME, or ~/.cache/hedgerow/peers.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from hedgerow.errors import ExperimentError
from hedgerow_experiments.run import THREADS

VERSIONS = ("3.11", "3.12")  # the Pythons for which these releases have wheels
PEERS = {  # packages, what must then import, and the Pythons: dpmm refuses 3.12
    "diffprivlib": (("diffprivlib==0.6.5", "scikit-learn==1.4.2", "numpy==1.26.*"), "diffprivlib.models", VERSIONS),
    "interpret": (("interpret-core==0.7.8", "scikit-learn==1.9.1", "pandas==3.1.1"), "interpret.privacy", VERSIONS),
    "dpmm": (("dpmm==0.1.9", "scikit-learn==1.5.0", "numpy==1.26.4", "pandas==2.1.0", "scipy==1.17.1"), "dpmm.pipelines", ("3.11",)),
}
MARK = "hedgerow-packages.txt"  # written last, with what was asked for: an environment without it, or with other words, is not ready


def folder_of(peer: str) -> Path:
    if named := os.environ.get("HEDGEROW_PEERS"):
        return Path(named) / peer
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hedgerow" / "peers" / peer


def python_of(peer: str) -> Path:
    return folder_of(peer) / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def missing(peer: str) -> str | None:
    """None if the peer can run here; otherwise why not, and what to do."""
    mark = folder_of(peer) / MARK
    if mark.exists() and mark.read_text(encoding="utf-8") == _words(peer) and python_of(peer).exists():
        return None
    return f"{peer} needs an environment of its own, which is not there. Next: hedgerow experiments peers {peer}"


def build(peer: str) -> Path:
    """The folder of the peer's environment, built if it is not ready."""
    if peer not in PEERS:
        raise ExperimentError(f"peer: got {peer!r}; expected one of {', '.join(PEERS)}.")
    folder, (packages, module, versions) = folder_of(peer), PEERS[peer]
    if missing(peer) is None:
        return folder
    if folder.exists() and any(folder.iterdir()) and not (folder / "pyvenv.cfg").exists():
        raise ExperimentError(f"environment of {peer}: {str(folder)!r} holds something else. Set HEDGEROW_PEERS to another folder.")
    _do(peer, [_find_python(versions), "-m", "venv", "--clear", str(folder)])
    _do(peer, [str(python_of(peer)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages])
    _do(peer, [str(python_of(peer)), "-c", f"import {module}"])
    (folder / MARK).write_text(_words(peer), encoding="utf-8")
    return folder


def one_thread() -> dict[str, str]:
    """The environment variables for a process that is to use one core."""
    return dict(os.environ) | dict.fromkeys(THREADS, "1")


def clean_environment() -> dict[str, str]:
    """For a peer's process: one thread, and its own packages, not ours."""
    return {name: value for name, value in one_thread().items() if name != "PYTHONPATH"}


def _words(peer: str) -> str:
    return "\n".join(PEERS[peer][0]) + "\n"


def _do(peer: str, command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=clean_environment())
    if done.returncode:
        said = done.stderr.strip()[-500:]
        raise ExperimentError(f"environment of {peer}: `{' '.join(command[1:4])} …` ended with code {done.returncode}. It said: {said}")


def _find_python(versions: Sequence[str]) -> str:
    for python in (sys.executable, *(shutil.which(f"python{version}") for version in versions)):
        if python and _usable(python, versions):
            return python
    raise ExperimentError(f"peers: found no Python {' or '.join(versions)} with venv; expected one on the PATH. Install one.")


def _usable(python: str, versions: Sequence[str]) -> bool:
    """A launcher may exist without the version it names, or without venv: ask it."""
    question = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-c", question], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return False
    return done.returncode == 0 and done.stdout.strip() in versions
