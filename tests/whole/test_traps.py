"""One test for each trap that a published private-tree program fell into and that applies here.

Other traps have their tests where they belong: labels (test_estimators), search outside the budget (test_estimators), charge
after the look (test_private_table), budgets in separate writes (contracts/test_meters), pickled models (test_release).
"""

from __future__ import annotations

import gzip
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import exact as exact_answers
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from strategies import small_schema, small_table

import hedgerow
from hedgerow import Budget, HedgerowClassifier, PrivateRDTClassifier
from hedgerow.engines.memory import MemoryRows
from hedgerow.errors import TableError
from hedgerow.estimators import all_estimators
from hedgerow.growers import rdt
from hedgerow.schema.codebook import Codebook

PRIVATE = [estimator for estimator in all_estimators().values() if estimator._algorithm.private]
# Those whose structure is drawn before any row is seen. The others choose theirs privately, from paid answers.
# (A Hedgerow forest does so where there are many rows; where there are few, its tables are public. test_hedgerow has its own tests.)
PUBLIC_STRUCTURE = [
    estimator for estimator in PRIVATE if estimator(small_schema(), 1).plan(rows=200).trees and estimator is not HedgerowClassifier
]
private = pytest.mark.parametrize("algorithm", PRIVATE)
public_structure = pytest.mark.parametrize("algorithm", PUBLIC_STRUCTURE)
PACKAGE = Path(hedgerow.__file__).parent


def one_of_each_table() -> dict[str, tuple[dict[str, np.ndarray], np.ndarray]]:
    """Tables that would tempt a grower to look: pure, empty, one value only, one class only, nonsense."""
    columns, labels = small_table(200)
    constant = {name: np.repeat(column[:1], 200) for name, column in columns.items()}
    nonsense = {name: np.array(["\x00 no such value"] * 200, dtype=object) for name in columns}
    return {
        "usual": (columns, labels),
        "one class": (columns, np.repeat("yes", 200)),
        "one value": (constant, labels),
        "empty": ({name: column[:0] for name, column in columns.items()}, labels[:0]),
        "one row": ({name: column[:1] for name, column in columns.items()}, labels[:1]),
        "nonsense": (nonsense, np.repeat("no such class", 200)),
    }


mismatch = pytest.mark.filterwarnings("ignore::hedgerow.errors.SchemaMismatchWarning")


def test_all_private_estimators_are_found() -> None:
    assert PrivateRDTClassifier in PUBLIC_STRUCTURE
    assert 2 <= len(PUBLIC_STRUCTURE) < len(PRIVATE)


@mismatch
@public_structure
def test_1_and_2_structure_classes_and_branches_do_not_depend_on_rows(algorithm: Any) -> None:
    releases = [algorithm(small_schema(rows=200), 1, random_state=0).fit(*t).release_ for t in one_of_each_table().values()]
    for release in releases[1:]:
        assert release.forest.trees == releases[0].forest.trees
        assert [c.shape for c in release.forest.counts] == [c.shape for c in releases[0].forest.counts]
        assert list(release.classes) == ["no", "yes"]
        assert set(vars(release)) == set(vars(releases[0]))


@mismatch
@private
@pytest.mark.parametrize("epsilon", [1, 500])
def test_1_and_2_no_branch_class_or_count_is_missing_because_no_row_has_it(algorithm: Any, epsilon: int) -> None:
    """Every node that asks has a branch for every declared value, and every leaf a count for every declared class."""
    for table in one_of_each_table().values():
        release = algorithm(small_schema(rows=200), epsilon, random_state=0).fit(*table).release_
        assert list(release.classes) == ["no", "yes"]
        for tree, counts in zip(release.forest.trees, release.forest.counts, strict=True):
            for node in np.flatnonzero(tree.attribute >= 0):
                assert (tree.children(int(node)) >= 0).all()
            assert counts.shape == (len(tree.leaves) if release.forest.measured == "leaves" else tree.n_nodes, 2)
            assert counts.dtype == np.int64


