"""The models by name, in the order of the tables. What is not installed or not written yet is left out of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import hedgerow
from benchmarks.beside import local, peers
from benchmarks.beside.protocol import Answer, Failure, Job, Table

DELTA = 1e-6


@dataclass(frozen=True)
class Model:
    """
    answers: fits and predicts, (table, jobs, seconds for one fit) -> answers in the order of the jobs
    missing: why it cannot run here, or ""
    binary:  only for two classes
    """

    title: str
    answers: Callable[[Table, Sequence[Job], int], Iterator[Answer | Failure]]
    missing: Callable[[], str] = lambda: ""
    delta: float = 0.0
    private: bool = True
    binary: bool = False


def ours(title: str, name: str, delta: float | None = None) -> Model:
    def missing() -> str:
        return "" if hasattr(hedgerow, name) else f"hedgerow has no {name}"

    return Model(title, partial(local.answers, local.our_forest(name, delta)), missing, delta or 0.0)


def peer(title: str, name: str, variant: str = "", delta: float = 0.0, binary: bool = False) -> Model:
    return Model(title, partial(peers.answers, name, variant), partial(peers.missing, name), delta, binary=binary)


MODELS = {
    "hedgerow": ours("Hedgerow", "HedgerowClassifier", delta=0),
    "hedgerow-delta": ours("Hedgerow, δ = 1e-6", "HedgerowClassifier", DELTA),
    "dpdf": ours("DPDF", "DPDFClassifier"),  # its defaults are the best that we know: the proven score, one tree
    "private-rdt": ours("Private-RDT", "PrivateRDTClassifier"),
    "snr": ours("SNR forest", "SNRForestClassifier"),
    "diffpid3": ours("DiffPID3", "DiffPID3Classifier"),
    "private-id3": ours("Private ID3", "PrivateID3Classifier"),
    "naive-bayes": Model("naive Bayes", partial(local.answers, local.naive_bayes)),
    "dp-ebm": peer("DP-EBM, δ = 1e-6", "interpret", delta=DELTA, binary=True),
    "dp-ebm-fast": peer("DP-EBM, δ = 1e-6, learning rate 0.2", "interpret", "0.2", delta=DELTA, binary=True),  # see the report's head
    "diffprivlib-ordinal": peer("diffprivlib, ordinal codes", "diffprivlib", "ordinal"),
    "diffprivlib-one-hot": peer("diffprivlib, one-hot", "diffprivlib", "one-hot"),
    "random-forest": Model("random forest, not private", partial(local.answers, local.random_forest), private=False),
    "boosting": Model("boosting, not private", partial(local.answers, local.boosting), private=False),
}
