"""`hedgerow fit`: everything that can be refused is refused first, then the charge, then the rows."""

from __future__ import annotations

import math
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.accounting.loss import exact_delta, exact_epsilon
from hedgerow.cli import console
from hedgerow.cli.console import complain, guarantee, progress_bar, say, warn
from hedgerow.cli.options import (
    FIRST,
    NOT_PROVEN,
    AlgorithmName,
    AsPublished,
    Bins,
    BudgetPath,
    Confidence,
    Criterion,
    Delta,
    Depth,
    Epsilon,
    Force,
    ForestOptions,
    Jobs,
    MaxLeaves,
    MaxPasses,
    MinLeaf,
    MinRows,
    NoiseRuleName,
    OwnSchema,
    Sampler,
    Seed,
    Sensitivity,
    StoppingRuleName,
    Thresholds,
    Trees,
    Unpruned,
    Vote,
    confidence_of,
    threads,
)
from hedgerow.cli.outputs import check_output
from hedgerow.cli.places import CSVOption, Data, EngineName, EngineOption, MasterOption, Place, PurposeOption, QueryOption, TableOption
from hedgerow.cli.tables import Batch, Owner, checked_owner
from hedgerow.errors import PlanError, ReleaseError

if TYPE_CHECKING:
    from hedgerow.release.certificate import Certificate
    from hedgerow.release.release import Release
    from hedgerow.schema.schema import Schema
    from hedgerow.training.recipe import Recipe


