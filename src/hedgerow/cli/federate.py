"""`hedgerow federate`: counts on one plan from several data owners' services, merged."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli.console import clean, console, one_line, table, warn
from hedgerow.cli.count import private_key
from hedgerow.cli.fit import summarise
from hedgerow.cli.outputs import check_output, file_lock
from hedgerow.cli.tables import SignKey, TrustedKeys, known_keys, say_what_else, show_tables, stem, warn_of_few
from hedgerow.errors import CuratorError

if TYPE_CHECKING:
    from hedgerow.remote.federation import CuratorStatus
    from hedgerow.remote.places import Place


def federate(
    urls: Annotated[list[str], typer.Argument(metavar="URL...", help="Pages of datasets: https://host/datasets/NAME.", show_default=False)],
    plan: Annotated[Path, typer.Option("--plan", help="The plan that all share (`hedgerow plan --save`).", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to save the forest.")] = Path("forest.json"),
    tokens: Annotated[
        Path | None,
        typer.Option("--tokens", help="A file that only you can read, a line 'address token' for each service.", show_default=False),
    ] = None,
    purpose: Annotated[
        str | None, typer.Option("--purpose", help="What for.  [default: the only one that is granted]", show_default=False)
    ] = None,
    disjoint: Annotated[
        bool,
        typer.Option(
            "--disjoint",
            help="You state: no person has rows in two of these datasets, and which one a row is in depends on that row alone.",
        ),
    ] = False,
    together: Annotated[
        bool,
        typer.Option(
            "--together",
            help="The services count together: one release with the noise of one owner. Each is started with `serve --party`.",
        ),
    ] = False,
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", help="The plan's ε once more, where it is above 10: do you mean it?", show_default=False)
    ] = None,
    at_least: Annotated[
        int | None,
        typer.Option(
            "--at-least",
            min=1,
            help="Merge if so many have answered; --together: begin if so many are ready.  [default: all]",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[float, typer.Option("--timeout", min=0.1, help="Seconds to wait for an answer.")] = 600,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder",
            help="Where answers are kept; with another one all is requested and paid anew.  [default: by the output, forest.federation]",
            show_default=False,
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Request and pay anew what another output's folder (*.federation) here holds the answers of.")
    ] = False,
    trust: TrustedKeys = None,
    require_signed: Annotated[
        bool,
        typer.Option("--require-signed", help="Refuse an answer that none of the --trust keys has signed."),
    ] = False,
    sign: SignKey = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output file.")] = False,
) -> None:
    """Ask several data owners' services for counts on one plan, and merge them into a forest.

    First all are asked what is left there: where one cannot be reached, cannot pay or refuses, none is charged. Then all get the request
    at once, and each charges its own ε. A service that is down, slow or refuses is named; what the others have answered is kept. Run the
    same command again to go on: it sends the request only to those that have not answered, each with the same key, so that an answer that
    a service has stored comes back and is not paid for twice. To do without one, leave its address out or give --at-least.

    With --together the services meet each other, and add up by a secure sum: the release of each is that of all, with the noise of about
    one owner, and no service sees another's counts. If one leaves, nothing is released, and what the others have charged stays charged.

    Tokens are given in a file (`--tokens`), one line for each service; for a single service in HEDGEROW_TOKEN.

    Example:

        hedgerow federate https://clinic-a.example/datasets/visits https://clinic-b.example/datasets/visits --plan plan.json --tokens tokens.txt -o forest.json
    """  # noqa: E501 - a command is one line
    if output.exists() and not force:
        raise CuratorError(
            f"output {str(output)!r} exists already. Add --force to replace it, with those that have not answered yet: answers that are "
            "kept are not paid again."
        )
    check_output(output, [plan, tokens, sign, *(trust or [])], force)
    from hedgerow.release.public_plan import PublicPlan
    from hedgerow.release.release import Release
    from hedgerow.remote.federation import ANSWERED, Federation
    from hedgerow.remote.federation_folder import FOLDER, Folder
    from hedgerow.remote.places import places_of, tokens_for
    from hedgerow.training.counting import cost_of

    found, places, key = PublicPlan.load(plan), places_of(urls), private_key(sign)
    cost_of(found, epsilon)
    if require_signed and not trust:
        raise CuratorError("--require-signed: no key is trusted. Give the services' public keys with --trust.")
    if together and disjoint:
        raise CuratorError("--disjoint: with --together each owner states it when its service is started. Leave it out.")
    trusted = known_keys(trust) if require_signed else None
    if at_least is not None and at_least > len(places):
        raise CuratorError(f"--at-least: got {at_least}; expected at most {len(places)}, the number of addresses.")
    known = tokens_for(places, tokens, os.environ)
    where = folder if folder is not None else output.with_name(f"{stem(output)}{FOLDER}")
    if folder is None and not again:
        _check_not_paid_elsewhere(where, found.content_hash, places, together)
    with Folder.open(where, found.content_hash, places, purpose, together) as opened:
        with _shown() as news:
            ready = (at_least or len(places)) if together else None
            federation = Federation(found, known, opened, news, timeout, trusted, ready, at_least)
            status = federation.collect()
        answered = [each for each in status if each.state == ANSWERED]
        table("requested", ["dataset", "owner", "answer"], [(each.place.url, each.owner or "–", _answer(each)) for each in status])
        for each in status:
            if each.words:
                warn(f"{one_line(each.place.url)}: {one_line(each.words)}")
        if len(answered) < (1 if together else at_least or len(places)):
            asked = [each for each in status if each.place in federation.asked]
            raise CuratorError(_no_release(asked) if together else _how_to_go_on(len(answered), len(places), len(asked), where))
        merged = federation.merged(answered, disjoint)
        for each in answered[:1] if together else answered:
            warn_of_few(Release.load(opened.file(each.place)), "together" if together else one_line(each.place.url))
    if key is not None:
        merged = merged.signed(key)
    with file_lock(output) if output.exists() else nullcontext():
        merged.save(output)
    summarise(merged, output, events=False)
    show_tables(merged)
    say_what_else(merged.algorithm)


def _check_not_paid_elsewhere(where: Path, plan: str, places: Sequence[Place], together: bool) -> None:
    """Under another name of the output, the same plan and addresses would be paid for a second time."""
    from hedgerow.remote.federation_folder import FOLDER, sent_elsewhere

    for other, urls in sent_elsewhere(where, plan, places, together):
        raise CuratorError(
            f"{other} holds requests on this plan that were sent to {', '.join(urls)}, and may be paid for. With another --output each "
            f"would be paid again. Nothing was spent. To go on with those, give -o {other.name.removesuffix(FOLDER)}.json or "
            f"--folder {other}; to pay anew, --again."
        )


def _answer(status: CuratorStatus) -> str:
    return "none" if status.words else "kept from an earlier run" if status.before else "answered"


FIRST = "First put right what is said above, then run the same command again."


def _no_release(asked: list[CuratorStatus]) -> str:
    """Of those who count together. asked: who got the request."""
    if not asked:
        return f"there is no release. Nobody was asked to count, and this run has cost nothing. {FIRST}"
    if any(each.unsure for each in asked):
        return (
            "there is no release yet. Those that have the request go on with it. Run the same command again to fetch what comes of it: "
            "nothing is paid twice."
        )
    return (
        "there is no release. A service that had looked at its rows has charged for it, as its job says; the others have given back what "
        "they reserved. Run the same command again to try again: each service then pays again."
    )


def _how_to_go_on(answered: int, all_: int, asked: int, folder: Path) -> str:
    missing = f"{all_ - answered} of {all_} have not answered; nothing was merged."
    without = "leave the addresses out of those that cannot take part, or say how many are enough: --at-least"
    if not asked and not answered:
        return f"{missing} Nobody was asked to count, and this run has cost nothing. {FIRST} Or do without: {without}."
    kept = f", or merge what is there with --at-least {answered}" if answered else ""
    if not asked:
        return (
            f"{missing} What came before is kept in {folder}, and this run has cost nothing. {FIRST} Or do without: {without} {answered}."
        )
    return f"{missing} What came is kept in {folder}. Run the same command again to ask only those that are missing{kept}."


@contextmanager
def _shown() -> Iterator[Callable[[CuratorStatus], None]]:
    """A line of progress for each service on a terminal; elsewhere nothing until the end."""
    if not sys.stderr.isatty():
        yield lambda status: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=console(stderr=True), transient=True) as bar:
        tasks: dict[Any, Any] = {}

        def show(status: CuratorStatus) -> None:
            if status.place not in tasks:
                tasks[status.place] = bar.add_task("", total=1.0)
            text = f"{status.place.url}: {status.state}"
            bar.update(tasks[status.place], description=clean(one_line(text)), completed=status.share)

        yield show
