"""The package as users get it: built, installed where the repository is not, and run there.

    python scripts/package_test.py [--only 3.12 | lowest]

A wheel and a source archive are built; a wheel of the source archive has the same files. Then, each in an environment of its own in a
temporary folder: the wheel with every Python from 3.11 to 3.13 that is found here, and with the lowest versions of what it needs. In
each `hedgerow demo` runs, and a forest is fitted, saved and read; in one without extras, everything that needs an extra must name it.
Most of the time goes into compiling loops, which every new environment does once.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13")
CHECK = """
import hedgerow, pathlib, sys
where = pathlib.Path(hedgerow.__file__).resolve()
assert pathlib.Path(sys.prefix).resolve() in where.parents, where
assert (where.parent / "py.typed").exists() and (where.parent / "mechanisms" / "PROOF.md").exists()
for name in hedgerow.__all__:
    getattr(hedgerow, name)
from hedgerow.datasets import patients
rows = patients(500, seed=1)
model = hedgerow.HedgerowClassifier(rows.schema, epsilon=1, budget=hedgerow.Budget(1)).fit(rows.X, rows.y)
model.release_.save("again.json")
assert (hedgerow.Release.load("again.json").predict(rows.X) == model.predict(rows.X)).all()
"""
TABLE = "from hedgerow.datasets import patients; rows = patients(200, seed=1); import hedgerow; B = hedgerow.Budget(9); "
POSTGRES = 'hedgerow.HedgerowClassifier(rows.schema, 1, budget=B).fit(hedgerow.SQLTable("postgresql://nobody@localhost/x", table="t"))'
MISSING = {  # without extras: what is tried, and the extra that its error names
    "opendp": ["-c", TABLE + 'hedgerow.SNRForestClassifier(rows.schema, 1, sampler="opendp", budget=B).fit(rows.X, rows.y)'],
    "pandas": ["-c", TABLE + "hedgerow.DPDFClassifier(rows.schema, 1, budget=B).fit(rows.X, rows.y).release_.rules(as_frame=True)"],
    "postgresql": ["-c", TABLE + POSTGRES],
    "client": ["-c", 'import hedgerow; hedgerow.connect("http://127.0.0.1:9", "hrw_x").datasets()'],
    "curator": ["-m", "hedgerow", "serve", "folder"],
    "spark": ["-m", "hedgerow", "fit", "visits", "--engine", "spark", "--schema", "schema.toml", "--epsilon", "1", "-o", "f.json"],
    "onnx": ["-c", TABLE + 'hedgerow.export(hedgerow.HedgerowClassifier(rows.schema, 1, budget=B).fit(rows.X, rows.y).release_, "onnx")'],
    "together": [
        "-m",
        "hedgerow",
        "together",
        "plan.json",
        "rows.csv",
        "more.csv",
        "others.csv",
        "--local",
        "3",
        "--disjoint",
        "-o",
        "t.json",
    ],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", help="one version of Python, such as 3.12; or lowest")
    wanted = parser.parse_args().only
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        said([sys.executable, "-m", "build", "--outdir", folder / "dist", ROOT], folder)
        wheel, source = (next((folder / "dist").glob(pattern)) for pattern in ("*.whl", "*.tar.gz"))
        print(f"built {wheel.name} ({wheel.stat().st_size // 1000} kB) and {source.name} ({source.stat().st_size // 1000} kB)")
        pythons = {version: python for version in PYTHONS if (python := interpreter(version))}
        for version in PYTHONS:
            if version not in pythons:
                print(f"Python {version}: left out, no such interpreter here")
        if not pythons:
            sys.exit("no Python to try the package with: install one of " + ", ".join(PYTHONS))
        same_files(source, wheel, folder)
        with ThreadPoolExecutor(2) as pool:
            work = [
                pool.submit(tried, folder / f"wheel-{version}", python, [wheel], f"Python {version}, wheel")
                for version, python in pythons.items()
                if wanted in (None, version)
            ]
            if wanted in (None, "lowest"):
                work.append(pool.submit(with_lowest_versions, folder / "lowest", next(iter(pythons.values())), wheel))
            environments = [each.result() for each in work]
        missing_extras(environments[0])


def with_lowest_versions(folder: Path, python: str, wheel: Path) -> Path:
    """The lowest version of everything that the package names: it claims to work with them."""
    needs = core_requirements(wheel)
    its = tried(folder, python, ["--resolution", "lowest-direct", wheel, *needs], "lowest versions")
    installed = said([uv(), "pip", "freeze", "--python", its], folder).split()
    for need in needs:
        name, _, lowest = need.partition(">=")
        assert any(f"{each}.".startswith(f"{name}=={lowest}.") for each in installed), f"{need}: not the lowest, {installed}"
    print("  " + ", ".join(each for each in installed if each.partition("==")[0] in {need.partition(">=")[0] for need in needs}))
    return its


def same_files(source: Path, wheel: Path, folder: Path) -> None:
    """What is installed from the source archive is what is in the wheel."""
    said([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder / "again", source], folder)
    ours, again = (
        {each.filename: each.CRC for each in ZipFile(path).infolist() if not each.filename.endswith("RECORD")}
        for path in (wheel, next((folder / "again").glob("*.whl")))
    )
    assert ours == again, set(ours.items()) ^ set(again.items())
    print(f"source archive: makes the same wheel, {len(ours)} files")


def interpreter(version: str) -> str | None:
    """A Python of this version that starts: on the path, or one of pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for candidate in [shutil.which(f"python{version}"), *sorted(map(str, pyenv.glob(f"{version}.*/bin/python")))]:
        if candidate and subprocess.run([candidate, "-c", ""], capture_output=True, check=False).returncode == 0:
            return candidate
    return None


