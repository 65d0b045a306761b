"""A private table with a secure sum: a share goes in, the sum comes out, and what has no noise in shares is refused before the charge."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import exact
import numpy as np
import pytest
from strategies import small_schema, small_table

from hedgerow.accounting.meter import Budget
from hedgerow.accounting.prices import Rho
from hedgerow.engines.memory import MemoryRows
from hedgerow.errors import PlanError
from hedgerow.growers import rdt
from hedgerow.mechanisms.coins import SYSTEM
from hedgerow.private_table import PrivateTable
from hedgerow.queries import Choose, LeafCounts, Rows
from hedgerow.queries.scores import GINI
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.splits import by_value
from hedgerow.trees.tree import TreeBuilder

CODEBOOK = Codebook(small_schema())
TREES = [rdt.build_tree_structure(CODEBOOK, 2, "bins", np.random.default_rng(i)) for i in range(3)]


class Adds:
    """Another owner, whose numbers are all 1000."""

    shares, name = 2, "a test"

    def __init__(self) -> None:
        self.given: list[Any] = []

    def sum(self, numbers: Any) -> Any:
        self.given.append(numbers)
        return np.array(numbers + 1000, dtype=np.int64)


def table(budget: Budget, adds: Adds, **given: Any) -> PrivateTable:
    engine = MemoryRows(*small_table(30), CODEBOOK)
    return PrivateTable(engine, budget.reserve(budget.epsilon, "test"), SYSTEM, secure_sum=adds, **given)


def test_one_vector_goes_in_and_the_answer_has_its_shape() -> None:
    adds = Adds()
    answer = table(Budget(1000), adds).ask(LeafCounts(TREES), Fraction(1000))  # no noise but with probability e^(-400)
    counts = exact.leaf_counts(MemoryRows(*small_table(30), CODEBOOK), TREES)
    assert len(adds.given) == 1
    assert adds.given[0].dtype == object
    assert all((got == own + 1000).all() for got, own in zip(answer, counts, strict=True))


def test_the_sampler_names_the_sum() -> None:
    assert table(Budget(1), Adds()).sampler.endswith("a test")


def test_what_is_not_proven_for_shares_is_refused_before_the_charge() -> None:
    budget = Budget(1, Fraction(1, 10**6))
    meter = budget.reserve(Fraction(1), "test", Fraction(1, 10**6))
    engine, adds = MemoryRows(*small_table(30), CODEBOOK), Adds()
    asked = PrivateTable(engine, meter, SYSTEM, secure_sum=adds)
    candidates = by_value(CODEBOOK)
    choose = Choose(TreeBuilder(CODEBOOK.sizes).build(), [0], candidates, np.ones((1, len(candidates.splits)), dtype=bool), GINI)
    for query, price, words in ((choose, Fraction(1, 2), "permute-and-flip"), (Rows(), Rho(Fraction(1)), "discrete Gaussian")):
        with pytest.raises(PlanError, match=words):
            asked.ask(query, price)
    assert not meter.events
    assert not adds.given


def test_noise_of_others_is_refused() -> None:
    with pytest.raises(PlanError, match="shares of noise here"):
        table(Budget(1), Adds(), sampler="opendp")
