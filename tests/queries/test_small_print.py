"""Small print of the queries that a wrong line could change unnoticed: the methods of version 0.1, limits of what travels, exact prices."""

from __future__ import annotations

import warnings
from dataclasses import replace
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np
import pytest
from strategies import oblivious_trees, small_schema, small_table

from hedgerow.accounting.events import DISCRETE_GAUSSIAN, DISCRETE_LAPLACE, EXPONENTIAL, Event
from hedgerow.accounting.meter import Budget
from hedgerow.accounting.prices import Rho
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.query_decoder import MOST_TREES, QueryDecoder
from hedgerow.engines.memory import MemoryRows
from hedgerow.errors import BudgetError, PlanError, TableError
from hedgerow.growers import rdt
from hedgerow.mechanisms.coins import SeededCoins
from hedgerow.private_table import PrivateTable
from hedgerow.queries import (
    BY_NAME,
    Best,
    BestModel,
    BestScale,
    Block,
    BoostRound,
    Choose,
    ChooseLocally,
    ChooseTree,
    ClassCounts,
    Confusion,
    CountingQuery,
    GradientSums,
    LeafCounts,
    LeafSizes,
    Query,
    Reliability,
    Rows,
    ScoreBins,
    Sizes,
    Tables,
    boosting,
)
from hedgerow.queries.attacks import COPIES, DIGIT, codebook_of
from hedgerow.queries.forms import MOST_CHOICES
from hedgerow.queries.scores import GINI
from hedgerow.remote.codec import PredictorEncoder
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.additive_model import GRID, AdditiveModel, MostProbable
from hedgerow.trees.splits import Candidates, by_value

COLUMNS, LABELS = small_table(150)
CODEBOOK = Codebook(small_schema())
TREES = [rdt.build_tree_structure(CODEBOOK, 2, "bins", np.random.default_rng(i)) for i in range(2)]
TREE, NODES = TREES[0], TREES[0].levels[1]
MODEL = AdditiveModel(np.array([0.1, 0.0]), (TREE,), (np.random.default_rng(1).normal(size=(TREE.n_nodes, 2)),))
VALUES = by_value(CODEBOOK)
ALLOWED = np.ones((len(NODES), len(VALUES)), dtype=bool)
ASKED = np.ones((len(NODES), 4), dtype=bool)
PRICE = Fraction(1, 9)


def zeros(codes: np.ndarray) -> np.ndarray:
    return np.zeros(len(codes), dtype=np.int64)


def halves(codes: np.ndarray) -> np.ndarray:
    return np.full((len(codes), 2), 0.5)


OLD: dict[str, tuple[tuple[Any, ...], Query[Any]]] = {  # arguments of the method of version 0.1, without the price; the query of today
    "rows": ((), Rows()),
    "leaf_counts": ((TREES,), LeafCounts(TREES)),
    "sizes": ((TREE, NODES), Sizes(TREE, NODES)),
    "class_counts": ((TREE, NODES), ClassCounts(TREE, NODES)),
    "tables": ((TREE, NODES, ASKED), Tables(TREE, NODES, ASKED)),
    "confusion": ((zeros,), Confusion(zeros)),
    "reliability": ((halves, 4), Reliability(halves, 4)),
    "gradient_sums": ((TREES, MODEL), GradientSums(TREES, MODEL)),
    "choose": ((TREE, NODES, VALUES, ALLOWED, GINI), Choose(TREE, NODES, VALUES, ALLOWED, GINI)),
    "best": (([zeros, zeros],), Best([zeros, zeros])),
    "best_scale": ((MODEL, (1.0, 0.5)), BestScale(MODEL, (1.0, 0.5))),
}


def answer_of(ask: Any) -> Any:
    reservation = Budget(1).reserve(1, "test")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        found = ask(PrivateTable(MemoryRows(COLUMNS, LABELS, CODEBOOK), reservation, SeededCoins(4)))
    return found, reservation.events


def same(one: Any, other: Any) -> bool:
    if isinstance(one, list):
        return len(one) == len(other) and all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    return np.array_equal(one, other)


@pytest.mark.parametrize("name", OLD)
def test_a_method_of_version_0_1_asks_what_it_asked(name: str) -> None:
    """With the price after the arguments that have no default, or by either of its names."""
    given, query = OLD[name]
    expected, events = answer_of(lambda table: table.ask(query, PRICE))
    place = len(given)
    for ask in (
        lambda table: getattr(table, name)(*given[:place], PRICE),
        lambda table: getattr(table, name)(*given, price=PRICE),
        lambda table: getattr(table, name)(*given, epsilon=PRICE),
    ):
        found, own = answer_of(ask)
        assert same(found, expected)
        assert own == events


