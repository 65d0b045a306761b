"""One small Spark on this machine for all tests of this folder, which are run by `make spark-test`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from strategies import small_table

HERE = Path(__file__).parent
ROWS = 2000


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "spark: needs Spark and Java, run by `make spark-test`")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Two threads as executors, each with Python workers of its own."""
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'hedgerow[spark]'")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.local.dir": str(tmp_path_factory.mktemp("local")),
        "spark.sql.files.maxPartitionBytes": "16k",
        "spark.sql.files.openCostInBytes": "0",
    }
    builder = SparkSession.builder.master("local[2]").appName("hedgerow tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def table() -> pd.DataFrame:
    columns, labels = small_table(ROWS)
    return pd.DataFrame({**columns, "class": labels})


@pytest.fixture(scope="session")
def folder(table: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same table as three Parquet files."""
    place = tmp_path_factory.mktemp("rows")
    for number in range(3):
        table.iloc[number::3].to_parquet(place / f"{number}.parquet", index=False)
    return place


@pytest.fixture(scope="session")
def frame(spark: Any, folder: Path) -> Any:
    return spark.read.parquet(str(folder))