def test_3_every_row_is_in_every_tree_whatever_its_place() -> None:
    codebook = Codebook(small_schema())
    trees = [rdt.build_tree_structure(codebook, 2, "bins", np.random.default_rng(i)) for i in range(5)]
    columns, labels = small_table(300)
    columns = {**columns, "flag": columns["flag"] * 0, "shape": np.repeat("flat", 300)}  # no row stops on the way
    before = exact_answers.leaf_counts(MemoryRows(columns, labels, codebook), trees)
    assert all(counts.sum() == 300 for counts in before)
    order = np.random.default_rng(1).permutation(300)
    after = exact_answers.leaf_counts(MemoryRows({n: c[order] for n, c in columns.items()}, labels[order], codebook), trees)
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


@private
def test_4_the_neighbour_relation_is_named(algorithm: Any) -> None:
    certificate = algorithm(small_schema(), 1).fit(*small_table(50)).release_.certificate
    assert certificate.neighbours == "add or remove one row"
    for event in certificate.events:
        assert event.mechanism != "discrete Laplace" or Fraction(event.sensitivity) == 1
        assert Fraction(event.sensitivity) > 0


@private
def test_8_a_fitted_model_holds_nothing_but_its_release(algorithm: Any) -> None:
    model = algorithm(small_schema(), 1).fit(pd.DataFrame(small_table(50)[0]), small_table(50)[1])
    extra = set(vars(model)) - set(model.get_params())
    assert extra == {"release_", "classes_", "n_features_in_", "feature_names_in_"}
    assert set(vars(model.release_)) == {
        "forest", "certificate", "algorithm", "vote", "parameters", "chosen", "made_by", "correction", "_signatures",
    }  # fmt: skip
    paid = {event.query for event in model.release_.certificate.events}
    assert set(model.release_.released) == {"rows"} & paid  # the noisy n̂, where it was paid for
    assert set(model.release_.parameters) <= set(model.get_params()) - {"schema", "budget", "random_state"}


def test_9_noise_comes_from_the_coins_alone() -> None:
    """No NumPy, no `random`, no clock, no float noise in the trusted code; no seed is kept in a release."""
    for path in sorted(path for room in ("mechanisms", "queries") for path in (PACKAGE / room).glob("*.py")):
        code = path.read_text()
        assert not re.search(r"np\.random|numpy\.random|import random|from random|import time|secrets", code), path.name
        if path.name != "coins.py":
            assert "urandom" not in code, path.name
    release = PrivateRDTClassifier(small_schema(), 1, random_state=123_456_789).fit(*small_table(50)).release_
    assert b"123456789" not in release.to_json()
    assert all(counts.dtype == np.int64 for counts in release.forest.counts)


def test_9_nothing_outside_draws_secret_bits() -> None:
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.relative_to(PACKAGE).as_posix() != "mechanisms/coins.py":
            assert not re.search(r"urandom|import secrets|SystemRandom", path.read_text()), path


@public_structure
def test_11_thresholds_and_heights_follow_the_noisy_count(algorithm: Any) -> None:
    """The same noisy n̂ gives the same structure whatever the true number of rows is."""
    for true_rows in (20, 3000):
        release = algorithm(small_schema(), "0.01", random_state=0).fit(*small_table(true_rows)).release_
        noisy = max(1, release.released["rows"])
        again = algorithm(small_schema(), "0.01", random_state=0).plan(rows=noisy)
        assert again.trees == release.forest.trees


def test_12_a_row_is_encoded_alone() -> None:
    columns, _ = small_table(100)
    codebook = Codebook(small_schema())
    together = codebook.encode(columns)
    alone = [codebook.encode({n: c[i : i + 1] for n, c in columns.items()})[0] for i in range(100)]
    assert np.array_equal(together, np.array(alone))