def test_a_method_of_version_0_1_takes_what_has_a_default_after_its_price_and_warns_where_it_is_called() -> None:
    expected, _ = answer_of(lambda table: table.ask(Choose(TREE, NODES, VALUES, ALLOWED, GINI, "exponential mechanism"), PRICE))
    found, _ = answer_of(lambda table: table.choose(TREE, NODES, VALUES, ALLOWED, GINI, PRICE, "exponential mechanism"))
    assert same(found, expected)
    table = PrivateTable(MemoryRows(COLUMNS, LABELS, CODEBOOK), Budget(1).reserve(1, "test"), SeededCoins(4))
    with pytest.warns(DeprecationWarning, match=r"use ask\(Rows") as told:
        table.rows(PRICE)
    assert told[0].filename == __file__
    with pytest.raises(AttributeError, match="boost_round"):
        table.boost_round  # noqa: B018  no such method: it came later


class Bounds(QueryDecoder):
    """A decoder that notes what it was asked to bound."""

    def __init__(self) -> None:
        super().__init__(CODEBOOK, Limits())
        object.__setattr__(self, "bounded", [])

    def bound(self, numbers: int, most: int | None = None) -> None:
        self.bounded.append((numbers, most))  # type: ignore[attr-defined]

    def bound_counted(self, numbers: int) -> None:
        self.bounded.append((numbers, "counted"))  # type: ignore[attr-defined]


LEAVES = sum(len(tree.leaves) for tree in TREES)
N = len(NODES)
CELLS = sum(CODEBOOK.sizes) + 4  # of four attributes, each with a last one for codes without a branch
MANY = oblivious_trees(CODEBOOK, 3, 4)  # of 8 leaves
# A query; what is bounded before room is made for it. There are two classes; where rows of no class are counted too, three.
SENT: dict[str, tuple[Query[Any], list[Any]]] = {
    "rows": (Rows(), []),
    "leaf_counts": (LeafCounts(TREES), [(2, MOST_TREES), (2 * LEAVES, None)]),
    "leaf_sizes": (LeafSizes(TREES), [(2, MOST_TREES), (2 * LEAVES, None)]),
    "gradient_sums": (GradientSums(TREES, MODEL), [(2, MOST_TREES), (LEAVES, None)]),
    "sizes": (Sizes(TREE, NODES), [(3 * N, None)]),
    "class_counts": (ClassCounts(TREE, NODES), [(3 * N, None)]),
    "tables": (Tables(TREE, NODES, ASKED), [(N * CELLS * 3, None)]),
    "choose": (Choose(TREE, NODES, VALUES, ALLOWED, GINI), [(N * CELLS * 3, "counted")]),
    "confusion": (Confusion(MostProbable(MODEL)), [(6, None)]),
    "reliability": (Reliability(MODEL.probabilities, 4), []),
    "score_bins": (ScoreBins(MODEL.probabilities, 4, (1, 0)), [(2 * 3 * 4, None)]),
    "best": (Best([MostProbable(MODEL)] * 5), [(5, MOST_CHOICES), (5 * 3 * 2, None)]),
    "best_model": (BestModel([MODEL.probabilities] * 3), [(3, MOST_CHOICES)]),
    "best_scale": (BestScale(MODEL, (1.0, 0.5, 2.0)), [(3, MOST_CHOICES)]),
    "choose_tree": (ChooseTree(MANY, MODEL, False), [(len(MANY) * 8 * 2, "counted")]),
    "boost_round": (BoostRound(MANY, MODEL, False, 2), [(2 * 8 * 2, None), (len(MANY) * 8 * 2, "counted")]),
}


def test_all_queries_that_travel_are_here() -> None:
    assert set(SENT) == set(BY_NAME)


@pytest.mark.parametrize("name", SENT)
def test_what_travels_comes_back_and_is_bounded_before_room_is_made_for_it(name: str) -> None:
    query, bounded = SENT[name]
    sent = query.form(PRICE, PredictorEncoder(CODEBOOK))
    assert sent.number == 0  # the session fills it in
    decoder: Any = Bounds()
    again, price = decoder.query(name, msgspec.json.encode(sent))
    assert [each for each in decoder.bounded if each in bounded] == bounded
    assert price == PRICE
    assert type(again) is type(query)
    assert again.shapes(CODEBOOK) == query.shapes(CODEBOOK)
    assert answer_of(lambda table: table.ask(again, PRICE))[1] == answer_of(lambda table: table.ask(query, PRICE))[1]
    assert same(answer_of(lambda table: table.released(again, PRICE))[0], answer_of(lambda table: table.released(query, PRICE))[0])


