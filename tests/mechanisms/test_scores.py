"""The closed list of scores: sensitivity and monotonicity by brute force, and the scores themselves against their definitions.

All small tables of counts (child, class) and all ways to add one row, then large random tables. Each bound must hold, and, since all of
them are tight, a bound that is too small by a tenth must be broken: `worst` returns how far a score really moves.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import exact as exact_answers
import numpy as np
import pytest

from hedgerow.accounting.events import EXPONENTIAL
from hedgerow.engines.memory import MemoryRows
from hedgerow.queries import Choose, scores
from hedgerow.queries.scores import BRIER, GINI, MAX, MOST_ROWS, NORMAL_GINI, Score, _bounded, information_gain, score_named, scores_of
from hedgerow.schema.attributes import Categorical, Numeric, Target
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.trees.splits import Candidates, Split, by_threshold, by_value
from hedgerow.trees.tree import TreeBuilder

LIST = {
    "GINI": GINI, "MAX": MAX, "NORMAL_GINI": NORMAL_GINI,
    **{f"information gain {n}": information_gain(n) for n in (1, 2, 4, 100, 1_000_000, 1 << 34)},
}  # fmt: skip
MONOTONE = [name for name, score in LIST.items() if score.monotone]
SHAPES = [(2, 2, 8), (2, 3, 7), (3, 2, 7), (3, 3, 5)]  # children, classes, most rows

# The shared constant of a monotone score: adding a row moves every candidate by something in [constant − Δ, constant]. Taking the
# constant from all candidates of a node changes no choice, and then every score falls or stays.
SHARED_CONSTANT = {"GINI": scores.GRID, "MAX": 1}
ROUNDING = 8  # steps: information gain rounds each n·log2 n to the grid


def all_tables(children: int, classes: int, most: int) -> np.ndarray:
    """Every table of counts with at most that many rows."""
    found: list[tuple[int, ...]] = [()]
    for _ in range(children * classes):
        found = [(*cells, n) for cells in found for n in range(most - sum(cells) + 1)]
    return np.array(found, dtype=np.int64).reshape(-1, children, classes)


def large_tables(n_tables: int, seed: int, most: float = 1e9) -> np.ndarray:
    """Counts of every order of magnitude, many of them 0, and the extremes: one class alone but for a few rows."""
    rng = np.random.default_rng(seed)
    counts = np.exp(rng.uniform(0, math.log(most), (n_tables, 3, 3))).astype(np.int64)
    counts[rng.random(counts.shape) < 0.4] = 0
    counts[: n_tables // 4, :, 1:] = rng.integers(0, 2, (n_tables // 4, 3, 2))
    return counts


def changes(score: Score, tables: np.ndarray) -> np.ndarray:
    """How the score of each table moves for each cell that one more row may be in: (tables, cells)."""
    before = score.of(tables)
    cells = list(np.ndindex(tables.shape[1:]))
    moved = []
    for cell in cells:
        more = tables.copy()
        more[:, *cell] += 1
        moved.append(score.of(more) - before)
    return np.stack(moved, axis=1)


def worst(score: Score, tables: np.ndarray) -> int:
    """The largest change, up or down, that one row makes."""
    return int(np.abs(changes(score, tables) - (scores.GRID if score.name == GINI.name else 0)).max())


def small(children: int, classes: int, most: int) -> np.ndarray:
    return all_tables(children, classes, most)


def large(score: Score) -> np.ndarray:
    return large_tables(200 if score.unit == scores.NORMAL_GRID else 20_000, seed=1)  # Fractions are slow


def constant_of(name: str) -> int:
    return SHARED_CONSTANT.get(name, ROUNDING)


def test_every_member_is_checked_here() -> None:
    split_scores = {name for name, thing in vars(scores).items() if isinstance(thing, Score)} - {"BRIER"}  # test_best_scale.py
    assert split_scores == {"GINI", "MAX", "NORMAL_GINI"}
    makers = [name for name, thing in vars(scores).items() if getattr(thing, "__annotations__", {}).get("return") == "Score"]
    assert makers == ["information_gain"]
    assert [name for name, score in LIST.items() if not score.monotone] == ["NORMAL_GINI"]


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", list(LIST))
def test_one_row_never_moves_a_score_by_more_than_its_sensitivity(name: str, shape: tuple[int, int, int]) -> None:
    assert worst(LIST[name], small(*shape)) <= LIST[name].sensitivity


@pytest.mark.slow
@pytest.mark.parametrize("name", list(LIST))
def test_nor_in_large_tables(name: str) -> None:
    assert worst(LIST[name], large(LIST[name])) <= LIST[name].sensitivity


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", MONOTONE)
def test_a_row_moves_all_candidates_into_one_direction(name: str, shape: tuple[int, int, int]) -> None:
    moved = changes(LIST[name], small(*shape)) - constant_of(name)
    assert moved.max() <= 0
    assert -moved.min() <= LIST[name].sensitivity
    # A candidate whose attribute has no cell for the row does not move at all: that must be inside, too.
    assert 0 <= constant_of(name) <= LIST[name].sensitivity


@pytest.mark.slow
@pytest.mark.parametrize("name", MONOTONE)
def test_and_in_large_tables(name: str) -> None:
    moved = changes(LIST[name], large(LIST[name])) - constant_of(name)
    assert moved.max() <= 0
    assert -moved.min() <= LIST[name].sensitivity


def one_against_many(n: int) -> np.ndarray:
    """n rows of one class in one child: where a row of another class hurts most."""
    counts = np.zeros((1, 2, 2), dtype=np.int64)
    counts[0, 0, 0] = n
    return counts


def test_the_bounds_are_tight() -> None:
    """What a bound that is too small would break: the check above is able to fail."""
    # Gini: 2n/(n + 1), so that 2 is reached only by large tables; a table of 20 rows breaks 1.9.
    found = [worst(GINI, one_against_many(n)) for n in (1, 3, 9, 21, 10**6, 10**9)]
    assert found == sorted(found)
    assert found[0] == scores.GRID
    assert found[2] < Fraction(19, 10) * scores.GRID < found[3]
    assert found[-1] == GINI.sensitivity
    assert worst(GINI, large(GINI)) > Fraction(19, 20) * GINI.sensitivity
    # Max: a single row.
    assert worst(MAX, small(2, 2, 1)) == MAX.sensitivity > Fraction(9, 10)
    # The Gini index: a second row of another class, 1/2 exactly. The one step more is for rounding down.
    assert worst(NORMAL_GINI, small(2, 2, 2)) == NORMAL_GINI.sensitivity - 1 > Fraction(45, 100) * NORMAL_GINI.unit


@pytest.mark.parametrize("n", [1, 2, 4, 100, 1_000_000, 1 << 30])
def test_the_bound_of_information_gain_is_tight(n: int) -> None:
    """At n = N − 1 a row of another class costs log2 N + 1/ln 2 in the limit; above N the slope itself, whatever N is."""
    score = information_gain(n)
    assert worst(score, one_against_many(n + 5)) > Fraction(9, 10) * score.sensitivity
    if n >= 100:
        assert worst(score, one_against_many(n - 1)) > Fraction(9, 10) * score.sensitivity
    limit = math.log2(n + 1) + 1 / math.log(2)
    assert limit <= score.plain_sensitivity < limit + 0.02


@pytest.mark.parametrize(
    ("name", "share", "tables"),
    [
        ("GINI", Fraction(95, 100), one_against_many(10**6)),
        ("MAX", Fraction(9, 10), small(2, 2, 3)),
        ("NORMAL_GINI", Fraction(9, 10), small(2, 2, 3)),
        ("information gain 100", Fraction(1, 2), one_against_many(99)),
        ("information gain 1000000", Fraction(1, 2), one_against_many(10**6)),
    ],
)
def test_too_small_a_constant_is_found(name: str, share: Fraction, tables: np.ndarray) -> None:
    wrong = replace(LIST[name], sensitivity=LIST[name].sensitivity * share)
    assert worst(wrong, tables) > wrong.sensitivity


def test_the_gini_index_is_not_monotone() -> None:
    """One more row may raise one candidate and lower another, by more than 1/2 together: it pays 2Δ."""
    moved = changes(NORMAL_GINI, small(2, 2, 4))
    assert moved.max() > 0
    assert moved.max() - moved.min() > NORMAL_GINI.sensitivity
    event = Choose.cost(Fraction(1), 1, NORMAL_GINI, EXPONENTIAL)
    assert event.scale == 2 * NORMAL_GINI.plain_sensitivity
    assert Choose.cost(Fraction(1), 1, GINI, EXPONENTIAL).scale == GINI.plain_sensitivity == 2


# ---------------------------------------------------------------- the loss of the choice itself, computed exactly


def exponential(scaled: np.ndarray) -> np.ndarray:
    weights = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def permute_and_flip(scaled: np.ndarray) -> np.ndarray:
    """A uniform member of the random set in which each column is with probability p, summed over all such sets."""
    p = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    found = np.zeros_like(p)
    for members in product([False, True], repeat=p.shape[1]):
        inside = np.array(members)
        if inside.any():
            found[:, inside] += np.where(inside, p, 1 - p).prod(axis=1, keepdims=True) / inside.sum()
    return found


def joint_tables(most: int) -> np.ndarray:
    """Rows with two binary attributes and a class: every multiset of at most that many rows."""
    return all_tables(4, 2, most).reshape(-1, 2, 2, 2)


def largest_loss(score: Score, tables: np.ndarray, law: Any, rate: float) -> float:
    """The largest log-ratio of the choice's probabilities between neighbours, for two attributes (each alone may lack a value)."""

    def of(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        return np.asarray(np.log(law(rate * np.stack([score.of(first), score.of(second)], axis=1).astype(np.float64))))

    a, b = tables.sum(axis=2), tables.sum(axis=1)
    before, loss = of(a, b), 0.0
    for v, w, c in product((None, 0, 1), (None, 0, 1), (0, 1)):  # None: a value that is not declared is in no cell
        more_a, more_b = a.copy(), b.copy()
        if v is not None:
            more_a[:, v, c] += 1
        if w is not None:
            more_b[:, w, c] += 1
        loss = max(loss, float(np.abs(of(more_a, more_b) - before).max()))
    return loss


def extreme_joint_tables() -> np.ndarray:
    """Large nodes in which the one attribute suffers most and the other not at all, or scores are even."""
    rows = []
    for n in (1, 2, 5, 50, 1000):
        for cells in product((0, 1, n), repeat=4):
            table = np.zeros((2, 2, 2), dtype=np.int64)
            table[0, 0], table[1, 1] = cells[:2], cells[2:]
            rows.append(table)
    return np.array(rows)


@pytest.mark.slow
@pytest.mark.parametrize("law", [exponential, permute_and_flip])
@pytest.mark.parametrize("name", ["GINI", "MAX", "NORMAL_GINI", "information gain 4", "information gain 1000000"])
def test_a_choice_costs_what_it_is_charged(name: str, law: Any) -> None:
    """The definition of ε-DP, checked on all pairs of neighbours of small tables and on some extreme ones."""
    score = LIST[name]
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(3)):
        rate = float(1 / (Choose.cost(epsilon, 1, score, EXPONENTIAL).scale * score.unit))
        for tables in (joint_tables(4), extreme_joint_tables()):
            assert largest_loss(score, tables, law, rate) <= float(epsilon) * (1 + 1e-9)


