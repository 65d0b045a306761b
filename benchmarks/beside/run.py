"""Fit whatever is not stored yet, one fit at a time, and store each answer at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from benchmarks.beside.models import MODELS, Model
from benchmarks.beside.peers import PeerFailed
from benchmarks.beside.protocol import FOLDS, Answer, Job, Table, table_of
from benchmarks.beside.scores import scores
from benchmarks.beside.store import Store


def wanted(name: str, model: Model, set_name: str, epsilons: Sequence[str], repetitions: int) -> list[Job]:
    """Fold by fold with all ε: a set that is stopped early still has every ε."""
    levels: Sequence[str | None] = epsilons if model.private else [None]
    return [Job(set_name, name, epsilon, fold, again) for again in range(repetitions) for fold in range(FOLDS) for epsilon in levels]


def run(
    store: Store,
    names: Iterable[str],
    sets: Sequence[str],
    epsilons: Sequence[str],
    repetitions: int = 1,
    patience: int = 300,
    minutes: float = 30,
    models: dict[str, Model] | None = None,
    load: Callable[[str], Table] = table_of,
    retry: bool = False,
) -> int:
    """How many fits were made.

    patience: seconds for one fit
    minutes:  for all fits of a model on a set; what is left then gets a line that says so
    retry:    try again what has only such a line
    """
    known, made = models or MODELS, 0
    for name in names:
        model = known[name]
        if why := model.missing():
            print(f"{name}: left out, {why}", flush=True)
            continue
        for set_name in sets:
            rows = store.rows()
            stored = {job for job, row in rows.items() if "accuracy" in row or not retry}
            jobs = [job for job in wanted(name, model, set_name, epsilons, repetitions) if job not in stored]
            if not jobs or (model.binary and load(set_name).n_classes != 2):
                continue
            try:
                made += run_jobs(store, model, load(set_name), jobs, patience, minutes)
            except PeerFailed as error:
                print(f"{name}, {set_name}: its process failed, nothing is stored\n{error}", flush=True)
    return made


def run_jobs(store: Store, model: Model, table: Table, jobs: Sequence[Job], patience: int, minutes: float) -> int:
    start, left, answers = time.monotonic(), list(jobs), model.answers(table, jobs, patience)
    for answer in answers:
        job = left.pop(0)
        if isinstance(answer, Answer):
            store.append(job, scores(answer, table.y[table.folds[job.fold][1]], model.delta))
        else:
            store.append(job, {"status": answer.why})
        if time.monotonic() - start > 60 * minutes:
            break
    answers.close()  # type: ignore[attr-defined]
    for job in left:
        store.append(job, {"status": f"not tried: the {minutes:g} minutes for this set were used up"})
    made = len(jobs) - len(left)
    print(f"{jobs[0].model}, {table.name}: {made} fits in {time.monotonic() - start:.0f} s", flush=True)
    return made