@pytest.mark.parametrize("name", SENT)
def test_sums_begin_with_zeros_and_answers_have_the_shapes_that_are_stated(name: str) -> None:
    query = SENT[name][0]
    assert all(each.dtype == np.int64 and not each.any() for each in query.zeros(CODEBOOK))
    released, _ = answer_of(lambda table: table.released(query, PRICE))
    assert [each.shape for each in released] == query.shapes(CODEBOOK)


def sure_of(codes: np.ndarray) -> np.ndarray:
    first = np.linspace(0, 1, 7)[codes[:, 0] + 2 * codes[:, 1] % 7]
    return np.where(codes[:, 2:3] == 3, np.nan, np.stack([first, 1 - first], axis=1))


def test_sums_over_rows_by_hand() -> None:
    codes = CODEBOOK.encode(COLUMNS)
    classes = CODEBOOK.encode_classes(LABELS)
    classes[::7] = 2  # no declared class
    rows = len(codes)
    guesses, shares = codes[:, 1] % 2, sure_of(codes)
    confusion, reliability, bins = np.zeros((3, 2)), np.zeros((4, 2)), np.zeros((1, 3, 5))
    for guess, pair, actual in zip(guesses, shares, classes, strict=True):
        confusion[actual, guess] += 1
        pair = pair if np.isfinite(pair).all() else np.zeros(2)
        if actual < 2:
            sure = sum(pair.max() >= edge for edge in (u * u / (u * u + (1 - u) * (1 - u)) for u in (0.625, 0.75, 0.875)))
            reliability[sure, int(pair.argmax() == actual)] += 1
        place = sum(pair[1] > edge for edge in (u * u / (u * u + (1 - u) * (1 - u)) for u in (0.2, 0.4, 0.6, 0.8)))
        bins[0, 2 if actual == 2 else int(actual == 1), place] += 1
    expected: list[tuple[Query[Any], Any]] = [
        (Rows(), [rows]),
        (Confusion(lambda block: (block[:, 1] % 2).astype(np.int64)), confusion),
        (Reliability(sure_of, 4), reliability),
        (ScoreBins(sure_of, 5, (1,)), bins),
    ]
    for query, truth in expected:
        sums = query.zeros(CODEBOOK)
        for part in (slice(0, 60), slice(60, None)):
            query.add(Block(codes[part], classes[part], 2), sums)
        assert np.array_equal(sums[0], np.array(truth)), query.name
    for wrong in (Reliability(lambda block: np.ones((1, 2)), 4), ScoreBins(lambda block: np.ones((1, 2)), 4, (0,))):
        with pytest.raises(TableError, match="one number for each row and class"):
            wrong.add(Block(codes, classes, 2), wrong.zeros(CODEBOOK))
    with pytest.raises(TableError, match="one class for each row"):
        Confusion(lambda block: np.zeros(1, dtype=np.int64)).add(Block(codes, classes, 2), Confusion(zeros).zeros(CODEBOOK))


def test_an_answer_that_cannot_be_is_not_believed() -> None:
    allowed = ALLOWED.copy()
    allowed[0, 0] = allowed[-1, -1] = False
    query, last = Choose(TREE, NODES, VALUES, allowed, GINI), len(VALUES) - 1
    first, middle = [1] * N, [0] * (N - 1)
    assert query.valid([np.array(first)])
    assert query.valid([np.array([last, *middle])])
    for wrong in ([0, *middle], [-1, *middle], [1, *middle[:-1], last], [last + 1, *middle], [1, *middle[:-1], -2]):
        assert not query.valid([np.array(wrong)])
    assert Rows().valid([np.array([-5])]) is True


def test_what_is_not_proven_does_not_travel() -> None:
    query = ChooseLocally(TREE, NODES, VALUES, ALLOWED, np.full(N, 9))
    with pytest.raises(PlanError, match="not proven"):
        query.form(PRICE, PredictorEncoder(CODEBOOK))
    decoder: Any = Bounds()
    with pytest.raises(PlanError, match="not proven"):
        ChooseLocally.decode(None, decoder)
    sent: Any = SENT["choose"][0].form(PRICE, PredictorEncoder(CODEBOOK))
    with pytest.raises(PlanError, match="list of proven scores"):
        Choose.decode(msgspec.structs.replace(sent, score="my own"), decoder)
    assert Tables.all(TREE, NODES).attributes.all()


