"""Full-domain generalisation against a search of the whole lattice, row by row and in exact fractions."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hedgerow import datasets
from hedgerow.anonymity.requirement import Requirement
from hedgerow.errors import PlanError, TableError
from hedgerow.estimators.local_tree import LocalTreeClassifier
from hedgerow.schema.attributes import Categorical, Numeric, Target
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.sharing.generalise import Generalised, generalise, minimal_generalisations
from hedgerow.sharing.lattice import Bounds, _judge
from hedgerow.sharing.pipeline import generalised_model
from hedgerow.sharing.taxonomy import Taxonomies, with_numeric_taxonomies

needs_files = pytest.mark.skipif(
    not os.environ.get("HEDGEROW_DATA"), reason="HEDGEROW_DATA does not name the folder of the public data sets"
)

POOL = [
    Categorical("a", ["x", "y", "z"], other="w", taxonomy={"x": "xy", "y": "xy", "z": "top", "xy": "top"}),
    Categorical("b", [0, 1]),
    Numeric("n", 0, 8, edges=[0, 1, 2, 4, 6, 8], missing="none", taxonomy=[[0, 2, 4, 8], [0, 4, 8], [0, 8]]),
    Categorical("c", list("pqrst"), taxonomy=dict(zip("pqrst", "11223", strict=True)) | {"1": "4", "2": "4", "3": "5", "4": "6", "5": "6"}),
]


@dataclass
class Case:
    codebook: Codebook
    codes: np.ndarray
    labels: np.ndarray
    requirement: Requirement
    quasi: list[str] | None

    def run(self, suppression: Any = 0.0, **more: Any) -> Generalised:
        return generalise(self.codes, self.labels, self.codebook, self.requirement, suppression, self.quasi, **more)

    def minimal(self, suppression: Any = 0.0) -> list[tuple[int, ...]]:
        return minimal_generalisations(self.codes, self.labels, self.codebook, self.requirement, suppression, self.quasi)


requirements = st.one_of(
    st.builds(lambda k: Requirement.of(k=k), st.integers(1, 6)),
    st.builds(lambda c, at: Requirement.of(c=c, l=at), st.sampled_from([0.5, 1, 2, "7/3", 5]), st.integers(2, 4)),
    st.builds(lambda k, a: Requirement.of(k=k, alpha=a), st.integers(1, 4), st.sampled_from([0.4, 0.5, "2/3", 0.9])),
    st.builds(lambda k, c, at: Requirement.of(k=k, c=c, l=at), st.integers(1, 5), st.sampled_from([1, 2, 5]), st.integers(2, 3)),
)


@st.composite
def cases(draw: Any) -> Case:
    attributes = draw(st.lists(st.sampled_from(POOL), min_size=1, max_size=3, unique_by=lambda attribute: attribute.name))
    classes = draw(st.integers(2, 4))
    codebook = Codebook(Schema(attributes, Target("y", list(range(classes)))))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = draw(st.integers(0, 60))
    few = draw(st.booleans())  # many rows alike, so that something fine can be good
    columns = [rng.integers(0, 2 if few else size + 1, rows) for size in codebook.sizes]
    codes = np.stack(columns, axis=1).astype(codebook.dtype)
    names = list(codebook.schema.names)
    quasi = draw(st.one_of(st.none(), st.lists(st.sampled_from(names), unique=True)))
    return Case(codebook, codes, rng.integers(0, classes + draw(st.integers(0, 1)), rows).astype(np.uint16), draw(requirements), quasi)


def good_group(counts: Counter[int], requirement: Requirement) -> bool:
    """The definitions, for one group, in exact arithmetic."""
    falling = sorted(counts.values(), reverse=True)
    total = sum(falling)
    good = requirement.k is None or total >= requirement.k
    if requirement.alpha is not None:
        good &= Fraction(falling[0], total) <= requirement.alpha
    if requirement.c is not None:
        assert requirement.l is not None
        good &= falling[0] < requirement.c * sum(falling[requirement.l - 1 :])
    return good


@dataclass
class Node:
    levels: tuple[int, ...]
    failing: int
    cost: int
    groups: int


def whole_lattice(case: Case) -> tuple[list[Node], int]:
    """Every node, looked at by itself."""
    taxonomies = Taxonomies(case.codebook)
    names = case.codebook.schema.names
    quasi = names if case.quasi is None else case.quasi
    spans = [range(taxonomies.n_levels(j)) if name in quasi else range(1) for j, name in enumerate(names)]
    rows = [(row, label) for row, label in zip(case.codes.tolist(), case.labels.tolist(), strict=True) if label < case.codebook.n_classes]
    nodes = []
    for levels in product(*spans):
        groups: dict[Any, Counter[int]] = defaultdict(Counter)
        for row, label in rows:
            key = tuple(taxonomies.codes_at(j, level)[row[j]] for j, level in enumerate(levels) if names[j] in quasi)
            groups[key][label] += 1
        sizes = {key: sum(counts.values()) for key, counts in groups.items()}
        fine = [key for key, counts in groups.items() if good_group(counts, case.requirement)]
        failing = len(rows) - sum(sizes[key] for key in fine)
        nodes.append(Node(levels, failing, sum(sizes[key] ** 2 for key in fine) + failing * len(rows), len(fine)))
    return nodes, len(rows)


def below(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return a != b and all(x <= y for x, y in zip(a, b, strict=True))


def check_valid(case: Case, result: Generalised, may_go: int) -> None:
    """What is published satisfies the requirement, holds the rows it should, and reads as `apply` makes other rows read."""
    assert result.levels is not None
    published = result.apply(case.codes)
    assert np.array_equal(published[result.kept], result.codes)
    assert np.array_equal(case.labels[result.kept], result.labels)
    assert (result.codes <= np.asarray(result.codebook.sizes)).all()
    places = list(result.quasi)
    groups: dict[Any, Counter[int]] = defaultdict(Counter)
    for row, label in zip(result.codes[:, places].tolist(), result.labels.tolist(), strict=True):
        groups[tuple(row)][label] += 1
    assert all(good_group(counts, case.requirement) for counts in groups.values())
    assert len(groups) == result.groups
    assert result.rows == int((case.labels < case.codebook.n_classes).sum())
    assert result.rows - len(result.codes) == result.left_out <= may_go
    assert result.suppressed == (result.left_out / result.rows if result.rows else 0)
    left_out = {tuple(row) for row in published[(case.labels < case.codebook.n_classes) & ~result.kept][:, places].tolist()}
    assert not left_out & groups.keys()  # whole groups are left out


@pytest.mark.slow
@settings(max_examples=300)
@given(cases())
def test_the_same_as_a_search_of_the_whole_lattice(case: Case) -> None:
    nodes, _ = whole_lattice(case)
    good = [node for node in nodes if node.failing == 0]
    minimal = [node for node in good if not any(below(other.levels, node.levels) for other in good)]
    assert case.minimal() == sorted(node.levels for node in minimal)
    result = case.run()
    assert result.complete
    assert result.lattice == len(nodes)
    assert result.impossible == (not good)
    if good:
        assert result.levels in [node.levels for node in minimal]
        assert result.cost == min(node.cost for node in minimal) == min(node.cost for node in good)
        check_valid(case, result, 0)


@pytest.mark.slow
@settings(max_examples=300)
@given(cases(), st.sampled_from([0.01, 0.05, 0.1, "1/3", 0.6, 0.95]))
def test_the_same_with_rows_left_out(case: Case, share: Any) -> None:
    nodes, rows = whole_lattice(case)
    may_go = int(Fraction(str(share)) * rows)
    good = [node for node in nodes if node.failing <= may_go]
    assert case.minimal(share) == sorted(node.levels for node in good if not any(below(other.levels, node.levels) for other in good))
    result = case.run(share)
    assert result.complete
    assert result.impossible == (not good)
    if good:
        assert result.cost == min(node.cost for node in good)
        assert (result.levels, result.cost, result.left_out) in [(node.levels, node.cost, node.failing) for node in good]
        assert not any(node.cost <= result.cost and below(node.levels, result.levels or ()) for node in good if _one_apart(node, result))
        check_valid(case, result, may_go)


def _one_apart(node: Node, result: Generalised) -> bool:
    return sum(result.levels or ()) - sum(node.levels) == 1


@given(cases())
def test_what_is_good_stays_good_when_generalised(case: Case) -> None:
    nodes, _ = whole_lattice(case)
    good = {node.levels: node.failing == 0 for node in nodes}
    cost = {node.levels: node.cost for node in nodes if node.failing == 0}
    for a, b in product(good, good):
        if below(a, b) and good[a]:
            assert good[b]
            assert cost[a] <= cost[b]


@given(
    st.lists(st.integers(0, 7), min_size=2, max_size=4).filter(any),
    st.one_of(
        st.builds(lambda c, at: Requirement.of(c=c, l=at), st.sampled_from([0.5, 1, 2, "7/3"]), st.integers(2, 4)),
        st.builds(lambda a: Requirement.of(k=1, alpha=a), st.sampled_from([0.3, 0.4, 0.5, "2/3"])),
    ),
)
def test_the_least_number_of_rows_that_must_go(counts: list[int], requirement: Requirement) -> None:
    rests = [Counter(dict(enumerate(rest))) for rest in product(*(range(count + 1) for count in counts))]
    most = max(sum(rest.values()) for rest in rests if not any(rest.values()) or good_group(rest, requirement))
    bounds = Bounds.of(requirement, sum(counts))
    assert _judge(np.array([counts]), bounds.k, bounds.first, bounds.most)[0] == sum(counts) - most


@pytest.mark.slow
@settings(max_examples=100)
@given(cases(), st.integers(0, 40), st.sampled_from([0, 0.2]))
def test_a_search_that_stops_early_is_still_valid(case: Case, nodes: int, share: float) -> None:
    result = case.run(share, most_nodes=nodes)
    if not result.impossible:
        check_valid(case, result, int(Fraction(str(share)) * result.rows))
    if result.complete:
        assert result.cost == case.run(share).cost


@pytest.mark.slow
@given(cases(), st.randoms())
def test_the_order_of_the_rows_does_not_matter(case: Case, random: Any) -> None:
    order = list(range(len(case.codes)))
    random.shuffle(order)
    a = case.run()
    b = Case(case.codebook, case.codes[order], case.labels[order], case.requirement, case.quasi).run()
    assert (a.levels, a.cost, a.tried) == (b.levels, b.cost, b.tried)
    assert np.array_equal(a.kept[order], b.kept)


@pytest.mark.slow
@given(cases())
def test_the_published_table_reads_back(case: Case) -> None:
    result = case.run()
    assume(not result.impossible)
    columns = result.columns()
    assume(all(None not in column for column in columns.values()))
    assert list(columns) == list(case.codebook.schema.names)
    assert np.array_equal(result.codebook.encode(columns), result.codes)


def two_columns() -> Case:
    schema = Schema(POOL[:2], Target("y", ["no", "yes"]))
    codes = np.array([[0, 0], [1, 0], [2, 1], [2, 1]], dtype=np.uint8)
    return Case(Codebook(schema), codes, np.array([0, 1, 0, 1], dtype=np.uint16), Requirement.of(c=2, l=2), None)


def test_a_small_table() -> None:
    result = two_columns().run()
    assert result.levels == (1, 0)
    assert result.columns()["a"].tolist() == ["xy", "xy", "z", "z"]
    assert result.codebook.schema.attributes[0].values == ("xy", "z", "w")  # type: ignore[union-attr]
    assert (result.groups, result.cost, result.suppressed, result.lattice) == (2, 8, 0.0, 6)
    assert result.guarantee == "anonymity"
    assert "ε" not in result.words()
    assert "(2, 2)-diversity" in result.words()
    assert result.apply(np.array([[3, 2]])).tolist() == [[2, 2]]  # `other`, and a value that has no branch


def test_impossible_is_a_result() -> None:
    case = two_columns()
    case.labels = np.zeros(4, dtype=np.uint16)
    result = case.run()
    assert result.impossible
    assert result.levels is None
    assert len(result.codes) == len(result.labels) == result.kept.sum() == 0
    assert "impossible" in result.words()
    with pytest.raises(PlanError, match="impossible"):
        result.apply(case.codes)
    case.requirement = Requirement.of(c=100, l=5)  # more than there are classes
    assert case.run().impossible
    assert case.run(0.9).impossible
    assert case.minimal() == []


def test_other_attributes_are_published_as_they_are() -> None:
    case = two_columns()
    case.quasi = ["b"]
    result = case.run()
    assert result.levels == (0, 0)
    assert np.array_equal(result.codes, case.codes)


def test_clear_errors() -> None:
    case = two_columns()
    for suppression, says in ((1, "share"), (-0.1, "suppression"), ("half", "suppression")):
        with pytest.raises(PlanError, match=says):
            case.run(suppression)
    with pytest.raises(PlanError, match="names of attributes"):
        generalise(case.codes, case.labels, case.codebook, case.requirement, quasi=["no such"])
    with pytest.raises(TableError, match="2 columns"):
        generalise(case.codes[:, :1], case.labels, case.codebook, case.requirement)
    with pytest.raises(TableError, match="codebook's"):
        generalise(case.codes + 5, case.labels, case.codebook, case.requirement)
    with pytest.raises(TableError, match="one class code"):
        generalise(case.codes, case.labels[:2], case.codebook, case.requirement)
    with pytest.raises(PlanError, match="digits"):
        generalise(case.codes, case.labels, case.codebook, Requirement.of(c=Fraction(1, 3**50), l=2))
    pairs = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    with pytest.raises(PlanError, match="allow more"):
        minimal_generalisations(pairs, case.labels, case.codebook, Requirement.of(k=2), most_nodes=1)
    assert minimal_generalisations(pairs, case.labels, case.codebook, Requirement.of(k=2)) == [(0, 1), (1, 0)]


def stored(name: str, **requirement: Any) -> Case:
    data = datasets.load(name)
    codebook = Codebook(with_numeric_taxonomies(data.schema))
    return Case(codebook, codebook.encode(data.columns), codebook.encode_classes(data.y), Requirement.of(**requirement), None)


@pytest.mark.slow
@needs_files
def test_nursery_stops_where_the_paper_says() -> None:
    """Sharkey et al., 4.2: no data from l = 4 and c = 10 on. A class of 2 rows cannot be the fifth of any group."""
    stops = {(at, c): stored("nursery", c=c, l=at).run().impossible for at in (2, 3, 4, 5) for c in (5, 10, 15, 20)}
    assert [key for key, impossible in stops.items() if impossible] == [(4, 5), (4, 10), (5, 5), (5, 10), (5, 15), (5, 20)]


@pytest.mark.slow
@needs_files
@pytest.mark.parametrize(("requirement", "share"), [({"c": 5, "l": 2}, 0), ({"c": 20, "l": 2}, 0.01), ({"k": 100}, 0)])
def test_adult_with_all_its_attributes(requirement: dict[str, Any], share: float) -> None:
    case = stored("adult", **requirement)
    result = case.run(share)
    assert len(result.quasi) == 14
    assert result.complete
    assert result.tried < 20_000 < result.lattice
    assert result.groups > 0
    check_valid(case, result, int(share * result.rows))


def test_the_baseline_learns_from_the_cells_of_the_taxonomies() -> None:
    """The class changes at 17, an edge of the taxonomy: equal-width cells would not see it."""
    schema = Schema([Numeric("age", 0, 100, taxonomy=[[0, 17, 50, 100], [0, 17, 100], [0, 100]])], Target("y", ["no", "yes"]))
    rng = np.random.default_rng(1)
    age = rng.uniform(0, 34, 4_000)
    y = np.where((age < 17) ^ (rng.random(4_000) < 0.1), "yes", "no")
    seen: list[Schema] = []

    def learn(declared: Schema, columns: Any, target: Any) -> Any:
        seen.append(declared)
        return LocalTreeClassifier(declared).fit(columns, target)

    predict = generalised_model(learn, {"age": age}, y, schema, Requirement.of(c=20, l=2))
    assert predict is not None
    assert seen[0].attributes[0].values == ("0 to 17", "17 to 50", "50 to 100")  # type: ignore[union-attr]
    assert predict({"age": [16.9, 17.0]}).tolist() == ["yes", "no"]


@pytest.mark.slow
@needs_files
def test_adult_has_more_groups_than_with_five_equal_cells() -> None:
    assert stored("adult", c=5, l=2).run().groups == 12
