"""`hedgerow count`: one owner's rows in the trees of a shared plan."""

from __future__ import annotations

from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli.console import progress_bar, say
from hedgerow.cli.fit import save_paid, summarise
from hedgerow.cli.options import BudgetPath, Force, Jobs, Sampler, threads
from hedgerow.cli.outputs import check_output
from hedgerow.cli.places import CSVOfRows, Data, EngineName, EngineOption, MasterOption, Place, PurposeOption, QueryOption, TableOption
from hedgerow.cli.tables import Batch, Disjoint, Owner, SignKey, checked_owner, stem, warn_of_alike, warn_of_few

if TYPE_CHECKING:
    from hedgerow.release.public_plan import PublicPlan
    from hedgerow.release.release import Release


def count(
    plan: Annotated[Path, typer.Argument(help="A plan (`hedgerow plan --save`), or a forest in whose trees to count.", show_default=False)],
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to save the noisy counts.", show_default=False)],
    owner: Owner = None,
    batch: Batch = None,
    disjoint: Disjoint = False,
    trees_chosen_beforehand: Annotated[
        bool,
        typer.Option(
            "--trees-chosen-beforehand",
            help="You state: taking the trees of this forest did not depend on its counts. Then its tables count with their ε before them.",
        ),
    ] = False,
    epsilon: Annotated[
        str | None,
        typer.Option(
            "--epsilon", help="The ε of these rows.  [default: the plan's; with a forest, as its other tables]", show_default=False
        ),
    ] = None,
    budget: BudgetPath = None,
    sign: SignKey = None,
    jobs: Jobs = None,
    sampler: Sampler = "hedgerow",
    table: TableOption = None,
    query: QueryOption = None,
    engine: EngineOption = EngineName.duckdb,
    master: MasterOption = None,
    csv: CSVOfRows = None,
    purpose: PurposeOption = None,
    again: Annotated[
        bool,
        typer.Option(
            "--again",
            help="Pay anew for counts on this plan that a service has made for you before (else: fetched), or that the budget file has "
            "paid for already.",
        ),
    ] = False,
    force: Force = False,
) -> None:
    """Count your own rows in the trees of a plan that you share with others, and save the noisy counts.

    Your rows stay here; the file with the counts may go to whoever merges (`hedgerow merge`). It is a forest by itself: look at it with
    `hedgerow show` before you send it. The plan fixes the ε that your rows are charged, on disk before the table is opened. The owner's
    name is by default that of the file of the key that signs (office-a.key: office-a), else of the output; of rows at a service it is the
    service's, which signs its counts.

    Example:

        hedgerow count plan.json office-a.csv -o office-a.json --disjoint --budget budget-a.json
    """
    place = Place(data, table, query, engine, master, purpose, csv)
    check_output(output, [plan, *place.files, budget, sign], force)
    from hedgerow.accounting.paid_counts import Counts
    from hedgerow.cli.budget_source import TrackedBudgetFile, open_budget, paid_query, print_remaining
    from hedgerow.release.public_plan import PublicPlan
    from hedgerow.release.release import Release
    from hedgerow.training.counting import count as count_table

    source, cost = open_trees(plan, epsilon)
    key = private_key(sign)
    named = place.service.public.owner if place.remote else checked_owner(owner, stem(output) if sign is None else sign.stem)
    if place.remote:
        _check_service_options(source, owner, batch, disjoint)
        batch = place.service.public.name
    if isinstance(source, Release):
        warn_of_alike(source, named, key)
    request_budget = open_budget(budget, cost, getattr(source, "delta", 0), place.remote)  # in the trees of a forest pure ε
    if not place.remote and not again:  # the name of an output says nothing about whose rows they are
        Counts(source, named, batch).check_unpaid(request_budget, owner_given=owner is not None or sign is not None)
        if isinstance(source, Release) and isinstance(request_budget, TrackedBudgetFile):
            request_budget.check_not_within(place.named, source)
    with paid_query(request_budget, unfinished="No counts were saved."):
        if place.remote and isinstance(source, PublicPlan):
            release = place.service.counts(source, epsilon, request_budget, output, again)
            warn_of_few(release)
        else:
            going_on: Any = nullcontext()
            if place.remote:
                going_on = place.service.going_on(output, "count", cost, request_budget, {"forest": source.content_hash})
            with going_on, place.rows() as rows, progress_bar("counting") as progress:
                release = count_table(
                    source,
                    rows,
                    owner=named,
                    batch=batch,
                    disjoint=disjoint,
                    epsilon=epsilon,
                    budget=request_budget,
                    sampler=sampler,
                    n_jobs=threads(jobs),
                    progress=progress,
                    trees_chosen_beforehand=trees_chosen_beforehand,
                    again=again,
                )
        if key is not None:
            release = release.signed(key)
        saved = save_paid(release, output)
        if place.remote and saved == output:
            place.service.saved()
        part = next(part for part in release.certificate.parts if part.counted)
        if isinstance(request_budget, TrackedBudgetFile) and not place.remote:
            request_budget.note_counts(place.named, release, part)
    summarise(release, saved)
    file = "output" if sign is None else "key's file"
    by_default = f" (the name of the {file}; --owner gives another)" if owner is None else ""
    named_by = " (as the service says)" if place.remote else by_default
    say(f"owner: {part.owner}{named_by}, batch: {part.id}" + (", signed" if key is not None else ""))
    if place.remote:
        place.service.print_signer(release)
    if not disjoint:
        say(
            "persons: not stated to be in this table only, so a merge adds this ε to that of others. If nobody has rows in two "
            "tables, whoever merges can state it: `hedgerow merge --disjoint`."
        )
    elif not place.remote:
        say(
            "persons: you state that nobody in this table is in another one of the plan. Merge these rows once: counted again, they are "
            "the same persons."
        )
    if any(not part.counted and not part.stated_beforehand for part in release.certificate.parts):
        say(
            f"trees: the tables of {plan} stay in the claim with their ε, as their counts may have been looked at before these trees were "
            "taken. If that did not depend on the counts, you can state it: --trees-chosen-beforehand."
        )
    print_remaining(request_budget)
    if place.remote:
        place.service.print_left(request_budget)


