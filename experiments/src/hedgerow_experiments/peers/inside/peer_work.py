"""Runs inside a peer's environment, imported by the peer's script: reads table and job, fits, writes answers one by one."""

import json
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from peer_memory import few_of, measured  # type: ignore[import-not-found]

# (arrays of the table, number of classes, variant) -> the matrix for this peer, and ε -> a new model
Prepare = Callable[[Any, int, str], tuple[Any, Callable[[float], Any]]]


def work(prepare: Prepare) -> None:
    folder = Path(sys.argv[1])
    job = json.loads((folder / "job.json").read_text())
    with np.load(folder / "table.npz") as stored:
        arrays = dict(stored)
    warnings.simplefilter("ignore")  # they would be printed once a tree
    X, make = prepare(arrays, job["classes"], job["variant"])
    print(json.dumps({"ready": True}), flush=True)
    for number, fit in enumerate(job["fits"]):
        rows = arrays["y"], arrays[f"train{fit['fold']}"], arrays[f"test{fit['fold']}"]
        do = _memory if job["measure"] == "memory" else _fit
        line: dict[str, Any]
        try:
            line = do(partial(make, fit["epsilon"]), X, *rows, folder / f"{number}.npz")
        except Exception as error:  # whatever it is, it is stored as the reason, and the next fit has its turn
            line = {"failed": f"{type(error).__name__}: {str(error)[:200]}"}
        print(json.dumps(line), flush=True)


def _fit(make: Callable[[], Any], X: Any, y: Any, train: Any, test: Any, file: Path) -> dict[str, float]:
    start = time.perf_counter()
    model = make().fit(X[train], y[train])
    between = time.perf_counter()
    predicted = model.predict(X[test])
    end = time.perf_counter()
    np.savez(file, predicted=predicted, probabilities=model.predict_proba(X[test]))
    return {"fit": between - start, "predict": end - between}


def _memory(make: Callable[[], Any], X: Any, y: Any, train: Any, test: Any, file: Path) -> dict[str, float]:
    few = few_of(train)
    make().fit(X[few], y[few]).predict(X[few])
    train_X, train_y, test_X = X[train], y[train], X[test]
    found: dict[str, float] = measured(lambda: make().fit(train_X, train_y), lambda model: model.predict(test_X))
    return found
