"""`hedgerow experiments`, or `hedgerow-experiments`: the papers' experiments and the peers, run and reported."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli.console import console, pairs, say, table, warn
from hedgerow.errors import PlanError

if TYPE_CHECKING:
    from hedgerow_experiments.run import Left, Progress

HELP = "Run the papers' experiments and the peers beside us, and report what came out."
app = typer.Typer(no_args_is_help=True, add_completion=False, help=HELP)
Folder = Annotated[Path, typer.Option("--folder", "-f", help="Where results are stored and reports are written.")]
FOLDER = Path("hedgerow-experiments")


def main() -> None:
    """The entry point of the command `hedgerow-experiments`: the same as `hedgerow experiments`, refusals and exit codes too."""
    from hedgerow.cli import main as hedgerow

    sys.argv.insert(1, "experiments")
    hedgerow()


@app.command("list")
def show_list(
    name: Annotated[str | None, typer.Argument(help="One experiment: show its protocol.", show_default=False)] = None,
    folder: Folder = FOLDER,
) -> None:
    """All experiments, and how much of each is stored; of one experiment, its protocol.

    Example:

        hedgerow experiments list dpdf-figure-6
    """
    from hedgerow_experiments.catalogue import EXPERIMENTS, chosen
    from hedgerow_experiments.report import state
    from hedgerow_experiments.store import Store

    store = Store(folder)
    for experiment in chosen([name]) if name else ():
        lines = [("what", f"{experiment.source}, {experiment.title}"), ("data", ", ".join(experiment.sets))]
        counts = [("jobs", f"{len(experiment.jobs(False))}; quick: {len(experiment.jobs(True))}")]
        counts.append(("stored", state(experiment, store.results(experiment.name))))
        pairs(experiment.name, [*lines, *counts, ("protocol", experiment.protocol)])
    if name is None:
        rows = [(each.name, f"{each.source}, {each.title}", state(each, store.results(each.name))) for each in EXPERIMENTS.values()]
        table("Experiments", ["name", "what", "stored"], rows)
        say("Protocol of one: hedgerow experiments list NAME. Next: hedgerow experiments run NAME --quick")


@app.command()
def run(
    names: Annotated[
        list[str] | None, typer.Argument(help="Names, or beginnings of names: dpdf is all of dpdf-….", show_default=False)
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All experiments of the papers, and the peers.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Few repetitions: minutes instead of hours.")] = False,
    folder: Folder = FOLDER,
    workers: Annotated[int, typer.Option("--workers", help="Jobs at a time.  [default: the cores there are]", show_default=False)] = 0,
) -> None:
    """Run what is not stored yet. It may be stopped at any time, and goes on where it was.

    The public data sets (car.csv.gz, nursery.csv.gz, …) are read from the folder that HEDGEROW_DATA names. Every result is stored as it
    comes, with the versions of the packages and the SHA-256 of the data files. `--quick` does a part of the full protocol; a full run
    later goes on from there.

    Example:

        hedgerow experiments run dpdf --quick
    """
    from hedgerow_experiments.catalogue import PAPERS, PEERS, chosen
    from hedgerow_experiments.report import hours
    from hedgerow_experiments.run import missing
    from hedgerow_experiments.run import run as do
    from hedgerow_experiments.store import Store

    if bool(names) == everything:
        raise PlanError("experiments run: got no names, or names and --all; expected either. `hedgerow experiments list` shows the names.")
    selected = [*PAPERS, *PEERS] if everything else chosen(names or [])
    if any(experiment.sets for experiment in selected) and not os.environ.get("HEDGEROW_DATA"):
        raise PlanError(
            "HEDGEROW_DATA: got nothing; expected the folder with the public data sets (car.csv.gz, nursery.csv.gz, …). "
            "Next: export HEDGEROW_DATA=FOLDER, then run again."
        )
    store, cores = Store(folder), workers or os.cpu_count() or 1
    jobs = sum(len(missing(store, experiment, quick)) for experiment in selected)
    say(f"{jobs:,} jobs without a result, {cores} at a time; stored in {folder / 'results'}")
    with _progress() as tell:
        left = do(store, selected, quick, cores, tell)
    _tell_left(left)
    spent = sum(result.seconds for experiment in selected for result in store.results(experiment.name))
    say(f"done; {hours(spent)} of CPU in all stored results. Next: hedgerow experiments report --folder {folder}")


def _tell_left(left: list[Left]) -> None:
    reasons: dict[str, int] = {}
    for each in left:
        reasons[f"{each.experiment}: {each.why}"] = reasons.get(f"{each.experiment}: {each.why}", 0) + 1
    for reason, jobs in reasons.items():
        warn(f"{jobs} jobs left out. {reason}")


@app.command()
def report(folder: Folder = FOLDER) -> None:
    """Write REPRODUCTION.md, PEERS.md and other pages, experiments.html, figures/ and tables/ from the stored results. Nothing is run.

    Every claim of every paper stands there beside our figure, with an interval and a verdict that is computed from the results.

    Example:

        hedgerow experiments report --folder hedgerow-experiments
    """
    from hedgerow_experiments.report import write_report
    from hedgerow_experiments.store import Store

    store = Store(folder)
    if not store.experiments():
        raise PlanError(
            f"experiments report: {str(folder / 'results')!r} has no results. Next: hedgerow experiments run NAME --quick --folder {folder}"
        )
    written = write_report(store, folder)
    say(f"{len(written)} files in {folder}; open {folder / 'experiments.html'}, or read {folder / 'REPRODUCTION.md'}")


@app.command("peers")
def build_peers(
    names: Annotated[
        list[str] | None, typer.Argument(help="Which: diffprivlib, interpret, dpmm.  [default: all]", show_default=False)
    ] = None,
) -> None:
    """Build an environment for each peer, since their versions clash with each other. Needed once, for `run peers`.

    They are made in a folder of their own in the user's cache, or in the one that HEDGEROW_PEERS names.

    Example:

        hedgerow experiments peers diffprivlib
    """
    from hedgerow_experiments.peers.environments import PEERS, build

    for name in names or list(PEERS):
        say(f"{name}: building its environment …")
        say(f"{name}: ready in {build(name)}")


@contextmanager
def _progress() -> Iterator[Callable[[Progress], None]]:
    """A bar with the time that remains on a terminal; a line a minute elsewhere."""
    if not sys.stderr.isatty():
        told = [time.monotonic()]

        def tell(progress: Progress) -> None:
            if time.monotonic() - told[0] > 60 or progress.done == progress.of:
                told[0] = time.monotonic()
                say(_words(progress))

        yield tell
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns: list[Any] = [BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}")]
    with Bar(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda progress: bar.update(task, total=progress.of, completed=progress.done, description=_words(progress))


def _words(progress: Progress) -> str:
    left = "" if progress.remaining is None else f", {_duration(progress.remaining)} left"
    return f"{progress.done:,} of {progress.of:,} jobs{left}; {progress.experiment}"


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"about {minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"about {minutes} min" if minutes else "less than a minute"
