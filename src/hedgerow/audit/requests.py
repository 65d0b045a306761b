"""Every kind of request that pays for looks at rows, as functions to replay; and the places where the rows of a small table may be."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hedgerow.audit.algorithms import ALGORITHMS
from hedgerow.audit.neighbours import SMALL, Table
from hedgerow.engines.sql import SQLTable
from hedgerow.schema.attributes import Categorical, Numeric
from hedgerow.schema.schema import Schema

Placed = tuple[Any, Any]  # X and y as `fit` takes them
Place = Callable[[Table], Placed]
WIDE = replace(SMALL, attributes=(*SMALL.attributes, *(Categorical(f"c{i}", ("0", "1")) for i in range(11))))  # enough for δ to be used


@dataclass(frozen=True)
class Request:
    """A request to the rows of a table at ε: everything that its user would get comes out."""

    ask: Callable[[Any, Any, Schema, Any, dict[str, Any]], Any]
    epsilon: Any = 1
    settings: dict[str, Any] = field(default_factory=dict)
    place: Place = lambda table: (table.columns, table.target)

    def __call__(self, table: Table) -> Any:
        X, y = self.place(table)
        return self.ask(X, y, table.schema, self.epsilon, {"random_state": 0, "n_jobs": 1, **self.settings})


def fit(algorithm: str) -> Callable[..., Any]:
    """The fitted estimator."""

    def ask(X: Any, y: Any, schema: Schema, epsilon: Any, settings: dict[str, Any]) -> Any:
        import hedgerow

        name, own = ALGORITHMS[algorithm]
        return getattr(hedgerow, name)(schema, epsilon, **{**own, **settings}).fit(X, y)

    return ask


def evaluate(X: Any, y: Any, schema: Schema, epsilon: Any, settings: dict[str, Any]) -> Any:
    """A forest, its private score, its calibration, its AUC, and all of these for one charge."""
    from hedgerow import HedgerowClassifier, private_calibration, private_score
    from hedgerow.evaluation.private import private_evaluation

    model = HedgerowClassifier(schema, epsilon, **settings).fit(X, y)
    score, calibration = (ask(model, X, y, epsilon=epsilon) for ask in (private_score, private_calibration))
    ranked = private_score(model, X, y, epsilon=epsilon, metrics=["auc"], bins=4)
    return (model, score, calibration, ranked, *private_evaluation(model, X, y, epsilon=epsilon, bins=4))


def tune(X: Any, y: Any, schema: Schema, epsilon: Any, settings: dict[str, Any]) -> Any:
    from hedgerow import PrivateRDTClassifier

    return PrivateRDTClassifier(schema, epsilon, n_estimators=2, **settings).tune(X, y, grid={"max_depth": [1, 2]})


def update(X: Any, y: Any, schema: Schema, epsilon: Any, settings: dict[str, Any]) -> Any:
    """Two batches with the same rows: each costs ε."""
    from hedgerow import HedgerowClassifier

    model = HedgerowClassifier(schema, epsilon, **settings)
    for batch in ("one", "two"):
        model.partial_fit(X, y, batch=batch)
    return model


def count(X: Any, y: Any, schema: Schema, epsilon: Any, settings: dict[str, Any]) -> Any:
    """One owner's counts in a plan."""
    import hedgerow

    plan = hedgerow.PrivateRDTClassifier(schema, epsilon, n_estimators=3, max_depth=2, **settings).public_plan()
    return hedgerow.count(plan, X, y, owner="one")


OTHERS: dict[str, tuple[Callable[..., Any], int]] = {  # requests beside `fit`, and how many times ε they cost together
    "evaluate": (evaluate, 5),
    "tune": (tune, 1),
    "update": (update, 2),
    "count": (count, 1),
}


# ---------------------------------------------------------------- places


@contextmanager
def place_named(engine: str) -> Iterator[Place]:
    """Where the rows are put before they are asked about. Both tables of a pair have the same name, so that no message tells them apart."""
    with TemporaryDirectory(prefix="hedgerow-replay-") as folder:
        yield PLACES[engine](Path(folder))


def _memory(folder: Path) -> Place:
    return lambda table: (table.columns, table.target)


def _csv(folder: Path) -> Place:
    def put(table: Table) -> Placed:
        columns = {**table.columns, table.schema.target.name: table.target}
        with open(folder / "rows.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))
        return folder / "rows.csv", None

    return put


def arrow_of(table: Table) -> Any:
    """Numbers as doubles, all else as text: types that follow from the schema. A number that is none is missing."""
    import pyarrow as pa

    numeric = {attribute.name for attribute in table.schema.attributes if isinstance(attribute, Numeric)}
    columns = {**table.columns, table.schema.target.name: table.target}
    arrays = {
        name: pa.array([_number(value) for value in column], type=pa.float64())
        if name in numeric
        else pa.array([None if value is None else str(value) for value in column], type=pa.string())
        for name, column in columns.items()
    }
    return pa.table(arrays)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _parquet(folder: Path) -> Place:
    def put(table: Table) -> Placed:
        import pyarrow.parquet as pq

        pq.write_table(arrow_of(table), folder / "rows.parquet", row_group_size=50)
        return folder / "rows.parquet", None

    return put


def _duckdb(folder: Path) -> Place:
    def put(table: Table) -> Placed:
        import duckdb

        file, rows = folder / "rows.duckdb", arrow_of(table)
        file.unlink(missing_ok=True)
        with duckdb.connect(str(file)) as connection:
            connection.register("given", rows)
            connection.execute("CREATE TABLE rows AS SELECT * FROM given")
        return SQLTable(str(file), table="rows"), None

    return put


PLACES: dict[str, Callable[[Path], Place]] = {"memory": _memory, "csv": _csv, "parquet": _parquet, "duckdb": _duckdb}
