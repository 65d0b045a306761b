"""Rows that stay with somebody else: an engine without rows, whose holder charges, looks and draws the noise.

An estimator uses such an engine as any other; what it asks goes through the private table that the engine gives. Every question to the
engine itself raises `Charged`: a verb that has come so far has been checked and charged here, and is asked of the holder instead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NoReturn

from hedgerow.accounting.meter import Budget, Reservation
from hedgerow.accounting.units import Unit
from hedgerow.engines.engine import Engine
from hedgerow.errors import PlanError, SchemaError
from hedgerow.private_table import PrivateTable
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.schema.toml import same_columns


class Charged(Exception):
    """A verb has been checked and charged; there are no rows here that it could look at."""


class RowsElsewhere(ABC):
    """What an estimator gets in place of an engine."""

    codebook: Codebook
    assumed = ""

    @abstractmethod
    def reserve(self, epsilon: Fraction, delta: Fraction, what: str) -> None:
        """Take (ε, δ) from what their holder allows, or refuse; `close` gives back what was not used."""

    @abstractmethod
    def table(self, reservation: Reservation) -> PrivateTable:
        """The verbs. The reservation is the account of whoever asks: it is charged what the holder charges."""

    @abstractmethod
    def close(self) -> None:
        """Nothing more will be asked: what was reserved and not used is given back."""

    def count_rows(self) -> NoReturn:
        raise Charged

    def leaf_counts(self, trees: Any) -> NoReturn:
        raise Charged

    def class_counts(self, tree: Any, nodes: Any) -> NoReturn:
        raise Charged

    def split_counts(self, tree: Any, nodes: Any) -> NoReturn:
        raise Charged

    def confusions(self, predictors: Any) -> NoReturn:
        raise Charged

    def confusion(self, predict: Any) -> NoReturn:
        raise Charged

    def reliability(self, probabilities: Any, bins: int) -> NoReturn:
        raise Charged

    def gradient_sums(self, asked: Sequence[Any], model: Any) -> NoReturn:
        raise Charged

    def brier_sums(self, model: Any, scales: Any) -> NoReturn:
        raise Charged


class TableElsewhere(PrivateTable, ABC):
    """A private table that stands for rows elsewhere: estimators take it in the place of X."""

    __slots__ = ()

    @abstractmethod
    def _rows_for(self, codebook: Codebook) -> RowsElsewhere:
        """The same rows, read by this codebook."""


def is_private_table(table: Any) -> bool:
    """Whether it gives answers to verbs, and no rows."""
    return isinstance(table, PrivateTable)


def schema_elsewhere(table: TableElsewhere, own: Schema | None) -> Schema:
    """The schema that the rows have where they are. One's own must be the same; how many rows it declares is one's own public number."""
    theirs = table.codebook.schema
    if own is None:
        return theirs
    if not same_columns(own, theirs):
        raise SchemaError("schema: it is not the schema of the owner's table; leave it out, or take table.codebook.schema.")
    return own


def check_sampler(sampler: str) -> None:
    if sampler != "hedgerow":
        raise PlanError(f"sampler: got {sampler!r}; the noise is drawn where the rows are. Leave it out.")


def reserved(engine: Engine, budget: Budget, epsilon: Fraction, what: str, delta: Fraction = Fraction(0)) -> Reservation:
    """Charge, then look: elsewhere first, since what is refused there must cost nothing here; then from one's own budget.

    The unit is that of the schema by which the rows are read, whoever asks.  [U3]
    """
    if isinstance(engine, RowsElsewhere):
        engine.reserve(epsilon, delta, what)
    return budget.reserve(epsilon, what, delta, Unit.of(engine.codebook.schema))