def fit(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to save the forest.", show_default=False)],
    schema: OwnSchema = None,
    algorithm: AlgorithmName = FIRST,
    epsilon: Epsilon = None,
    delta: Delta = None,
    budget: BudgetPath = None,
    again: Annotated[
        bool, typer.Option("--again", help="Pay anew for a fit that the budget file, or a service, was paid for before.")
    ] = False,
    accept_draft: Annotated[
        bool, typer.Option("--accept-draft", help="Train with unreviewed schema entries; the forest then claims no ε.")
    ] = False,
    trees: Trees = None,
    depth: Depth = None,
    bins: Bins = None,
    thresholds: Thresholds = False,
    noise_rule: NoiseRuleName = None,
    stopping_rule: StoppingRuleName = None,
    min_rows: MinRows = None,
    vote: Vote = None,
    criterion: Criterion = None,
    sensitivity: Sensitivity = None,
    as_published: AsPublished = False,
    max_leaves: MaxLeaves = None,
    max_passes: MaxPasses = None,
    min_leaf: MinLeaf = None,
    confidence: Confidence = None,
    unpruned: Unpruned = False,
    seed: Seed = None,
    jobs: Jobs = None,
    details: Annotated[bool, typer.Option("--details", help="Also list every charge: mechanism, sensitivity, noise.")] = False,
    sampler: Sampler = "hedgerow",
    owner: Owner = None,
    batch: Batch = None,
    table: TableOption = None,
    query: QueryOption = None,
    engine: EngineOption = EngineName.duckdb,
    master: MasterOption = None,
    csv: CSVOption = None,
    purpose: PurposeOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before --sensitivity local or --as-published.")] = False,
    force: Force = False,
) -> None:
    """Train a forest on private rows and save what may be published.

    The budget is charged on disk before the table is opened. If the fit fails or is interrupted after that, the charge
    stays: the rows may have been looked at. What cannot work (a missing column, a budget that is too small, an output
    that cannot be written) is refused before anything is charged.

    Example:

        hedgerow fit data.csv --schema schema.toml --epsilon 1 --budget budget.json -o forest.json

        hedgerow fit data.csv --schema schema.toml --epsilon 1 --delta 1e-6 --budget budget.json -o forest.json

        hedgerow fit 'visits/*.parquet' --schema schema.toml --epsilon 1 --budget budget.json -o forest.json

        hedgerow fit clinic.duckdb --table visits --schema schema.toml --epsilon 1 --budget budget.json -o forest.json

        hedgerow fit visits --engine spark --master spark://host:7077 --schema schema.toml --epsilon 1 --budget budget.json -o forest.json

        hedgerow fit data.csv --schema schema.toml --algorithm dpdf --trees 3 --epsilon 1 --budget budget.json -o forest.json

        hedgerow fit data.csv --schema schema.toml --algorithm local-tree --min-leaf 5 --confidence 0.1 --bins values -o tree.json

        hedgerow fit https://curator.example/datasets/patients --epsilon 1 -o forest.json
    """
    place = Place(data, table, query, engine, master, purpose, csv)
    check_output(output, [*place.files, schema, budget], force)
    options = ForestOptions(
        algorithm,
        epsilon,
        bins,
        delta=delta,
        n_estimators=trees,
        max_depth=depth,
        numeric_splits="thresholds" if thresholds else None,
        noise_rule=noise_rule,
        stopping_rule=stopping_rule,
        min_rows=min_rows,
        vote=vote,
        criterion=criterion,
        sensitivity=sensitivity,
        as_published=as_published or None,
        max_leaves=max_leaves,
        max_passes=max_passes,
        min_leaf=min_leaf,
        confidence=confidence_of(confidence, unpruned),
        random_state=seed,
    )
    declared = place.schema(schema)
    if declared.unreviewed and not accept_draft:
        from hedgerow.errors import SchemaError

        raise SchemaError(
            f"{schema}: the entries {', '.join(declared.unreviewed)} were read from data and are not reviewed. Look "
            f"at them with `hedgerow schema review {schema}`, accept them with --accept there, or add --accept-draft here to train a "
            "forest that claims no ε."
        )
    how: dict[str, Any] = {"schema": declared, "accept_draft": accept_draft, "n_jobs": threads(jobs)}
    named = owner is not None or batch is not None
    if named and not options.known.updates:
        raise PlanError(f"--owner, --batch: no rows can be added to the trees of {algorithm}, so its table needs no name. Leave it out.")
    if not options.private:
        if budget is not None:
            raise PlanError(f"--budget: {algorithm} keeps no ε, so no budget can pay for it. Leave it out.")
        recipe = options.recipe()
        from hedgerow.training.fit import fit as train

        with place.rows(declared) as rows, progress_bar("counting") as progress:
            release = train(recipe, rows, progress=progress, **how)
        warn(f"{algorithm} releases exact counts: this forest has no privacy at all and is as private as the table.")
        release.save(output)
        summarise(release, output)
        return

    from hedgerow.cli.budget_source import TrackedBudgetFile, open_budget, paid_query, print_remaining

    recipe = options.recipe()
    charged: Any = epsilon
    if options.unproven is not None:
        _confirm(options.unproven, yes)
        charged = _charged(recipe, declared)
    from hedgerow.training.fit import fit as train

    if named:
        from hedgerow.release.parts import TableName
        from hedgerow.training.shared_plans import mergeable

        mergeable(recipe).check_shared(recipe, "--batch")
        recipe = mergeable(recipe).first_batch(recipe)
        how["name"] = TableName(batch, checked_owner(owner, ""))
    request_budget = open_budget(budget, charged, exact_delta(delta or 0), place.remote)
    settings = {**recipe.settings, "bins": recipe.bins, "seed": recipe.random_state, "sampler": sampler, "csv": csv}
    price = [str(exact_epsilon(epsilon)), str(exact_delta(delta or 0))]
    public = replace(declared, notes=()).to_toml()
    asked = [str(algorithm), sorted((name, str(value)) for name, value in settings.items()), price, public, owner, batch]
    made_there = place.remote and not named and sampler == "hedgerow" and place.service.makes(options, declared)
    if isinstance(request_budget, TrackedBudgetFile) and not place.remote:
        request_budget.pay_for_fit(place.named, asked, again)
    elif place.remote and not made_there:
        place.service.grow_once(asked, again)
    with paid_query(request_budget, unfinished="No forest was saved."):
        if made_there:
            release = place.service.forest(options, request_budget, output, again)
        else:
            with place.rows(declared) as rows, progress_bar("counting") as progress:
                release = train(recipe, rows, budget=request_budget, sampler=sampler, progress=progress, **how)
        saved = save_paid(release, output)
        if isinstance(request_budget, TrackedBudgetFile) and not place.remote:
            request_budget.note_counts(place.named, release, release.certificate.parts[0])
        if made_there and saved == output:
            place.service.saved()
    summarise(release, saved, events=False)
    if place.remote:
        place.service.print_signer(release)
    sound, worth_a_look = _say_expected(recipe, declared, release, made_there, named)
    print_remaining(request_budget)
    if place.remote:
        place.service.print_left(request_budget)
    if details:
        show_events(release.certificate)
    lead = "next:"
    if worth_a_look and not place.remote:
        say(f"{lead} hedgerow schema check SCHEMA TABLE      (what of the table does not fit; for the owner alone, no ε)")
        lead = "     "
    if not sound:
        return
    say(f"{lead} hedgerow show {saved} --report report.html      (what it says, as a page)")
    say(f"      {_next_score(release, saved, request_budget)}")
    if not details:
        say(f"      hedgerow show {saved} --certificate      (every charge; fit says them with --details)")


