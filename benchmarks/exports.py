"""Exported forests beside our own predict: seconds for the same rows, on one thread, in one run.

From columns in memory to probabilities, values to codes included; the best of three, ours and ONNX in turn. Nothing is asserted.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

import hedgerow
from benchmarks.measure import Line, fastest, not_run
from hedgerow import HedgerowClassifier, PrivateRDTClassifier, SNRForestClassifier
from hedgerow.datasets import patients
from hedgerow.schema.attributes import Categorical
from hedgerow_experiments.folds import quiet_fit


def run(quick: bool) -> list[Line]:
    if find_spec("onnxruntime") is None:
        return [not_run("ONNX", "onnxruntime is not installed")]
    import onnxruntime

    rows = 20_000 if quick else 100_000
    train, test = patients(20_000, seed=1), patients(rows, seed=2)
    columns: dict[str, Any] = dict(test.columns)
    lines = []
    models = {
        "Hedgerow forest, ε = 1, δ = 1e-6": HedgerowClassifier(train.schema, 1, "1e-6"),
        "Private-RDT, ε = 1": PrivateRDTClassifier(train.schema, 1),
        "SNR forest, ε = 1": SNRForestClassifier(train.schema, 1),
    }
    for name, model in models.items():
        release = quiet_fit(model, train.columns, train.y).release_
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(hedgerow.export(release, "onnx"), options, providers=["CPUExecutionProvider"])
        feed = {}
        for attribute, given in zip(release.schema.attributes, session.get_inputs(), strict=True):
            column = columns[attribute.name]
            feed[given.name] = (column.astype(str).astype(object) if isinstance(attribute, Categorical) else column.astype(float))[:, None]
        jobs = {
            "ours": lambda release=release: release.predict_proba(columns),
            "onnx": lambda session=session, feed=feed: session.run(["probabilities"], feed),
        }
        times = fastest(jobs, 3)
        ours, onnx = times.best["ours"], times.best["onnx"]
        off = np.abs(jobs["onnx"]()[0] - release.predict_proba(columns)).max()
        what = f"{name}: ONNX over ours, {rows:,} rows; the largest difference is {off:.0e}"
        lines.append(Line(what, f"{ours:.3f} s", f"ONNX {onnx:.3f} s", onnx / ours, "", None, times.others))
    return lines
