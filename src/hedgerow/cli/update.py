"""`hedgerow update`: a new batch of rows in the trees of a forest that exists."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from hedgerow.cli.console import progress_bar, say
from hedgerow.cli.count import private_key
from hedgerow.cli.errors import REFUSED
from hedgerow.cli.fit import save_paid, summarise
from hedgerow.cli.options import BudgetPath, Epsilon, Force, Jobs, Sampler, threads
from hedgerow.cli.outputs import check_output, file_lock
from hedgerow.cli.places import CSVOfRows, Data, EngineName, EngineOption, MasterOption, Place, PurposeOption, QueryOption, TableOption
from hedgerow.cli.tables import Batch, Disjoint, Owner, SignKey, checked_owner, show_tables, warn_of_alike


def update(
    forest: Annotated[Path, typer.Argument(help="A saved forest (hedgerow, rdt, snr).", show_default=False)],
    data: Data,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to save the new forest.  [default: in place]", show_default=False)
    ] = None,
    epsilon: Epsilon = None,
    batch: Batch = None,
    owner: Owner = None,
    disjoint: Disjoint = False,
    other_rows: Annotated[
        bool,
        typer.Option(
            "--other-rows", help="You state: a service's table that is in the forest already has other rows by now, and only those."
        ),
    ] = False,
    budget: BudgetPath = None,
    sign: SignKey = None,
    jobs: Jobs = None,
    sampler: Sampler = "hedgerow",
    again: Annotated[bool, typer.Option("--again", help="Pay anew for an update that the budget file has paid for already.")] = False,
    table: TableOption = None,
    query: QueryOption = None,
    engine: EngineOption = EngineName.duckdb,
    master: MasterOption = None,
    csv: CSVOfRows = None,
    purpose: PurposeOption = None,
    force: Force = False,
) -> None:
    """Add new rows to a forest: count them in its trees, add noise, add the counts.

    The old rows are not needed and cost nothing more. The new ones are charged ε, by default what the forest's other tables were. If a
    person's rows are in one batch only, say so with --disjoint: then the largest ε of the batches counts, otherwise they add up. Each
    batch adds noise of its own; the last line tells whether counting all rows again would be better. The owner's name is by default that
    of the forest's tables, where they have one alone; of rows at a service it is the service's. A budget file pays once for the same
    update, and not for DATA of which it has paid the counts in this forest already: --again pays all the same.

    Example:

        hedgerow update forest.json march.csv --batch 2026-03 --disjoint --budget budget.json
    """
    place = Place(data, table, query, engine, master, purpose, csv)
    if output is not None:
        check_output(output, [forest, *place.files, budget, sign], force)
    else:
        check_output(forest, [*place.files, budget, sign])
    from hedgerow.cli.budget_source import TrackedBudgetFile, open_budget, paid_query, print_remaining
    from hedgerow.release.merging_checks import check_random_trees
    from hedgerow.release.release import Release
    from hedgerow.training.counting import add_batch, cost_of, count

    with file_lock(forest) if output is None else nullcontext():
        before = Release.load(forest)
        check_random_trees(before, str(forest))
        key = private_key(sign)
        owners = {place.service.public.owner} if place.remote else {part.owner for part in before.certificate.parts}
        named = checked_owner(owner, owners.pop() if len(owners) == 1 else "")
        warn_of_alike(before, named, key)
        target, cost = output or forest, cost_of(before, epsilon)
        request_budget = open_budget(budget, cost, owners=place.remote)
        if isinstance(request_budget, TrackedBudgetFile) and not place.remote:
            request_budget.pay_for_update(place.named, [str(cost), named, batch, sampler, csv], before, again)
        going_on: Any = nullcontext()
        if place.remote:
            going_on = place.service.going_on(target, "update", cost, request_budget, {"forest": before.content_hash})
        with paid_query(request_budget, unfinished="The forest is as it was."):
            with going_on, place.rows() as rows, progress_bar("counting") as progress:
                added = count(
                    before,
                    rows,
                    owner=named,
                    batch=batch,
                    disjoint=disjoint,
                    other_rows=other_rows,
                    epsilon=epsilon,
                    budget=request_budget,
                    sampler=sampler,
                    n_jobs=threads(jobs),
                    progress=progress,
                    again=True,  # whether it was paid for is known by now
                )
            try:
                after = add_batch(before, added, disjoint)
            except Exception:
                save_paid(added, None)  # it is paid for: the counts of the batch are not lost
                raise
            if key is not None:
                after = after.signed(key)
            saved = save_paid(after, target)
            if isinstance(request_budget, TrackedBudgetFile) and not place.remote:
                request_budget.note_counts(place.named, after, next(part for part in added.certificate.parts if part.counted), before)
            if place.remote and saved == target:
                place.service.saved()
    summarise(after, saved)
    if saved != target:
        raise typer.Exit(REFUSED)
    show_tables(after)
    if before.signatures and key is None:
        say("the forest was signed before; the new one is not (its tables keep the names of the keys). Sign it with `hedgerow sign`.")
    print_remaining(request_budget)
    if place.remote:
        place.service.print_left(request_budget)
