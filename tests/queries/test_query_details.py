"""Details of queries that a wrong line could change unnoticed: sums against plain loops, what attacks are made of, what is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import msgspec
import numpy as np
import pytest
from strategies import oblivious_trees, small_schema, small_table

from hedgerow.accounting.events import EXPONENTIAL, LOCAL_SENSITIVITY, PERMUTE_AND_FLIP
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.query_decoder import QueryDecoder
from hedgerow.errors import PlanError
from hedgerow.growers import rdt
from hedgerow.queries import (
    Best,
    BestModel,
    Block,
    BoostRound,
    Choose,
    ChooseLocally,
    ChooseTree,
    ClassCounts,
    Confusion,
    GradientSums,
    LeafCounts,
    LeafSizes,
    Reliability,
    Rows,
    ScoreBins,
    Sizes,
    Tables,
)
from hedgerow.queries.attacks import COPIES, DIGIT, MORE, PURE, RIGHT, WRONG, codebook_of
from hedgerow.queries.choose import UNPROVEN
from hedgerow.queries.confusion import add_confusions
from hedgerow.queries.reliability import bin_edges
from hedgerow.queries.scores import GINI, NORMAL_GINI
from hedgerow.remote.codec import PredictorEncoder
from hedgerow.schema.attributes import Categorical, Target
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.trees.additive_model import GRID, AdditiveModel
from hedgerow.trees.oblivious import ObliviousTree
from hedgerow.trees.splits import by_value
from hedgerow.trees.tree import Tree

BOOK = Codebook(small_schema())
COLUMNS, LABELS = small_table(120)
CODES = BOOK.encode(COLUMNS)
CLASSES = BOOK.encode_classes(LABELS)
CLASSES[::7] = 2  # no declared class
TREES = [rdt.build_tree_structure(BOOK, 2, "bins", np.random.default_rng(i)) for i in range(2)]
TREE, NODES = TREES[0], TREES[0].levels[1]
VALUES = by_value(BOOK)
ALLOWED = np.ones((len(NODES), len(VALUES)), dtype=bool)
MODEL = AdditiveModel(np.array([0.3, -0.1]), (), ())
PRICE = Fraction(1, 9)


def sums_of(query: Any, book: Codebook = BOOK) -> list[np.ndarray]:
    """In two blocks, of a compiled loop and of a short one."""
    sums: list[np.ndarray] = query.zeros(book)
    for rows in (slice(0, 100), slice(100, None)):
        query.add(Block(CODES[rows], CLASSES[rows], book.n_classes), sums)
    return sums


def path_of(tree: Tree, codes: np.ndarray) -> list[int]:
    """The nodes that a row comes past, the last where it has no branch to go on."""
    path, node = [], 0
    while node >= 0:
        path.append(node)
        asked = int(tree.attribute[node])
        node = int(tree.branch[tree.first_branch[node] + codes[asked]]) if asked >= 0 else -1
    return path


def test_counts_in_leaves_and_nodes_by_hand() -> None:
    leaves = [np.zeros((len(tree.leaves), 3), dtype=int) for tree in TREES]
    gradients = [np.zeros((len(tree.leaves), 1), dtype=int) for tree in TREES]
    nodes = np.zeros((len(NODES), 3), dtype=int)
    cells = np.zeros((len(NODES), sum(BOOK.sizes), 2), dtype=int)
    first = np.cumsum([0, *BOOK.sizes])
    share = np.exp(-0.1) / (np.exp(0.3) + np.exp(-0.1))
    for codes, actual in zip(CODES, CLASSES, strict=True):
        for tree, table, slope in zip(TREES, leaves, gradients, strict=True):
            for place in np.flatnonzero(tree.leaves == path_of(tree, codes)[-1]):
                table[place, actual] += 1
                slope[place] += 0 if actual == 2 else int(GRID * ((actual == 1) - share))
        passed = [place for place, node in enumerate(NODES) if node in path_of(TREE, codes)]
        for place in passed:
            nodes[place, actual] += 1
            for attribute, code in enumerate(codes):
                if code < BOOK.sizes[attribute] and actual < 2:
                    cells[place, first[attribute] + code, actual] += 1
    assert all(np.array_equal(found, truth[:, :2]) for found, truth in zip(sums_of(LeafCounts(TREES)), leaves, strict=True))
    query: Any
    for query, expected in (
        (LeafSizes(TREES), [table[:, :2].sum(axis=1) for table in leaves]),
        (GradientSums(TREES, MODEL), gradients),
        (Sizes(TREE, NODES), [nodes.sum(axis=1)]),
        (ClassCounts(TREE, NODES), [nodes[:, :2]]),
        (Tables.all(TREE, NODES), [cells]),
    ):
        found = query.exact(sums_of(query), BOOK)
        assert all(np.array_equal(one, truth) for one, truth in zip(found, expected, strict=True)), query.name
    asked = np.zeros((len(NODES), 4), dtype=bool)
    asked[0, 1] = asked[-1, 2] = True
    some = Tables(TREE, NODES, asked)
    wanted = np.repeat(asked, BOOK.sizes, axis=1)[:, :, None] * cells
    assert np.array_equal(some.exact(sums_of(some), BOOK)[0], wanted)
    assert np.array_equal(some.released([cells])[0], wanted)
    assert some.shapes(BOOK) == [(len(NODES), sum(BOOK.sizes), 2)]


def test_predictions_right_and_wrong_by_hand() -> None:
    def flags(codes: np.ndarray) -> np.ndarray:
        return np.minimum(codes[:, 1], 1).astype(np.int64)

    def zeros(codes: np.ndarray) -> np.ndarray:
        return np.zeros(len(codes), dtype=np.int64)

    query = Best([flags, zeros])
    sums = sums_of(query)
    assert [table.shape for table in sums] == [(3, 2)] * 2
    right = [int(sum(guess == actual for guess, actual in zip(predict(CODES), CLASSES, strict=True))) for predict in (flags, zeros)]
    assert query.scores(sums, BOOK).tolist() == [right]
    assert int(sums[0][2].sum()) == int((CLASSES == 2).sum())
    with pytest.raises(ValueError, match="zip"):
        add_confusions([flags, zeros], Block(CODES, CLASSES, 2), sums[:1])
    shares = np.array([[np.nan, 1.0], [0.0, np.inf], [0.05, 0.95]])
    found = Reliability(lambda codes: shares, 2)
    counts = found.zeros(BOOK)
    found.add(Block(CODES[:3], np.array([0, 1, 1], np.uint16), 2), counts)
    assert counts[0].tolist() == [[1, 1], [0, 1]]  # a row with a number that is none is in the lowest bin, and says the first class


def test_what_is_compiled_once_is_compiled_before_threads_begin() -> None:
    calls: list[tuple[int, ...]] = []

    def noted(codes: np.ndarray) -> np.ndarray:
        calls.append(codes.shape)
        return np.zeros((len(codes), 2))

    queries: list[Any] = [Confusion(noted), Best([noted, noted]), BestModel([noted]), ScoreBins(noted, 4, (0,))]
    for query in queries:
        query.prepare(BOOK)
        assert query.calls_predictors
    assert calls == [(1, 4)] * 5
    assert Reliability(noted, 4).calls_predictors
    assert not Rows().calls_predictors


def test_what_is_charged_where_nothing_else_is_said() -> None:
    assert Rows.cost(PRICE, 1).queries == 1
    assert GradientSums.cost(PRICE, 1).sensitivity == GRID  # of two classes one entry
    assert BoostRound.cost(PRICE, 1).sensitivity == GRID // 2
    assert Tables.cost(PRICE, 3) == Tables.cost(PRICE, 3, 1, 2)
    assert ChooseTree(oblivious_trees(BOOK, 2, 2), MODEL, True).event(PRICE, 1).mechanism == EXPONENTIAL
    assert ChooseTree(oblivious_trees(BOOK, 2, 2), MODEL, False).event(PRICE, 1).mechanism == PERMUTE_AND_FLIP


@pytest.mark.parametrize("k", [1, 3])
def test_local_sensitivities_and_rates_by_hand(k: int) -> None:
    sizes = np.array([-4, 0, 1, 3, 99])
    tree, nodes = TREE, np.arange(5)
    query = ChooseLocally(tree, nodes, VALUES, np.ones((5, len(VALUES)), dtype=bool), sizes)
    expected = [Fraction(1, 2)] * 3 + [Fraction(6, 16), Fraction(198, 10_000)]
    assert query.sensitivities == expected
    assert query.rates(Fraction(1, 7), k) == [Fraction(1, 7) / (2 * each * NORMAL_GINI.unit * k) for each in expected]
    event = query.event(Fraction(1, 7), k)
    assert (event.mechanism, event.sensitivity, event.scale) == (LOCAL_SENSITIVITY, Fraction(k, 2), Fraction(7 * k))
    sizes[:] = 7
    assert query.sizes.tolist() == [-4, 0, 1, 3, 99]
    assert not query.allowed.flags.writeable
    assert not query.nodes.flags.writeable


def decoder(book: Codebook = BOOK) -> Any:
    return QueryDecoder(book, Limits())


def test_what_does_not_fit_is_refused_in_words() -> None:
    wrong_tree = [rdt.build_tree_structure(codebook_of(False), 1, "bins", np.random.default_rng(0))]
    encode = PredictorEncoder(BOOK)
    short_tables: Any = msgspec.structs.replace(Tables.all(TREE, NODES).form(PRICE, encode), attributes=[[0]])  # type: ignore[type-var]
    short_choose: Any = msgspec.structs.replace(Choose(TREE, NODES, VALUES, ALLOWED, GINI).form(PRICE, encode), allowed=[[0]])  # type: ignore[type-var]
    refused: list[tuple[Any, str]] = [
        (lambda: LeafCounts(wrong_tree).check(BOOK), "^leaf_counts: a tree was made for another schema"),
        (lambda: GradientSums(wrong_tree, MODEL).check(BOOK), "^gradient_sums: a tree was made for another schema"),
        (lambda: Choose(TREE, NODES, VALUES, ALLOWED, "gini").check(BOOK), "got str; expected a score of the closed list"),  # type: ignore[arg-type]
        (lambda: Tables.decode(short_tables, decoder()), "^asked: expected one list for each node"),
        (lambda: Choose.decode(short_choose, decoder()), "^allowed: expected one list for each node"),
        (lambda: ChooseLocally.decode(None, decoder()), "^choose_locally: its ε is not proven"),
        (lambda: ScoreBins(np.ones, 0, (0,)), "bins"),
        (lambda: ScoreBins(np.ones, 1001, (0,)), "at most 1000"),
        (lambda: Reliability(np.ones, 0), "bins"),
        (lambda: Reliability(np.ones, 1001), "at most 1000"),
        *[
            (lambda classes=classes: ScoreBins(np.ones, 4, classes).check(BOOK), "^score_bins: got the classes")
            for classes in [(), (0, 0), (2,), (-1,), (0, 5), (1, -1)]
        ],
    ]
    for call, words in refused:
        with pytest.raises(PlanError, match=words):
            call()
    assert UNPROVEN.startswith("choose_locally: ")
    ScoreBins(np.ones, 4, (0, 1)).check(BOOK)


def test_what_is_given_is_held_in_one_form() -> None:
    query = ScoreBins(np.ones, np.int64(5), [np.int64(1), np.uint16(0)])  # type: ignore[arg-type]
    assert query.classes == (1, 0)
    assert type(query.classes) is tuple
    assert all(type(each) is int for each in (*query.classes, query.bins, Reliability(np.ones, np.int64(4)).bins))  # type: ignore[arg-type]


def test_the_names_on_the_wire_are_those_of_the_protocol() -> None:
    encode = PredictorEncoder(BOOK)
    assert {"asked", "nodes", "tree", "price"} <= set(msgspec.to_builtins(Tables.all(TREE, NODES).form(PRICE, encode)))
    assert {"asked", "model", "price"} <= set(msgspec.to_builtins(GradientSums(TREES, MODEL).form(PRICE, encode)))


def test_room_is_bounded_for_more_classes_too() -> None:
    book = Codebook(Schema(small_schema().attributes, Target("class", ("a", "b", "c"))))
    model = AdditiveModel(np.zeros(3), (), ())
    leaves = sum(len(tree.leaves) for tree in TREES)
    bounded: list[int] = []

    class Noted(QueryDecoder):
        def bound(self, numbers: int, most: int | None = None) -> None:
            bounded.append(numbers)

    GradientSums.decode(GradientSums(TREES, model).form(PRICE, PredictorEncoder(book)), Noted(book, Limits()))  # type: ignore[arg-type]
    assert bounded == [2, 3 * leaves]
    bounded.clear()
    one = oblivious_trees(book, 3, 1)
    BoostRound.decode(BoostRound(one, model, False).form(PRICE, PredictorEncoder(book)), Noted(book, Limits()))  # type: ignore[arg-type]
    assert bounded == [1, 8 * 6, 8 * 6]
    bounded.clear()
    none: Any = msgspec.structs.replace(BoostRound(one, model, False).form(PRICE, PredictorEncoder(book)), chosen=0)  # type: ignore[type-var]
    with pytest.raises(PlanError, match="groups of equal size"):
        BoostRound.decode(none, Noted(book, Limits())).check(book)
    assert bounded == [1, 8 * 6, 8 * 6]


@pytest.mark.parametrize("kind", [BoostRound, ChooseTree])
def test_no_trees_from_afar_are_refused_and_not_a_fault(kind: Any) -> None:
    one = oblivious_trees(BOOK, 2, 1)
    sent = msgspec.structs.replace(kind(one, MODEL, False).form(PRICE, PredictorEncoder(BOOK)), trees=[])
    query = kind.decode(sent, decoder())
    with pytest.raises(PlanError, match="expected at least one tree"):
        query.check(BOOK)


def attack_of(kind: Any, place: int = 0) -> tuple[Any, Any]:
    attack = kind.attacks()[place]
    return attack, attack.make(codebook_of(attack.copies))


def test_attacks_are_aimed_at_two_attributes_of_every_copy() -> None:
    attack, query = attack_of(Tables)
    assert (attack.rows, attack.more) == (PURE, MORE)
    assert query.attributes.tolist() == [[False, False, True, True]] * COPIES
    for kind, place in ((Choose, 0), (Choose, 3), (ChooseLocally, 0)):
        attack, query = attack_of(kind, place)
        assert query.allowed.tolist() == [[False, False, True, True]] * COPIES
        assert (attack.rows, attack.more) == ([(0, 0, 0)] if kind is ChooseLocally or place == 3 else PURE, MORE)
    assert query.sizes.tolist() == [100] * COPIES


def test_attacks_on_scores_and_rounds() -> None:
    attack, query = attack_of(ScoreBins)
    assert (attack.rows, attack.more, query.bins, query.classes) == (RIGHT, WRONG, 2, (0, 1))
    attack, query = attack_of(Reliability)
    assert (attack.rows, attack.more, query.bins) == (RIGHT, WRONG, 2)
    attack, query = attack_of(BoostRound)
    assert (attack.rows, attack.more, query.concentrated, query.chosen) == (RIGHT, WRONG, False, 1)
    assert [type(tree) for tree in query.trees] == [ObliviousTree] * 2
    assert attack.lines(([1], np.array([[[4, 5], [6, 7]]]))).tolist() == [[1, 4, 5, 6, 7]]


def test_two_tables_are_read_by_the_steps_of_their_likelihood() -> None:
    attack, _ = attack_of(Tables)
    noisy = np.full((COPIES, 2 * DIGIT + 4, 2), 70)
    inner = noisy[:, 2 * DIGIT :]
    inner[:] = np.arange(8).reshape(4, 2) + 10
    for place, (a, b) in enumerate(((-3, 40), (0, 50), (1, 51), (5, 60), (1, 30), (-1, 51))):
        inner[place, 0, 1], inner[place, 3, 1] = a, b
    lines = attack.lines(noisy)
    assert lines[:6, 0].tolist() == [50, 50, 52, 52, 51, 51]
    assert np.array_equal(lines[:, 1:], inner.reshape(COPIES, 8))


def test_a_codebook_of_attacks_has_two_flags() -> None:
    assert codebook_of(False).schema == Schema([Categorical("a", (0, 1)), Categorical("b", (0, 1))], Target("class", (0, 1)))


def test_edges_of_bins_by_hand() -> None:
    assert bin_edges(2, 2).tolist() == pytest.approx([0.5, 0.9, 1.0], abs=1e-15)
    for classes in (1, 2, 3, 7, 49, 60_000):
        edges = bin_edges(classes, 1000)
        assert (edges[0], edges[-1], len(edges)) == (1 / classes, 1.0, 1001)
        assert classes == 1 or (np.diff(edges) > 0).all()
    assert bin_edges(3, 4)[1] == pytest.approx(0.61956, abs=1e-5)  # u = 0.56066
