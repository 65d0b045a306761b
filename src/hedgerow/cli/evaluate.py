"""`hedgerow evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow.cli.console import guarantee, say, table, warn
from hedgerow.cli.options import BudgetPath, Jobs, threads

if TYPE_CHECKING:
    from hedgerow.scoring import PrivateScore


def evaluate(
    forest: Annotated[Path, typer.Argument(help="A saved forest.", show_default=False)],
    data: Annotated[Path, typer.Argument(help="CSV or Parquet file with private test rows.", show_default=False)],
    epsilon: Annotated[str, typer.Option("--epsilon", help="The exact privacy loss, such as 0.1.", show_default=False)],
    budget: BudgetPath = None,
    jobs: Jobs = None,
) -> None:
    """Measure a forest on private test rows: a noisy confusion matrix and the accuracy, each with its error.

    An exact test score would leak, so this one is noisy and charged like any other look. Use rows that were not used
    for training. The ± of the accuracy is one standard error: noise and the chance of the draw of test rows together.

    Example:

        hedgerow evaluate forest.json test.csv --epsilon 0.1 --budget budget.json
    """
    from hedgerow.cli.purse import open_purse, paid_look, say_what_is_left
    from hedgerow.release import Release
    from hedgerow.scoring import private_score

    release = Release.load(forest)
    n_jobs = threads(jobs)
    purse = open_purse(budget, epsilon)
    with paid_look(purse, unfinished="There is no score."):
        score = private_score(release, data, epsilon=epsilon, budget=purse, n_jobs=n_jobs)
    show_score(score)
    guarantee(score.certificate.sentence(), score.certificate.guarantee == "epsilon-DP")
    say_what_is_left(purse)


def show_score(score: PrivateScore) -> None:
    from hedgerow.cli.predict import class_text

    names = [class_text(value) for value in score.classes]
    rows = [[name, *numbers] for name, numbers in zip(names, score.confusion.tolist(), strict=True)]
    heads = ["true class", *(f"predicted {name}" for name in names)]
    title = f"noisy confusion matrix, each number ± {score.noise_sd:.3g}"
    table(title, heads, rows, numbers=range(1, len(names) + 1))
    say(
        f"accuracy: {score.accuracy:.3f} ± {score.accuracy_error:.2g}, on about {score.rows:,.0f} ± {score.rows_error:.2g} rows",
        style="bold",
    )
    label, share = score.majority
    say(f"always answering {class_text(label)} would give about {share:.3f}")
    if score.undeclared > max(8 * score.undeclared_error, 0.05 * score.rows):
        warn(
            f"about {score.undeclared:,} ± {score.undeclared_error:.2g} test rows have no declared class and are not part of "
            "this score. Does the schema declare the classes of this table?"
        )
