"""The experiment `peers`: all models on all sets, and the memory that each needs."""

from __future__ import annotations

from collections.abc import Sequence

from hedgerow_experiments.document import Block
from hedgerow_experiments.experiment import Experiment, Found, Job, Result
from hedgerow_experiments.peers import environments, local, processes
from hedgerow_experiments.peers.models import MODELS
from hedgerow_experiments.peers.tables import EXTRA, FOLD_SEED, FOLDS, SETS, SMALL, table_of

REPETITIONS, OF_SMALL_SETS = 3, 12
PATIENCE = 300  # seconds for one fit
QUICK = ("votes", "tic-tac-toe", "cmc", "car", "mushroom", "nursery")
ONCE = {("digits", "private-id3")}  # most fits take longer than we wait: one try tells

PROTOCOL = (
    f"{FOLDS}-fold stratified cross-validation (`StratifiedKFold({FOLDS}, shuffle=True, random_state={FOLD_SEED})`): the same folds, "
    "the same ε and the same public domains and bounds (the schemas that ship with the package) for all. δ is 0 where none is named. "
    f"A repetition has new noise and new random trees (seed {FOLDS} · repetition + fold) on the same folds: {REPETITIONS} of them, "
    f"{OF_SMALL_SETS} on the sets with fewer than 2,000 rows ({REPETITIONS} for peers in an environment of their own), one of logistic "
    "regression, one of MST, on the first fold of votes alone, since it is slow, and one without privacy. AIM is not run: "
    "it is slower still. "
    "All fits of a model on a set in one repetition are one job; "
    f"a fit that takes longer than {PATIENCE} s ends its job. Memory has a job and a process of its own: one fit at ε = 1."
)


def repetitions(set_name: str, model: str) -> int:
    if MODELS[model].kind == "ceiling" or (set_name, model) in ONCE:
        return 1
    wanted = OF_SMALL_SETS if set_name in SMALL and not MODELS[model].peer else REPETITIONS
    return min(wanted, MODELS[model].few or wanted)


def jobs(quick: bool) -> list[Job]:
    pairs = [(name, model) for name in (QUICK if quick else (*SETS, *EXTRA)) for model in MODELS if not MODELS[model].cannot(name)]
    found: list[Job] = []
    for repetition in range(1 if quick else OF_SMALL_SETS):
        several = [pair for pair in pairs if repetition < repetitions(*pair)]
        found += [{"set": name, "model": model, "repetition": repetition} for name, model in several]
    return found if quick else found + [{"set": name, "model": model, "measure": "memory"} for name, model in pairs]


def work(job: Job) -> Found:
    from hedgerow_experiments.peers.fits import Fit, collected

    if job.get("measure") == "memory":
        from hedgerow_experiments.peers.memory import memory_of

        return memory_of(job["set"], job["model"])
    model, table = MODELS[job["model"]], table_of(job["set"])
    fits = [Fit(epsilon, fold, job["repetition"]) for fold in range(model.folds) for epsilon in model.levels]
    found: Found = dict(collected(table, fits, model.answers(table, fits, PATIENCE)))
    versions = processes.versions(model.peer) if model.peer else local.versions()
    return found | {"delta": model.delta, "versions": versions}


def setup(job: Job) -> str | None:
    peer = MODELS[job["model"]].peer
    return environments.missing(peer) if peer else None


def blocks(results: Sequence[Result]) -> list[Block]:
    from hedgerow_experiments.peers.report import blocks as of

    return of(results)


EXPERIMENTS = (
    Experiment(
        "peers",
        "Accuracy, AUC, time and memory on the same folds",
        "peers",
        PROTOCOL,
        (*SETS, *EXTRA),
        jobs,
        work,
        blocks,
        setup=setup,
    ),
)
