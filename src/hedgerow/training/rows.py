"""Where the rows are, with everything checked that can be checked without reading them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hedgerow.engines.engine import Engine, Progress
from hedgerow.engines.opening import is_place, open_place
from hedgerow.engines.person_ids import person_column
from hedgerow.engines.remote import RemoteSource, check_remote_sampler, remote_schema
from hedgerow.errors import PlanError, SchemaError, TableError
from hedgerow.mechanisms.coins import SYSTEM, Coins
from hedgerow.private_table import is_private_table
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.column_types import check_column_types, check_label_type
from hedgerow.schema.columns import (
    check_in_memory,
    check_labels_named,
    check_row_order,
    columns_of,
    labels_column,
    names_of,
    require,
    rows_as_array,
)
from hedgerow.schema.schema import Schema
from hedgerow.training.recipe import Recipe
from hedgerow.training.value_cells import codebook_for


def open_rows(
    recipe: Recipe,
    X: Any,
    y: Any = None,
    *,
    schema: Schema | None,
    n_jobs: int = 1,
    progress: Progress | None = None,
    accept_draft: bool = False,
    sampler: str = "hedgerow",
    coins: Coins = SYSTEM,
) -> Engine:
    """The engine for what a user gave: files, a database, a Spark table, rows in memory with labels y, or rows that stay elsewhere.

    schema: of rows elsewhere it may be None, and is their holder's then
    """
    if is_held(X, y) and is_private_table(X):
        return open_elsewhere(recipe, X, schema, sampler)
    if schema is None:
        raise missing_schema("fit", None)
    recipe.codebook(reviewed(schema, accept_draft))  # refuses what it cannot be
    if is_place(X):
        return open_at(X, codebook_for(recipe, schema, X), n_jobs, progress, coins)
    X, y, persons = checked_table(X, y, schema, recipe.algorithm.estimator)
    return open_memory(X, y, persons, codebook_for(recipe, schema, X), n_jobs, progress, coins)


def is_held(X: Any, y: Any) -> bool:
    """Whether the rows are somewhere else; their labels are there, too."""
    held = is_place(X) or is_private_table(X)
    if held and y is not None:
        raise TableError("fit: with a file or a database, y must be None: the labels are its target column.")
    return held


def open_at(place: Any, codebook: Codebook, n_jobs: int = 1, progress: Progress | None = None, coins: Coins = SYSTEM) -> Engine:
    """Files, a database, a Spark table: they are read where they are."""
    return open_place(place, codebook, n_jobs, progress, person_key(codebook.schema, coins))


def open_elsewhere(recipe: Recipe, table: Any, own: Schema | None, sampler: str) -> Engine:
    """Rows that stay with their owner: only queries go there, and noisy answers come back."""
    if not recipe.algorithm.private:
        name = recipe.algorithm.estimator
        raise PlanError(f"fit: {name} needs exact counts, which no private table gives. Use an estimator that keeps ε.")
    if not isinstance(table, RemoteSource):
        raise PlanError("fit: got a private table of rows that are here; expected the rows themselves, or a table of hedgerow.connect.")
    check_remote_sampler(sampler)
    recipe.algorithm.method.check_elsewhere(recipe)
    return table.engine_for(recipe.codebook(remote_schema(table, own)))


def open_memory(
    X: Any, y: Any, persons: Any, codebook: Codebook, n_jobs: int = 1, progress: Progress | None = None, coins: Coins = SYSTEM
) -> Engine:
    """Rows in this process, as `checked_table` gives them."""
    from hedgerow.engines.memory import MemoryRows

    check_label_type(y, codebook.schema)
    return MemoryRows(X, y, codebook, n_jobs, progress, persons, person_key(codebook.schema, coins))


def person_key(schema: Schema, coins: Coins) -> bytes:
    """What decides which rows of a person are kept: fresh for each request, the same for all its looks."""
    return b"" if schema.person is None else coins.bytes(16)


# ---------------------------------------------------------------- checks that read no value


def reviewed(schema: Schema, accept_draft: bool) -> Schema:
    if schema.unreviewed and not accept_draft:
        raise SchemaError(
            f"schema: the entries {', '.join(schema.unreviewed)} were read from data and are not reviewed. Check them, "
            "then schema.accept() or `hedgerow schema review FILE --accept`; or say fit(..., accept_draft=True), which claims no ε."
        )
    return schema


def missing_schema(what: str, given: Any) -> SchemaError:
    return SchemaError(
        f"{what}: needs a declared schema, got {given!r}. Pass hedgerow.Schema(...) or the path of a TOML file; "
        "`hedgerow schema draft` writes a first one to review."
    )


def checked_table(X: Any, y: Any, schema: Schema, what: str = "fit") -> tuple[Any, Any, Any]:
    """X, y and the persons' ids as columns, their shapes compared. No value is looked at."""
    check_in_memory(X)
    check_labels_named(y, X, schema.names, schema.target.name)
    check_row_order(y, X)
    persons = None
    if schema.person is not None:
        if isinstance(X, np.ndarray) or not has_column(X, schema.person):
            raise TableError(
                f"fit: the schema names the persons in the column {schema.person!r}, which the table does not have; expected a data "
                "frame or a mapping with that column."
            )
        persons = person_column(X, schema.person)
        wanted = [*schema.names, *([schema.target.name] if y is None else [])]
        X = select(X, wanted)
    if y is None and not isinstance(X, np.ndarray) and has_column(X, schema.target.name):
        y, X = columns_of(X, [schema.target.name])[0], select(X, schema.names)
    if y is None:
        raise missing_labels(what)
    if not is_frame(X):
        X = rows_as_array(X, schema.names)
    X = declared_only(X, schema)
    check_column_types(columns_of(X, schema.names, dates=schema.dates), schema.attributes)
    y = labels_column(y, schema.target.name)
    check_lengths(X, y)
    return X, y, persons