@pytest.mark.parametrize("law", [exponential, permute_and_flip])
@pytest.mark.parametrize("name", ["GINI", "MAX", "information gain 100"])
def test_twice_the_rate_would_cost_more(name: str, law: Any) -> None:
    """The check above is able to fail: at twice the rate of a monotone score the loss is above ε."""
    score = LIST[name]
    rate = float(2 / (Choose.cost(Fraction(1), 1, score, EXPONENTIAL).scale * score.unit))
    assert largest_loss(score, extreme_joint_tables(), law, rate) > 1.1


# ---------------------------------------------------------------- the scores by their definitions


def by_hand(name: str, counts: list[list[int]]) -> int | float:
    """A score of one table in exact arithmetic (information gain: floats, to be compared with a tolerance)."""
    n = sum(map(sum, counts))
    gini = [Fraction(sum(x * x for x in child), sum(child)) - sum(child) if sum(child) else Fraction(0) for child in counts]
    if name == "GINI":
        return sum(math.floor(1024 * (term + sum(child))) for term, child in zip(gini, counts, strict=True))
    if name == "MAX":
        return sum(max(child) for child in counts)
    if name == "NORMAL_GINI":
        return math.floor(2**20 * sum(gini) / n) if n else 0
    return 1024 * math.fsum(x * math.log2(x / sum(child)) for child in counts for x in child if x)


