"""Trees that scikit-learn has fitted, as trees of this package: the same questions, about attributes instead of columns.

    "colour=red" <= 0.5      →  colour: {all but red} / {red}
    "colour" <= 1.5          →  a categorical attribute as the numbers of its values: {first two} / {others}
    "age" <= 37.5            →  an edge between two cells of age

A column is named "attribute" or "attribute=value", as `SchemaEncoder` names them. scikit-learn rounds a number to 32 bits and goes left
if it is at most the threshold; the edge is the smallest number that is not, so that every number takes the same way here and there.
Only rows with a value that has no branch differ: here they stop at the node that asks, there they count as "none of these".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted

from hedgerow.errors import PlanError
from hedgerow.schema.attributes import Numeric, text_of
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.trees.forest import CountedForest
from hedgerow.trees.routing import route
from hedgerow.trees.tree import NODE, Tree

MAX_ENTRIES = 50_000_000  # branches of all trees together: 200 MB
Side = NDArray[np.bool_]  # for each code of an attribute, whether it goes left


def from_sklearn(model: Any, encoder_or_columns: Any, schema: Schema, X: Any = None, y: Any = None) -> CountedForest:
    """A fitted DecisionTreeClassifier, RandomForestClassifier or ExtraTreesClassifier over the attributes of a schema.

    model:              the classifier, or a Pipeline of an encoder and the classifier
    encoder_or_columns: the names of the columns that it was fitted on, or the encoder that has them (`get_feature_names_out`);
                        None takes them from the pipeline, or from the data frame that the classifier was fitted on
    X, y:               rows to count, with the columns of the schema. Without them the counts are those of the fit; where it drew
                        a bootstrap sample or weighed its rows, these are not persons, and X and y are needed

    The codebook of the result has the thresholds, and the groups of a taxonomy, as edges of its numeric attributes. The
    order of the classes is the schema's.
    """
    encoder, classifier = _taken_apart(model, encoder_or_columns)
    trees = [classifier.tree_] if isinstance(classifier, DecisionTreeClassifier) else [e.tree_ for e in classifier.estimators_]
    columns = _columns(encoder, classifier, schema)
    codebook = Codebook(_with_edges(schema, columns, trees))
    _check_size(codebook, columns, trees)
    grown = [_converted(tree, columns, codebook) for tree in trees]
    order = _class_codes(classifier.classes_, schema)
    if X is None and y is None:
        counts = [_counts_of_the_fit(classifier, tree)[leaves] for tree, (_, leaves) in zip(trees, grown, strict=True)]
        counts = [_in_order(c, order, codebook.n_classes) for c in counts]
    elif X is None or y is None:
        raise PlanError("from_sklearn: got only one of X and y; expected both, or neither.")
    else:
        codes, labels = codebook.encode(X), codebook.encode_classes(y)
        if len(codes) != len(labels):
            raise PlanError("from_sklearn: X and y do not have the same number of rows.")
        counts = [_counted(tree, codes, labels, codebook.n_classes) for tree, _ in grown]
    return CountedForest(codebook, tuple(tree for tree, _ in grown), tuple(counts))


# ---------------------------------------------------------------- what the model is


def _taken_apart(model: Any, encoder_or_columns: Any) -> tuple[Any, Any]:
    """The encoder (or column names, or None) and the fitted classifier."""
    encoder = encoder_or_columns
    if isinstance(model, Pipeline):
        steps = [step for _, step in model.steps if step is not None and step != "passthrough"]
        if len(steps) not in (1, 2):
            raise PlanError(
                f"from_sklearn: got a pipeline of {len(steps)} steps; expected an encoder and a classifier. What a step between them "
                "does to the columns cannot be told from their names."
            )
        encoder = steps[0] if encoder is None and len(steps) == 2 else encoder
        model = steps[-1]
    if not isinstance(model, (DecisionTreeClassifier, RandomForestClassifier, ExtraTreesClassifier)):
        raise PlanError(
            f"from_sklearn: got {type(model).__name__}; expected a fitted DecisionTreeClassifier, RandomForestClassifier or "
            "ExtraTreesClassifier, or a Pipeline of an encoder and one of them."
        )
    check_is_fitted(model)
    if model.n_outputs_ != 1:
        raise PlanError(f"from_sklearn: the model predicts {model.n_outputs_} targets; expected one.")
    return encoder, model


def _class_codes(classes: Any, schema: Schema) -> list[int]:
    known = {text_of(value): code for code, value in enumerate(schema.target.classes)}
    strange = [text_of(value) for value in classes if text_of(value) not in known]
    if strange:
        raise PlanError(
            f"from_sklearn: the model predicts {', '.join(map(repr, strange))}; the schema declares the classes "
            f"{', '.join(map(repr, known))}."
        )
    return [known[text_of(value)] for value in classes]


# ---------------------------------------------------------------- its columns


@dataclass(frozen=True)
class _Column:
    """What one column of the encoded table tells about its attribute.

    value:    it is 1 for this value (by its text) and 0 for all others; None: it is a number
    cells:    edges of the cells that it gives the numbers of (a numeric attribute); None: it is the number itself
    missing:  what it holds for a missing number
    """

    attribute: int
    value: str | None = None
    cells: tuple[float, ...] | None = None
    missing: float = math.nan

    def is_number_of(self, schema: Schema) -> bool:
        return self.value is None and isinstance(schema.attributes[self.attribute], Numeric)

    def edge(self, threshold: float) -> float:
        """The smallest number that goes right (for a numeric attribute)."""
        if self.cells is None:
            return first_above(threshold)
        cell = math.floor(threshold) + 1 if math.isfinite(threshold) else threshold
        return -math.inf if cell <= 0 else math.inf if cell >= len(self.cells) - 1 else self.cells[int(cell)]

    def goes_left(self, threshold: float, missing_left: bool, codebook: Codebook) -> Side:
        """Which codes of the attribute go left."""
        size = codebook.sizes[self.attribute]
        if self.value is not None:
            texts = [text_of(label) for label in codebook.labels[self.attribute]]
            place = size - 1 if isinstance(codebook.schema.attributes[self.attribute], Numeric) else texts.index(self.value)
            return np.asarray((np.arange(size) == place) <= threshold)
        if not self.is_number_of(codebook.schema):
            return np.arange(size) <= threshold
        attribute = codebook.schema.attributes[self.attribute]
        assert isinstance(attribute, Numeric)
        assert attribute.edges is not None
        left = np.empty(size, dtype=bool)
        left[: len(attribute.edges) - 1] = np.asarray(attribute.edges[:-1]) < self.edge(threshold)
        if attribute.missing is not None:
            left[-1] = missing_left if math.isnan(self.missing) else float(np.float32(self.missing)) <= threshold
        return left


def first_above(threshold: float) -> float:
    """The smallest 64-bit number that, rounded to 32 bits, is above the threshold."""
    if not math.isfinite(threshold):  # scikit-learn's way to part all numbers from missing ones
        return threshold
    with np.errstate(over="ignore"):
        below = np.float32(threshold)
        if float(below) > threshold:
            below = np.nextafter(below, np.float32(-np.inf))
        above = np.nextafter(below, np.float32(np.inf))
        middle = (float(below) + float(above)) / 2
        return middle if float(np.float32(middle)) > threshold else math.nextafter(middle, math.inf)


def _columns(encoder: Any, classifier: Any, schema: Schema) -> list[_Column]:
    if encoder is None:
        names = getattr(classifier, "feature_names_in_", None)
    else:
        names = encoder.get_feature_names_out() if hasattr(encoder, "get_feature_names_out") else encoder
    if names is None or isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise PlanError("from_sklearn: expected the names of the columns that the model was fitted on, or the encoder that made them.")
    if len(names) != classifier.n_features_in_:
        raise PlanError(f"from_sklearn: got {len(names)} column names; the model was fitted on {classifier.n_features_in_} columns.")
    columns = [_meaning(str(name), schema) for name in names]
    if hasattr(encoder, "codebook_"):
        _check_same_attributes(encoder.codebook_.schema, schema)
    if getattr(encoder, "numeric", "value") == "cells":
        columns = [_as_cells(column, encoder.codebook_, schema) for column in columns]
    elif hasattr(encoder, "transform"):
        columns = _with_missing(columns, encoder, schema)
    return columns


def _meaning(name: str, schema: Schema) -> _Column:
    """The one thing that a column name can mean: an attribute, or one value of it."""
    place = {attribute: j for j, attribute in enumerate(schema.names)}
    found = [_Column(place[name])] if name in place else []
    for cut in (i for i, letter in enumerate(name) if letter == "="):
        j, value = place.get(name[:cut]), text_of(name[cut + 1 :])
        if j is None:
            continue
        attribute = schema.attributes[j]
        values = [attribute.missing] if isinstance(attribute, Numeric) else attribute.domain
        if value in [text_of(known) for known in values if known is not None]:
            found.append(_Column(j, value))
    if len(found) != 1:
        problem = "may mean several things" if found else "is not known"
        raise PlanError(
            f"from_sklearn: the column {name!r} {problem} in the schema; expected an attribute ({', '.join(schema.names)}) or "
            '"attribute=value".'
        )
    return found[0]


def _check_same_attributes(encoded: Schema, schema: Schema) -> None:
    """The codes and bounds of an encoder are those of its own schema."""
    known = {attribute.name: replace(attribute, unreviewed=False, taxonomy=None) for attribute in encoded.attributes}
    strange = [a.name for a in schema.attributes if known.get(a.name) != replace(a, unreviewed=False, taxonomy=None)]
    if strange:
        raise PlanError(f"from_sklearn: the encoder was made for another schema: {', '.join(map(repr, strange))} differ.")


def _as_cells(column: _Column, codebook: Codebook, schema: Schema) -> _Column:
    """A numeric attribute that its encoder gave as the number of a cell; a missing one is the number after the last."""
    if not column.is_number_of(schema):
        return column
    attribute = codebook.schema.attributes[codebook.schema.names.index(schema.names[column.attribute])]
    assert isinstance(attribute, Numeric)
    edges = attribute.cell_edges(codebook.bins)
    return replace(column, cells=edges, missing=float(len(edges) - 1))


def _with_missing(columns: list[_Column], encoder: Any, schema: Schema) -> list[_Column]:
    """The encoder may put a number in the place of a missing one: it is asked for one row in which all are missing."""
    if not any(isinstance(attribute, Numeric) and attribute.missing is not None for attribute in schema.attributes):
        return columns
    nothing = {name: np.array([None], dtype=object) for name in schema.names}
    row = np.asarray(encoder.transform(nothing), dtype=np.float64).ravel()
    return [
        replace(column, missing=float(number)) if column.is_number_of(schema) else column
        for column, number in zip(columns, row, strict=True)
    ]


# ---------------------------------------------------------------- its questions


def _asking(tree: Any) -> NDArray[np.int64]:
    return np.flatnonzero(tree.children_left >= 0)


def _with_edges(schema: Schema, columns: Sequence[_Column], trees: Sequence[Any]) -> Schema:
    """The schema with all thresholds that the trees use as edges, and with those that its taxonomies need: no others."""
    edges: dict[int, set[float]] = {}
    for tree in trees:
        for node in _asking(tree):
            column = columns[tree.feature[node]]
            if column.is_number_of(schema):
                edges.setdefault(column.attribute, set()).add(column.edge(float(tree.threshold[node])))
    attributes = []
    for j, attribute in enumerate(schema.attributes):
        if isinstance(attribute, Numeric):
            inner = sorted(edge for edge in edges.get(j, ()) if math.isfinite(edge))
            if inner and not attribute.low < inner[0] <= inner[-1] < attribute.high:
                raise PlanError(
                    f"from_sklearn: the model asks whether {attribute.name!r} is below {inner[0]:.6g} or {inner[-1]:.6g}, which is not "
                    f"inside its declared bounds, {attribute.low:.6g} to {attribute.high:.6g}. Declare the bounds of the rows that it was "
                    "fitted on."
                )
            groups = attribute.taxonomy[0] if attribute.taxonomy else ()
            attribute = replace(attribute, edges=tuple(sorted({attribute.low, *inner, *groups, attribute.high})))
        attributes.append(attribute)
    return replace(schema, attributes=tuple(attributes))


def _check_size(codebook: Codebook, columns: Sequence[_Column], trees: Sequence[Any]) -> None:
    width = np.array([codebook.sizes[column.attribute] + 1 for column in columns], dtype=np.int64)
    entries = sum(int(width[tree.feature[_asking(tree)]].sum()) for tree in trees)
    if entries > MAX_ENTRIES:
        raise PlanError(
            f"from_sklearn: the trees would need {entries:,} branches; at most {MAX_ENTRIES:,} are made. Fit fewer or lower trees, or "
            "round the numbers first, so that there are fewer thresholds."
        )


def _converted(tree: Any, columns: Sequence[_Column], codebook: Codebook) -> tuple[Tree, NDArray[np.int64]]:
    """Our tree, and which node of scikit-learn's each of its leaves is.

    A question with one possible answer is not asked: after {not red} and {not green} nothing may be left.
    """
    missing_left = getattr(tree, "missing_go_to_left", np.zeros(tree.node_count, dtype=bool))
    attribute, origin, branches = [-1], [0], {}
    waiting: list[tuple[int, Mapping[int, Side]]] = [(0, {})]
    while waiting:
        node, possible = waiting.pop()
        while tree.children_left[origin[node]] >= 0:
            here = origin[node]
            column = columns[tree.feature[here]]
            left = column.goes_left(float(tree.threshold[here]), bool(missing_left[here]), codebook)
            codes = possible.get(column.attribute, np.ones(len(left), dtype=bool))
            if (codes & left).any() and (codes & ~left).any():
                children = len(attribute), len(attribute) + 1
                attribute[node] = column.attribute
                attribute += [-1, -1]
                origin += [int(tree.children_left[here]), int(tree.children_right[here])]
                branches[node] = np.append(np.where(left, *children), -1).astype(NODE)
                waiting.append((children[0], {**possible, column.attribute: codes & left}))
                waiting.append((children[1], {**possible, column.attribute: codes & ~left}))
                break
            origin[node] = int((tree.children_left if (codes & left).any() else tree.children_right)[here])
    branch = [branches[node] for node in sorted(branches)]
    made = Tree(codebook.sizes, np.array(attribute, dtype=NODE), np.concatenate([np.empty(0, dtype=NODE), *branch]))
    return made, np.array(origin, dtype=np.int64)[made.leaves]


# ---------------------------------------------------------------- its counts


def _counts_of_the_fit(classifier: Any, tree: Any) -> NDArray[np.int64]:
    """Class counts of every node, if a row counted as one person."""
    n, value = tree.n_node_samples, tree.value[:, 0, :]
    counts = value / value.sum(axis=1, keepdims=True) * n[:, None]  # the shares of the classes; in old versions, their counts
    whole = np.rint(counts)
    weighted = classifier.class_weight is not None or not np.array_equal(n, tree.weighted_n_node_samples)
    if getattr(classifier, "bootstrap", False) or weighted or np.abs(counts - whole).max() > 1e-6 * n.max():
        raise PlanError(
            "from_sklearn: the model was fitted on a bootstrap sample or on weighted rows, so that its numbers are not those of persons. "
            "Give the rows to count, from_sklearn(model, columns, schema, X, y)."
        )
    return np.asarray(whole, dtype=np.int64)


def _in_order(counts: NDArray[np.int64], order: list[int], n_classes: int) -> NDArray[np.int64]:
    """From the model's classes to the schema's."""
    result = np.zeros((len(counts), n_classes), dtype=np.int64)
    result[:, order] = counts
    return result


def _counted(tree: Tree, codes: NDArray[Any], labels: NDArray[np.uint16], n_classes: int) -> NDArray[np.int64]:
    """Class counts of the leaves; a row that stops on the way, or has no declared class, is not counted."""
    place = np.full(tree.n_nodes, -1, dtype=np.int64)
    place[tree.leaves] = np.arange(len(tree.leaves))
    leaf = place[route(tree, codes)]
    known = (leaf >= 0) & (labels < n_classes)
    counts = np.zeros((len(tree.leaves), n_classes), dtype=np.int64)
    np.add.at(counts, (leaf[known], labels[known]), 1)
    return counts
