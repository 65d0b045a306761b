"""`together`: count one's own rows in the trees of a plan with other owners, for the release that one curator of all would make."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from hedgerow.accounting.meter import Budget
from hedgerow.accounting.paid_counts import Counts
from hedgerow.engines.engine import Progress
from hedgerow.engines.remote import RemoteSource
from hedgerow.errors import HedgerowWarning, PlanError
from hedgerow.formatting import loss
from hedgerow.multiparty.agreement import agree
from hedgerow.multiparty.meeting import Meeting
from hedgerow.multiparty.parties import Parties
from hedgerow.multiparty.secure_sum import mpyc
from hedgerow.parallel import threads_of
from hedgerow.release.parts import TableName, Together
from hedgerow.release.public_plan import PublicPlan
from hedgerow.release.release import Release
from hedgerow.training.counting import cost_of, count_rows
from hedgerow.training.rows import open_rows
from hedgerow.training.shared_plans import recipe_for

WAIT = 600.0  # seconds


def together(
    plan: PublicPlan,
    X: Any,
    y: Any = None,
    *,
    parties: Parties | str | Path,
    party: int,
    key: str | Path | None = None,
    disjoint: bool = False,
    trust_owners: bool = False,
    epsilon: Any = None,
    budget: Budget | None = None,
    wait: float = WAIT,
    timeout: float = WAIT,
    request: str = "",
    n_jobs: int | None = None,
    progress: Progress | None = None,
    again: bool = False,
) -> Release:
    """The release of all owners' rows with the noise of one owner; each of them calls this, and each gets the same.

    plan:     of `estimator.public_plan()` or `hedgerow plan --save`, the same for all. Its ε is what every owner pays
    parties:  the owners, or the file `parties.toml` with them; party is your number there, and key your private key (by default the file
              NAME.key beside that file)
    disjoint: you state that a person with rows here has none in another owner's table. All must state it
    trust_owners: where the parties' file has tolerated = 0, you state that no owner keeps its own share of the noise: one who did would
              see your rows at a larger ε, which the error says, and the certificate
    wait:     seconds until owners who have not come are absent;  timeout: seconds that the others may take to count
    request:  a name of this run that all must give alike, where several may be under way (an analyst's request to services)
    again:    pay anew for rows that the budget has paid for in these trees, as after a run that released nothing

    Before anything is charged all compare plan, ε and certificates. Then each pays from its own budget, counts its rows, adds its share of
    the noise, and a secure sum adds up. If somebody leaves in between, nobody gets anything and what was charged stays charged.
    """
    if isinstance(plan, Release) or not isinstance(plan, PublicPlan):
        raise PlanError(
            f"together: got {'a forest' if isinstance(plan, Release) else type(plan).__name__}; expected a plan, whose trees and ε are "
            "public (`hedgerow plan --save` with --algorithm hedgerow, rdt or snr). Growing in steps and choices do not work yet."
        )
    if not disjoint:
        raise PlanError(
            "disjoint: counting together needs every owner's word that a person with rows here has none in another owner's table; "
            "otherwise a person counted by several would lose more than the plan's ε. Nothing was spent. If it is so, add disjoint=True "
            "(--disjoint)."
        )
    if isinstance(X, RemoteSource):
        raise PlanError("together: expected rows of your own, on this machine. Services count together by `hedgerow federate --together`.")
    folder = Path() if isinstance(parties, Parties) else Path(parties).parent
    owners = parties if isinstance(parties, Parties) else Parties.load(parties)
    own = owners.party(party)
    mpyc("thresha")  # said before others wait
    cost_of(plan, epsilon)
    if not trust_owners and not owners.tolerated:
        raise PlanError(
            f"parties: tolerated is 0: {guarantee_words(plan, owners)}. Nothing was spent. If you trust every owner not to "
            "keep its share, state it with trust_owners=True (--trust-owners); otherwise agree on tolerated = 1 in the parties' file."
        )
    entry = None
    if isinstance(budget, Budget) and not request:  # of a request to a service its ledger knows whether it is paid
        counts = Counts(plan, own.name, None, together=True)
        if not again:
            counts.check_unpaid(budget, owner_given=False)
        entry = counts.key(budget, again)
    meeting = Meeting(owners, party, folder / f"{own.name}.key" if key is None else Path(key), wait, timeout)
    kept: list[Release] = []
    try:
        rows = open_rows(recipe_for(plan), X, y, schema=plan.schema, n_jobs=threads_of(n_jobs), progress=progress)
        with closing(rows) as engine, ExitStack() as stack:
            return count_rows(
                engine,
                plan,
                TableName(disjoint=True),
                budget=budget,
                key=entry,
                keep=lambda release, _: kept.append(release),
                agree=lambda: agree(stack.enter_context(meeting), plan, disjoint, engine.assumed, request),
            )
    except HedgerowWarning as warning:  # a warning that was made an error comes after the counts are paid for
        if kept:
            warning.release = kept[0]  # type: ignore[attr-defined]
        raise


def guarantee_words(plan: PublicPlan, parties: Parties) -> str:
    """What each owner is to pay, against whom it holds, and what it is against one owner more who knows its share of the noise."""
    stated = Together([each.name for each in parties.owners], parties.tolerated).stating([plan.event], plan.delta)
    at_most = f", and up to {parties.tolerated} of the owners" if parties.tolerated else ""
    return f"{loss(plan.epsilon, plan.delta)} against whoever reads the release{at_most}; {stated.words_beyond}"