@pytest.mark.parametrize("name", ["GINI", "MAX", "NORMAL_GINI", "information gain 1000000"])
def test_scores_by_definition(name: str) -> None:
    for tables in (small(2, 3, 4), small(3, 2, 4), large_tables(200, seed=2, most=3e5)):
        for counts, found in zip(tables.tolist(), LIST[name].of(tables).tolist(), strict=True):
            wanted = by_hand(name, counts)
            assert found == wanted or (name.startswith("info") and abs(found - wanted) <= 8), counts


def test_information_gain_goes_straight_on_above_its_number_of_rows() -> None:
    score = information_gain(100)
    slope = math.ceil(1024 * (math.log2(101) + 1 / math.log(2)))
    at = [int(score.of(np.array([[[n, 0], [0, 7]]]))[0]) for n in (50, 100, 101, 10**9)]
    assert at == [0, 0, 0, 0]  # pure children, on both sides of N
    mixed = [int(score.of(np.array([[[n, 3]]]))[0]) for n in (200, 201, 10**9)]
    assert mixed[0] == mixed[1] == mixed[2]  # both terms rise by the same slope
    assert score.of(np.array([[[100, 0]], [[100, 1]]])).tolist() == [0, -slope]


@pytest.mark.parametrize("n", [0, -1, (1 << 34) + 1])
def test_information_gain_needs_a_public_number_of_rows(n: int) -> None:
    with pytest.raises(ValueError, match="most_rows"):
        information_gain(n)