CLEAR_SHARE = 0.05  # of the rows: a share of a class with a larger error is not told
MOSTLY = 0.7  # of the rows: above it an accuracy tells little
UNSURE = 0.05  # of the number of rows: so large an error is told
LEAST_FOR_A_SCORE, MOST_FOR_A_SCORE = Fraction(1, 100), Fraction(1)  # ε that is proposed: at most a careful total for a table


def _say_expected(recipe: Recipe, schema: Schema, release: Release, made_there: bool, batch: bool) -> tuple[bool, bool]:
    """What the plan would say for the number of rows that was declared or released with noise: no look at rows, no cost.

    Returns whether the released numbers show nothing wrong, but for rows without a declared class, and whether the table is worth a look.
    """
    from hedgerow.accounting.meaning import sentence
    from hedgerow.inference.coverage import only_labels_missing
    from hedgerow.training.planning import plan
    from hedgerow.training.settling import mismatches_of, oddities_of

    if not release.certificate.private or release.certificate.epsilon is None:
        return True, False
    say(f"what ε means: {sentence(exact_epsilon(release.certificate.epsilon), exact_delta(release.certificate.delta or 0))}")
    wrong, odd = mismatches_of(release, whole=not batch), oddities_of(release, whole=not batch)
    for text in (*wrong, *odd) if made_there else []:  # of what was counted here it was told already
        warn(text)
    rows = release.released.get("rows", schema.rows)
    counted = len(wrong) == 1 and only_labels_missing(release.forest, rows)
    if wrong and not counted:
        say("verdict: none; first put right what is warned of above")
        return False, True
    with suppress(PlanError):  # it is paid for and saved: nothing may fail now
        known, about = _rows_of(release, counted) if counted or "rows" in release.released else (schema.rows, "")
        made = plan(recipe, schema, None if known is None else max(1, round(known)))
        events = tuple(event.as_charged for event in release.certificate.events)  # of the fit, which knew another number of rows
        verdict = replace(made, events=events).verdict
        sound = ", if what is warned of above is as it should be" if odd else ""
        if verdict:
            say(f"verdict{', of the rows that are counted' if counted else ''}{about}{sound}: {verdict}")
    _say_majority(release)
    return True, bool(odd)


def _rows_of(release: Release, counted: bool) -> tuple[float, str]:
    """The number of rows: what the counts hold, or the noisy number that was asked for, whichever is surer; and in words where it is not
    sure. Counts may lack rows that have no declared value, and where the noisy number is larger, it is told, too.
    """
    from hedgerow.accounting.noise import variance_of
    from hedgerow.inference.coverage import all_rows, may_lack_rows

    held, sd = all_rows(release.forest)
    asked = [(float(release.released["rows"]), variance_of(e.noise) ** 0.5) for e in release.certificate.events if e.query == "rows"]
    known, error = min([(held, sd), *([] if counted else asked)], key=lambda found: found[1])
    about = f", for about {known:,.0f} ± {error:,.0f} rows" if error > UNSURE * known else ""
    more = [(n, n_sd) for n, n_sd in asked if known == held and n - held > math.hypot(sd, n_sd) and may_lack_rows(release.forest)]
    if more and not counted:
        ((n, n_sd),) = more
        about = f", for about {known:,.0f} ± {error:,.0f} rows that are counted (of all rows a noisier number is {n:,.0f} ± {n_sd:,.0f})"
    return known, about


def _say_majority(release: Release) -> None:
    """What would be right without any learning, from released counts; nothing where noise hides it."""
    from hedgerow.cli.predict import class_text
    from hedgerow.inference.coverage import class_shares
    from hedgerow.inference.text import share_with_error

    shares, errors = class_shares(release.forest)
    most = int(shares.argmax())
    if errors[most] > CLEAR_SHARE:
        return
    rare = "; of a rare class the AUC says more than the accuracy (`evaluate --auc`)" if shares.max() > MOSTLY else ""
    label, share = release.schema.target.classes[most], share_with_error(float(shares[most]), float(errors[most]))
    say(f"without learning: always answering {class_text(label)} would be right for about {share} of the rows{rare}")


