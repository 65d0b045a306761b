"""`hedgerow together`: one's own rows, counted with those of other owners into one release; `together init` makes a key and certificate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from hedgerow.cli.console import progress_bar, say
from hedgerow.cli.fit import save_paid, summarise
from hedgerow.cli.options import Force, Jobs, threads
from hedgerow.cli.outputs import check_output
from hedgerow.cli.places import PRIVATE_ROWS, CSVOfRows, EngineName, EngineOption, MasterOption, Place, QueryOption, TableOption
from hedgerow.cli.tables import warn_of_few
from hedgerow.errors import PlanError

if TYPE_CHECKING:
    from hedgerow.release.public_plan import PublicPlan


class RunByDefault(TyperGroup):
    """`hedgerow together plan.json …` is `hedgerow together run plan.json …`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = not args or args[0] in self.commands or args[0] in ("-h", "--help")
        return super().parse_args(ctx, args if named else ["run", *args])


app = typer.Typer(cls=RunByDefault, no_args_is_help=True)

PartiesFile = Annotated[Path, typer.Option("--parties", help="The file with all owners, the same for each (`together init`).")]


@app.callback()
def together() -> None:
    """Count your own rows together with other owners: one release for all.

    It has the noise of about one owner. Three or more owners each start it on their own machine, with the same plan and the same parties'
    file. They meet, compare, pay, count, and add up by a secure sum: nobody sees another's counts. `hedgerow together run --help` has the
    options.

    Example:

        hedgerow together plan.json my-rows.csv --party 2 --parties parties.toml --disjoint --budget budget.json -o forest.json
    """


@app.command("run")
def run(
    plan: Annotated[Path, typer.Argument(help="The plan that all share (`hedgerow plan --save`).", show_default=False)],
    data: Annotated[list[str], typer.Argument(help=f"{PRIVATE_ROWS} With --local one of them for each owner.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to save the forest.", show_default=False)],
    party: Annotated[int | None, typer.Option("--party", help="Your number in the parties' file, from 1.", show_default=False)] = None,
    parties: PartiesFile = Path("parties.toml"),
    key: Annotated[
        Path | None, typer.Option("--key", help="Your private key.  [default: NAME.key beside the parties' file]", show_default=False)
    ] = None,
    disjoint: Annotated[
        bool,
        typer.Option(
            "--disjoint",
            help="You state: a person with rows here has none in another owner's table, and which table a row is in depends on that row "
            "alone. All owners must state it.",
        ),
    ] = False,
    trust_owners: Annotated[
        bool,
        typer.Option(
            "--trust-owners",
            help="Where tolerated = 0 in the parties' file, you state: no owner keeps its own share of the noise. One who did would see "
            "your rows at a larger ε, which is said before anything is paid. With --local it makes tolerated 0.",
        ),
    ] = False,
    budget: Annotated[
        list[Path] | None,
        typer.Option("--budget", help="The budget file that pays; with --local one for each owner, or none.", show_default=False),
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", help="The plan's ε once more, where it is above 10: do you mean it?", show_default=False)
    ] = None,
    local: Annotated[
        int | None,
        typer.Option("--local", help="Try it: so many owners as processes on this machine, each with a file.", show_default=False),
    ] = None,
    wait: Annotated[float, typer.Option("--wait", min=0.1, help="Seconds to wait for the others to come.")] = 600,
    timeout: Annotated[float, typer.Option("--timeout", min=0.1, help="Seconds that the others may take to count.")] = 600,
    jobs: Jobs = None,
    table: TableOption = None,
    query: QueryOption = None,
    engine: EngineOption = EngineName.duckdb,
    master: MasterOption = None,
    csv: CSVOfRows = None,
    again: Annotated[
        bool,
        typer.Option(
            "--again", help="Pay anew for rows that the budget file has paid for in these trees, as after a run that released nothing."
        ),
    ] = False,
    force: Force = False,
) -> None:
    """Count your own rows in the trees of a plan together with other owners, and save the release of all.

    Before anything is charged all compare the plan, its ε, the owners and their certificates. Then each pays from its own budget, counts,
    adds its share of the noise, and takes part in the secure sum. If somebody leaves, nobody gets a release; what was charged stays
    charged, and a new run pays again: --again. A budget file pays once for rows in these trees.

    Example:

        hedgerow together plan.json my-rows.csv --party 2 --parties parties.toml --disjoint --budget budget.json -o forest.json
        hedgerow together plan.json a.csv b.csv c.csv --local 3 --disjoint -o forest.json
    """
    found = _plan(plan)
    if local is not None:
        if party is not None or key is not None:
            raise PlanError("--local: all owners are processes here, with new keys. Leave --party and --key out.")
        _local(found, plan, data, output, local, budget or [], disjoint, trust_owners, epsilon, wait, timeout, csv, again, force)
        return
    if party is None or len(data) != 1 or len(budget or []) > 1:
        raise PlanError("together: expected --party NUMBER, one table and at most one --budget; or --local with a table for each owner.")
    place = Place(data[0], table, query, engine, master, None, csv)
    if place.remote:
        raise PlanError("together: expected rows of your own. Owners' services count together by `hedgerow federate --together`.")
    paying = budget[0] if budget else None
    check_output(output, [plan, parties, key, paying, *place.files], force)
    from hedgerow.cli.budget_source import TrackedBudgetFile, open_budget, paid_query, print_remaining
    from hedgerow.multiparty.parties import Parties
    from hedgerow.multiparty.run import guarantee_words
    from hedgerow.multiparty.run import together as count_together
    from hedgerow.training.counting import cost_of

    owners, cost = Parties.load(parties), cost_of(found, epsilon)
    own = owners.party(party)
    request_budget = open_budget(paying, cost, found.delta)
    say(f"to be paid: {guarantee_words(found, owners)}")
    say(f"{own.name}, party {party} of {len(owners.owners)}: waiting for the others, at most {wait:g} seconds")
    with paid_query(request_budget, unfinished="Nothing was released."):
        with place.rows() as rows, progress_bar("counting") as progress:
            release = count_together(
                found,
                rows,
                parties=owners,
                party=party,
                key=key if key is not None else parties.parent / f"{own.name}.key",
                disjoint=disjoint,
                trust_owners=trust_owners,
                epsilon=epsilon,
                budget=request_budget,
                wait=wait,
                timeout=timeout,
                n_jobs=threads(jobs),
                progress=progress,
                again=again,
            )
        saved = save_paid(release, output)
        if isinstance(request_budget, TrackedBudgetFile):
            request_budget.note_counts(place.named, release, release.certificate.parts[0])
    summarise(release, saved)
    _say_assumption(release)
    print_remaining(request_budget)