def missing_labels(what: str) -> TableError:
    return TableError(
        f"{what} requires y to be passed, but the target y is None: give the labels, or a data frame that holds the declared target column."
    )


def check_lengths(X: Any, y: Any) -> None:
    if len(y) != (len(next(iter(X.values()))) if isinstance(X, Mapping) else len(X)):
        raise TableError("fit: X and y do not have the same number of rows. Nothing was spent.")


def declared_only(X: Any, schema: Schema, some: bool = False, any_order: bool = True) -> Any:
    """The declared columns, in the order of the schema, of a table that has others, too: an id, a label, what a draft left out. A
    prediction does not need them.

    some:      a table may lack declared columns
    any_order: nor need they stand in that order
    """
    check_in_memory(X)
    if isinstance(X, np.ndarray) or not is_frame(X):
        return X
    there = [name for name in schema.names if has_column(X, name)]
    if 0 < len(there) < len(schema.names):
        if not some:
            require(schema.names, names_of(X))
        return select(X, there)
    have = names_of(X)
    other = have != list(schema.names) if any_order else len(have) > len(schema.names)
    return select(X, schema.names) if there and other else X


def declared_order(X: Any, schema: Schema) -> list[str] | None:
    """The declared columns in the order in which they stand; None where they have no names, or the rows are not here."""
    if is_place(X) or is_private_table(X) or not is_frame(X):
        return None
    return [name for name in names_of(X) if name in schema.names]


def is_frame(X: Any) -> bool:
    return isinstance(X, Mapping) or (hasattr(X, "columns") and hasattr(X, "shape"))


def has_column(X: Any, name: str) -> bool:
    if isinstance(X, Mapping):
        return name in X
    return name in getattr(X, "column_names", getattr(X, "columns", ()))


def select(X: Any, names: Sequence[str]) -> Any:
    """The declared columns of a table that holds its own labels, so that rows to predict need no label."""
    columns_of(X, names, any_type=True)
    if isinstance(X, Mapping):
        return {name: X[name] for name in names}
    import narwhals as nw

    return nw.from_native(X, eager_only=True).select(list(names)).to_native()
