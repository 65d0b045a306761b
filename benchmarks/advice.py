"""How far `hedgerow advise` is to be trusted: what it expects beside what a forest then gets, on the ten public sets.

    HEDGEROW_DATA=folder python -m benchmarks.advice out.json [--rows 5000]

Of each set at most so many rows are taken: half to train on, a quarter to test on, a quarter as the public table that is alike. An
earlier release at ε = 0.2 is made from the rows to train on, as an owner would; from it, from the quarter that is alike, and from the
schema alone, accuracies are expected at EPSILONS, and compared with those of real fits. One fit of each (two of the real ones), so that
single cells are rough.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow import datasets
from hedgerow.planner.made_rows import MadeRows, dummy_rows, forest_rows, like_rows
from hedgerow.planner.trials import accuracy_of
from hedgerow_experiments.folds import quiet_fit

SETS = ("adult", "bank-marketing", "car", "cmc", "connect-4", "german-credit", "mushroom", "nursery", "tic-tac-toe", "votes")
EPSILONS = ("0.2", "0.5", "1", "2", "4")
DELTA = "1e-6"
EARLIER = "0.2"


def measured(name: str, most: int, algorithm: str = "hedgerow") -> dict[str, Any]:
    import hedgerow

    data = datasets.load(name)
    order = np.random.default_rng(0).permutation(len(data))[:most]
    columns = {key: np.asarray(column)[order] for key, column in data.columns.items()}
    labels, parts = data.y[order], np.split(np.arange(len(order)), [len(order) // 4, len(order) // 2])
    test, alike, train = parts  # no row is in two of them

    def of(which: Any) -> dict[str, Any]:
        return {key: column[which] for key, column in columns.items()}

    real_rows = MadeRows(of(train), labels[train], of(test), labels[test])
    earlier = quiet_fit(hedgerow.HedgerowClassifier(data.schema, EARLIER, DELTA), real_rows.train, real_rows.train_labels).release_
    rows = len(train)
    makers = {
        "forest": forest_rows(earlier, rows),
        "like": like_rows(data.schema, rows, of(alike), labels[alike]),
        "dummy": dummy_rows(data.schema, rows),
    }
    made = {kind: maker(1) for kind, maker in makers.items()}
    shares = np.unique(labels, return_counts=True)[1]
    found: dict[str, Any] = {
        "set": name,
        "rows": rows,
        "classes": len(data.schema.target.classes),
        "majority": float(shares.max() / shares.sum()),
    }
    codes = earlier.codebook.encode(made["forest"].test)
    found["sure"] = float(earlier.predict_codes_proba(codes).max(axis=1).mean())
    for epsilon in EPSILONS:
        found[epsilon] = {
            "real": float(np.mean([accuracy_of(algorithm, data.schema, epsilon, DELTA, real_rows, seed) for seed in (0, 1)])),
            **{kind: accuracy_of(algorithm, data.schema, epsilon, DELTA, each, 0) for kind, each in made.items()},
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--rows", type=int, default=5_000)
    arguments = parser.parse_args()
    found = json.loads(arguments.output.read_text()) if arguments.output.exists() else []
    for name in SETS:
        if all(each["set"] != name for each in found):
            start = time.perf_counter()
            found.append(measured(name, arguments.rows))
            arguments.output.write_text(json.dumps(found, indent=1) + "\n")
            print(name, f"{time.perf_counter() - start:.0f} s", json.dumps(found[-1]), flush=True)


if __name__ == "__main__":
    main()
