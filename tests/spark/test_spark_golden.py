"""The golden releases, counts and scores of tests/golden from Spark's data frames, byte for byte."""

from __future__ import annotations

from typing import Any

import pytest
from golden.cases import CASES, TABLES, check, counted_plan, scores

SHOWN = ["hedgerow", "hedgerow-persons", "snr", "rdt-three-classes", "rdt-batches", "dpdf", "private-id3"]  # a job on Spark takes seconds


@pytest.fixture(scope="module")
def frames(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Every table as three Parquet files."""
    found = {}
    for name, table in TABLES.items():
        folder = tmp_path_factory.mktemp(name)
        for number in range(3):
            table.iloc[number::3].to_parquet(folder / f"{number}.parquet", index=False)
        found[name] = spark.read.parquet(str(folder))
    return found


@pytest.mark.parametrize("name", SHOWN)
def test_release(name: str, frames: dict[str, Any]) -> None:
    check(f"releases/{name}.json", CASES[name].bytes(frames[CASES[name].table]))


def test_counts_and_scores(frames: dict[str, Any]) -> None:
    check("owners/rdt-north.json", counted_plan(frames["flat"]))
    check("scores.json", scores(frames["flat"], frames["persons"]))
