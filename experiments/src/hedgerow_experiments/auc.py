"""Does more ε rank rows better? The area under the ROC curve of the Hedgerow forest on all sets with two classes, which docs/PEERS_AUC.md
reports. Accuracy hides a forest that only names the larger class; the AUC does not."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from hedgerow import HedgerowClassifier
from hedgerow_experiments.document import Block
from hedgerow_experiments.experiment import Experiment, Found, Job, Result
from hedgerow_experiments.learning import DELTA, FOLDS, SMALL_BELOW, _setup
from hedgerow_experiments.more_sets import loaded
from hedgerow_experiments.peers.tables import SETS as TEN
from hedgerow_experiments.peers.tables import classes_of

MORE_OF_TWO_CLASSES = (
    "banknote", "breast-cancer", "credit-approval", "credit-default", "magic-gamma", "skin-segmentation", "spambase",
)  # fmt: skip
SETS = (*(name for name in TEN if classes_of(name) == 2), *(f"more/{name}" for name in MORE_OF_TWO_CLASSES))
EPSILONS = ("0.25", "0.5", "1", "2", "4")
DELTAS = ("0", DELTA)
REPETITIONS, MORE_REPETITIONS = 3, 12
FEW_ROWS = (
    "votes",
    "tic-tac-toe",
    "more/breast-cancer",
    "more/credit-approval",
)  # fewer than 1,000: much noise, as in pure ε; so more of them
LARGE_FOLDS = 2


def jobs(quick: bool) -> list[Job]:
    """The first repetition first. All ε of a set are one job, so that they are judged on the same folds."""
    sets = [name for name in SETS if name in ("votes", "tic-tac-toe", "more/banknote")] if quick else SETS
    noisy = {(name, delta): name in FEW_ROWS or delta == "0" for name in sets for delta in DELTAS}
    times = {each: 1 if quick else MORE_REPETITIONS if much else REPETITIONS for each, much in noisy.items()}
    return [
        {"set": name, "delta": delta, "repetition": repetition}
        for repetition in range(max(times.values())) for (name, delta), most in times.items() if repetition < most
    ]  # fmt: skip


def work(job: Job) -> Found:
    return {"auc": {epsilon: areas(job["set"], epsilon, job["delta"], job["repetition"]) for epsilon in EPSILONS}}


def areas(name: str, epsilon: str, delta: str, repetition: int) -> list[float]:
    """By fold. The folds and the seeds of public structure are the same for every ε."""
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold

    columns, labels, schema = loaded(name)
    parts = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(np.zeros(len(labels)), labels))
    found = []
    for fold, (train, test) in enumerate(parts if len(labels) < SMALL_BELOW else parts[:LARGE_FOLDS]):
        model = HedgerowClassifier(schema, epsilon, delta, random_state=FOLDS * repetition + fold)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(_rows(columns, train), labels[train])
        score = model.predict_proba(_rows(columns, test))[:, 1]
        found.append(round(float(roc_auc_score(labels[test] == model.classes_[1], score)), 5))
    return found


def _rows(columns: dict[str, Any], which: Any) -> dict[str, Any]:
    return {name: values[which] for name, values in columns.items()}


def blocks(results: Sequence[Result]) -> list[Block]:
    from hedgerow_experiments.auc_report import blocks as of

    return of(results)


EXPERIMENTS = (
    Experiment(
        "auc-epsilon", "AUC of Hedgerow as ε grows", "peers",
        f"`StratifiedKFold({FOLDS}, shuffle=True, random_state=0)`: all folds of sets with fewer than {SMALL_BELOW:,} rows, the first "
        f"{LARGE_FOLDS} of others; {REPETITIONS} repetitions with new noise and new random trees, {MORE_REPETITIONS} in pure ε and of sets "
        "with fewer than 1,000 rows. The folds and the seeds are the same at every ε.",
        SETS, jobs, work, blocks, setup=_setup,
    ),
)  # fmt: skip
