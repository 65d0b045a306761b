"""Build the environment that a peer needs. diffprivlib does not import with current scikit-learn; interpret brings its own pins.

    python benchmarks/peers/make_env.py [--peer diffprivlib|interpret] [--where FOLDER]
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

PEERS = {  # packages, and what must then import
    "diffprivlib": (("diffprivlib==0.6.5", "scikit-learn==1.4.2", "numpy==1.26.*"), "diffprivlib.models"),
    "interpret": (("interpret-core==0.7.8", "scikit-learn==1.9.1", "pandas==3.1.1"), "interpret.privacy"),
}
VERSIONS = ("3.11", "3.12")  # the Pythons for which these releases have wheels


def folder_of(peer: str) -> Path:
    return Path(__file__).resolve().parent / f".venv-{peer}"


DEFAULT = folder_of("diffprivlib")


def python_in(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def usable(python: str) -> bool:
    """A launcher may exist without the version it names, or without venv: ask it."""
    question = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-c", question], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return False
    return done.returncode == 0 and done.stdout.strip() in VERSIONS


def find_python() -> str:
    candidates = [sys.executable, *(shutil.which(f"python{version}") or "" for version in VERSIONS)]
    for python in filter(None, candidates):
        if usable(python):
            return python
    sys.exit(f"make_env: found no Python {' or '.join(VERSIONS)} with venv on the PATH; install one, then try again.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", choices=list(PEERS), default="diffprivlib")
    parser.add_argument("--where", type=Path, help="folder of the environment")
    given = parser.parse_args()
    folder, (packages, module) = given.where or folder_of(given.peer), PEERS[given.peer]
    subprocess.run([find_python(), "-m", "venv", str(folder)], check=True)
    python = str(python_in(folder))
    subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
    subprocess.run([python, "-c", f"import {module}"], check=True)
    print(f"ready: {folder.name} has {', '.join(packages)}")


if __name__ == "__main__":
    main()
