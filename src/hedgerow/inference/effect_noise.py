"""How far the noise may have moved what an attribute says: variances of centred scores. Released numbers only.

A score counts only against those of the other classes, so what is shown is centred: the mean over the classes is taken off. With

    F_c = log z_c + …            z_c   the noisy, shrunk rows of class c in a cell (`tables.log_odds`)
    A_c                          the variance that the noise gives log z_c: independent noises, one for each class
    V_c = A_c·(1 − 2/C) + Σ_d A_d / C²                                            the variance of F_c − mean_d F_d

For two classes the log-odds are 2·(F_1 − mean), so that their standard error is 2·√V.

Inside a leaf of the top tree a table is drawn to the table of all rows: V there is its own plus that of all rows, which is an upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.inference.additive import FLAT, AdditiveForest, Tables
from hedgerow.inference.tables import Floats
from hedgerow.trees.additive_model import AdditiveModel
from hedgerow.trees.few_rows import route_few
from hedgerow.trees.oblivious import ObliviousTree
from hedgerow.trees.tree import Tree

OFF_PER_ROOT, OFF_AT_MOST = 6.5, 0.35  # of the scale; at most a step to the next one
TAKEN_BACK = 0.2  # of what leaves would take back if no gradient were cut, and rows and attributes told nothing of each other
READING_PER_ROOT, READING_AT_MOST = 3.3, 0.25  # of the strength in the reading, which the intercept does not have


def centred(scores: Floats) -> Floats:
    """The same scores against the mean of the classes."""
    return np.asarray(scores - scores.mean(axis=-1, keepdims=True))


def centred_variance(a: Floats) -> Floats:
    """V from A."""
    c = a.shape[-1]
    return np.asarray(a * (1 - 2 / c) + a.sum(axis=-1, keepdims=True) / c**2)


def flat_variance(tables: Tables, j: int) -> Floats:
    """(groups, classes): V of the table of all rows, before it is weighted."""
    one = tables.attributes[j]
    return centred_variance(in_log(one.flat_noise))


def table_variance(forest: AdditiveForest, j: int) -> Floats:
    """(leaves of `under`, codes, classes): V of what the table of one attribute adds, weighted and scaled like its scores."""
    tables, layout, reading = forest.tables, forest.tables.layout, forest.reading
    one, places = tables.attributes[j], len(tables.layout.under.leaves)
    flat = flat_variance(tables, j)[None]
    if reading.kind == FLAT or not (layout.joined and j in layout.attributes):
        v, scores = np.tile(flat, (places, 1, 1)), np.tile(one.flat, (places, 1, 1))
    else:
        v, scores = flat + centred_variance(in_log(one.noise)), one.scores
    return np.asarray(v[:, one.group] * squared_weight(forest, j) + _of_weight(forest, j, scores)[:, one.group])


def floor_variance(forest: AdditiveForest, j: int) -> Floats:
    """(codes, classes): below this a mean over the leaves does not fall, since all of them are drawn to one table."""
    tables = forest.tables
    if j not in tables.attributes:
        return np.zeros((tables.codebook.sizes[j], tables.codebook.n_classes))
    return np.asarray(flat_variance(tables, j)[tables.attributes[j].group] * squared_weight(forest, j) + weight_variance(forest, j))


def mean_variance(model: AdditiveModel, met: Sequence[tuple[NDArray[Any], Floats]], reached: Floats, floor: Floats) -> Floats:
    """(codes, classes): V of the mean of what one attribute adds, over the leaves of the top tree. met: for each of them one row for each
    code of the attribute, and the weights of these rows; reached: the sums of the weights, (codes, 1).

    Leaves that meet the same node of a tree meet the same noise, so its weights are added before they are squared: Σ_node (Σ w)²·V. A
    boosted tree, here asked about this attribute alone, is the same under all of them, and a mean takes nothing off its noise.
    """
    rows, weights = np.array([rows for rows, _ in met]), np.array([weights for _, weights in met])
    tables, boosted = np.zeros((2, *floor.shape))
    for tree, variances in zip(model.trees, model.scores, strict=True):
        if isinstance(tree, ObliviousTree):
            boosted += variances[tree.leaves_of(rows[0])]
        else:
            tables += _met_variance(tree, variances, rows, weights)
    return np.asarray(np.maximum(tables / reached**2, floor) + boosted)


def _met_variance(tree: Tree, variances: Floats, rows: NDArray[Any], weights: Floats) -> Floats:
    """Σ_node (Σ w)²·V of one tree, where V is what a node adds to the variance of the node above it; from its lowest nodes up."""
    leaves, codes = weights.shape
    out, code = np.zeros((codes, variances.shape[1])), np.tile(np.arange(codes), (leaves, 1))
    node = route_few(tree, rows.reshape(-1, rows.shape[2])).reshape(leaves, codes)
    for level in range(tree.height, 0, -1):
        here = tree.depth[node] == level
        pairs, place = np.unique(code[here] * tree.n_nodes + node[here], return_inverse=True)
        one, at = np.divmod(pairs, tree.n_nodes)
        own = np.bincount(place, weights[here], len(pairs)) ** 2
        np.add.at(out, one, own[:, None] * (variances[at] - variances[tree.parent[at]]))
        node = np.where(here, tree.parent[node], node)
    return out


def top_variance(forest: AdditiveForest) -> Floats:
    """(nodes, classes): V of the step log π(node) − log π(parent) of the top tree; 0 at its root."""
    tables, top = forest.tables, forest.tables.layout.top
    out = np.zeros((top.n_nodes, tables.codebook.n_classes))
    sds = np.sqrt(np.asarray(top.add_up(tables.leaf_variance[:, None])))
    child = np.arange(1, top.n_nodes)
    rows, shares = tables.node_rows[child, None], tables.node_shares[child]
    expected = rows * tables.node_shares[top.parent[child]]
    believed = expected**2 / np.maximum(expected**2 + sds[child] ** 2, 1e-300)
    noise = believed * sds[child] / np.maximum(rows * shares, 1e-300)
    out[child] = centred_variance(in_log(noise))
    return out * forest.scale**2


def correction_variance(errors: Floats, scale: float) -> Floats:
    """(nodes, classes): V of a correction. For two classes its scores are −x and x, one noise for both, and centred already."""
    v = errors**2 if errors.shape[-1] == 2 else centred_variance(errors**2)
    return np.asarray(v * scale**2)


def pull_of(forest: AdditiveForest, variances: Floats) -> Floats:
    """(leaves, classes): how much of a deviation of the scores each leaf of a boosted tree would take back if it held all rows.

    A leaf steps by w·ΣR, and its error is w·σ. Scores that are off by d change ΣR by −H·d·C/(C − 1), H = rows·p(1 − p): it takes back
    w·H·C/(C − 1). For p(1 − p) that of all rows together is taken, of the class, and of the whole a part: it was chosen on five tables, of
    which errors are then 1.1 to 1.3 times the spread of repeated fits (medians), and on others 0.9 to 1.4 times, of many classes 1.6.
    """
    classes, pi = forest.tables.codebook.n_classes, forest.tables.pi
    if not forest.boosted_noise:
        return np.zeros_like(variances)
    of_errors = 1.0 if classes == 2 else 1 - 1 / classes  # what `correction_variance` makes of equal errors
    w = np.sqrt(variances / of_errors) / forest.scale / forest.boosted_noise
    return np.asarray(w * forest.tables.n * pi * (1 - pi) * TAKEN_BACK * classes / (classes - 1))


def scale_error(rate: float, rows: float) -> float:
    """About by which share of itself the privately chosen scale may be off. rate: ε of the choice for one row of a person.

    Measured over 12 fits of four tables at rate·rows = 370 to 5,400, as the standard deviation of the scale's logarithm: 0.36 to 0.
    """
    return min(OFF_AT_MOST, OFF_PER_ROOT / math.sqrt(rate * max(rows, 1.0)))


def reading_error(rate: float, rows: float) -> float:
    """The same of the privately chosen reading. Measured over 10 fits of two tables at rate·rows = 170 and 370: 0.25 and 0.20."""
    return min(READING_AT_MOST, READING_PER_ROOT / math.sqrt(rate * max(rows, 1.0)))


def in_log(a: Floats) -> Floats:
    """A = log(1 + a)²: a small a is the standard error of log z itself; a large one can lift z, but not sink it below its floor."""
    return np.asarray(np.log1p(a) ** 2)


def weight_variance(forest: AdditiveForest, j: int) -> Floats:
    """(codes, classes): the part of `floor_variance` that the noise in the attribute's weight is."""
    tables = forest.tables
    if j not in tables.attributes:
        return np.zeros((tables.codebook.sizes[j], tables.codebook.n_classes))
    one = tables.attributes[j]
    return _of_weight(forest, j, one.flat)[one.group]


def _of_weight(forest: AdditiveForest, j: int, scores: Floats) -> Floats:
    """How much each attribute tells is not sure, and so its weight is not: all its scores are too large, or too small, together."""
    return np.asarray(squared_weight(forest, j) * (forest.weight_errors.get(j, 0.0) * centred(scores)) ** 2)


def squared_weight(forest: AdditiveForest, j: int) -> float:
    return float((forest.tables.weights(forest.reading).get(j, 0.0) * forest.scale) ** 2)
