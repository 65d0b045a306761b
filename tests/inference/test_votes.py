"""What a release answers for a row is a function of that row's codes alone, to the last bit: PROOF.md, V3, V9 and V11 rest on it."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from strategies import codes_for, small_schema, small_table

from hedgerow import HedgerowClassifier, PrivateRDTClassifier, Release, count, merge_columns, private_score
from hedgerow.accounting.meter import Budget
from hedgerow.errors import PlanError
from hedgerow.evaluation.private import ready_probabilities
from hedgerow.inference.additive import Tables
from hedgerow.inference.confidence import ConfidentVote
from hedgerow.inference.vote import (
    ADDITIVE,
    MAJORITY,
    MOST_CONFIDENT,
    PRUNED_SUM,
    SUMMED_COUNTS,
    VOTES,
    WEIGHTED,
    PrunedVote,
    SummedCounts,
    probabilities,
)
from hedgerow.release.certificate import no_certificate
from hedgerow.schema.attributes import Categorical, Target
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.trees.additive_model import AdditiveModel, MostProbable
from hedgerow.trees.forest import LEAVES, CountedForest
from hedgerow.trees.tree import Tree

ROWS = 600  # more than go down a tree together
Answer = Callable[[NDArray[Any]], NDArray[Any]]
BY_COUNTS = (SUMMED_COUNTS, MOST_CONFIDENT, WEIGHTED, MAJORITY, PRUNED_SUM)


@cache
def shapes(trees: int) -> tuple[Schema, tuple[Tree, ...]]:
    schema = Schema([Categorical(f"a{i}", [str(v) for v in range(2 + i % 3)]) for i in range(6)], Target("y", [0, 1]), rows=2000)
    plan = PrivateRDTClassifier(schema, 1, n_estimators=trees, max_depth=3, random_state=trees).public_plan()
    return schema, plan.trees


def forest_of(classes: int, trees: int, seed: int) -> CountedForest:
    """Random counts, many of them 0 or below, and many ties."""
    schema, grown = shapes(trees)
    codebook = Codebook(Schema(schema.attributes, Target("y", list(range(classes))), 2000))
    rng = np.random.default_rng(seed)
    counts = tuple(rng.integers(-9, rng.choice([5, 1000]), (len(tree.leaves), classes)) for tree in grown)
    return CountedForest(codebook, grown, counts, (Fraction(rng.integers(1, 50)),), LEAVES)


def check(answer: Answer, codes: NDArray[Any]) -> None:
    """One answer for a row: alone, at any place in a block of any length, in any layout, as any kind of number."""
    whole = answer(codes)
    same = np.ascontiguousarray(whole)
    rng = np.random.default_rng(len(codes))
    for length in (1, 1, 2, 3, 7, 8, 9, 64, 511, 513):
        start = int(rng.integers(0, len(codes) - length))
        block = slice(start, start + length)
        assert np.ascontiguousarray(answer(codes[block])).tobytes() == same[block].tobytes()
        assert np.ascontiguousarray(answer(np.asfortranarray(codes[block]))).tobytes() == same[block].tobytes()
    order = rng.permutation(len(codes))
    assert np.ascontiguousarray(answer(codes[order])).tobytes() == same[order].tobytes()
    for other in (np.asfortranarray(codes), codes.astype(np.uint16), np.repeat(codes, 2, axis=0)[::2]):
        assert np.ascontiguousarray(answer(other)).tobytes() == same.tobytes()
    _, first, which = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    assert same[first][which.ravel()].tobytes() == same.tobytes()  # equal rows, wherever they stand


def check_release(release: Release, codes: NDArray[Any]) -> None:
    check(release.predict_codes_proba, codes)
    check(release.predict_codes, codes)
    assert np.array_equal(release.predict_codes(codes), release.predict_codes_proba(codes).argmax(axis=1))
    assert release.predict_codes_proba(codes, n_jobs=2).tobytes() == release.predict_codes_proba(codes).tobytes()


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(st.sampled_from(BY_COUNTS), st.integers(2, 40), st.integers(1, 30), st.integers(0, 2**32))
def test_a_vote_does_not_see_where_a_row_stands(vote: str, classes: int, trees: int, seed: int) -> None:
    forest = forest_of(classes, trees, seed)
    release = Release(forest, no_certificate("a test"), algorithm="test", vote=vote)
    check_release(release, codes_for(forest.codebook.sizes, ROWS, seed))


@settings(max_examples=8, deadline=None)
@given(st.integers(2, 40), st.integers(1, 30), st.integers(0, 2**32))
def test_added_scores_do_not_see_where_a_row_stands(classes: int, trees: int, seed: int) -> None:
    schema, grown = shapes(trees)
    rng = np.random.default_rng(seed)
    model = AdditiveModel(rng.normal(size=classes), grown, tuple(rng.normal(size=(tree.n_nodes, classes)) for tree in grown))
    codes = codes_for(Codebook(schema).sizes, ROWS, seed)
    for answer in (model.margins, model.probabilities, MostProbable(model)):
        check(answer, codes)


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_a_fitted_forest_does_not_see_where_a_row_stands(delta: float) -> None:
    release = HedgerowClassifier(small_schema(), 8, delta).fit(*small_table(3000)).release_
    assert release.vote == ADDITIVE
    check_release(release, codes_for(release.codebook.sizes, ROWS, 1))


def test_united_columns_do_not_see_where_a_row_stands() -> None:
    halves = [Schema(small_schema().attributes[:2], small_schema().target), Schema(small_schema().attributes[2:], small_schema().target)]
    plans = [PrivateRDTClassifier(half, 1, n_estimators=3, max_depth=2, random_state=0).public_plan() for half in halves]
    columns, labels = small_table(300)
    united = merge_columns([count(plan, {name: columns[name] for name in plan.schema.names}, labels) for plan in plans])
    assert united.forest.united
    check_release(united, codes_for(united.codebook.sizes, ROWS, 2))


def far(monkeypatch: pytest.MonkeyPatch, release: Release) -> Release:
    """The release on a machine whose logarithms and quotients differ from ours in the last bits."""
    sent = pickle.dumps(release.predict_codes_proba)
    monkeypatch.setattr(SummedCounts, "__init__", lambda *given: pytest.fail("made again"))
    monkeypatch.setattr(ConfidentVote, "__init__", lambda *given: pytest.fail("made again"))
    monkeypatch.setattr(PrunedVote, "__init__", lambda *given: pytest.fail("made again"))
    monkeypatch.setattr(Tables, "model", lambda *given: pytest.fail("made again"))
    found: Release = pickle.loads(sent).__self__  # noqa: S301  our own
    return found


@pytest.mark.parametrize("vote", VOTES)
def test_machines_that_share_the_rows_have_one_vote(vote: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which of them has a row may depend on other rows."""
    if vote == ADDITIVE:
        release = HedgerowClassifier(small_schema(), 8).fit(*small_table(3000)).release_
    else:
        release = count(PrivateRDTClassifier(small_schema(2000), 1, random_state=0).public_plan(), *small_table(300))
        release.vote = vote
    ready_probabilities(release)
    codes = codes_for(release.codebook.sizes, ROWS, 3)
    here = release.predict_codes_proba(codes)
    there = far(monkeypatch, release)
    assert there.predict_codes_proba(codes).tobytes() == here.tobytes()
    assert there.to_json() == release.to_json()


