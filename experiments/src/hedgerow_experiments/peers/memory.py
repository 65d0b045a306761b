"""Peak memory of one fit (the first fold, ε = 1) beyond its input, in a process that makes no other but a small one to warm up.

python -m hedgerow_experiments.peers.memory SET MODEL      measures a model of this environment, prints JSON
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from typing import Any

from hedgerow_experiments.peers import processes
from hedgerow_experiments.peers.environments import one_thread
from hedgerow_experiments.peers.fits import Fit
from hedgerow_experiments.peers.inside.peer_memory import few_of, measured
from hedgerow_experiments.peers.models import MODELS
from hedgerow_experiments.peers.tables import table_of

PATIENCE = 120  # seconds for everything
EPSILON = "1"


def memory_of(set_name: str, model_name: str) -> dict[str, Any]:
    model = MODELS[model_name]
    if model.peer:
        return processes.memory(model.peer, model.variant, table_of(set_name), Fit(EPSILON, 0), PATIENCE)
    command = [sys.executable, "-m", "hedgerow_experiments.peers.memory", set_name, model_name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False, env=one_thread())
    except subprocess.TimeoutExpired:
        return {"failed": f"not done within {PATIENCE} s"}
    if done.returncode:
        return {"failed": f"its process ended with code {done.returncode}: {done.stderr.strip()[-200:]}"}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measure_here(set_name: str, model_name: str) -> dict[str, float]:
    prepare, table, fit = MODELS[model_name].prepare, table_of(set_name), Fit(EPSILON, 0)
    assert prepare is not None
    model, (train, test) = prepare(table), table.folds[0]
    few = few_of(train)
    model.fit(model.take(few), few, fit)(model.take(few))
    rows, others = model.take(train), model.take(test)
    return measured(lambda: model.fit(rows, train, fit), lambda fitted: fitted(others))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(measure_here(*sys.argv[1:])))
