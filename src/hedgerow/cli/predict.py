"""`hedgerow predict`."""

from __future__ import annotations

import csv as csv_module
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from hedgerow.cli.console import note, say, warn
from hedgerow.cli.options import Jobs, threads
from hedgerow.cli.outputs import check_output
from hedgerow.cli.places import CSVOfRows, csv_rows

if TYPE_CHECKING:
    from hedgerow.release.release import Release

STANDARD_OUTPUT = Path("-")


def predict(
    forest: Annotated[Path, typer.Argument(help="A saved forest.", show_default=False)],
    rows: Annotated[Path, typer.Argument(help="CSV (also .gz, .zst) or Parquet file, a folder or a pattern of them.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A CSV file; - is standard output.  [default: -]", show_default=False)
    ] = None,
    others: Annotated[
        list[Path] | None,
        typer.Option(
            "--with",
            help="Another owner's forest with the same schema: the mean of their probabilities counts. May be given again.",
            show_default=False,
        ),
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Add a column with the probability of each class.")] = False,
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            metavar="SHARE",
            show_default=False,
            help="Take each row for the class of --positive whose probability of it is at least this, as `hedgerow evaluate --auc` says. "
            "Other rows get the most probable of the other classes.",
        ),
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option("--positive", metavar="CLASS", show_default="of two, the last of the schema", help="The class of --threshold."),
    ] = None,
    jobs: Jobs = None,
    csv: CSVOfRows = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output file.")] = False,
) -> None:
    """Predict the class of each row of a table. Costs no ε.

    The answer is a CSV with one line for each row, in their order. The table needs the attributes of the schema, in any
    order; other columns are ignored. With a forest that unites the columns of several owners, some may be missing.
    A prediction tells about the row it is made for: keep it as private as that row. Columns in which more than a tenth of the rows have
    no declared value are named on standard error.

    Owners who have each fitted a forest to rows of their own need not merge anything: --with takes the mean of what their forests say.

    Example:

        hedgerow predict forest.json new-rows.csv --proba -o predictions.csv

        hedgerow predict forest.json new-rows.csv --threshold 0.3 --positive yes -o predictions.csv

        hedgerow predict forest.json new-rows.csv -o - | sort | uniq -c

        hedgerow predict office-a.json new-rows.csv --with office-b.json --with office-c.json -o predictions.csv
    """
    from hedgerow.engines.files import TableFile, files_of
    from hedgerow.inference.coverage import Unknown
    from hedgerow.inference.ranking import by_threshold

    output = None if output == STANDARD_OUTPUT else output
    if output is not None:
        check_output(output, [forest, *(others or []), *files_of(rows)], force)
    from hedgerow.release.release import Release, missing_columns_text

    release = Release.load(forest)
    forests = [release, *(_alike(release, forest, other) for other in others or [])]
    taken = _taken_class(release, threshold, positive)
    n_jobs = threads(jobs)
    table = TableFile(csv_rows(rows, csv), list(release.schema.names), optional=bool(release.forest.united))
    if table.absent:
        warn(missing_columns_text(name for name in release.schema.names if name in table.absent))
    names = [class_text(value) for value in release.schema.target.classes]
    head = [f"predicted_{release.schema.target.name}"]
    if proba:
        head += [f"probability_{name}" for name in names]
    with _text_output(output) as file:
        writer = csv_module.writer(file, lineterminator="\n")
        writer.writerow(head)
        written, unknown = 0, Unknown(release.codebook, table.absent)
        for codes, _ in table.blocks(release.codebook, labels=False):  # however many rows there are, some at a time
            each = [one.predict_few(codes) if table.few else one.predict_codes_proba(codes, n_jobs) for one in forests]
            shares = sum(each[1:], start=each[0]) / len(each)
            winners = shares.argmax(axis=1) if taken is None else by_threshold(shares, taken, threshold or 0.0)
            if proba:
                writer.writerows([names[w], *map(repr, row)] for w, row in zip(winners.tolist(), shares.tolist(), strict=True))
            else:
                writer.writerows([names[w]] for w in winners.tolist())
            written += len(codes)
            unknown.add(codes)
    if output is not None:
        say(f"wrote {output}: {written:,} predictions")
    if unknown.text() is not None:
        warn(f"{unknown.text()}")
    if others:
        note(_loss_of_all(forests))


def _taken_class(release: Release, threshold: float | None, positive: str | None) -> int | None:
    """The code of the class that a threshold is for; None without one."""
    from hedgerow.errors import PlanError
    from hedgerow.inference.ranking import positive_code

    if threshold is None:
        if positive is not None:
            raise PlanError("--positive: it names the class of --threshold. Add --threshold, such as 0.3, or leave it out.")
        return None
    if not 0 <= threshold <= 1:
        raise PlanError(f"--threshold: got {threshold:g}; expected a probability from 0 to 1, such as 0.3.")
    code = positive_code(release.schema.target.classes, positive)
    if code is None:
        names = ", ".join(class_text(value) for value in release.schema.target.classes)
        raise PlanError(f"--threshold: of more than two classes, say which it is for: --positive CLASS, one of {names}.")
    return code


def _alike(first: Release, name: Path, other: Path) -> Release:
    """Another forest for the same columns and classes, or an error that says what differs."""
    from hedgerow.errors import MergeError
    from hedgerow.release.release import Release
    from hedgerow.schema.toml import same_columns

    release = Release.load(other)
    if not same_columns(first.schema, release.schema) or first.codebook.bins != release.codebook.bins:
        raise MergeError(
            f"--with: {other} was fitted with another schema than {name}; expected the same attributes, domains, classes and bins, so that "
            "their probabilities mean the same. Fit both with one schema file."
        )
    if first.content_hash == release.content_hash:
        raise MergeError(f"--with: {other} is the same release as {name}; expected that of another owner.")
    return release


def _loss_of_all(forests: Sequence[Release]) -> str:
    """What a person loses by all of them."""
    from fractions import Fraction

    from hedgerow import formatting

    said = f"the mean of {len(forests)} forests"
    if any(one.certificate.epsilon is None for one in forests):
        return f"{said}; not all of them have a guarantee"
    losses = [(Fraction(one.certificate.epsilon or 0), Fraction(one.certificate.delta or 0)) for one in forests]
    largest, together = ([how(each) for each in zip(*losses, strict=True)] for how in (max, sum))
    return (
        f"{said}. A person loses {formatting.loss(*largest)} in all if nobody is in two of their tables, and "
        f"{formatting.loss(*together)} if somebody is in all"
    )


def class_text(value: Any) -> str:
    """A class as a CSV cell: text as it was declared; 1.0 as 1 and True as true, as other programs write them."""
    from hedgerow.schema.attributes import text_of

    return value if isinstance(value, str) else text_of(value)


@contextmanager
def _text_output(path: Path | None) -> Iterator[TextIO]:
    """A file appears when it is whole: predictions for some of the rows would be taken for all of them."""
    if path is None:
        yield sys.stdout
        return
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("w", encoding="utf-8", newline="") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
