"""`hedgerow audit`: attack the guarantee of an algorithm."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli.audit_replay import FIRST_AUDITED, NEIGHBOURS, Audited, EngineName, check_replay, replay_requests
from hedgerow.cli.console import progress_bar, say, table, warn
from hedgerow.cli.options import FIRST, Algorithm, Delta, Depth, ForestOptions, Trees
from hedgerow.cli.outputs import check_output
from hedgerow.errors import PlanError
from hedgerow.training.algorithms import PRIVATE

if TYPE_CHECKING:
    from hedgerow.audit.algorithms import Trainer
    from hedgerow.audit.attack import Audit
    from hedgerow.audit.neighbours import Table
    from hedgerow.schema.schema import Schema

VIOLATED = 1
RUNS, SHADOWS, TARGETS = 5000, 400, 5


def audit(
    algorithm: Annotated[
        Audited,
        typer.Option("--algorithm", help=f"Whose guarantee: {', '.join(PRIVATE)}; with --replay also all."),
    ] = FIRST_AUDITED,
    epsilon: Annotated[
        str | None,
        typer.Option("--epsilon", help="The privacy loss that it claims, such as 1, 0.5 or 1/3.  [--replay: 1]", show_default=False),
    ] = None,
    delta: Delta = None,
    runs: Annotated[
        int | None,
        typer.Option(
            "--runs",
            help=f"Trainings on each table; --replay: random neighbours.  [default: {RUNS}; with --membership {SHADOWS}, with --replay "
            f"{NEIGHBOURS}]",
            show_default=False,
        ),
    ] = None,
    pairs: Annotated[
        list[str] | None,
        typer.Option("--pairs", help="A pair of tables, as outlier or purity. May be given again.  [default: all]", show_default=False),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option("--schema", help="A reviewed schema (TOML) that the tables follow.  [default: a small one]", show_default=False),
    ] = None,
    trees: Trees = None,
    depth: Depth = None,
    replay: Annotated[
        bool,
        typer.Option(
            "--replay",
            help="No statistics: train on both tables with the same answers, and compare every query, what its exact answer could tell "
            "with what was charged, and all that comes out.",
        ),
    ] = False,
    engine: Annotated[
        EngineName | None,
        typer.Option("--engine", help="--replay: rows in memory, csv, parquet or duckdb.  [default: memory]", show_default=False),
    ] = None,
    together: Annotated[
        bool,
        typer.Option(
            "--together",
            help="Owners who count together: is one's row safe from the others, with all that they see of the secure sum?",
        ),
    ] = False,
    membership: Annotated[
        Path | None,
        typer.Option(
            "--membership",
            help="CSV or Parquet file with rows that MAY BE LOOKED AT: how well does an attacker tell whether one of them was used? The "
            "numbers are exact queries of these rows, and must not be published if the rows are sensitive.",
            show_default=False,
        ),
    ] = None,
    targets: Annotated[
        int | None,
        typer.Option("--targets", help=f"--membership: rows to attack, the rarest first.  [default: {TARGETS}]", show_default=False),
    ] = None,
    save: Annotated[Path | None, typer.Option("--save", help="Save the evidence (JSON).", show_default=False)] = None,
    picture: Annotated[Path | None, typer.Option("--picture", help="Save a picture: a name in .svg.", show_default=False)] = None,
    workers: Annotated[int | None, typer.Option("--workers", help="Processes.  [default: all processors]", show_default=False)] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing output files.")] = False,
) -> None:
    """Attack the guarantee: train many times on two tables that differ in one row, and look for what gives the row away.

    If ε holds, nothing in a release is more than e^ε times as likely with the row as without it. The audit looks for the statement
    about a release that differs most, on one half of the runs, and measures it on the other half. The result is a lower bound on the
    true ε. Above the claimed ε, the claim is wrong: the exit code is 1. Below it, nothing was found, which is no proof.

    The tables are made up, so this costs no budget. With --membership a table of yours is attacked instead, one row at a time, and
    the report says how much better than by guessing an attacker can tell whether the row was used, and how much ε allows. Its numbers
    are exact queries of those rows: do not publish them if the rows are sensitive.

    Example:

        hedgerow audit --algorithm dpdf --epsilon 1 --save evidence.json --picture audit.svg

        hedgerow audit --algorithm rdt --epsilon 0.5 --pairs outlier --pairs purity --runs 20000

        hedgerow audit --membership table.csv --schema schema.toml --epsilon 1

        hedgerow audit --replay --algorithm all

        hedgerow audit --together --epsilon 1
    """
    _check_numbers(membership, schema, pairs, targets, runs, workers, replay)
    settings = {name: given for name, given in (("n_estimators", trees), ("max_depth", depth), ("delta", delta)) if given is not None}
    check_replay(replay, algorithm, engine, settings, {"--membership": membership, "--picture": picture, "--workers": workers})
    for output in (save, picture):
        if output is not None:
            check_output(output, [schema, membership, picture if output is save else save], force)
            if together:
                check_output(_second(output), [], force)
    if picture is not None and picture.suffix.lower() != ".svg":
        raise PlanError(f"--picture: got {picture.name!r}; expected a name that ends in .svg.")
    from hedgerow.audit.neighbours import SMALL, Table
    from hedgerow.schema.schema import Schema

    if together:
        others = {"--replay": replay, "--membership": membership, "--schema": schema, "--pairs": pairs, "--delta": delta, "--trees": trees,
                  "--depth": depth, "--workers": workers}  # fmt: skip
        if _audit_together(epsilon, runs, [option for option, given in others.items() if given], save, picture):
            raise typer.Exit(VIOLATED)
        return
    declared = SMALL if schema is None else Schema.load(schema)
    epsilon = epsilon or ("1" if replay else None)
    name = FIRST if algorithm is Audited.all else Algorithm(algorithm)
    train = trainer_of(name, epsilon, delta, trees, depth, declared)
    if replay:
        claimed(train, Table.of([], declared))
        own, many, where = None if schema is None else declared, NEIGHBOURS if runs is None else runs, engine or EngineName.memory
        violated = replay_requests(algorithm, train.epsilon, settings, pairs, own, many, where, save)
    elif membership is None:
        violated = _audit_pairs(train, name, pairs, declared, runs or RUNS, save, picture, workers)
    else:
        violated = _audit_rows(train, name, membership, declared, targets or TARGETS, runs or SHADOWS, save, picture, workers)
    if violated:
        raise typer.Exit(VIOLATED)


def _check_numbers(
    membership: Path | None, schema: Path | None, pairs: list[str] | None, targets: int | None, runs: int | None, workers: int | None,
    replay: bool,
) -> None:  # fmt: skip
    if membership is not None and schema is None:
        raise PlanError("--membership: --schema is missing; expected the reviewed schema of that table.")
    if membership is not None and pairs:
        raise PlanError("--pairs: with --membership the rows of that table are attacked, not made-up pairs. Leave one of the two out.")
    if membership is None and targets is not None:
        raise PlanError("--targets: only --membership attacks rows of a table. Leave it out, or add --membership.")
    least = 0 if replay else 100 if membership is None else 40
    for option, given, lowest in (("--runs", runs, least), ("--workers", workers, 1), ("--targets", targets, 1)):
        if given is not None and given < lowest:
            raise PlanError(f"{option}: got {given}; expected a whole number of at least {lowest}.")


def trainer_of(
    algorithm: Algorithm, epsilon: str | None, delta: str | None, trees: int | None, depth: int | None, schema: Schema
) -> Trainer:
    """The training function; an option that the algorithm does not have is refused."""
    from hedgerow.audit.algorithms import ALGORITHMS, Trainer

    if algorithm.value not in ALGORITHMS:
        raise PlanError(f"--algorithm: {algorithm} claims no ε, so there is nothing to attack; expected one of {', '.join(ALGORITHMS)}.")
    if epsilon is None:
        raise PlanError("--epsilon: missing; expected the privacy loss that is claimed, such as 1.")
    given = {"n_estimators": trees, "max_depth": depth, "delta": delta}
    ForestOptions(algorithm, epsilon, None, **given).recipe()
    name, settings = ALGORITHMS[algorithm.value]
    return Trainer(name, epsilon, settings | {setting: value for setting, value in given.items() if value is not None})


def claimed(train: Trainer, trial: Table) -> tuple[float, float]:
    """(ε, δ) as the certificate of one release states it. What cannot be trained is refused here: a run that fails is an output too,
    and an audit of nothing but failures would find nothing."""
    certificate = train(trial).certificate
    if certificate.epsilon is None:
        raise PlanError("audit: the release claims no ε, so there is nothing to attack. Review the schema first, if it is a draft.")
    return float(Fraction(certificate.epsilon)), float(Fraction(certificate.delta or 0))


def _audit_pairs(
    train: Trainer,
    algorithm: Algorithm,
    names: list[str] | None,
    schema: Schema,
    runs: int,
    save: Path | None,
    picture: Path | None,
    workers: int | None,
) -> bool:
    from hedgerow.audit.attack import audit as attack
    from hedgerow.audit.neighbours import pairs_for

    pairs = pairs_for(schema, names or None)
    epsilon, claimed_delta = claimed(train, pairs[0].with_row)
    with progress_bar("attacking") as progress:
        found = attack(
            train, pairs, epsilon=epsilon, delta=claimed_delta, runs=runs, what=_title(train, algorithm), workers=workers, progress=progress
        )
    return _told(found, save, picture)


def _audit_together(epsilon: str | None, runs: int | None, others: list[str], save: Path | None, picture: Path | None) -> bool:
    from hedgerow.accounting.loss import exact_epsilon
    from hedgerow.audit.owners import CASES, KNOWS, READER, audit_owners
    from hedgerow.multiparty.secure_sum import mpyc

    if others:
        raise PlanError(f"{others[0]}: --together attacks counts of made-up tables, at pure ε. Leave one of the two out.")
    if epsilon is None:
        raise PlanError("--epsilon: missing; expected the privacy loss that each owner pays, such as 1.")
    exact_epsilon(epsilon)
    mpyc("thresha")  # said before it begins
    with progress_bar("attacking") as progress:
        found = _told(audit_owners([*CASES, READER], epsilon, runs or RUNS, progress), save, picture)
    say("tolerated = 0, and one owner knows its own share of the noise: what is claimed against it is more, and stands in the certificate")
    with progress_bar("attacking") as progress:
        second = [None if path is None else _second(path) for path in (save, picture)]
        return _told(audit_owners([KNOWS], epsilon, runs or RUNS, progress), *second) or found


def _second(path: Path) -> Path:
    return path.with_stem(f"{path.stem}-knows-its-share")


def _told(found: Audit, save: Path | None, picture: Path | None) -> bool:
    from hedgerow.audit import evidence
    from hedgerow.audit.picture import audit_svg

    rows = [evidence.row_of(finding, found.epsilon) for finding in found.findings]
    title = f"{found.what}: {found.runs:,} runs on each table, half to find an event, half to measure it"
    table(title, evidence.heads(), rows, evidence.NUMBERS)
    say(evidence.sentence(found, "PROOF.md"), style="bold red" if found.violated else "bold green")
    if save is not None:
        evidence.save(found, save)
        say(f"wrote {save}: the evidence")
    _draw(picture, lambda: audit_svg(found))
    return found.violated


def _audit_rows(
    train: Trainer,
    algorithm: Algorithm,
    data: Path,
    schema: Schema,
    targets: int,
    runs: int,
    save: Path | None,
    picture: Path | None,
    workers: int | None,
) -> bool:
    from hedgerow.audit.evidence import as_json
    from hedgerow.audit.membership import check_rows_are_protected, membership
    from hedgerow.audit.membership_report import HEADS, NOT_TO_PUBLISH, NUMBERS, membership_svg, rows_of, sentences
    from hedgerow.audit.neighbours import Table
    from hedgerow.engines.files import TableFile
    from hedgerow.release.files import write_document

    check_rows_are_protected(schema)
    names = [*schema.names, schema.target.name]
    columns = TableFile(data, names, dialect=schema.csv).text_columns(names)
    target = columns.pop(schema.target.name)
    rows = Table(columns, target, schema)
    if not len(rows):
        raise PlanError(f"--membership: {data} has no rows; expected a table with rows to attack.")
    warn(f"--membership: the rows of {data.name} are taken as rows that may be looked at; {NOT_TO_PUBLISH}.")
    epsilon, claimed_delta = claimed(train, rows)
    with progress_bar("training shadow models") as progress:
        found = membership(
            train, rows, epsilon=epsilon, delta=claimed_delta, targets=targets, runs=runs, what=_title(train, algorithm), workers=workers,
            progress=progress,
        )  # fmt: skip
    table(f"{found.what}: {runs:,} shadow models with each row, as many without", HEADS, rows_of(found), NUMBERS)
    for words in sentences(found):
        say(words, style="bold red" if words.startswith("VIOLATED") else None)
    if save is not None:
        write_document(save, as_json(found, "hedgerow-membership-1"), "evidence")
        say(f"wrote {save}: the evidence")
    _draw(picture, lambda: membership_svg(found))
    return found.violated


def _title(train: Trainer, algorithm: Algorithm) -> str:
    return f"{algorithm} at ε = {train.epsilon}"


def _draw(picture: Path | None, draw: Any) -> None:
    if picture is not None:
        picture.write_text(draw(), encoding="utf-8")
        say(f"wrote {picture}")
