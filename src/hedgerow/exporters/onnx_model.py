"""A release as an ONNX model, of standard operators only, so that onnxruntime and others predict by it.

Inputs, one for each attribute by its name, each (rows, 1): categories as text ("" is missing), numbers and dates (days since 1970-01-01)
as doubles (NaN is missing). Outputs: `label` (rows), `probabilities` (rows, classes) as doubles.

    LabelEncoder, TreeEnsembleRegressor   values to codes          TreeEnsembleRegressor   codes to the place in each tree
    Gather, ReduceSum, …                  from the numbers that stand there to probabilities, in double precision
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from hedgerow import __version__
from hedgerow.errors import PlanError
from hedgerow.exporters.onnx_trees import Ensemble, cells, numbers_at, places
from hedgerow.exporters.portable import CONFIDENT, SHARES, SOFTMAX, SUMS, Portable
from hedgerow.schema.attributes import text_of

OPSET, ML_OPSET, IR_VERSION = 17, 3, 8  # old enough for onnxruntime 1.12 and newer
ML = "ai.onnx.ml"


def onnx_bytes(forest: Portable) -> bytes:
    """The model as a file has it. Its metadata have the certificate."""
    try:
        import onnx
    except ImportError as error:
        raise PlanError("to: an export to ONNX needs the package onnx: pip install 'hedgerow[onnx]'.") from error
    graph = _Graph(onnx)
    _probabilities(graph, forest, _numbers(graph, forest, _codes(graph, forest)))
    _label(graph, forest)
    return graph.bytes(forest)


class _Graph:
    """ONNX nodes one after the other, each output with a name of its own that no column can have taken."""

    def __init__(self, onnx: Any) -> None:
        self.onnx, self.helper = onnx, onnx.helper
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.taken = {"label", "probabilities"}

    def input(self, name: str, kind: int) -> str:
        """A column. One that is called as an output gets an underscore."""
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        self.inputs.append(self.helper.make_tensor_value_info(name, kind, [None, 1]))
        return name

    def constant(self, values: Any, dtype: Any) -> str:
        name = self._new("constant")
        if dtype is str:
            self.constants.append(self.helper.make_tensor(name, self.onnx.TensorProto.STRING, [len(values)], [v.encode() for v in values]))
        else:
            self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(values, dtype=dtype), name))
        return name

    def add(self, operator: str, *inputs: str, output: str | None = None, domain: str = "", **attributes: Any) -> str:
        output = output or self._new(operator)
        self.nodes.append(self.helper.make_node(operator, list(inputs), [output], name=f"{output} node", domain=domain, **attributes))
        return output

    def cast(self, value: str, kind: str) -> str:
        return self.add("Cast", value, to=getattr(self.onnx.TensorProto, kind))

    def trees(self, values: str, ensemble: Ensemble, doubles: bool) -> str:
        lists: dict[str, Any] = {**ensemble.nodes, **ensemble.leaves}
        if doubles:
            for name in ("nodes_values", "target_weights"):
                array = np.asarray(lists.pop(name), dtype=np.float64)
                lists[f"{name}_as_tensor"] = self.onnx.numpy_helper.from_array(array, name)
        return self.add("TreeEnsembleRegressor", values, domain=ML, n_targets=ensemble.targets, **lists)

    def _new(self, what: str) -> str:
        number = len(self.nodes) + len(self.constants)
        name = f"hedgerow {what} {number}"
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def bytes(self, forest: Portable) -> bytes:
        proto, helper = self.onnx.TensorProto, self.helper
        kind = proto.INT64 if _whole(forest) else proto.STRING
        outputs = [
            helper.make_tensor_value_info("label", kind, [None]),
            helper.make_tensor_value_info("probabilities", proto.DOUBLE, [None, forest.n_classes]),
        ]
        graph = helper.make_graph(self.nodes, "hedgerow", self.inputs, outputs, self.constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(ML, ML_OPSET)]
        model = helper.make_model(
            graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="hedgerow", producer_version=__version__
        )
        facts = {**forest.facts, "target": forest.target, "classes": forest.classes}
        helper.set_model_props(model, {f"hedgerow.{name}": _text(value) for name, value in facts.items()})
        self.onnx.checker.check_model(model)
        return bytes(model.SerializeToString())


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value.isascii() else json.dumps(value)


def _codes(graph: _Graph, forest: Portable) -> str:
    """(rows, columns): the code of every value, as floats."""
    kinds, columns = graph.onnx.TensorProto, forest.columns
    found: dict[int, str] = {}
    names = [graph.input(column.name, kinds.STRING if column.edges is None else kinds.DOUBLE) for column in columns]
    for j, (column, name) in enumerate(zip(columns, names, strict=True)):
        if column.edges is None:
            codes = {text: code for text, code in column.codes.items() if _encodable(text)} | {"": column.missing}
            found[j] = graph.add(
                "LabelEncoder",
                name,
                domain=ML,
                keys_strings=list(codes),
                values_floats=[float(code) for code in codes.values()],
                default_float=float(column.other),
            )
    numbers = [j for j, column in enumerate(columns) if column.edges is not None]
    if numbers:
        values = graph.add("Concat", *(names[j] for j in numbers), axis=1)
        there = graph.trees(values, cells([columns[j].edges or [] for j in numbers]), doubles=True)
        missing = graph.constant([[float(columns[j].missing) for j in numbers]], np.float32)
        coded = graph.add("Where", graph.add("IsNaN", values), missing, there)
        for place, j in enumerate(numbers):
            found[j] = graph.add("Gather", coded, graph.constant([place], np.int64), axis=1)
    return graph.add("Concat", *(found[j] for j in range(len(columns))), axis=1)


def _encodable(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _numbers(graph: _Graph, forest: Portable, codes: str) -> str:
    """(rows, trees, numbers): what stands where each row ends in each tree; "" where there is no tree."""
    if not forest.trees:
        return ""
    numbers = [numbers_at(tree) for tree in forest.trees]
    there = graph.cast(graph.trees(codes, places(forest.trees), doubles=False), "INT64")
    first = graph.constant([np.cumsum([0, *map(len, numbers[:-1])])], np.int64)
    table = graph.constant(np.concatenate(numbers), np.float64)
    return graph.add("Gather", table, graph.add("Add", there, first), axis=0)


def _probabilities(graph: _Graph, forest: Portable, numbers: str) -> None:
    if forest.finish == CONFIDENT:
        _most_confident(graph, forest, numbers)
        return
    n = forest.n_classes
    sums = graph.add("Add", _sum(graph, numbers, 1, keep=False), graph.constant([forest.base], np.float64))
    if forest.finish == SHARES:
        graph.add("Identity", sums, output="probabilities")
        return
    if forest.finish == SOFTMAX:
        graph.add("Softmax", sums, axis=1, output="probabilities")
        return
    zero = graph.constant(0.0, np.float64)
    if forest.finish == SUMS:
        parts = graph.add("Max", sums, zero)
    else:
        shares, votes = _columns(graph, sums, range(n)), _columns(graph, sums, range(n, 2 * n))
        total = graph.add("Max", _sum(graph, votes, 1), graph.constant(1e-300, np.float64))
        parts = graph.add("Add", graph.add("Div", votes, total), graph.add("Mul", shares, graph.constant(1e-9, np.float64)))
    total = _sum(graph, parts, 1)
    divided = graph.add("Div", parts, graph.add("Max", total, graph.constant(1e-300, np.float64)))
    prior = graph.constant([forest.prior or [0.0] * n], np.float64)
    graph.add("Where", graph.add("Greater", total, zero), divided, prior, output="probabilities")


def _most_confident(graph: _Graph, forest: Portable, numbers: str) -> None:
    """The first tree with the highest share; where that is even between classes, the mean over all trees."""
    n = forest.n_classes
    sure, labels = _columns(graph, numbers, [n], axis=2), _columns(graph, numbers, [n + 1], axis=2)
    highest = graph.add("ReduceMax", sure, axes=[1], keepdims=1)
    first = graph.add("ArgMax", sure, axis=1, keepdims=0)  # (rows, 1): the first of those that are the highest
    winner = graph.add("GatherND", numbers, first, batch_dims=1)
    at_top = graph.cast(graph.add("Equal", sure, highest), "FLOAT")
    its_label = graph.add("Unsqueeze", _columns(graph, winner, [n + 1]), graph.constant([1], np.int64))
    differs = graph.cast(graph.add("Not", graph.add("Equal", labels, its_label)), "FLOAT")
    others = graph.add("ReduceMax", graph.add("Mul", at_top, differs), axes=[1], keepdims=0)
    shares = _columns(graph, winner, range(n))
    top = graph.add("Squeeze", highest, graph.constant([2], np.int64))
    even = _sum(graph, graph.cast(graph.add("Equal", shares, top), "FLOAT"), 1)
    tied = graph.add(
        "Or",
        graph.add("Greater", others, graph.constant(0.0, np.float32)),
        graph.add("Greater", even, graph.constant(1.0, np.float32)),
    )
    all_shares = _sum(graph, _columns(graph, numbers, range(n), axis=2), 1, keep=False)
    mean = graph.add("Div", all_shares, graph.constant(float(len(forest.trees)), np.float64))
    graph.add("Where", tied, mean, shares, output="probabilities")


def _sum(graph: _Graph, values: str, axis: int, keep: bool = True) -> str:
    return graph.add("ReduceSum", values, graph.constant([axis], np.int64), keepdims=int(keep))


def _columns(graph: _Graph, values: str, which: Sequence[int], axis: int = 1) -> str:
    return graph.add("Gather", values, graph.constant(list(which), np.int64), axis=axis)


def _label(graph: _Graph, forest: Portable) -> None:
    place = graph.add("ArgMax", "probabilities", axis=1, keepdims=0)
    if _whole(forest):
        classes = graph.constant(forest.classes, np.int64)
    else:
        classes = graph.constant([text_of(value) if not isinstance(value, str) else value for value in forest.classes], str)
    graph.add("Gather", classes, place, axis=0, output="label")


def _whole(forest: Portable) -> bool:
    return all(isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63 for value in forest.classes)
