"""Exported forests beside our own predict: seconds for the same rows, on one thread, in one run.

    python -m benchmarks.exports [--rows 100000]

From columns in memory to probabilities, values to codes included; the best of three, ours and ONNX in turn. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import hedgerow
from hedgerow import HedgerowClassifier, PrivateRDTClassifier, SNRForestClassifier
from hedgerow.datasets import patients
from hedgerow.schema.attributes import Categorical
from hedgerow_experiments.folds import quiet_fit


def best(work: Callable[[], Any], times: int = 3) -> float:
    found = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def main() -> None:
    import onnxruntime

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    rows = parser.parse_args().rows
    train, test = patients(20_000, seed=1), patients(rows, seed=2)
    columns: dict[str, Any] = dict(test.columns)
    models = {
        "Hedgerow forest, ε = 1, δ = 1e-6": HedgerowClassifier(train.schema, 1, "1e-6"),
        "Private-RDT, ε = 1": PrivateRDTClassifier(train.schema, 1),
        "SNR forest, ε = 1": SNRForestClassifier(train.schema, 1),
    }
    print("| forest | ours | ONNX | ONNX / ours | largest difference |\n| --- | --- | --- | --- | --- |")
    for name, model in models.items():
        release = quiet_fit(model, train.columns, train.y).release_
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(hedgerow.export(release, "onnx"), options, providers=["CPUExecutionProvider"])
        feed = {}
        for attribute, given in zip(release.schema.attributes, session.get_inputs(), strict=True):
            column = columns[attribute.name]
            feed[given.name] = (column.astype(str).astype(object) if isinstance(attribute, Categorical) else column.astype(float))[:, None]
        ours, theirs = [], []
        for _ in range(3):
            ours.append(best(lambda release=release: release.predict_proba(columns), 1))
            theirs.append(best(lambda session=session, feed=feed: session.run(["probabilities"], feed), 1))
        off = np.abs(session.run(["probabilities"], feed)[0] - release.predict_proba(columns)).max()
        print(f"| {name} | {min(ours):.3f} s | {min(theirs):.3f} s | {min(theirs) / min(ours):.1f} | {off:.1e} |", flush=True)


if __name__ == "__main__":
    main()