def test_many_candidates_are_bounded_too() -> None:
    splits = Candidates(CODEBOOK, VALUES.splits * 40)
    sent = Choose(TREE, NODES, splits, np.ones((N, len(splits)), dtype=bool), GINI).form(PRICE, PredictorEncoder(CODEBOOK))
    decoder: Any = Bounds()
    Choose.decode(sent, decoder)
    assert decoder.bounded == [(N * len(splits), "counted")]


def test_a_query_cannot_change_after_it_was_checked() -> None:
    trees, nodes, asked, scales = list(TREES), np.array(NODES), ASKED.copy(), [1.0, 0.5]
    allowed, sizes, boosted, models = ALLOWED.copy(), np.full(N, 9), list(MANY), [zeros, zeros]
    held = [
        LeafCounts(trees).trees, GradientSums(trees, MODEL).trees, Sizes(TREE, nodes).nodes, Tables(TREE, nodes, asked).attributes,
        Choose(TREE, nodes, VALUES, allowed, GINI).allowed, ChooseLocally(TREE, nodes, VALUES, allowed, sizes).sizes,
        ChooseTree(boosted, MODEL, False).trees, Best(models).predictors, BestModel(models).models, BestScale(MODEL, scales).scales,
    ]  # fmt: skip
    before = [len(each) for each in held]
    for given in (trees, boosted, models, scales):
        given.clear()
    for given in (nodes, asked, allowed, sizes):
        given[:] = 0
    assert [len(each) for each in held] == before
    for each in held:
        assert isinstance(each, tuple) or (not each.flags.writeable and each.any())


@pytest.mark.parametrize("name", SENT)
@pytest.mark.parametrize("k", [1, 3])
def test_a_certificate_may_state_what_a_query_is_charged_and_nothing_less(name: str, k: int) -> None:
    query = SENT[name][0]
    for event in query.events(PRICE, k):
        kind: Any = BY_NAME[event.query]
        if not issubclass(kind, CountingQuery) or event.mechanism not in (DISCRETE_LAPLACE, DISCRETE_GAUSSIAN):
            continue
        stated = str(event.sensitivity)
        assert kind.proven(event.mechanism, event.queries, stated, 2, k)
        assert kind.proven(event.mechanism, 1, stated, 2, k)
        assert not kind.proven(event.mechanism, 0, stated, 2, k)
        assert not kind.proven(event.mechanism, event.queries, str(event.sensitivity - 1), 2, k)
        assert not kind.proven(event.mechanism, event.queries, stated, 2, k + 1)
        assert not kind.proven(EXPONENTIAL, event.queries, stated, 2, k)
        other: Any = replace(query, concentrated=True) if isinstance(query, BoostRound) else query
        squared = other.event(Rho(PRICE), k)
        assert kind.proven(DISCRETE_GAUSSIAN, event.queries, str(squared.sensitivity), 2, k)
        assert not kind.proven(DISCRETE_GAUSSIAN, event.queries, str(squared.sensitivity), 2, k + 1)


HALF = Fraction(1, 2) + Fraction(1, 2**20)
L1, L2 = (Fraction(boosting.bound(2, concentrated), GRID) for concentrated in (False, True))


@pytest.mark.parametrize(
    ("query", "whole", "halved", "never"),  # sensitivities that are proven for rate ε/Δ, for ε/2Δ alone, and for neither
    [
        (Choose, (1, 2, Fraction(5, 2), 36), (HALF,), (0, Fraction(1, 2), Fraction(3, 2), Fraction(36) + Fraction(1, 10**9), 40)),
        (Best, (1,), (), (Fraction(1, 2), 2)),
        (BestModel, (2,), (), (1, Fraction(5, 2))),
        (BestScale, (2,), (), (1, Fraction(5, 2))),
        (ChooseTree, (), (L1, L2), (L1 / 2, L2 / 2, L1 + L2)),
        (ChooseLocally, (), (), (0, Fraction(1, 2), HALF, 1, 2)),
    ],
)
def test_sensitivities_of_choices_that_a_certificate_may_state(query: Any, whole: Any, halved: Any, never: Any) -> None:
    for sensitivity in map(Fraction, (*whole, *halved, *never)):
        assert query.proven(sensitivity, True, 2) is (sensitivity in (*whole, *halved))
        assert query.proven(sensitivity, False, 2) is (sensitivity in whole)