@app.command("init")
def init(
    name: Annotated[str, typer.Argument(help="Your name, which the others and all readers of the release see.", show_default=False)],
    address: Annotated[str, typer.Option("--address", help="Where the others reach you: host:port.", show_default=False)],
    parties: PartiesFile = Path("parties.toml"),
    key: Annotated[
        Path | None,
        typer.Option("--key", help="The new private key's file.  [default: NAME.key beside the parties' file]", show_default=False),
    ] = None,
) -> None:
    """Make your key and certificate, and add yourself to the parties' file, which is begun if there is none.

    Each owner does this once on its own machine and hands the file on; in the end all have the same file. The key stays with you. Compare
    the fingerprints over the telephone: a certificate that was exchanged on the way would let somebody else take part in its place.

    Example:

        hedgerow together init office-a --address a.example:7701 --parties parties.toml
    """
    from hedgerow.multiparty.certificates import make_certificate
    from hedgerow.multiparty.parties import add_party, check_new, checked_party

    path = key if key is not None else parties.parent / f"{name}.key"
    check_new(parties, name, address)
    if path.exists():
        raise PlanError(f"key {str(path)!r} exists already and is never replaced. Give another file for the new key: --key.")
    party = checked_party(name, address, make_certificate(path, name))
    number = add_party(parties, party)
    say(f"wrote {path}: your private key. Keep it to yourself.")
    say(f"wrote {parties}: {name} is party {number}, reached at {address}. Its certificate has the fingerprint")
    say(f"  {party.fingerprint}")


def _plan(path: Path) -> PublicPlan:
    from hedgerow.cli.keys import open_document
    from hedgerow.release.public_plan import PublicPlan

    found = open_document(path)
    if not isinstance(found, PublicPlan):
        raise PlanError(
            f"{path} is no plan; expected one whose trees and ε are public: `hedgerow plan --save` with --algorithm hedgerow, rdt or snr. "
            "What grows in steps by looking at rows (dpdf, diffpid3, private-id3, boosted trees) does not work together yet."
        )
    return found


def _local(
    found: PublicPlan,
    plan: Path,
    data: list[str],
    output: Path,
    owners: int,
    budgets: list[Path],
    disjoint: bool,
    trust_owners: bool,
    epsilon: str | None,
    wait: float,
    timeout: float,
    csv: str | None,
    again: bool,
    force: bool,
) -> None:
    from hedgerow.cli.budget_source import open_budget
    from hedgerow.cli.together_local import run_local
    from hedgerow.multiparty.secure_sum import mpyc
    from hedgerow.training.counting import cost_of

    if len(data) != owners or len(budgets) not in (0, owners):
        raise PlanError(
            f"--local {owners}: got {len(data)} tables, {len(budgets)} budgets; expected {owners} tables, and a --budget for each or none."
        )
    check_output(output, [plan, *budgets, *(Path(each) for each in data)], force)
    _check_other_files(data)
    mpyc("thresha")  # what is not installed is said once, before any owner begins
    cost = cost_of(found, epsilon)
    if not budgets:
        open_budget(None, cost, found.delta)  # warns
    said = {"--disjoint": disjoint, "--trust-owners": trust_owners, "--again": again}
    stated = [name for name, given in said.items() if given]
    more = [*stated, *(["--epsilon", epsilon] if epsilon else []), *(["--csv", csv] if csv else [])]
    tolerated = 0 if trust_owners else 1
    release = run_local(plan, data, budgets, tolerated, [*more, "--wait", str(wait), "--timeout", str(timeout)])
    saved = save_paid(release, output)
    warn_of_few(release)  # what the owners' processes say of it is not shown
    summarise(release, saved)
    _say_assumption(release)


def _check_other_files(data: list[str]) -> None:
    """No file is the table of two owners: its rows would count twice."""
    from hedgerow.engines.files import files_of

    known: dict[Path, str] = {}
    for each in data:
        for file in files_of(each):
            if file in known:
                raise PlanError(
                    f"--local: {each!r} is given twice ({str(file)!r}), and its rows would count twice. Nothing was spent. Give each "
                    "owner's own file."
                )
        known |= dict.fromkeys(files_of(each), each)


def _say_assumption(release: Any) -> None:
    say(f"assumed: {release.certificate.parts[0].together.assumption}")
