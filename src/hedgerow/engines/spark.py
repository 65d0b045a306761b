"""A Spark DataFrame: rows are encoded and counted on the executors, and only whole numbers come back to be added up.

One job for each query: one for a random forest, one for each level of a greedy tree. What comes back depends on the query and on the
number of partitions, never on the number of rows. Classic DataFrames and those of Spark Connect.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

import hedgerow
from hedgerow.engines.encoding_sql import identifier, needed_columns, spelled
from hedgerow.engines.engine import CountingEngine, Progress
from hedgerow.engines.persons import PersonLimit
from hedgerow.engines.spark_job import NAME, Job
from hedgerow.engines.spark_session import open_spark_table
from hedgerow.engines.spark_work import ANSWER, ENCODED, Task, add_to, added, counted, counted_by_person, encoded, ready, slices_of
from hedgerow.errors import TableError
from hedgerow.queries.query import Query, Sums
from hedgerow.schema.codebook import Codebook

__all__ = ["SparkRows", "open_spark_table"]

VERSION = hedgerow.__version__
STRAIGHT = 1 << 28  # bytes that may come from all partitions together; more is added up on the executors first
PARTITIONS = 10_000  # that are reckoned with before any job has told
TASKS = 4  # that see whether executors have what they need
MOST_ADDING = 32  # partitions that add up
TYPES = {  # as DuckDB sees in Arrow what Spark sends
    "string": "VARCHAR", "char": "VARCHAR", "varchar": "VARCHAR", "void": "VARCHAR", "boolean": "BOOLEAN",
    "tinyint": "TINYINT", "smallint": "SMALLINT", "int": "INTEGER", "bigint": "BIGINT", "float": "FLOAT", "double": "DOUBLE",
    "decimal": "DECIMAL", "date": "DATE", "timestamp_ntz": "TIMESTAMP",
}  # fmt: skip


class SparkRows(CountingEngine):
    """The rows of a DataFrame, which Spark computes again for each query. Making one looks at names and types only.

    sent_back: the bytes of counts that the last job sent to this process
    jobs:      how many jobs were run
    """

    def __init__(self, frame: Any, codebook: Codebook, progress: Progress | None = None, key: bytes = b"") -> None:
        super().__init__(codebook)
        self.sent_back = 0
        self.jobs = 0
        self._progress = progress
        self._key = key
        self._rows: int | None = None
        self._partitions = PARTITIONS
        schema = codebook.schema
        self._frame, self._columns = _selected(frame, needed_columns(codebook))
        task = Task(codebook, self._columns, None)
        task.encoding()  # refuses types that a column cannot have
        if schema.person is not None:
            task.person_sql()
            PersonLimit(schema.k, key)
        _check_executors(frame.sparkSession)

    def _pass(self, query: Query[Any]) -> Sums:
        from pyspark import cloudpickle

        dumps: Callable[[Any], bytes] = cloudpickle.dumps
        task = zlib.compress(dumps(Task(self.codebook, self._columns, query, self._key)), 1)
        totals = [*query.zeros(self.codebook), np.zeros(2, dtype=np.int64)]
        slices = slices_of(totals)
        adding = min(len(slices), MOST_ADDING) if sum(array.nbytes for array in totals) * self._partitions > STRAIGHT else 0
        self.jobs += 1
        answers = Job(self._frame.sparkSession, lambda: self._answers(task, adding), self._progress).collect()
        self.sent_back = sum(len(numbers) for _, numbers in answers)
        for place, numbers in answers:
            add_to(slices[place], numbers)
        rows, partitions = map(int, totals.pop())
        if self._rows is not None and rows != self._rows:
            raise TableError(
                f"{NAME}: its rows changed between two jobs: what was counted belongs to no one table, and nothing was released. What the "
                "request has charged stays spent. Read a snapshot (a table version, files that nobody writes to) or call cache() first; a "
                "sample or a limit gives other rows each time."
            )
        self._rows, self._partitions = rows, max(1, partitions)
        return totals

    def _answers(self, task: bytes, adding: int) -> Any:
        """A DataFrame of the answers: one for each partition, or added up on `adding` partitions."""
        if self.codebook.schema.person is None:
            answers = self._frame.mapInArrow(partial(counted, VERSION, task), ANSWER)
        else:
            rows = self._frame.mapInArrow(partial(encoded, VERSION, task), ENCODED)
            together = rows.repartition("person").sortWithinPartitions("person", "row")
            answers = together.mapInArrow(partial(counted_by_person, VERSION, task), ANSWER)
        return answers.repartition(adding, "slice").mapInArrow(partial(added, VERSION), ANSWER) if adding else answers


_checked: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


def _check_executors(session: Any) -> None:
    """A job without rows, once for each session: what is not installed should not cost any ε."""
    if _checked.get(session) != VERSION:
        Job(session, lambda: session.range(TASKS, numPartitions=TASKS).mapInArrow(partial(ready, VERSION), ANSWER), charged=False).collect()
        _checked[session] = VERSION


def _selected(frame: Any, needed: list[str]) -> tuple[Any, dict[str, tuple[str, str]]]:
    """The needed columns under plain names, and for each its name there and its type. Columns are found by place, so that names may hold
    dots or differ only in case."""
    fields = list(frame.schema.fields)
    names = [field.name for field in fields]
    absent = [name for name in needed if name not in names]
    if absent:
        raise TableError(f"{NAME}: the column(s) {', '.join(absent)} are missing; needed are {', '.join(needed)}.{spelled(names, needed)}")
    twice = [name for name in needed if names.count(name) > 1]
    if twice:
        raise TableError(f"{NAME}: it has several columns {', '.join(twice)}; expected one of each. Rename or drop the others.")
    places = {name: names.index(name) for name in needed}
    columns = {name: (identifier(f"c{i}"), _type_of(fields[i])) for name, i in places.items()}
    chosen = [f"CAST(c{i} AS STRING) AS c{i}" if fields[i].dataType.simpleString() == "void" else f"c{i}" for i in places.values()]
    return frame.toDF(*(f"c{i}" for i in range(len(names)))).selectExpr(*chosen), columns


def _type_of(field: Any) -> str:
    spark: str = field.dataType.simpleString()
    base = spark.split("(")[0].split("<")[0].split(" ")[0]
    if base not in TYPES:
        more = " The text of a timestamp depends on the time zone of an executor." if base == "timestamp" else ""
        raise TableError(
            f"column {field.name!r}: got Spark's type {spark[:60]}; expected text, numbers or booleans. Convert it first (cast)." + more
        )
    return TYPES[base] + (spark[len(base) :] if base == "decimal" else "")
