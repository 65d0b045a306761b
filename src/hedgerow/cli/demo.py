"""`hedgerow demo`: the typical sequence on synthetic patients, with the commands that a user would type."""

from __future__ import annotations

import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow.accounting.meaning import TOTAL_DELTA
from hedgerow.cli import budget as budget_commands
from hedgerow.cli import schema as schema_commands
from hedgerow.cli.console import guarantee, say
from hedgerow.cli.evaluate import show_score
from hedgerow.cli.fit import fit
from hedgerow.cli.outputs import check_output
from hedgerow.cli.plan import plan
from hedgerow.cli.predict import predict
from hedgerow.cli.show import show
from hedgerow.errors import BudgetError, PlanError

if TYPE_CHECKING:
    from hedgerow.evaluation.private import PrivateScore

TOTAL, FOR_THE_FOREST, FOR_THE_SCORE, DELTA = "2", "1", "0.1", "1e-6"  # DELTA: of the forest; a budget has TOTAL_DELTA
_TEST_SHARE = 4  # one test row for so many training rows


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="The report.")] = Path("hedgerow-demo.html"),
    rows: Annotated[int, typer.Option("--rows", min=100, help="Synthetic patients to train on.")] = 20_000,
    keep: Annotated[
        Path | None,
        typer.Option("--keep", help="A folder for all files.  [default: a temporary one]", show_default=False),
    ] = None,
    tables: Annotated[
        Path | None,
        typer.Option("--tables", help="Only write example tables of several owners to this folder.", show_default=False),
    ] = None,
) -> None:
    """Go through all steps on synthetic patients that come with the package, and write a report with pictures.

    Everything is done as you would do it with your own table: schema, budget, plan, fit, private score, effects,
    predictions.

    Example:

        hedgerow demo -o hedgerow-demo.html --keep demo-files

        hedgerow demo --tables offices
    """
    if tables is not None:
        write_tables(tables, rows)
        return
    check_output(output, [])
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        for name in ("budget.json", "forest.json"):
            check_output(keep / name, [], force=False)
    with tempfile.TemporaryDirectory(prefix="hedgerow-demo-") if keep is None else nullcontext(str(keep)) as folder:
        _steps(Path(folder), rows, output)
    if keep is not None:
        say(f"all files are in {keep}")


REGISTRY = ("age", "sex", "region", "smoker", "exercise", "alcohol", "family-history")  # columns that another owner holds


