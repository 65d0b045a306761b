"""The models by name, in the order of the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from hedgerow_experiments.peers import local, processes
from hedgerow_experiments.peers.fits import Answer, Failure, Fit
from hedgerow_experiments.peers.tables import EPSILONS, FOLDS, Table, classes_of

DELTA = 1e-6
Kind = Literal["hedgerow", "paper", "peer", "ceiling"]


@dataclass(frozen=True)
class Model:
    """A model that learns in this process (`prepare`), or in the environment of a peer.

    variant: a setting that the peer's script understands
    binary:  only for two classes
    few:     repetitions at most; 0 where the experiment alone decides
    folds:   the first so many of the folds
    sets:    the only sets on which it is run; None for all
    """

    title: str
    kind: Kind
    prepare: local.Prepare | None = None
    peer: str = ""
    variant: str = ""
    delta: float = 0.0
    binary: bool = False
    few: int = 0
    folds: int = FOLDS
    sets: tuple[str, ...] | None = None

    @property
    def levels(self) -> tuple[str, ...]:
        """The values of ε; "" alone where nothing is private."""
        return ("",) if self.kind == "ceiling" else EPSILONS

    def cannot(self, set_name: str) -> str:
        """Why it is not run on a set; empty if it is."""
        if self.sets is not None and set_name not in self.sets:
            return "not run"
        return "two classes only" if self.binary and classes_of(set_name) != 2 else ""

    def answers(self, table: Table, fits: Sequence[Fit], patience: int) -> Iterator[Answer | Failure]:
        if self.prepare is not None:
            return local.answers(self.prepare, table, fits, patience)
        return processes.answers(self.peer, self.variant, table, fits, patience)


def ours(title: str, name: str, kind: Kind = "paper", delta: float | None = None) -> Model:
    return Model(title, kind, local.our_forest(name, delta), delta=delta or 0.0)


def ebm(title: str, learning_rate: str = "") -> Model:
    return Model(title, "peer", peer="interpret", variant=learning_rate, delta=DELTA, binary=True)


def synthetic(title: str, variant: str, sets: tuple[str, ...]) -> Model:
    """A fit takes a minute and more: one fold of some sets."""
    return Model(title, "peer", peer="dpmm", variant=variant, delta=DELTA, few=1, folds=1, sets=sets)


MODELS = {
    "hedgerow": ours("Hedgerow", "HedgerowClassifier", "hedgerow", delta=0),
    "hedgerow-delta": ours("Hedgerow, δ = 1e-6", "HedgerowClassifier", "hedgerow", DELTA),
    "dpdf": ours("DPDF", "DPDFClassifier"),  # its defaults are the best that we know: the proven score, one tree
    "private-rdt": ours("Private-RDT", "PrivateRDTClassifier"),
    "snr": ours("SNR forest", "SNRForestClassifier"),
    "diffpid3": ours("DiffPID3", "DiffPID3Classifier"),
    "private-id3": ours("Private ID3", "PrivateID3Classifier"),
    "naive-bayes": Model("naive Bayes", "peer", local.naive_bayes),
    "dp-ebm": ebm("DP-EBM, δ = 1e-6"),
    "dp-ebm-fast": ebm("DP-EBM, δ = 1e-6, learning rate 0.2", "0.2"),  # see the head of the report
    "logistic": Model("logistic regression, δ = 1e-6", "peer", local.logistic(DELTA), delta=DELTA, few=1),
    "mst-boosting": synthetic("MST and boosting, δ = 1e-6", "mst", ("votes",)),
    "aim-boosting": synthetic("AIM and boosting, δ = 1e-6", "aim", ()),
    "diffprivlib-ordinal": Model("diffprivlib, ordinal codes", "peer", peer="diffprivlib", variant="ordinal"),
    "diffprivlib-one-hot": Model("diffprivlib, one-hot", "peer", peer="diffprivlib", variant="one-hot"),
    "random-forest": Model("random forest, not private", "ceiling", local.random_forest),
    "boosting": Model("boosting, not private", "ceiling", local.boosting),
}
