"""How well does the Hedgerow forest do on tables that took no part in choosing its constants? docs/PEERS_UNSEEN.md reports it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from hedgerow_experiments.document import Block
from hedgerow_experiments.experiment import Experiment, Found, Job, Result
from hedgerow_experiments.peers.fits import Answer, Fit, scores
from hedgerow_experiments.peers.models import MODELS
from hedgerow_experiments.peers.tables import FOLD_SEED, FOLDS, Table
from hedgerow_experiments.unseen_sets import TARGETS, missing, unseen

WHO = ("hedgerow-delta", "hedgerow", "logistic", "naive-bayes", "private-rdt", "boosting")
EPSILONS = ("0.25", "0.5", "1", "2", "8")
SMALL_BELOW, SMALL_REPETITIONS, LARGE_FOLDS = 3_000, 3, 3
QUICK = ("AER/SwissLabor", "AER/BankWages", "carData/BEPS")
PATIENCE = 300  # seconds for a fit


def jobs(quick: bool) -> list[Job]:
    return [{"set": name, "model": model} for model in WHO for name in (QUICK if quick else TARGETS)]


def work(job: Job) -> Found:
    """By ε, the mean over folds and repetitions of each score; and the share of the largest class."""
    table, model = table_of(job["set"]), MODELS[job["model"]]
    small = len(table.labels) < SMALL_BELOW
    repetitions = SMALL_REPETITIONS if small and model.kind != "ceiling" else 1
    found: Found = {
        "rows": len(table.labels),
        "classes": table.n_classes,
        "largest class": round(float(np.bincount(table.y).max() / len(table.y)), 5),
    }
    for epsilon in EPSILONS if model.kind != "ceiling" else ("",):
        fits = [Fit(epsilon, fold, again) for again in range(repetitions) for fold in range(FOLDS if small else LARGE_FOLDS)]
        answers = list(model.answers(table, fits, PATIENCE))
        each = [scores(a, table.y[table.folds[fit.fold][1]]) for fit, a in zip(fits, answers, strict=True) if isinstance(a, Answer)]
        assert len(each) == len(fits), answers
        found[epsilon] = {name: [round(one[name], 5) for one in each] for name in ("accuracy", "auc", "log_loss") if name in each[0]}
    return found


@lru_cache(maxsize=1)
def table_of(name: str) -> Table:
    from sklearn.model_selection import StratifiedKFold

    columns, labels, schema = unseen(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class may have fewer rows than there are folds
        parts = tuple(StratifiedKFold(FOLDS, shuffle=True, random_state=FOLD_SEED).split(np.zeros(len(labels)), labels))
    return Table(name, columns, labels, schema, parts)


def blocks(results: Sequence[Result]) -> list[Block]:
    from hedgerow_experiments.unseen_report import blocks as of

    return of(results)


EXPERIMENTS = (
    Experiment(
        "unseen-tables", f"{len(TARGETS)} tables from R packages", "unseen",
        f"`StratifiedKFold({FOLDS}, shuffle=True, random_state={FOLD_SEED})`: all folds of tables with fewer than {SMALL_BELOW:,} rows, "
        f"{SMALL_REPETITIONS} times with new noise, the first {LARGE_FOLDS} of others, once. Values and bounds are those of the public "
        "table, for all models alike; every model has the setting that it has in PEERS.md.",
        (), jobs, work, blocks, setup=lambda job: missing(),
    ),
)  # fmt: skip