def write_tables(folder: Path, rows: int) -> None:
    """Three offices with a schema in common, a later batch, test rows; and a clinic and a registry with columns of their own."""
    from hedgerow import datasets

    folder.mkdir(parents=True, exist_ok=True)
    halves = ("registry", "clinic")
    names = {"office-a": 11, "office-b": 12, "office-c": 13, "new-batch": 14, "test": 15}
    for name in (*(f"{name}.csv" for name in (*names, *halves)), "schema.toml", *(f"{name}.toml" for name in halves)):
        if (folder / name).exists():
            raise PlanError(f"output {str(folder / name)!r} exists already. Choose an empty folder.")
    made = {name: datasets.patients(max(rows // 2, 1), seed) for name, seed in names.items()}
    for name, table in made.items():
        table.to_csv(folder / f"{name}.csv")
    whole = made["office-a"]
    whole.schema.save(folder / "schema.toml")
    others = [name for name in whole.schema.names if name not in REGISTRY]
    for name, table in zip(halves, (whole.without(others), whole.without(REGISTRY)), strict=True):
        table.schema.save(folder / f"{name}.toml")
        table.to_csv(folder / f"{name}.csv")
    say(f"wrote tables of nobody to {folder}: office-a, office-b and office-c.csv with schema.toml, new-batch.csv and test.csv;")
    say("registry.csv and clinic.csv, the columns of office-a in two halves, each with a schema (.toml)")


def _steps(folder: Path, rows: int, output: Path) -> None:
    from hedgerow import datasets
    from hedgerow.accounting.budget_file import BudgetFile
    from hedgerow.plots.report import html_report
    from hedgerow.release.release import Release
    from hedgerow.training.planning import plan as plan_of
    from hedgerow.training.recipe import Recipe

    train, test = folder / "patients.csv", folder / "test.csv"
    schema, budget, forest = folder / "schema.toml", folder / "budget.json", folder / "forest.json"

    _heading(1, "The table, and the public facts about it")
    patients = datasets.patients(rows, seed=1)
    patients.to_csv(train)
    datasets.patients(max(rows // _TEST_SHARE, 1), seed=2).to_csv(test)
    patients.schema.save(schema)
    say("Records of nobody: one CSV to train on, one to test on. Their schema was written down, not read from them.")
    _command(f"schema check {schema.name}")
    schema_commands.check(schema)

    _heading(2, f"A total ε of {TOTAL} for everything that will ever look at these rows")
    say("δ is a small chance that ε may not hold: it allows Gaussian noise, under which many small looks cost little. A fit takes 1e-6.")
    _command(f"budget init {budget.name} --epsilon {TOTAL} --delta {TOTAL_DELTA}")
    budget_commands.init(budget, TOTAL, delta=TOTAL_DELTA)

    _heading(3, "What would be built, before any row is touched")
    shared = f"--schema {schema.name} --epsilon {FOR_THE_FOREST} --delta {DELTA}"
    _command(f"plan {shared} --rows {rows}")
    plan(schema=schema, epsilon=FOR_THE_FOREST, delta=DELTA, rows=rows)

    _heading(4, "Charge, query, release")
    _command(f"fit {train.name} {shared} --budget {budget.name} -o {forest.name}")
    fit(str(train), output=forest, schema=schema, epsilon=FOR_THE_FOREST, delta=DELTA, budget=budget)

    _heading(5, "How good is it? The test rows are private too, so the score is noisy and charged")
    _command(f"evaluate {forest.name} {test.name} --epsilon {FOR_THE_SCORE} --budget {budget.name}")
    score = _score(forest, test, budget)

    _heading(6, "What it has learnt")
    most = _most_important(forest)
    _command(f"show {forest.name} --attribute {most}")
    show(forest, attribute=[most])

    _heading(7, "Predictions")
    predictions = folder / "predictions.csv"
    _command(f"predict {forest.name} {test.name} --proba -o {predictions.name}")
    predict(forest, test, predictions, proba=True)
    with predictions.open(encoding="utf-8") as file:
        say("".join(line for line, _ in zip(file, range(4), strict=False)).rstrip())

    _heading(8, "The budget, and a request that it cannot pay")
    _command(f"fit {train.name} {shared} --budget {budget.name} -o second.json --again")
    try:
        fit(str(train), output=folder / "second.json", schema=schema, epsilon=FOR_THE_FOREST, delta=DELTA, budget=budget, again=True)
    except BudgetError as refused:
        say(f"error: {refused}", style="red")  # expected here, so it stands in line with the rest
    _command(f"budget show {budget.name}")
    budget_commands.show(str(budget))

    release, declared = Release.load(forest), patients.schema
    planned = plan_of(Recipe.of("hedgerow", FOR_THE_FOREST, delta=DELTA), declared, rows)
    page = html_report(release, score=score, plan_lines=planned.lines(), budget=BudgetFile(budget))
    output.write_text(page, encoding="utf-8")
    say()
    say(f"report with pictures: {output.resolve()}", style="bold")


def _most_important(forest: Path) -> str:
    from hedgerow.release.release import Release

    importances = Release.load(forest).feature_importances()
    return max(importances, key=lambda name: importances[name])


def _score(forest: Path, test: Path, budget: Path) -> PrivateScore:
    """As `hedgerow evaluate`; the report needs the score itself."""
    from hedgerow.cli.budget_source import open_budget, paid_query, print_remaining
    from hedgerow.evaluation.private import private_score
    from hedgerow.release.release import Release

    request_budget = open_budget(budget, FOR_THE_SCORE)
    with paid_query(request_budget, unfinished="There is no score."):
        score = private_score(Release.load(forest), test, epsilon=FOR_THE_SCORE, budget=request_budget)
    show_score(score)
    guarantee(score.certificate.sentence(), holds=True)
    print_remaining(request_budget)
    return score


def _heading(number: int, text: str) -> None:
    say()
    say(f"{number}. {text}", style="bold underline")


def _command(text: str) -> None:
    say(f"$ hedgerow {text}", style="dim")