def _check_service_options(source: PublicPlan | Release, owner: str | None, batch: str | None, disjoint: bool) -> None:
    """Whose rows they are is the service's to say: under another name the same table could be merged with itself."""
    from hedgerow.errors import PlanError
    from hedgerow.release.public_plan import PublicPlan

    if owner is not None or batch is not None:
        raise PlanError("--owner, --batch: the service says whose rows they are, and names them as the dataset. Leave them out.")
    if disjoint and isinstance(source, PublicPlan):
        raise PlanError(
            "--disjoint: a service states it of nobody's rows. Leave it out, and state it when you merge: `hedgerow merge --disjoint`."
        )


def open_trees(path: Path, epsilon: str | None) -> tuple[PublicPlan | Release, Fraction]:
    """A plan or a forest, and the ε that a count costs; refused before anything is charged."""
    from hedgerow.cli.keys import open_document
    from hedgerow.errors import PlanError
    from hedgerow.release.merging_checks import check_random_trees
    from hedgerow.release.public_plan import PublicPlan
    from hedgerow.release.release import Release
    from hedgerow.training.counting import cost_of

    found = open_document(path)
    if not isinstance(found, (PublicPlan, Release)):
        raise PlanError(f"{path} is a rule set, with exact counts; expected a plan or a forest.")
    if not isinstance(found, PublicPlan):
        check_random_trees(found, str(path))
    return found, cost_of(found, epsilon)


def private_key(path: Path | None) -> Any:
    from hedgerow.release.signing import load_private_key

    return None if path is None else load_private_key(path)
