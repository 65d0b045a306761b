"""Hypothesis strategies shared by the property tests: schemas, tables that fit or do not fit them, trees, forests, rules, requirements."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from hedgerow.anonymity.requirement import Requirement
from hedgerow.schema.attributes import Categorical, Numeric, Target, text_of
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.trees.forest import CountedForest
from hedgerow.trees.oblivious import ObliviousTree
from hedgerow.trees.paths import Paths, from_counts
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


def requirements(n_classes: int) -> Any:
    """Something to require of groups of persons."""
    ks, cs = st.integers(1, 40), st.sampled_from(["1/3", "1", "1.5", "2", "5", "20"])
    alphas = st.sampled_from(["0.4", "0.5", "2/3", "0.9"])
    kinds = [st.builds(Requirement.of, ks), st.builds(lambda k, a: Requirement.of(k, alpha=a), ks, alphas)]
    if n_classes > 1:
        ls = st.integers(2, n_classes)
        kinds.append(st.builds(lambda c, l: Requirement.of(c=c, l=l), cs, ls))  # noqa: E741
        kinds.append(st.builds(Requirement.of, ks, cs, ls, alphas))
    return st.one_of(kinds)


@st.composite
def any_rules(draw: Any, most: int = 8) -> Paths:
    """Rules with exact counts over a reviewed schema, each by itself: they may overlap."""
    declared = draw(schemas(3))
    reviewed = [replace(attribute, unreviewed=False) for attribute in declared.attributes]
    codebook = Codebook(Schema(reviewed, replace(declared.target, unreviewed=False)), draw(st.integers(1, 4)))
    number, rng = draw(st.integers(1, most)), np.random.default_rng(draw(st.integers(0, 2**32)))
    width, classes = draw(st.sampled_from([0.3, 0.5, 0.8])), codebook.n_classes
    parts = []
    for size in codebook.sizes:
        part = rng.random((number, size)) < width
        part[np.arange(number), rng.integers(0, size, number)] = True  # somebody may be in it
        part[rng.random(number) < 0.3] = True  # not asked
        parts.append(part)
    asked = np.stack([~part.all(axis=1) for part in parts], axis=1)
    counts = rng.integers(0, draw(st.sampled_from([4, 30])), (number, classes)).astype(np.float64)
    return from_counts(codebook, np.concatenate(parts, axis=1), asked, counts)


@st.composite
def disjoint_rules(draw: Any) -> Paths:
    """Those of `any_rules` that overlap no earlier one: with gaps, and not the paths of a tree."""
    paths = draw(any_rules(16))
    kept: list[int] = []
    for i in range(len(paths)):
        common = [np.logical_or.reduceat(paths.allowed[i] & paths.allowed[j], paths.first_code[:-1]).all() for j in kept]
        if not any(common):
            kept.append(i)
    assert paths.counts is not None
    return from_counts(paths.codebook, paths.allowed[kept], paths.asked[kept], paths.counts[kept])
