"""A cluster with two workers, one of which is lost while it counts; and Spark Connect. Each runs in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from strategies import small_schema

from hedgerow import PrivateRDTClassifier
from hedgerow.mechanisms.coins import SeededCoins

needs_spark = pytest.mark.skipif(find_spec("pyspark") is None, reason="pyspark is not installed: pip install 'hedgerow[spark]'")
needs_connect = pytest.mark.skipif(find_spec("grpc") is None, reason="Spark Connect is not installed: pip install 'pyspark[connect]'")


def run(program: str, folder: Path) -> dict[str, Any]:
    command = [sys.executable, str(Path(__file__).with_name("programs.py")), program, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    answers: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answers


def in_memory(table: pd.DataFrame) -> str:
    model = PrivateRDTClassifier(small_schema(2000), 2, n_estimators=4, max_depth=2, random_state=0)
    model._coins = SeededCoins(7)
    return str(model.fit(table).release_.to_json(), "utf-8")


@needs_spark
def test_two_workers_and_the_loss_of_one(table: pd.DataFrame, folder: Path) -> None:
    answers = run("cluster", folder)
    expected = in_memory(table)
    assert answers["release"] == expected
    assert answers.get("counting when it was lost"), answers["stages"]
    assert answers["after the loss"] == expected
    assert (answers["remaining"], answers["charges"]) == (3, 1)  # of 5: the forest was paid once


@needs_spark
@needs_connect
def test_spark_connect(table: pd.DataFrame, folder: Path) -> None:
    answers = run("connect", folder)
    assert answers["module"].startswith("pyspark.sql.connect")
    assert answers["release"] == in_memory(table)
    assert answers["rows"] == len(table)
    assert answers["progress"][-1] == 1
    assert answers["remaining"] == 0
    assert answers["failure"].startswith("TableError: Spark DataFrame: the job failed")
    assert "Sherwood" not in answers["failure"]
    assert answers["failure"].endswith("None None")
