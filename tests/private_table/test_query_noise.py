"""The noise of every query, cell by cell: the stated scale, for empty and full cells alike, and independent of one another.

Every test accepts the truth and must reject planted errors (`PLANTED`): a scale 30 % too small, one draw shared by all cells of a
tree, no noise on empty cells. False alarms: each p-value is compared with 1e-7, and there are fewer than 40 of them.

The private choices: how often each candidate is taken, against the law of the mechanism computed here from exact scores. A rate of half
or twice what was charged must be rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import exact as exact_answers
import numpy as np
import pytest
from scipy import stats
from slow import slow_but
from strategies import small_schema, small_table

from hedgerow import private_table as table_module
from hedgerow.accounting.meter import Budget
from hedgerow.engines.memory import MemoryRows
from hedgerow.growers import rdt
from hedgerow.mechanisms.coins import SYSTEM
from hedgerow.mechanisms.noise import add_noise
from hedgerow.mechanisms.noise import choose_columns as real_choose_columns
from hedgerow.mechanisms.samplers import discrete_laplace
from hedgerow.private_table import PrivateTable
from hedgerow.queries import (
    Best,
    Choose,
    ChooseLocally,
    ClassCounts,
    Confusion,
    LeafCounts,
    LeafSizes,
    Reliability,
    Rows,
    ScoreBins,
    Sizes,
    Tables,
)
from hedgerow.queries.scores import GINI, MAX, NORMAL_GINI, Score, information_gain, scores_of
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.splits import by_value
from hedgerow.trees.tree import TreeBuilder

ALARM = 1e-7
RUNS = 1500
CODEBOOK = Codebook(small_schema())
TREES = [rdt.build_tree_structure(CODEBOOK, 2, "bins", np.random.default_rng(i)) for i in range(2)]
ENGINE = MemoryRows(*small_table(12), CODEBOOK)  # few rows: most cells are empty


TREE, LEAVES = TREES[0], TREES[0].leaves
ASKED = np.zeros((len(LEAVES), len(CODEBOOK.sizes)), dtype=bool)
ASKED[:4, 3] = ASKED[0, 1] = True  # two tables at the first node, one at three others, none elsewhere
ASKED_CELLS = np.repeat(ASKED, CODEBOOK.sizes, axis=1)


def sure(codes: np.ndarray) -> np.ndarray:
    first = 1 / (1 + codes[:, 2])
    return np.stack([first, 1 - first], axis=1)


def predict(codes: np.ndarray) -> np.ndarray:
    return np.zeros(len(codes), dtype=np.int64)


QUERY_CASES: dict[str, tuple[Callable[[PrivateTable], Any], Callable[[], Any], int]] = {
    "rows": (lambda table: [np.array([table.ask(Rows(), Fraction(1))])], lambda: [np.array([exact_answers.count_rows(ENGINE)])], 1),
    "leaf_counts": (lambda table: table.ask(LeafCounts(TREES), Fraction(1)), lambda: exact_answers.leaf_counts(ENGINE, TREES), len(TREES)),
    "leaf_sizes": (
        lambda table: table.ask(LeafSizes(TREES), Fraction(1)),
        lambda: [counts.sum(axis=1) for counts in exact_answers.leaf_counts(ENGINE, TREES)],
        len(TREES),
    ),
    "confusion": (lambda table: [table.ask(Confusion(predict), Fraction(1))], lambda: [exact_answers.confusion(ENGINE, predict)], 1),
    "reliability": (lambda table: [table.ask(Reliability(sure, 5), Fraction(1))], lambda: [exact_answers.reliability(ENGINE, sure, 5)], 1),
    "score_bins": (
        lambda table: [table.ask(ScoreBins(sure, 5, (0, 1)), Fraction(1))],
        lambda: [exact_answers.score_bins(ENGINE, sure, 5, (0, 1))],
        2,
    ),
    "sizes": (
        lambda table: [table.ask(Sizes(TREE, LEAVES), Fraction(1))],
        lambda: [exact_answers.class_counts(ENGINE, TREE, LEAVES).sum(axis=1)],
        1,
    ),
    "class_counts": (
        lambda table: [table.ask(ClassCounts(TREE, LEAVES), Fraction(1))],
        lambda: [exact_answers.class_counts(ENGINE, TREE, LEAVES)[:, :-1]],
        1,
    ),
    "tables": (
        lambda table: [table.ask(Tables(TREE, LEAVES, ASKED), Fraction(1))[ASKED_CELLS]],
        lambda: [exact_answers.split_counts(ENGINE, TREE, LEAVES)[ASKED_CELLS]],
        2,  # the most asked at one node
    ),
}


def paid_tables(engine: MemoryRows, epsilon: Fraction, times: int) -> Iterator[PrivateTable]:
    """A table that can pay, as often as asked; a new reservation now and then, since each adds up all that it was charged."""
    for i in range(times):
        if i % 50 == 0:
            table = PrivateTable(engine, Budget(50 * epsilon).reserve(50 * epsilon, "test"))
        yield table


def noise_of(query: str) -> tuple[np.ndarray, np.ndarray]:
    """(runs, cells) of noisy − exact, and the exact cells."""
    ask, truth, _ = QUERY_CASES[query]
    exact = np.concatenate([counts.ravel() for counts in truth()])
    answers = [np.concatenate([np.asarray(part).ravel() for part in ask(table)]) for table in paid_tables(ENGINE, Fraction(1), RUNS)]
    return np.array(answers) - exact, exact


def p_of_scale(noise: np.ndarray, scale: float) -> float:
    """Chi-square of integers against the exact discrete Laplace probabilities."""
    r = np.exp(-1 / scale)
    edge = int(np.ceil(scale * np.log(max(2, noise.size / 40))))
    x = np.arange(-edge, edge + 1)
    expected = (1 - r) / (1 + r) * r ** np.abs(x)
    expected[[0, -1]] = r**edge / (1 + r)  # everything from ±edge on
    counted = np.bincount(np.clip(noise.ravel(), -edge, edge) + edge, minlength=len(x))
    return float(stats.chisquare(counted, expected * noise.size).pvalue)


def p_of_independence(noise: np.ndarray) -> float:
    """The largest correlation between two cells, with Bonferroni's correction over all pairs."""
    if noise.shape[1] < 2:
        return 1.0
    correlation = np.corrcoef(noise, rowvar=False)
    pairs = correlation[np.triu_indices(noise.shape[1], 1)]
    z = np.abs(np.arctanh(np.clip(pairs, -0.999999, 0.999999))) * np.sqrt(len(noise) - 3)
    return float(min(1.0, 2 * stats.norm.sf(z.max()) * len(pairs)))


