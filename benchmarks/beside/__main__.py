"""Accuracy side by side, stored.

    python -m benchmarks.beside run [--models a,b] [--sets x,y] [--epsilons 0.1,1] [--repetitions 3]
    python -m benchmarks.beside report          docs/ACCURACY.md from the stored results, nothing is fitted
    python -m benchmarks.beside forget --models hedgerow      after a change to it; then run again
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.beside.models import MODELS
from benchmarks.beside.protocol import EPSILONS, EXTRA, SETS
from benchmarks.beside.store import RESULTS, Store

REPORT = Path(__file__).resolve().parents[2] / "docs" / "ACCURACY.md"


def names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.beside", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "report", "forget"))
    parser.add_argument("--models", type=names, help=f"some of {', '.join(MODELS)}")
    parser.add_argument("--sets", type=names, default=[*SETS, *EXTRA])
    parser.add_argument("--epsilons", type=names, default=list(EPSILONS))
    parser.add_argument("--repetitions", type=int, default=1, help="new noise on the same folds")
    parser.add_argument("--patience", type=int, default=300, help="seconds for one fit")
    parser.add_argument("--minutes", type=float, default=30, help="for one model on one set")
    parser.add_argument("--retry", action="store_true", help="try again what was given up")
    parser.add_argument("--store", type=Path, default=RESULTS)
    given = parser.parse_args()
    unknown = [*(set(given.models or []) - set(MODELS)), *(set(given.sets) - {*SETS, *EXTRA})]
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    store = Store(given.store)
    if given.what == "run":
        from benchmarks.beside.run import run

        chosen = given.models or list(MODELS)
        made = run(store, chosen, given.sets, given.epsilons, given.repetitions, given.patience, given.minutes, retry=given.retry)
        print(f"{made} fits")
    elif given.what == "forget":
        if not given.models:
            parser.error("forget: name the models with --models")
        print(f"{store.forget(given.models)} rows forgotten")
    else:
        from benchmarks.beside.report import report

        REPORT.write_text(report(store.rows().values()), encoding="utf-8")


if __name__ == "__main__":
    main()
