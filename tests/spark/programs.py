"""What needs a Spark of its own, since a process can have but one: run by `test_cluster.py`, each as a program that prints JSON.

python programs.py cluster FOLDER     two workers; then one of them is killed while it counts
python programs.py connect FOLDER     a client of Spark Connect
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ["PYSPARK_PYTHON"] = sys.executable

import exact as exact_answers
from spark.cluster import HOST, Cluster, connect_server, standalone
from strategies import small_schema

from hedgerow import Budget, PrivateRDTClassifier, private_score
from hedgerow.engines.spark import SparkRows
from hedgerow.mechanisms.coins import SeededCoins
from hedgerow.schema.codebook import Codebook


def model(budget: Budget | None = None) -> Any:
    made = PrivateRDTClassifier(small_schema(2000), 2, n_estimators=4, max_depth=2, random_state=0, budget=budget)
    made._coins = SeededCoins(7)
    return made


def released(frame: Any, budget: Budget | None = None) -> str:
    return str(model(budget).fit(frame).release_.to_json(), "utf-8")


def cluster(folder: str) -> dict[str, Any]:
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.memory": "1g",
        "spark.executor.memory": "512m",
        "spark.driver.bindAddress": HOST,
        "spark.driver.host": HOST,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.cores.max": "2",
    }
    with standalone(workers=2) as running:
        builder = SparkSession.builder.master(running.url).appName("hedgerow tests")
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        try:
            wait_for_executors(session, 2)
            frame = session.read.parquet(folder)
            answers: dict[str, Any] = {"release": released(frame.repartition(4))}
            seen: dict[str, Any] = {}
            killer = threading.Thread(target=kill_while_it_counts, args=(session, running, seen), daemon=True)
            killer.start()
            budget = Budget(5)
            answers["after the loss"] = released(frame.repartition(8).mapInArrow(slowly(1.0), frame.schema), budget)
            killer.join(10)
            answers |= {**seen, "remaining": float(budget.remaining), "charges": len(budget.entries)}
        finally:
            session.stop()
    return answers


def wait_for_executors(session: Any, number: int) -> None:
    end = time.monotonic() + 90
    while session.sparkContext._jsc.sc().getExecutorMemoryStatus().size() < number + 1:  # and the driver
        assert time.monotonic() < end, "executors do not start"
        time.sleep(0.1)


def slowly(seconds: float) -> Any:
    """Rows that take their time, so that a worker can be lost among them."""

    def work(batches: Any) -> Iterator[Any]:
        import time

        for batch in batches:
            time.sleep(seconds)
            yield batch

    return work


def kill_while_it_counts(session: Any, running: Cluster, seen: dict[str, Any]) -> None:
    """Wait until both executors are at work on the stage with eight tasks, and some are done; then one machine is gone."""
    tracker = session.sparkContext.statusTracker()
    end = time.monotonic() + 120
    while time.monotonic() < end:
        stages = [stage for stage in map(tracker.getStageInfo, tracker.getActiveStageIds()) if stage is not None]
        seen["stages"] = [stage for stage in stages if stage.numTasks == 8] or seen.get("stages")
        if any(stage.numTasks == 8 and stage.numActiveTasks >= 2 and stage.numCompletedTasks >= 1 for stage in stages):
            running.kill_worker(0)
            time.sleep(0.2)
            seen["counting when it was lost"] = bool(tracker.getActiveJobsIds())
            return
        time.sleep(0.05)


def connect(folder: str) -> dict[str, Any]:
    from pyspark.sql import SparkSession

    with connect_server("local[2]") as address:
        session = SparkSession.builder.remote(address).getOrCreate()
        try:
            frame = session.read.parquet(folder)
            shares: list[float] = []
            counted = exact_answers.count_rows(SparkRows(frame, Codebook(small_schema()), progress=shares.append))
            made = model().fit(frame)
            budget = Budget(1)
            private_score(made, frame, epsilon=1, budget=budget)
            answers = {
                "module": type(frame).__module__,
                "release": str(made.release_.to_json(), "utf-8"),
                "rows": counted,
                "progress": shares,
                "remaining": float(budget.remaining),
                "failure": failure(frame),
            }
        finally:
            session.stop()
    return answers


def failure(frame: Any) -> str:
    try:
        model().fit(frame.filter("CASE WHEN age > 1 THEN raise_error('Sherwood-4711') ELSE true END"))
    except Exception as error:
        return f"{type(error).__name__}: {error} {error.__context__!r} {error.__cause__!r}"
    return ""


if __name__ == "__main__":
    print(json.dumps({"cluster": cluster, "connect": connect}[sys.argv[1]](sys.argv[2])))