def test_empty_nodes_score_zero() -> None:
    for score in LIST.values():
        assert score.of(np.zeros((3, 4, 2), dtype=np.int64)).tolist() == [0, 0, 0]


# ---------------------------------------------------------------- scores of candidates, from rows


SCHEMA = Schema(
    [
        Categorical("a", [0, 1, 2]),
        Numeric("b", 0, 1, missing="none"),
        Numeric("c", 0, 1, edges=(0, 0.2, 0.3, 1)),
        Categorical("d", [0]),
    ],
    Target("y", [0, 1, 2]),
)


@pytest.mark.parametrize("name", ["GINI", "MAX", "NORMAL_GINI", "information gain 1000000"])
def test_scores_of_candidates_against_brute_force(name: str) -> None:
    codebook = Codebook(SCHEMA, bins=4)
    assert codebook.sizes == (3, 5, 3, 1)
    rng = np.random.default_rng(3)
    columns = {
        "a": rng.integers(0, 4, 300),  # 3 is not declared
        "b": np.where(rng.random(300) < 0.2, np.nan, rng.random(300)),
        "c": rng.random(300),
        "d": rng.integers(0, 2, 300),
    }
    labels = np.minimum((columns["c"] * 4).astype(int), rng.integers(0, 4, 300))  # 3 is not declared
    codes, classes = codebook.encode(columns), codebook.encode_classes(labels)
    builder = TreeBuilder(codebook.sizes)
    left, right, _ = builder.split(0, 0, (0, 1, 2))
    tree, nodes = builder.build(), np.array([left, right])
    exact = exact_answers.split_counts(MemoryRows(columns, labels, codebook), tree, nodes)
    merged = Candidates(codebook, (Split(0, (0, 1, 0)), Split(1, (2, 0, 1, 1, 0))))
    for candidates in (by_value(codebook), by_threshold(codebook), merged):
        found = scores_of(LIST[name], exact, candidates)
        assert found.shape == (2, len(candidates))
        for node in range(2):
            here = (codes[:, 0] == node) & (classes < 3)
            for column, split in enumerate(candidates.splits):
                counts = [[0] * 3 for _ in range(split.n_children)]
                for row in np.flatnonzero(here & (codes[:, split.attribute] < codebook.sizes[split.attribute])):
                    counts[split.groups[codes[row, split.attribute]]][classes[row]] += 1
                wanted = by_hand(name, counts)
                assert found[node, column] == wanted or (name.startswith("info") and abs(found[node, column] - wanted) <= 10)


