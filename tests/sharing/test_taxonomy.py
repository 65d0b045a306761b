"""Taxonomies: in the schema and its file, and as levels that are partitions, each made of whole groups of the one below."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import branch_names, distinct, names, schemas, values

from hedgerow.datasets.dataset import declared_schema
from hedgerow.errors import SchemaError
from hedgerow.schema.attributes import Categorical, Numeric, Target, text_of
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.schema.toml import from_plain, to_plain
from hedgerow.sharing.taxonomy import EVERYTHING, Taxonomies, with_numeric_taxonomies

COLOURS = Categorical(
    "colour",
    ["red", "pink", "blue", "grey"],
    other="another",
    taxonomy={"red": "warm", "pink": "warm", "blue": "cold", "warm": "bright", "cold": "bright", "bright": "any", "grey": "any"},
)
AGE = Numeric("age", 0, 100, edges=[0, 10, 20, 40, 60, 100], missing="unknown", taxonomy=[[0, 20, 60, 100], [0, 60, 100], [0, 100]])


@st.composite
def trees_of_values(draw: Any, name: str) -> Categorical:
    """A categorical attribute with any taxonomy: groups of groups, branches of different depth, chains of single groups."""
    declared = draw(distinct(values))
    other, missing = draw(branch_names), draw(branch_names)
    plain = Categorical(name, declared, other, missing)
    inside = [text_of(v) for v in plain.domain if text_of(v) in {text_of(d) for d in declared} or draw(st.booleans())]
    parents: dict[str, str] = {}
    level, number = inside, 0
    for _ in range(draw(st.integers(0, 3))):
        following: list[str] = []
        for node in level:
            if draw(st.booleans()):
                number += 1
                parents[node] = f"group no. {number}"
                following.append(parents[node])
            elif (made := [group for group in following if group not in level]) and draw(st.booleans()):
                parents[node] = draw(st.sampled_from(made))
            else:
                following.append(node)  # placed higher up
        level = list(dict.fromkeys(following))
    return replace(plain, taxonomy=parents | dict.fromkeys(level, "the top"))


@st.composite
def levels_of_cells(draw: Any, name: str) -> Numeric:
    low = draw(st.integers(-50, 50))
    high = low + draw(st.integers(1, 100))
    inner = draw(st.lists(st.floats(low, high).filter(lambda x: low < x < high), max_size=6, unique=True))
    levels = []
    for _ in range(draw(st.integers(0, 3))):
        inner = [edge for edge in sorted(inner) if draw(st.booleans())]
        levels.append([low, *inner, high])
    edges = levels[0] if levels and draw(st.booleans()) else None
    return Numeric(name, low, high, edges, draw(branch_names), taxonomy=[*levels, [low, high]])


@st.composite
def schemas_with_taxonomies(draw: Any) -> Schema:
    columns = draw(st.lists(names, min_size=2, max_size=5, unique=True))
    attributes = [draw(st.one_of(trees_of_values(name), levels_of_cells(name))) for name in columns[1:]]
    return Schema(attributes, Target(columns[0], ["no", "yes"]))


@given(schemas_with_taxonomies())
def test_round_trips(schema: Schema) -> None:
    assert Schema.from_toml(schema.to_toml()) == schema
    plain = to_plain(schema)
    again = from_plain(msgspec.json.decode(msgspec.json.encode(plain)))
    assert again == schema
    assert msgspec.json.encode(to_plain(again)) == msgspec.json.encode(plain)  # one canonical form
    assert hash(again) == hash(schema)
    assert [replace(attribute) for attribute in schema.attributes] == list(schema.attributes)


@given(schemas())
def test_a_schema_without_taxonomies_is_written_as_before(schema: Schema) -> None:
    assert all("taxonomy" not in entry for entry in to_plain(schema)["attributes"].values())


@pytest.mark.slow
@given(schemas_with_taxonomies(), st.randoms())
def test_the_order_of_the_links_does_not_matter(schema: Schema, random: Any) -> None:
    for attribute in schema.attributes:
        if isinstance(attribute, Categorical):
            assert attribute.taxonomy is not None
            links = list(dict(attribute.taxonomy).items())
            random.shuffle(links)
            again = Taxonomies(Codebook(Schema([replace(attribute, taxonomy=dict(links))], schema.target)))
            before = Taxonomies(Codebook(Schema([attribute], schema.target)))
            assert [level.names for level in again.levels[0]] == [level.names for level in before.levels[0]]


@pytest.mark.slow
@given(st.one_of(schemas(), schemas_with_taxonomies()), st.integers(1, 8))
def test_levels_are_nested_partitions(schema: Schema, bins: int) -> None:
    codebook = Codebook(schema, bins)
    taxonomies = Taxonomies(codebook)
    for place, size in enumerate(codebook.sizes):
        levels = taxonomies.levels[place]
        assert len(levels) == taxonomies.n_levels(place) >= 2
        assert levels[0].group.tolist() == list(range(size + 1))
        assert levels[-1].group.tolist() == [0] * (size + 1)
        assert len(levels[-1].names) == 1
        for number, level in enumerate(levels):
            assert sorted(set(level.group[:size].tolist())) == list(range(len(level.names)))  # no group is empty
            assert len(set(map(text_of, level.names))) == len(level.names)
            if level is not levels[-1]:
                assert level.group[size] == len(level.names)  # what has no branch stays apart
            if number:
                below = levels[number - 1].group
                assert all(level.group[a] == level.group[b] for a in range(size + 1) for b in range(size + 1) if below[a] == below[b])
        assert [len(level.names) for level in levels[:-1]] == sorted({len(level.names) for level in levels[:-1]}, reverse=True)
        for a in range(size + 1):
            for b in range(size + 1):
                up = taxonomies.distance(place, a, b)
                assert up == taxonomies.distance(place, b, a)
                assert (up == 0) == (a == b)
                assert levels[up].group[a] == levels[up].group[b]
                assert up == 0 or levels[up - 1].group[a] != levels[up - 1].group[b]


def test_values_with_a_short_way_stay_themselves() -> None:
    taxonomies = Taxonomies(Codebook(Schema([COLOURS], Target("y", [0, 1]))))
    assert [level.names for level in taxonomies.levels[0]] == [
        ("red", "pink", "blue", "grey", "another"),
        ("warm", "cold", "grey", "another"),
        ("bright", "grey", "another"),
        ("any",),
    ]
    assert taxonomies.codes_at(0, 1).tolist() == [0, 0, 1, 2, 3, 4]
    assert [taxonomies.distance(0, 0, other) for other in (0, 1, 2, 3, 4)] == [0, 1, 2, 3, 3]


def test_cells_and_a_branch_for_missing_values() -> None:
    taxonomies = Taxonomies(Codebook(Schema([AGE], Target("y", [0, 1]))))
    assert [level.names for level in taxonomies.levels[0]] == [
        ("0 to 10", "10 to 20", "20 to 40", "40 to 60", "60 to 100", "unknown"),
        ("0 to 20", "20 to 60", "60 to 100", "unknown"),
        ("0 to 60", "60 to 100", "unknown"),
        (EVERYTHING,),
    ]
    assert taxonomies.codes_at(0, 2).tolist() == [0, 0, 0, 0, 1, 2, 3]


def test_edges_move_to_the_nearest_cell_unless_the_cells_are_those_of_the_taxonomy() -> None:
    schema = Schema([Numeric("age", 0, 100, taxonomy=[[0, 18, 45, 70, 100], [0, 45, 100], [0, 100]])], Target("y", [0, 1]))
    moved = Taxonomies(Codebook(schema, 5))
    assert [level.names for level in moved.levels[0]][1:] == [
        ("0 to 20", "20 to 40", "40 to 60", "60 to 100"), ("0 to 40", "40 to 100"), ("*",)
    ]  # fmt: skip
    exact = Taxonomies(Codebook(with_numeric_taxonomies(schema), 5))
    assert [level.names for level in exact.levels[0]] == [
        ("0 to 18", "18 to 45", "45 to 70", "70 to 100"), ("0 to 45", "45 to 100"), ("*",)
    ]  # fmt: skip
    assert with_numeric_taxonomies(with_numeric_taxonomies(schema)) == with_numeric_taxonomies(schema)


def test_numbers_without_a_taxonomy_get_one_that_halves() -> None:
    schema = Schema([Numeric("n", 0, 64), Numeric("m", 0, 9, edges=[0, 1, 3, 5, 8, 9], missing="none")], Target("y", [0, 1]))
    taxonomies = Taxonomies(Codebook(with_numeric_taxonomies(schema)))
    assert [len(level.names) for level in taxonomies.levels[0]] == [32, 16, 8, 4, 2, 1]
    assert taxonomies.names_at(0, 4) == ("0 to 32", "32 to 64")
    assert [level.names for level in taxonomies.levels[1]][1:] == [
        ("0 to 3", "3 to 8", "8 to 9", "none"), ("0 to 8", "8 to 9", "none"), ("*",)
    ]  # fmt: skip


@given(st.one_of(schemas(), schemas_with_taxonomies()))
def test_every_number_has_cells_and_a_taxonomy_and_declared_ones_stay(schema: Schema) -> None:
    ready = with_numeric_taxonomies(schema)
    assert with_numeric_taxonomies(ready) == ready
    for before, after in zip(schema.attributes, ready.attributes, strict=True):
        if isinstance(before, Categorical) or isinstance(after, Categorical):
            assert before == after
            continue
        assert after.edges is not None
        assert after.taxonomy is not None
        assert before.edges in (None, after.edges)
        assert before.taxonomy in (None, after.taxonomy)
        assert replace(after, edges=None, taxonomy=None) == replace(before, edges=None, taxonomy=None)


def test_without_a_taxonomy_there_are_two_levels() -> None:
    taxonomies = Taxonomies(Codebook(Schema([Categorical("a", ["x", "y"])], Target("y", [0, 1]))))
    assert [level.names for level in taxonomies.levels[0]] == [("x", "y"), ("*",)]
    assert taxonomies.top == (1,)
    with pytest.raises(SchemaError, match="0 to 1"):
        taxonomies.codes_at(0, 2)


def test_the_schema_of_a_generalised_table_reads_it_back() -> None:
    taxonomies = Taxonomies(Codebook(Schema([COLOURS, AGE], Target("y", [0, 1]))))
    coarse = Codebook(taxonomies.schema_at((1, 2)))
    assert coarse.sizes == (4, 3)
    table = {"colour": ["warm", "grey", "no such"], "age": ["60 to 100", "unknown", "0 to 60"]}
    assert coarse.encode(table).tolist() == [[0, 1], [2, 2], [4, 0]]


@pytest.mark.parametrize(
    ("taxonomy", "says"),
    [
        ({}, "have no parent"),
        ({"a": "top", "b": "top"}, "'c' have no parent"),
        ({"a": "one", "b": "one", "c": "two"}, "the tops 'one', 'two'"),
        ({"a": "one", "b": "one", "c": "one", "one": "two", "two": "one"}, "circle"),
        ({"a": "top", "b": "top", "c": "top", "d": "top"}, "'d' is neither"),
        ({"a": "top", "b": "top", "c": "top", "u": "v", "v": "u"}, "circle"),
        ({"a": "b", "b": "top", "c": "top"}, "name of its own"),
        ({"a": "a", "b": "top", "c": "top"}, "name of its own"),
        ({"a": 3, "b": "top", "c": "top"}, "as text"),
        ({"a": "top", "b": "top", "c": ""}, "as text"),
        ([("a", "top"), ("a", "top"), ("b", "top"), ("c", "top")], "more than one parent"),
        ({"a": "0", "b": "0", "c": "0"} | {str(i): str(i + 1) for i in range(200)}, "more than 100 levels"),
        ("abc", "child: parent"),
        (3, "child: parent"),
    ],
)
def test_wrong_trees_are_refused(taxonomy: Any, says: str) -> None:
    with pytest.raises(SchemaError, match=says):
        Categorical("x", ["a", "b", "c"], taxonomy=taxonomy)


@pytest.mark.parametrize(
    ("taxonomy", "says"),
    [
        ([], "levels"),
        ([[0, 5, 10]], "the last of them"),
        ([[0, 5, 10], [0, 6, 10], [0, 10]], "not of the finer one"),
        ([[0, 3, 10], [0, 10]], "not of the finer one"),
        ([[0, 5, 9], [0, 10]], "ascending"),
        ([[0, "5", 10], [0, 10]], "expected a number"),
        ([5, 10], "list of edges"),
        ("ab", "list of edges"),
        ({"a": "b"}, "list of edges"),
        (3, "list of edges"),
        ([[0, 10]] * 101, "levels"),
    ],
)
def test_wrong_levels_are_refused(taxonomy: Any, says: str) -> None:
    with pytest.raises(SchemaError, match=says):
        Numeric("x", 0, 10, edges=[0, 5, 6, 10], taxonomy=taxonomy)


def test_other_and_missing_may_be_placed() -> None:
    placed = Categorical("x", ["a", "b"], other="o", missing="m", taxonomy={"a": "g", "o": "g", "g": "top", "b": "top"})
    taxonomies = Taxonomies(Codebook(Schema([placed], Target("y", [0, 1]))))
    assert taxonomies.names_at(0, 1) == ("g", "b", "m")
    assert taxonomies.codes_at(0, 1).tolist() == [0, 1, 0, 2, 3]


def test_toml_says_where_it_is_wrong() -> None:
    text = Schema([COLOURS, AGE], Target("y", ["a", "b"])).to_toml()
    assert '[attributes.colour.taxonomy]\nred = "warm"' in text
    assert "taxonomy = [[0, 20, 60, 100], [0, 60, 100], [0, 100]]" in text
    with pytest.raises(SchemaError, match="taxonomy of 'colour'"):
        Schema.from_toml(text.replace('grey = "any"\n', ""))
    with pytest.raises(SchemaError, match="taxonomy of 'age'"):
        Schema.from_toml(text.replace("[0, 60, 100]", "[0, 50, 100]"))


def test_codes_do_not_depend_on_the_taxonomy() -> None:
    table = {"colour": ["red", "green", ""], "age": [5, None, 300]}
    without = [replace(attribute, taxonomy=None) for attribute in (COLOURS, AGE)]
    target = Target("y", [0, 1])
    assert np.array_equal(Codebook(Schema([COLOURS, AGE], target)).encode(table), Codebook(Schema(without, target)).encode(table))


LEAST_LEVELS = {
    "car": dict.fromkeys(["buying", "maint", "doors", "persons", "lug_boot", "safety"], 3),
    "nursery": {"has_nurs": 4} | dict.fromkeys(["parents", "form", "children", "housing", "social", "health"], 3),
    "cmc": {"wife_age": 4, "num_children": 4} | dict.fromkeys(["wife_edu", "husband_edu", "standard_of_living_index"], 3),
    "adult": {"native-country": 5, "fnlwgt": 3, "capital-gain": 3, "capital-loss": 3, "sex": 2}
    | dict.fromkeys(["age", "workclass", "education", "education-num", "marital-status", "occupation", "relationship", "race"], 4)
    | {"hours-per-week": 4},
}


@pytest.mark.parametrize("name", LEAST_LEVELS)
def test_provided_taxonomies(name: str) -> None:
    schema = declared_schema(name)
    assert Schema.from_toml(schema.to_toml()) == schema
    taxonomies = Taxonomies(Codebook(with_numeric_taxonomies(schema)))
    found = {attribute: taxonomies.n_levels(place) for place, attribute in enumerate(schema.names)}
    assert all(found[attribute] == levels for attribute, levels in LEAST_LEVELS[name].items())
    text = (Path(__file__).parents[2] / "src/hedgerow/datasets/schemas" / f"{name}.toml").read_text(encoding="utf-8")
    assert "never from rows" in text