@mismatch
@private
def test_no_value_in_a_row_raises_an_error(algorithm: Any) -> None:
    """A row-dependent error message is a leak that charging does not pay for."""
    strange = [None, float("nan"), float("inf"), -(10**400), "", "\x00", "é", b"bytes", (1, 2), {"a": 1}, [3], object(), 1 + 2j]
    columns = {name: np.empty(len(strange), dtype=object) for name in small_schema().names}
    for column in columns.values():
        column[:] = strange
    labels = np.empty(len(strange), dtype=object)
    labels[:] = strange
    release = algorithm(small_schema(), 1).fit(columns, labels).release_
    assert len(release.predict(columns)) == len(strange)


@mismatch
@public_structure
def test_no_refund_reveals_an_empty_table(algorithm: Any) -> None:
    spent = []
    for rows in (0, 200):
        budget = Budget(1)
        algorithm(small_schema(), 1, budget=budget).fit(*small_table(rows))
        spent.append(budget.spent)
    assert spent == [1, 1]


@mismatch
@private
def test_a_refund_says_nothing_that_the_release_does_not_say(algorithm: Any) -> None:
    """Where a tree may end early, what comes back is what its certificate lacks; test_greedy checks that against its levels."""
    for rows in (0, 200, 2000):
        for epsilon in (1, 100):
            budget = Budget(200)
            release = algorithm(small_schema(), epsilon, budget=budget).fit(*small_table(rows)).release_
            assert budget.spent == release.certificate.spent <= epsilon


@mismatch
def test_uncertainty_shows_the_scale_and_never_the_noise() -> None:
    models = [PrivateRDTClassifier(small_schema(rows=200), 1).fit(*small_table(rows)) for rows in (0, 200)]
    errors = [model.release_.forest.leaf_noise_sd for model in models]
    assert errors[0] == errors[1] == pytest.approx(np.sqrt(2) * 10, rel=1e-2)


def test_errors_about_private_values_do_not_quote_them(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv.gz"
    names = "".join(f"Ann Smith {i} {i * i % 7919},0,44,flat,yes\n" for i in range(20_000))
    path.write_bytes(gzip.compress(b"colour,flag,age,shape,class\n" + names.encode())[:20_000])
    budget = Budget(1)
    with pytest.raises(TableError, match="cannot be read as a table") as raised:
        PrivateRDTClassifier(small_schema(), 1, budget=budget).fit(path)
    assert "Ann" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None
    assert budget.spent == 1  # the table was opened: the charge stands


def chain_of(error: BaseException | None) -> str:
    """Everything that an error carries, also what it hides."""
    texts = []
    while error is not None:
        texts += [str(error), repr(vars(error)), repr(error.args), repr(getattr(error, "object", ""))]
        error = error.__cause__ or error.__context__
    return " ".join(texts)


@private
@pytest.mark.parametrize("table", ["flat", "complex", "three-dimensional", "sparse", "labels", "a number"])
def test_errors_about_shapes_carry_no_values(algorithm: Any, table: str) -> None:
    budget = Budget(1)
    X: Any = {
        "flat": np.array([3.14159, 2.5]),
        "complex": np.full((4321, 3), 3.14159 + 2j),
        "three-dimensional": np.full((4321, 3, 2), 3.14159),
        "sparse": scipy.sparse.csr_matrix(np.full((4321, 4), 3.14159)),
        "labels": np.full((4321, 4), 3.14159),
        "a number": 3.14159,
    }[table]
    y = np.array([3.14159 if table == "labels" else "no"] * 4321)
    with pytest.raises(TableError) as raised:
        algorithm(small_schema(), 1, budget=budget).fit(X, y)
    assert not re.search("3.14159|4321", chain_of(raised.value))
    assert budget.spent == 0


@mismatch
def test_a_bad_byte_in_a_row_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"colour,flag,age,shape,class\nSECRET PERSON \xff\xfe,1,2,flat,yes\n" + b"red,1,50,flat,yes\n" * 50)
    budget = Budget(1)
    PrivateRDTClassifier(small_schema(), 1, budget=budget).fit(path)
    assert budget.spent == 1
