"""What travels is read back as it was written, and whatever else a stranger writes is refused in words before anything is charged."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import msgspec
import numpy as np
import pytest
from strategies import oblivious_trees, small_schema

from hedgerow.accounting.prices import Rho
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.query_decoder import QueryDecoder
from hedgerow.errors import PlanError
from hedgerow.growers import rdt
from hedgerow.queries import forms
from hedgerow.queries.forms import ModelForm, ObliviousForm, RhoForm, SplitForm, TreeForm
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.additive_model import AdditiveModel
from hedgerow.trees.splits import by_value

BOOK = Codebook(small_schema())
TREE = rdt.build_tree_structure(BOOK, 2, "bins", np.random.default_rng(0))
BOOSTED = oblivious_trees(BOOK, 2, 2)
LONGEST = 2**256 - 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1/10", Fraction(1, 10)), ("0.1", Fraction(1, 10)), ("3", Fraction(3)), ("10.50", Fraction(21, 2)), ("6/4", Fraction(3, 2)),
        (str(LONGEST), Fraction(LONGEST)), (f"1/{LONGEST}", Fraction(1, LONGEST)), ("0." + "0" * 19 + "1", Fraction(1, 10**20)),
        (f"{LONGEST}/{LONGEST - 1}", Fraction(LONGEST, LONGEST - 1)), ("0" * 79 + "1/" + "0" * 79 + "2", Fraction(1, 2)),
    ],
)  # fmt: skip
def test_a_price_is_read_exactly(text: str, value: Fraction) -> None:
    assert forms.fraction_of(text) == value
    assert forms.price_of(RhoForm(text)) == Rho(value)
    assert forms.price_of(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "", "0", "0.0", "0/1", "1/0", "-1", "+1", "1e3", " 1", "1 ", "1/", "/1", ".5", "1.", "1/2/3", "1.5/2", "nan", "inf", "١", "1_0",
        str(LONGEST + 1), f"1/{LONGEST + 1}", "0." + "0" * 20 + "1", "0" * 80 + "1", "1/" + "0" * 80 + "1",
    ],
)  # fmt: skip
def test_a_price_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(PlanError, match=r"^price: expected an exact fraction above 0, such as 1/10 or 0.1, of at most 256 bits"):
        forms.fraction_of(text)


def test_a_price_is_written_exactly_or_not_at_all() -> None:
    for value in (Fraction(1, 10), Fraction(LONGEST), Fraction(1, LONGEST)):
        assert forms.fraction_of(forms.short_form(value)) == value
        assert forms.price_of(forms.price_form(Rho(value))) == Rho(value)
        assert forms.price_of(forms.price_form(value)) == value
    for value in (Fraction(LONGEST + 1), Fraction(1, LONGEST + 1)):
        with pytest.raises(PlanError, match="more than 256 bits"):
            forms.short_form(value)


def test_things_that_travel_come_back() -> None:
    assert forms.read_tree(forms.tree_form(TREE), BOOK) == TREE
    assert forms.read_one_oblivious(forms.oblivious_form(BOOSTED[0]), BOOK) == BOOSTED[0]
    nodes = np.array(TREE.levels[1])
    assert forms.nodes_form(nodes) == nodes.tolist()
    for some in ([0, TREE.n_nodes - 1], [0], [TREE.n_nodes - 1], [2, 2], []):
        assert forms.read_nodes(some, TREE).tolist() == some
    mask = np.array([[True, False, True], [False, False, False]])
    assert forms.mask_form(mask) == [[0, 2], []]
    assert forms.read_mask([[0, 2], []], 2, 3, "asked").tolist() == mask.tolist()
    values = by_value(BOOK)
    assert forms.read_candidates(forms.candidates_form(values), BOOK).splits == values.splits
    rng = np.random.default_rng(0)
    trees = (TREE, *BOOSTED)
    model = AdditiveModel(rng.normal(size=2), trees, tuple(rng.normal(size=(tree.n_nodes, 2)) for tree in trees))
    sent = forms.model_form(model)
    assert (len(sent.trees), len(sent.boosted)) == (1, 2)
    again = forms.read_model(msgspec.json.decode(msgspec.json.encode(sent), type=ModelForm), BOOK)
    assert np.array_equal(again.base, model.base)
    assert again.trees == trees
    assert all(np.array_equal(one, other) for one, other in zip(again.scores, model.scores, strict=True))


def test_what_is_not_sound_is_refused_in_words() -> None:
    model = AdditiveModel(np.zeros(2), (TREE,), (np.zeros((TREE.n_nodes, 2)),))
    mixed = AdditiveModel(np.zeros(2), (BOOSTED[0], TREE), (np.zeros((4, 2)), np.zeros((TREE.n_nodes, 2))))
    sent = forms.model_form(model)
    short = msgspec.structs.replace(sent, scores=[sent.scores[0][:-1]])
    scores = "^model: expected one score for each class"
    most = f"^{{}}: expected whole numbers from 0 to {TREE.n_nodes - 1}"
    refused: list[tuple[Any, str]] = [
        (lambda: forms.read_tree(TreeForm([9], []), BOOK), "^tree: "),
        (lambda: forms.read_one_oblivious(ObliviousForm([0], [[1, 0]]), BOOK), "^tree: "),
        (lambda: forms.read_nodes([0, TREE.n_nodes], TREE), most.format("nodes")),
        (lambda: forms.read_nodes([-1, 0], TREE), most.format("nodes")),
        (lambda: forms.read_mask([[0]], 2, 3, "asked"), "^asked: expected one list for each node"),
        (lambda: forms.read_mask([[0], [3]], 2, 3, "asked"), "^asked: expected whole numbers from 0 to 2"),
        (lambda: forms.read_mask([[0], [-1]], 2, 3, "allowed"), "^allowed: expected whole numbers from 0 to 2"),
        (lambda: forms.read_candidates([SplitForm(0, [0, 1, 0, 0]), SplitForm(1, [])], BOOK), "^candidates: a split does not say"),
        (lambda: forms.model_form(mixed), "^model: boosted trees come after all others"),
        (lambda: forms.read_model(short, BOOK), scores),
        (lambda: forms.read_model(msgspec.structs.replace(sent, base=[0.0]), BOOK), scores),
        (lambda: forms.read_model(ModelForm([0.0] * 3, [], []), BOOK), scores),
        (lambda: forms.read_oblivious([forms.oblivious_form(BOOSTED[0])] * 1001, QueryDecoder(BOOK, Limits())), "at most 1000"),
    ]
    for call, words in refused:
        with pytest.raises(PlanError, match=words):
            call()
    assert len(forms.read_oblivious([forms.oblivious_form(BOOSTED[0])] * 1000, QueryDecoder(BOOK, Limits()))) == 1000


@pytest.mark.parametrize(
    "text",
    [
        '{"attribute": [-1], "branch": [], "more": 1}', '{"attribute": [-1]}', '{"attribute": ["-1"], "branch": []}',
        '{"attribute": [0.5], "branch": []}',
    ],
)  # fmt: skip
def test_forms_have_their_fields_and_no_others(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(text, type=TreeForm)


def test_a_model_without_boosted_trees_says_nothing_of_them() -> None:
    sent = forms.model_form(AdditiveModel(np.zeros(2), (), ()))
    assert msgspec.json.encode(sent) == b'{"base":[0.0,0.0],"trees":[],"scores":[]}'
    assert forms.MOST_CHOICES == 1000