def test_a_vote_of_another_version_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    release = count(PrivateRDTClassifier(small_schema(2000), 1, random_state=0).public_plan(), *small_table(300))
    ready_probabilities(release)
    sent = pickle.dumps(release)
    monkeypatch.setattr("hedgerow.release.release.__version__", "9.9")
    assert "_vote" not in pickle.loads(sent).__dict__  # noqa: S301
    assert pickle.loads(pickle.dumps(Release.from_json(release.to_json()))).to_json() == release.to_json()  # noqa: S301


def test_every_vote_is_tested_here() -> None:
    assert {*BY_COUNTS, ADDITIVE} == set(VOTES)


def test_the_check_finds_sums_that_depend_on_the_layout() -> None:
    """NumPy adds up the classes of a row in another order where the array lies in another order, and so for a row that is alone."""
    shares = np.random.default_rng(0).random((40, 12))

    class Careless:
        def probabilities(self, codes: NDArray[Any]) -> NDArray[np.float64]:
            found = np.asfortranarray(shares[codes[:, 0] % 40])
            return np.ascontiguousarray(found / found.sum(axis=1, keepdims=True))

    with pytest.raises(AssertionError):
        check(lambda codes: probabilities(Careless(), codes, 12), np.arange(ROWS, dtype=np.uint16)[:, None] % 250)


def test_a_private_score_takes_nothing_but_releases() -> None:
    """A function of one's own might look at a row's place, or at other rows: it is refused before anything is charged."""
    budget = Budget(5)
    for predictor in (lambda codes: np.zeros(len(codes), dtype=np.int64), "a model", small_schema()):
        with pytest.raises(PlanError, match="expected a Release or a fitted estimator"):
            private_score(predictor, *small_table(50), epsilon=1, budget=budget)
    assert budget.entries == ()