def p_values(query: str) -> dict[str, float]:
    noise, exact = noise_of(query)
    scale = QUERY_CASES[query][2]  # ε = 1: how often a row may be counted
    found = {"independence": p_of_independence(noise)}
    for kind, cells in (("empty", exact == 0), ("full", exact > 0)):
        if cells.any():
            found[kind] = p_of_scale(noise[:, cells], scale)
    return found


@pytest.mark.statistical
@pytest.mark.parametrize("query", list(QUERY_CASES))
def test_the_noise_is_what_was_charged(query: str) -> None:
    found = p_values(query)
    assert min(found.values()) > ALARM, found


def too_little(counts: Any, event: Any, coins: Any, sampler: Any) -> Any:
    return counts + discrete_laplace(event.scale * Fraction(7, 10), counts.size, SYSTEM).reshape(counts.shape)


def shared(counts: Any, event: Any, coins: Any, sampler: Any) -> Any:
    return counts + discrete_laplace(event.scale, 1, SYSTEM)[0]


def not_on_empty(counts: Any, event: Any, coins: Any, sampler: Any) -> Any:
    return np.where(counts == 0, 0, add_noise(counts, event, coins, sampler))


PLANTED = {"too little": too_little, "shared by all cells": shared, "not on empty cells": not_on_empty}


