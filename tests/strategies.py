"""Hypothesis strategies shared by the property tests: schemas, tables that fit or do not fit them, trees, forests."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from hedgerow.schema.attributes import Categorical, Numeric, Target, text_of
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.trees.forest import CountedForest
from hedgerow.trees.oblivious import ObliviousTree
from hedgerow.trees.tree import Tree, TreeBuilder

names = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=8)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=6)
values = st.one_of(texts, st.integers(-1000, 1000), st.booleans(), st.floats(-100, 100).map(lambda x: round(x, 3)))


def distinct(elements: Any, least: int = 1, most: int = 5) -> Any:
    return st.lists(elements, min_size=least, max_size=most, unique_by=text_of)


branch_names = st.one_of(st.none(), st.sampled_from(["other", "missing", "unknown"]))


@st.composite
def categoricals(draw: Any, name: str) -> Categorical:
    return Categorical(name, draw(distinct(values)), draw(branch_names), draw(branch_names), draw(st.booleans()))


@st.composite
def numerics(draw: Any, name: str) -> Numeric:
    low = draw(st.integers(-100, 100))
    high = low + draw(st.integers(1, 100))
    inner = draw(st.lists(st.floats(low, high).filter(lambda x: low < x < high), max_size=4, unique=True))
    edges = draw(st.one_of(st.none(), st.just((low, *sorted(inner), high))))
    return Numeric(name, low, high, edges, draw(branch_names), draw(st.booleans()))


@st.composite
def schemas(draw: Any, most: int = 4) -> Schema:
    columns = draw(st.lists(names, min_size=2, max_size=most + 1, unique=True))
    attributes = [draw(st.one_of(categoricals(name), numerics(name))) for name in columns[1:]]
    rows = draw(st.one_of(st.none(), st.integers(1, 10**9)))
    return Schema(attributes, Target(columns[0], draw(distinct(values, 1, 4)), draw(st.booleans())), rows)


def any_cell(attribute: Categorical | Numeric) -> Any:
    """Declared values in all their spellings, undeclared ones, missing ones and nonsense."""
    common = [st.none(), st.just(""), st.just(float("nan")), texts, st.floats(), st.integers(-(2**70), 2**70), st.booleans()]
    if isinstance(attribute, Categorical):
        return st.one_of(st.sampled_from(list(attribute.values)), *common)
    return st.one_of(st.floats(attribute.low, attribute.high), *common)


@st.composite
def tables(draw: Any, schema: Schema, most: int = 12) -> tuple[dict[str, list[Any]], list[Any]]:
    rows = draw(st.integers(0, most))
    columns = {a.name: draw(st.lists(any_cell(a), min_size=rows, max_size=rows)) for a in schema.attributes}
    label = st.one_of(st.sampled_from(list(schema.target.classes)), st.just("no such class"), st.none())
    return columns, draw(st.lists(label, min_size=rows, max_size=rows))


@st.composite
def trees(draw: Any, sizes: tuple[int, ...], most_splits: int = 6) -> Tree:
    """Any tree over these domains: branches for each value, merged codes, attributes asked again."""
    builder = TreeBuilder(sizes)
    leaves = [0]
    for _ in range(draw(st.integers(0, most_splits))):
        node = leaves.pop(draw(st.integers(0, len(leaves) - 1)))
        attribute = draw(st.integers(0, len(sizes) - 1))
        groups = None
        if draw(st.booleans()):
            raw = draw(st.lists(st.integers(0, 2), min_size=sizes[attribute], max_size=sizes[attribute]))
            used = sorted(set(raw))
            groups = [used.index(group) for group in raw]
        leaves += builder.split(node, attribute, groups)
    return builder.build()


def codes_for(sizes: tuple[int, ...], rows: int, seed: int) -> np.ndarray:
    """Random codes, the one without a branch included."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, size + 1, rows) for size in sizes], axis=1).astype(np.uint8)


def small_schema(rows: int | None = None) -> Schema:
    return Schema(
        [
            Categorical("colour", ["red", "green", "blue"], other="other"),
            Categorical("flag", [0, 1]),
            Numeric("age", 0, 100),
            Categorical("shape", ["round", "flat"], missing="unknown"),
        ],
        Target("class", ["no", "yes"]),
        rows,
    )


def small_table(rows: int, seed: int = 0) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Rows of `small_schema` in which the class depends on colour and age."""
    rng = np.random.default_rng(seed)
    columns = {
        "colour": np.array(["red", "green", "blue", "pink"])[rng.integers(0, 4, rows)],
        "flag": rng.integers(0, 2, rows),
        "age": rng.uniform(-5, 105, rows),
        "shape": np.array(["round", "flat", ""])[rng.integers(0, 3, rows)],
    }
    risk = (columns["colour"] == "red") * 2 + (columns["age"] > 50)
    return columns, np.where(risk + rng.normal(0, 0.3, rows) > 0.5, "yes", "no")


@st.composite
def forests(draw: Any) -> CountedForest:
    schema = draw(schemas())
    codebook = Codebook(schema, draw(st.integers(1, 6)))
    grown = tuple(draw(st.lists(trees(codebook.sizes), min_size=1, max_size=3)))
    seed = draw(st.integers(0, 2**32))
    rng = np.random.default_rng(seed)
    counts = tuple(rng.integers(-50, 200, (len(tree.leaves), codebook.n_classes)) for tree in grown)
    return CountedForest(codebook, grown, counts)


def oblivious_trees(codebook: Codebook, depth: int, number: int, seed: int = 0) -> list[ObliviousTree]:
    """Random trees of two answers on each level."""
    rng, sizes = np.random.default_rng(seed), codebook.sizes

    def tree() -> ObliviousTree:
        asked = tuple(int(j) for j in rng.integers(0, len(sizes), depth))
        return ObliviousTree(sizes, asked, tuple((0, *(int(a) for a in rng.integers(0, 2, sizes[j] - 1)), 1) for j in asked))

    return [tree() for _ in range(number)]
