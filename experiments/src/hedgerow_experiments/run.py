"""Do the jobs that have no stored result, several at a time, and store each result at once."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context

from hedgerow.errors import ExperimentError
from hedgerow_experiments.experiment import Experiment, Found, Job
from hedgerow_experiments.provenance import check_same_data, run_of
from hedgerow_experiments.store import Store, key_of

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass
class Progress:
    """How far a run is; remaining: seconds, from how long such jobs took, or None before the first."""

    done: int
    of: int
    experiment: str
    remaining: float | None


@dataclass(frozen=True)
class Left:
    """A job that cannot be done here, and why."""

    experiment: str
    job: Job
    why: str


Task = tuple[Experiment, Job]


def missing(store: Store, experiment: Experiment, quick: bool) -> list[Job]:
    """The jobs without a result, in the order in which they are done."""
    have = {key_of(result.job) for result in store.results(experiment.name)}
    return [job for job in experiment.jobs(quick) if key_of(job) not in have]


def run(
    store: Store, experiments: Sequence[Experiment], quick: bool, workers: int, tell: Callable[[Progress], None] = lambda progress: None
) -> list[Left]:
    """Do what is missing. What cannot be done here comes back; whatever was done before an interruption is stored."""
    tasks, left = [], []
    for experiment in experiments:
        for job in missing(store, experiment, quick):
            why = experiment.setup(job)
            if why is None:
                tasks.append((experiment, job))
            else:
                left.append(Left(experiment.name, job, why))
    if not tasks:
        return left
    line = run_of(name for experiment, _ in tasks for name in experiment.sets)
    check_same_data(line, store.runs().values())
    store.add_run(line)
    clock = Clock(store, tasks, workers)
    for (experiment, job), (found, seconds) in _results(tasks, workers):
        store.add(experiment.name, job, found, seconds, line["run"])
        clock.done(experiment, job, seconds)
        tell(Progress(clock.finished, len(tasks), experiment.name, clock.remaining()))
    return left


def _results(tasks: Sequence[Task], workers: int) -> Iterator[tuple[Task, tuple[Found, float]]]:
    """As they come. Only a few jobs are handed out ahead, so that an interruption has little to wait for."""
    if workers == 1:
        yield from ((task, timed(task[0].work, task[1])) for task in tasks)
        return
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))  # one job, one core: read by the workers when they start
    waiting, running = iter(tasks), dict[Future[tuple[Found, float]], Task]()
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    try:
        while True:
            while len(running) < 2 * workers and (task := next(waiting, None)) is not None:
                running[pool.submit(timed, task[0].work, task[1])] = task
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), future.result()
    except BrokenProcessPool as error:
        raise ExperimentError(
            "experiments: a worker process ended by itself (killed, or out of memory). What was done is stored: run again, perhaps with "
            "fewer --workers."
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def timed(work: Callable[[Job], Found], job: Job) -> tuple[Found, float]:
    start = time.perf_counter()
    found = work(job)
    return found, time.perf_counter() - start


class Clock:
    """How long the rest will take: a job like those of the same experiment, set and model that were timed."""

    def __init__(self, store: Store, tasks: Sequence[Task], workers: int) -> None:
        self.workers, self.finished = workers, 0
        self.to_do: dict[str, int] = defaultdict(int)
        self.seen: dict[str, list[float]] = defaultdict(list)
        for experiment in {task[0].name: task[0] for task in tasks}.values():
            for result in store.results(experiment.name):
                self.seen[kind(experiment, result.job)].append(result.seconds)
        for experiment, job in tasks:
            self.to_do[kind(experiment, job)] += 1

    def done(self, experiment: Experiment, job: Job, seconds: float) -> None:
        self.finished += 1
        self.to_do[kind(experiment, job)] -= 1
        self.seen[kind(experiment, job)].append(seconds)

    def remaining(self) -> float | None:
        everything = [second for several in self.seen.values() for second in several]
        if not everything:
            return None
        usual = sum(everything) / len(everything)
        total = 0.0
        for name, jobs in self.to_do.items():
            several = self.seen.get(name)
            total += jobs * (sum(several) / len(several) if several else usual)
        return total / self.workers


def kind(experiment: Experiment, job: Job) -> str:
    return f"{experiment.name} {job.get('set', '')} {job.get('model', '')} {job.get('owners', '')}"