@pytest.mark.statistical
@pytest.mark.parametrize("query", slow_but(3, QUERY_CASES))
@pytest.mark.parametrize("error", list(PLANTED))
def test_planted_errors_are_found(error: str, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if query == "rows" and error != "too little":
        pytest.skip("a single number that is not empty: this error cannot be made")
    monkeypatch.setattr(table_module, "add_noise", PLANTED[error])
    with np.errstate(divide="ignore", invalid="ignore"):
        found = p_values(query)
    assert min(p for p in found.values() if p == p) < ALARM, found


# ---------------------------------------------------------------- private choices


DRAWS = 3000
CANDIDATES = by_value(CODEBOOK)
_builder = TreeBuilder(CODEBOOK.sizes)
CHILDREN = _builder.split(0, 1)  # by flag: two nodes
FLAG_TREE = _builder.build()
ALLOWED = np.array([[True, False, True, True], [True, False, True, False]])
MANY = MemoryRows(*small_table(40), CODEBOOK)

# ε so that the candidates' chances differ but none is certain
SCORES: dict[str, tuple[Score, Fraction]] = {
    "gini": (GINI, Fraction(1)),
    "max": (MAX, Fraction(1, 4)),
    "gini index": (NORMAL_GINI, Fraction(8)),
    "information gain": (information_gain(100), Fraction(2)),
    "information gain of fewer rows": (information_gain(4), Fraction(9, 10)),
}
MECHANISMS = ("permute-and-flip", "exponential mechanism")


def law_of_choice(scores: np.ndarray, rate: float, mechanism: str) -> np.ndarray:
    """The probability of each column, from the definition of the mechanism."""
    p = np.exp(rate * (scores - scores.max()).astype(np.float64))
    if mechanism != "permute-and-flip":
        return np.asarray(p / p.sum())
    found = np.zeros(len(p))  # a uniform member of the set that has each column with probability p
    for members in product([False, True], repeat=len(p)):
        inside = np.array(members)
        if inside.any():
            found[inside] += np.where(inside, p, 1 - p).prod() / inside.sum()
    return found


def p_of_law(drawn: list[tuple[int, ...]], laws: list[np.ndarray]) -> float:
    """Chi-square of joint draws, the choices of different nodes independent; cells expected below 10 are taken together."""
    shape = tuple(len(law) for law in laws)
    expected = len(drawn) * np.prod(np.meshgrid(*laws, indexing="ij"), axis=0).ravel()
    counted = np.bincount(np.ravel_multi_index(np.array(drawn).T, shape), minlength=expected.size)
    if counted[expected == 0].any():
        return 0.0  # a candidate that is not allowed
    rare = expected < 10
    expected = np.append(expected[~rare], expected[rare].sum())
    counted = np.append(counted[~rare], counted[rare].sum())
    used = expected > 1e-9 * len(drawn)
    if not used[-1] and counted[-1]:
        return 0.0
    return float(stats.chisquare(counted[used], expected[used] * counted.sum() / expected[used].sum()).pvalue)


def p_of_choose(name: str, mechanism: str) -> float:
    score, epsilon = SCORES[name]
    drawn = [
        tuple(table.ask(Choose(FLAG_TREE, CHILDREN, CANDIDATES, ALLOWED, score, mechanism), epsilon).tolist())
        for table in paid_tables(MANY, epsilon, DRAWS)
    ]
    rate = float(epsilon / score.sensitivity / (1 if score.monotone else 2))
    exact = scores_of(score, exact_answers.split_counts(MANY, FLAG_TREE, np.array(CHILDREN)), CANDIDATES)
    laws = []
    for scores, allowed in zip(exact, ALLOWED, strict=True):
        law = np.zeros(len(CANDIDATES))
        law[allowed] = law_of_choice(scores[allowed], rate, mechanism)
        laws.append(law)
    assert all(law[law > 0].min() > 0.02 for law in laws), "the chances must be far from 0 for the test to see anything"
    return p_of_law(drawn, laws)


PREDICTORS = [
    predict,
    lambda codes: 1 - predict(codes),
    lambda codes: np.minimum(codes[:, 1], 1).astype(np.int64),
    lambda codes: (codes[:, 0] == 0).astype(np.int64),
]


def p_of_best() -> float:
    epsilon = Fraction(1, 8)
    drawn = [(table.ask(Best(PREDICTORS), epsilon),) for table in paid_tables(MANY, epsilon, DRAWS)]
    right = np.array([np.trace(exact_answers.confusion(MANY, predictor)) for predictor in PREDICTORS])
    return p_of_law(drawn, [law_of_choice(right, float(epsilon), "permute-and-flip")])


LOCAL_SIZES = np.array([25, 3])


def p_of_local_choice(factor: float = 1.0) -> float:
    """Fletcher & Islam 2015, Algorithm 1 lines 17 and 31: exp(ε·G / 2Δ(G_D)), Δ(G_D) from the size that is given."""
    epsilon = Fraction(1)
    drawn = [
        tuple(table.ask(ChooseLocally(FLAG_TREE, CHILDREN, CANDIDATES, ALLOWED, LOCAL_SIZES), epsilon).tolist())
        for table in paid_tables(MANY, epsilon, DRAWS)
    ]
    exact = scores_of(NORMAL_GINI, exact_answers.split_counts(MANY, FLAG_TREE, np.array(CHILDREN)), CANDIDATES) / NORMAL_GINI.unit
    laws = []
    for scores, allowed, n in zip(exact, ALLOWED, LOCAL_SIZES.tolist(), strict=True):
        sensitivity = 1 - (n / (n + 1)) ** 2 - (1 / (n + 1)) ** 2
        law = np.zeros(len(CANDIDATES))
        law[allowed] = law_of_choice(scores[allowed], factor * float(epsilon) / (2 * sensitivity), "exponential")
        laws.append(law)
    return p_of_law(drawn, laws)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("name", slow_but(1, SCORES))
def test_choices_follow_their_law(name: str, mechanism: str) -> None:
    """False alarm: 1e-7 each."""
    assert p_of_choose(name, mechanism) > ALARM


@pytest.mark.slow
@pytest.mark.statistical
def test_best_and_the_local_choice_follow_their_law() -> None:
    """False alarm: 1e-7 each. The local choice must not be taken for one of another rate."""
    assert p_of_best() > ALARM
    assert p_of_local_choice() > ALARM
    assert p_of_local_choice(factor=2) < ALARM
    assert p_of_local_choice(factor=0.25) < ALARM


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("factor", slow_but(1, [Fraction(1, 2), Fraction(2)]))
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("name", slow_but(1, SCORES))
def test_a_wrong_rate_is_found(name: str, mechanism: str, factor: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    def planted(scores: Any, allowed: Any, event: Any, unit: int, coins: Any) -> Any:
        return real_choose_columns(scores, allowed, replace(event, scale=event.scale * factor), unit, coins)

    monkeypatch.setattr(table_module, "choose_columns", planted)
    assert p_of_choose(name, mechanism) < ALARM


@pytest.mark.slow
@pytest.mark.statistical
def test_a_wrong_mechanism_or_rate_of_best_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    for change in ({"mechanism": "exponential mechanism"}, {"scale": Fraction(4)}, {"scale": Fraction(16)}):

        def planted(scores: Any, allowed: Any, event: Any, unit: int, coins: Any, change: Any = change) -> Any:
            return real_choose_columns(scores, allowed, replace(event, **change), unit, coins)

        monkeypatch.setattr(table_module, "choose_columns", planted)
        assert p_of_best() < ALARM, change
