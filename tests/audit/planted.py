"""Training functions with one planted fault each: what private-tree programs have been seen to do.

They run our own estimators, growers and verbs, but for the fault: a private table with a wrong verb, a grower that looks at true counts,
a schema read from the rows. The noise that is right comes from the same code as always. All claim ε = 1, but for DPDF as published.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import exact as exact_answers
import numpy as np
from numpy.typing import NDArray

from hedgerow import private_table
from hedgerow.accounting.charges import counting_event
from hedgerow.accounting.meter import Budget, Reservation
from hedgerow.audit.algorithms import Trainer
from hedgerow.audit.neighbours import Table
from hedgerow.audit.outputs import Feature, features_of
from hedgerow.engines.memory import MemoryRows
from hedgerow.estimators.private_rdt import PrivateRDTClassifier
from hedgerow.growers import dpdf, rdt
from hedgerow.mechanisms.coins import SeededCoins
from hedgerow.mechanisms.noise import add_noise
from hedgerow.mechanisms.samplers import discrete_laplace
from hedgerow.private_table import PrivateTable
from hedgerow.queries import LeafCounts, kernels
from hedgerow.release.release import Release
from hedgerow.schema.attributes import Categorical, Target
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.tree import Tree, TreeBuilder

Integers = NDArray[np.int64]

one_tree = Trainer("PrivateRDTClassifier", "1", {"n_estimators": 1, "max_depth": 3})  # asks every attribute of three
one_tree_for_2 = replace(one_tree, epsilon="2")
five_trees = Trainer("PrivateRDTClassifier", "1", {"n_estimators": 5, "max_depth": 1})
greedy = Trainer("DPDFClassifier", "1", {"max_depth": 3, "min_rows": 10})
greedy_for_2 = replace(greedy, epsilon="2")
greedy_root = Trainer("DPDFClassifier", "1", {"max_depth": 2, "min_rows": 100})
dpdf_proven = Trainer("DPDFClassifier", "0.06", {"max_depth": 2, "min_rows": 100})
dpdf_published = replace(dpdf_proven, settings=dpdf_proven.settings | {"sensitivity": "local"})


def behind(kind: type[PrivateTable], train: Trainer, table: Table) -> Release:
    """The path that a user takes, with another private table in the place of ours."""
    with patch.object(private_table, "PrivateTable", kind):
        return train(table)


# ---------------------------------------------------------------- queries that answer wrongly


class HalfTheNoise(PrivateTable):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._sampler = lambda scale, size, coins: discrete_laplace(scale / 2, size, coins)


def half_the_noise(table: Table) -> Release:
    """Every count has noise of half the scale that it needs."""
    return behind(HalfTheNoise, one_tree_for_2, table)


class OneNoise(PrivateTable):
    def released(self, query: Any, price: Any) -> list[Integers]:
        drawn: dict[int, Integers] = {}

        def same(scale: Fraction, size: int, coins: Any) -> Integers:
            if size not in drawn:
                drawn[size] = discrete_laplace(scale, size, coins)
            return drawn[size]

        self._sampler = same
        return super().released(query, price)


def tree_for_each_attribute(table: Table, kind: type[PrivateTable] = PrivateTable) -> Release:
    def structures(codebook: Codebook, *_: Any) -> tuple[Tree, ...]:
        builders = [TreeBuilder(codebook.sizes) for _ in codebook.sizes]
        for attribute, builder in enumerate(builders):
            builder.split(0, attribute)
        return tuple(builder.build() for builder in builders)

    with patch.object(rdt, "structures", structures):
        return behind(kind, replace(five_trees, settings={"n_estimators": len(table.schema.attributes), "max_depth": 1}), table)


def noise_reused(table: Table) -> Release:
    """All trees get the same draws of noise: differences of their counts are exact."""
    return tree_for_each_attribute(table, OneNoise)


class DealtByPosition(PrivateTable):
    def released(self, query: Any, price: Any) -> list[Integers]:
        if not isinstance(query, LeafCounts):
            return super().released(query, price)
        trees, event = query.trees, counting_event("leaf_counts", price)  # "a row is in one tree alone"
        self._charge((event,))
        assert isinstance(self._engine, MemoryRows)
        codes, classes = self._engine._open()
        parts = np.array_split(np.arange(len(codes)), len(trees))
        exact = [
            kernels.leaf_counts([tree], codes[part], classes[part], self.codebook.n_classes, None)[0]
            for tree, part in zip(trees, parts, strict=True)
        ]
        return [add_noise(counts, event, self._coins, self._sampler) for counts in exact]


def dealt_by_position(table: Table) -> Release:
    """The first rows go to the first tree, and so on, and each tree has the whole ε: one row more moves rows in all trees."""
    return behind(DealtByPosition, five_trees, table)


class NeverRefuses(PrivateTable):
    def __init__(self, engine: Any, meter: Reservation, *given: Any) -> None:
        super().__init__(engine, Budget(100).reserve(100, "whatever is asked"), *given)


def levels_forgotten(table: Table) -> Release:
    """Every level of a greedy tree is asked with the whole ε, as if levels were disjoint like the nodes of one."""
    with patch.object(dpdf, "query_epsilon", lambda settings, beta: beta):
        return behind(NeverRefuses, greedy_for_2, table)


# ---------------------------------------------------------------- a grower that looks at true counts


def stopping_on(stops: Callable[[Integers], NDArray[np.bool_]], train: Trainer, table: Table) -> Release:
    """DPDF, in which a node is also a leaf if its true class counts say so."""
    build_tree = dpdf.build_tree

    def stopped(private: PrivateTable, *given: Any) -> tuple[Tree, Integers]:
        tree, noisy = build_tree(private, *given)
        gone, true = np.zeros(tree.n_nodes, dtype=bool), np.zeros_like(noisy)
        for parents, nodes in zip(tree.levels[:-1], tree.levels[1:], strict=True):
            true[parents] = exact_answers.class_counts(private._engine, tree, parents)[:, :-1]
            gone[nodes] = (gone | stops(true))[tree.parent[nodes]]
        return tree.without(gone), noisy[~gone]

    with patch.object(dpdf, "build_tree", stopped):
        return train(table)


def true_purity(table: Table) -> Release:
    """A node whose true rows are all of one class is not split."""
    return stopping_on(lambda counts: counts.max(axis=1) == counts.sum(axis=1), greedy, table)


def true_size(table: Table) -> Release:
    """A node with fewer than 100 true rows is not split."""
    return stopping_on(lambda counts: counts.sum(axis=1) < 100, greedy_root, table)


def root_alone(release: Release) -> Mapping[str, Feature]:
    """Of a release with hundreds of counts: what its first tree asks first."""
    root = int(release.forest.trees[0].attribute[0])
    return {"root": release.schema.names[root] if root >= 0 else "none"}


# ---------------------------------------------------------------- public facts that are read from the rows


def branches_present(table: Table) -> Release:
    """A branch for every value that occurs, and for no other."""
    seen = [
        replace(a, values=tuple(sorted(set(table.columns[a.name])))) if isinstance(a, Categorical) else a for a in table.schema.attributes
    ]
    return one_tree(replace(table, schema=replace(table.schema, attributes=tuple(seen))))


def classes_present(table: Table) -> Release:
    """The classes are those that occur."""
    classes = tuple(sorted({*table.target, table.schema.target.classes[0], "another"}))  # one class alone would be refused
    return one_tree(replace(table, schema=replace(table.schema, target=Target(table.schema.target.name, classes))))


def missing_filled_in(table: Table) -> Release:
    """A missing value is taken for the one that is most frequent in the rows, before training."""
    columns = dict(table.columns)
    for attribute in table.schema.attributes:
        if isinstance(attribute, Categorical):
            column = columns[attribute.name]
            counts = [int((column == value).sum()) for value in attribute.values]
            columns[attribute.name] = np.where(column == "", attribute.values[int(np.argmax(counts))], column)
    return one_tree(replace(table, columns=columns))


def split_by_exact_size(table: Table) -> Release:
    """ε is divided among the trees, one for every 50 true rows."""
    return replace(one_tree, settings={"n_estimators": max(1, len(table) // 50), "max_depth": 1})(table)


def strange_values_refused(table: Table) -> Release:
    """A value outside the schema is an error."""
    for attribute in table.schema.attributes:
        if isinstance(attribute, Categorical) and not set(table.columns[attribute.name]) <= set(attribute.values):
            raise ValueError(f"found unknown categories in column {attribute.name!r} during transform")
    return one_tree(table)


def lonely_row_refused(table: Table) -> Release:
    """A class with a single row is an error, as where rows are held out by class."""
    if 1 in np.unique(table.target, return_counts=True)[1]:
        raise ValueError("the least populated class in y has only 1 member")
    return one_tree(table)


# ---------------------------------------------------------------- more is given away than the release


def score_beside_it(table: Table) -> Mapping[str, Feature]:
    """The release, and beside it the exact share of the rows that it predicts rightly."""
    release = one_tree(table)
    return {**features_of(release), "accuracy": float((release.predict(table.columns) == table.target).mean())}


def with_seed(table: Table, seed: int) -> Release:
    with patch.object(PrivateRDTClassifier, "_coins", SeededCoins(seed)):
        return one_tree(table)


def seed_kept(table: Table) -> tuple[Release, int]:
    """The seed of the noise is kept in the model."""
    seed = secrets.randbits(32)
    return with_seed(table, seed), seed


def seed_lost(table: Table) -> tuple[Release, int]:
    return seed_kept(table)[0], secrets.randbits(32)


def noise_taken_away(output: tuple[Release, int]) -> Mapping[str, Feature]:
    """What an attacker makes of a seed: trained on no rows with it, the counts are the noise."""
    release, seed = output
    noise = with_seed(Table.of([], release.schema), seed).forest.counts[0]
    return {f"count {i + 1} without its noise": number for i, number in enumerate((release.forest.counts[0] - noise).ravel().tolist())}


def noise_from_rows(table: Table) -> Release:
    """The noise is seeded with a hash of the rows."""
    rows = repr([column.tolist() for column in (*table.columns.values(), table.target)])
    return with_seed(table, int.from_bytes(hashlib.sha256(rows.encode()).digest()[:4], "big"))