NAMES_OF_ATTACKS = {
    "choose": ["choose", "choose, exponential mechanism", "choose, max", "choose, Gini index"],
    "choose_tree": ["choose_tree", "choose_tree, exponential mechanism"],
}
ONCE, NODES_AT_ONCE, TREES_AT_ONCE = (1, 1, False), (COPIES, 1, True), (COPIES, COPIES, False)  # runs, prices, copies
KINDS_OF_ATTACKS = {
    **dict.fromkeys(("sizes", "class_counts", "tables", "choose", "choose_locally"), NODES_AT_ONCE),
    **dict.fromkeys(("leaf_counts", "leaf_sizes", "gradient_sums"), TREES_AT_ONCE),
}


@pytest.mark.parametrize("kind", [*BY_NAME.values(), ChooseLocally], ids=lambda kind: kind.name)
def test_attacks_are_what_they_say(kind: Any) -> None:
    """Each asks its own query for a price that it can be asked for, of tables that one row tells apart."""
    attacks = kind.attacks()
    assert [attack.name for attack in attacks] == NAMES_OF_ATTACKS.get(kind.name, [kind.name])
    for attack in attacks:
        assert (attack.runs, attack.prices, attack.copies) == KINDS_OF_ATTACKS.get(kind.name, ONCE)
        assert attack.gaussian is (kind.name in ("sizes", "class_counts", "tables"))
        codebook = codebook_of(attack.copies)
        query = attack.make(codebook)
        assert type(query) is kind
        query.check(codebook)
        if isinstance(query, ChooseTree):
            assert query.concentrated is attack.name.endswith("mechanism")
        sums = [exact_sums(query, codebook, rows, attack.copies) for rows in (list(attack.rows), [*attack.rows, attack.more])]
        changed = [np.asarray(one != other) for one, other in zip(*sums, strict=True)]
        assert any(each.any() for each in changed)
        if attack.copies:  # in every copy
            assert all(each.reshape(attack.runs, -1).any(axis=1).all() for each in changed)


def exact_sums(query: Any, codebook: Codebook, rows: list[tuple[int, int, int]], copies: bool) -> list[np.ndarray]:
    table = np.array(rows)
    columns, labels = {"a": table[:, 0], "b": table[:, 1]}, table[:, 2]
    if copies:
        first, second = (axis.ravel() for axis in np.meshgrid(np.arange(DIGIT), np.arange(DIGIT), indexing="ij"))
        columns = {name: np.tile(column, COPIES) for name, column in columns.items()}
        columns |= {"first": np.repeat(first, len(table)), "second": np.repeat(second, len(table))}
        labels = np.tile(labels, COPIES)
    return list(MemoryRows(columns, labels, codebook).sums(query))


@pytest.mark.parametrize("chosen", [1, 2])
def test_a_round_has_an_exact_price_and_gives_sums_of_both_kinds(chosen: int) -> None:
    trees = oblivious_trees(CODEBOOK, 3, 4)
    with pytest.raises(PlanError, match=r"^boost_round: ε must be an exact fraction, got float"):
        BoostRound.costs(0.5, 1, 2, chosen, 2)  # type: ignore[arg-type]
    many = Codebook(replace(small_schema(), target=replace(small_schema().target, classes=("a", "b", "c"))))
    model = AdditiveModel(np.zeros(3), (), ())
    query = BoostRound(trees, model, False, chosen)
    assert query.shapes(many) == [(chosen,), (chosen, 8, 6)]


def test_every_choice_of_a_round_is_of_its_own_group() -> None:
    query = BoostRound(oblivious_trees(CODEBOOK, 3, 4), MODEL, False, 2)
    sums = np.zeros((2, 8, 2), dtype=np.int64)
    assert query.valid([np.array([1, 2]), sums])
    assert not query.valid([np.array([1, 1]), sums])
    assert not query.valid([np.array([2, 3]), sums])


def test_one_loss_that_is_not_exact_refuses_all() -> None:
    reservation = Budget(1).reserve(1, "test")
    good = Event("rows", "discrete Laplace", PRICE, 1, Fraction(1), Fraction(9))
    with pytest.raises(BudgetError, match="exact fraction"):
        reservation.charge(good, replace(good, epsilon=0.1))  # type: ignore[arg-type]
    assert reservation.events == ()
    assert reservation.charged == 0