def test_the_candidates_of_a_schema() -> None:
    codebook = Codebook(SCHEMA, bins=4)
    assert [split.groups for split in by_value(codebook).splits] == [(0, 1, 2), (0, 1, 2, 3, 4), (0, 1, 2), (0,)]
    assert [(split.attribute, split.groups) for split in by_threshold(codebook).splits] == [
        (0, (0, 1, 2)),
        (1, (0, 1, 1, 1, 2)), (1, (0, 0, 1, 1, 2)), (1, (0, 0, 0, 1, 2)),
        (2, (0, 1, 1)), (2, (0, 0, 1)),
        (3, (0,)),
    ]  # fmt: skip
    assert by_threshold(codebook).attribute.tolist() == [0, 1, 1, 1, 2, 2, 3]


def test_the_sensitivities_that_a_certificate_may_state_are_those_of_the_scores() -> None:
    from hedgerow.accounting import events
    from hedgerow.queries import scores

    assert (scores.GINI.plain_sensitivity, scores.MAX.plain_sensitivity) == events.MONOTONE
    assert scores.NORMAL_GINI.plain_sensitivity == events.NOT_MONOTONE
    for most_rows in (1, 1000, scores.MOST_ROWS):
        assert events.LEAST_GAIN < scores.information_gain(most_rows).plain_sensitivity < events.MOST_GAIN


def test_a_split_that_loses_rows_is_no_better_for_it() -> None:
    """A column without one declared value leaves no impurity behind; neither does it tell anything."""
    tells, lost, mixed = [[30, 2], [3, 25]], [[0, 0], [0, 0]], [[17, 13], [16, 14]]
    found = GINI.of(np.array([tells, lost, mixed])).tolist()
    assert found[0] > found[2] > found[1] == 0


def test_names_stand_in_requests_and_are_read_back() -> None:
    assert [score.name for score in (GINI, MAX, NORMAL_GINI, BRIER)] == ["count-scaled Gini", "max", "Gini index, Δ = 1/2", "Brier score"]
    for score in (GINI, MAX, NORMAL_GINI):
        assert score_named(score.name) is score
    for rows in (1, 2, 1000, MOST_ROWS):
        gain, again = information_gain(rows), score_named(f"information gain, N = {rows}")
        assert again is not None
        assert (again.name, again.sensitivity, again.monotone) == (gain.name, gain.sensitivity, True)
    assert score_named("information gain, N = " + "0" * 19 + "5") is not None
    for other in ("0", "-1", "1.5", "x", "", str(MOST_ROWS + 1), "0" * 20 + "5"):
        assert score_named(f"information gain, N = {other}") is None
    assert score_named("gain, N = 5") is score_named("Brier score") is score_named("") is None


def test_no_split_has_a_brier_score() -> None:
    assert (BRIER.plain_sensitivity, BRIER.monotone) == (2, True)
    with pytest.raises(NotImplementedError, match="no split"):
        BRIER.of(np.ones((1, 2, 2), dtype=np.int64))


@pytest.mark.parametrize("n_classes", [2, 3, 5, 1000])
def test_squares_of_counts_never_leave_64_bits(n_classes: int) -> None:
    most = math.isqrt(2**62 // n_classes)
    counts = np.array([0, 1, most - 1, most, most + 1, 2**62], dtype=np.int64)[:, None, None] * np.ones((1, 1, n_classes), dtype=np.int64)
    assert _bounded(counts)[:, 0, 0].tolist() == [0, 1, most - 1, most, most, most]
    assert n_classes * most**2 <= 2**62


def test_an_empty_child_counts_nothing_and_divides_by_nothing() -> None:
    counts = np.array([[[3, 4], [0, 0]]], dtype=np.int64)
    with np.errstate(all="raise"):
        assert GINI.of(counts).tolist() == GINI.of(counts[:, :1]).tolist()
        assert NORMAL_GINI.of(counts).tolist() == NORMAL_GINI.of(counts[:, :1]).tolist()