def _next_score(release: Release, saved: Path, budget: Any) -> str:
    """The score to ask for, at the ε that a quarter as many test rows need; where that is too much, what it would tell, which is free.

    From released counts alone: of the rarer of two classes where `_say_majority` advises the AUC.
    """
    from hedgerow.accounting.budget_file import BudgetFile
    from hedgerow.accounting.meaning import FOR_ACCURACY, FOR_AUC
    from hedgerow.formatting import at_most
    from hedgerow.inference.coverage import class_rows, class_shares

    rows = max(1, round(float(class_rows(release.forest)[0].sum()) / 4))
    shares, errors = class_shares(release.forest)
    rare = len(shares) == 2 and shares.max() > MOSTLY and errors.max() <= CLEAR_SHARE
    auc = " --auc" if rare else ""
    for_accuracy = Fraction(FOR_ACCURACY * len(shares), 2 * rows)
    exact = Fraction(FOR_AUC, max(1, round(rows * float(shares.min())))) if rare else for_accuracy
    exact *= release.schema.k  # noise is for all rows of a person
    digit = Fraction(10) ** math.floor(math.log10(exact))
    wanted = max(math.ceil(exact / digit) * digit, LEAST_FOR_A_SCORE)
    most = min(budget.remaining, MOST_FOR_A_SCORE) if isinstance(budget, BudgetFile) else MOST_FOR_A_SCORE
    if wanted > most:
        epsilon = at_most(most or min(wanted, MOST_FOR_A_SCORE))
        sure = "(free: how sure a score of so many test rows would be, before you pay for one)"
        return f"hedgerow evaluate {saved} --plan --rows {rows} --epsilon {epsilon}{auc}      {sure}"
    pays = f" --budget {budget.name}" if isinstance(budget, BudgetFile) else ""
    on = f"(how good it is, on about {rows:,} rows that it was not trained on; fewer need more ε)"
    return f"hedgerow evaluate {saved} TEST --epsilon {at_most(wanted)}{auc}{pays}      {on}"


def on_a_terminal() -> bool:
    return sys.stdin.isatty()


def _charged(recipe: Recipe, schema: Schema) -> Fraction | None:
    """What may be charged, where that is not ε."""
    from hedgerow.training.planning import plan

    return plan(recipe, schema).epsilon


def _confirm(option: str, yes: bool) -> None:
    """No ε can be claimed: that is done only by somebody who knows it."""
    warn(f"{NOT_PROVEN[option]}.")
    if yes:
        return
    if not on_a_terminal():
        raise PlanError(f"{option}: add --yes to train a forest that claims no ε, or leave it out.")
    if not typer.confirm("Train a forest that claims no ε?"):
        raise PlanError(f"{option} was not confirmed. Nothing was charged, no row was read.")


def save_paid(release: Release, output: Path | None) -> Path:
    """Save what was paid for; if the disk has filled up meanwhile (or there is no place), anywhere rather than nowhere."""
    try:
        if output is None:
            raise ReleaseError("what was counted could not be added.")
        release.save(output)
        return output
    except ReleaseError as error:
        complain(error)
        with tempfile.NamedTemporaryFile(prefix="hedgerow-", suffix=".json", delete=False) as file:
            place = Path(file.name)
        release.save(place)
        warn(f"the forest is paid for, so it was saved to {place} instead. Move it to a safe place.")
        return place


def summarise(release: Release, saved: Path, events: bool = True) -> None:
    from hedgerow.inference.boosted_words import forest_in_words
    from hedgerow.inference.vote import ADDITIVE

    built = forest_in_words(len(release.forest.trees), release.additive if release.vote == ADDITIVE else None)
    say(f"saved {saved}: {release.algorithm}, {built}")
    guarantee(release.certificate.sentence(), release.certificate.private)
    if events:
        show_events(release.certificate)


def show_events(certificate: Certificate) -> None:
    """Every charged query of the rows, like ones together."""
    from hedgerow.release.parts import EVENTS_NOTE, RHO_NOTE

    if certificate.events:
        heads = ["query", "mechanism", "times", "ε each", "queries", "sensitivity", "noise scale"]
        gaussian = any(isinstance(e.rho, str) for e in certificate.events)
        heads += ["ρ each"] if gaussian else []
        rows = [
            (
                *(e.query, e.mechanism, times, e.shown[0], e.queries, e.shown_sensitivity, e.shown[2]),
                *([e.shown[1]] if gaussian else []),
            )
            for e, times in Counter(certificate.events).items()
        ]
        console.table("charged", heads, rows, numbers=range(2, len(heads)))
        say(f"{EVENTS_NOTE}{RHO_NOTE if gaussian else ''}", style="dim")