def core_requirements(wheel: Path) -> list[str]:
    """What the wheel needs without extras: named by itself, uv takes the lowest version that is allowed of each."""
    with ZipFile(wheel) as archive:
        name = next(each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        needs = [
            line.removeprefix("Requires-Dist: ") for line in archive.read(name).decode().splitlines() if line.startswith("Requires-Dist: ")
        ]
    return [need for need in needs if "extra ==" not in need]


def uv() -> str:
    beside = Path(sys.executable).parent / "uv"
    return str(beside) if beside.exists() else "uv"


def tried(folder: Path, python: str, packages: Sequence[str | Path], what: str) -> Path:
    """Installed in a new environment, and the demo run in an empty folder; the environment's Python."""
    begun = time.monotonic()
    folder.mkdir()
    said([uv(), "venv", "--quiet", "--python", python, folder / "env"], folder)
    its = folder / "env" / "bin" / "python"
    said([uv(), "pip", "install", "--quiet", "--python", its, *packages], folder)
    installed = time.monotonic()
    said([folder / "env" / "bin" / "hedgerow", "demo", "-o", "demo.html"], folder)
    assert (folder / "demo.html").stat().st_size > 10_000
    said([its, "-c", CHECK], folder)
    print(f"{what}: installed in {installed - begun:.0f} s, demo and a fit in {time.monotonic() - installed:.0f} s", flush=True)
    return its


def missing_extras(its: Path) -> None:
    """Each extra is named by the error of what needs it."""
    folder = its.parents[2]
    say = "from hedgerow.datasets import patients; rows = patients(200, seed=1); rows.schema.save('schema.toml'); "
    say += "[rows.to_csv(f'{name}.csv') for name in ('rows', 'more', 'others')]"
    said([its, "-c", say], folder)
    said([its, "-m", "hedgerow", "plan", "--schema", "schema.toml", "--epsilon", "1", "--rows", "200", "--save", "plan.json"], folder)
    for extra, words in MISSING.items():
        done = subprocess.run([its, *words], cwd=folder, capture_output=True, text=True, check=False, env=outside())
        text = " ".join((done.stdout + done.stderr).split())
        assert done.returncode != 0, extra
        assert f"pip install 'hedgerow[{extra}]'" in text, f"{extra}: {text[-600:]}"
    print(f"without extras: what needs one names it ({', '.join(MISSING)})")


def outside() -> dict[str, str]:
    """Nothing of the repository or of the environment that this runs in; certificates of the system."""
    left = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")}
    return {**left, "UV_SYSTEM_CERTS": "1", "COLUMNS": "200", "PYTHONDONTWRITEBYTECODE": ""}


def said(words: Sequence[str | Path], folder: Path) -> str:
    done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True, check=False, env=outside())
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return done.stdout


if __name__ == "__main__":
    main()
