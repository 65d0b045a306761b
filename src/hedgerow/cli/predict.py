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
from hedgerow.cli.options import Force, Jobs, threads
from hedgerow.cli.outputs import check_output
from hedgerow.cli.places import CSVOfRows, csv_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
            help="Another owner's forest: with the same schema, the mean of their probabilities counts; with other columns, their log-odds "
            "are added up. May be given again.",
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
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="COLUMN",
            show_default=False,
            help="Copy this column of the table in front of the predictions, such as the number of a customer. May be given again.",
        ),
    ] = None,
    jobs: Jobs = None,
    csv: CSVOfRows = None,
    force: Force = False,
) -> None:
    """Predict the class of each row of a table. Costs no ε.

    The answer is a CSV with one line for each row, in their order; --keep copies columns of the table into it. The table needs
    the attributes of the schema, in any order; other columns are ignored. With a forest that unites the columns of several
    owners, some may be missing.
    A prediction tells about the row it is made for: keep it as private as that row. Columns in which more than a tenth of the rows have
    no declared value are named on standard error; where the schema declares `missing`, what is missing is none of these.

    Owners who have each fitted a forest to rows of their own need not merge anything: --with takes the mean of what their forests say. Of
    owners who hold different columns of the same people it adds up the log-odds: the table needs the columns of all.

    Example:

        hedgerow predict forest.json new-rows.csv --proba -o predictions.csv

        hedgerow predict forest.json new-rows.csv --keep customer_id --threshold 0.3 --positive yes -o predictions.csv

        hedgerow predict forest.json new-rows.csv -o - | sort | uniq -c

        hedgerow predict office-a.json new-rows.csv --with office-b.json --with office-c.json -o predictions.csv
    """
    from hedgerow.engines.files import TableFile, files_of
    from hedgerow.inference.ranking import by_threshold
    from hedgerow.release.combining import aligned, combined, grouped

    output = None if output == STANDARD_OUTPUT else output
    if output is not None:
        check_output(output, [forest, *(others or []), *files_of(rows)], force)
    from hedgerow.release.release import Release

    release = Release.load(forest)
    groups = grouped([release, *map(Release.load, others or [])], [str(forest), *map(str, others or [])])
    taken = _taken_class(release, threshold, positive)
    n_jobs = threads(jobs)
    streams = [_Stream(group, csv_rows(rows, csv), n_jobs) for group in groups]
    kept = [TableFile(csv_rows(rows, csv), keep).text_blocks(keep)] if keep else []
    names = [class_text(value) for value in release.schema.target.classes]
    head = [*(keep or []), f"predicted_{release.schema.target.name}"]
    if proba:
        head += [f"probability_{name}" for name in names]
    with _text_output(output) as file:
        writer = csv_module.writer(file, lineterminator="\n")
        writer.writerow(head)
        written = 0
        for each in aligned([*streams, *kept]):  # however many rows there are, some at a time
            shares = combined(each[: len(streams)], groups)
            winners = shares.argmax(axis=1) if taken is None else by_threshold(shares, taken, threshold or 0.0)
            before = each[-1].tolist() if kept else [[]] * len(shares)
            after = [[repr(share) for share in row] for row in shares.tolist()] if proba else [[]] * len(shares)
            writer.writerows([*own, names[w], *more] for own, w, more in zip(before, winners.tolist(), after, strict=True))
            written += len(shares)
    if output is not None:
        say(f"wrote {output}: {written:,} predictions")
    for stream in streams:
        if (text := stream.unknown.text(stream.table.count_missing)) is not None:
            warn(text)
        if (text := stream.beyond) is not None:
            warn(text)
    if others:
        note(_loss_of_all(groups))


class _Stream:
    """The mean probabilities of forests over the same columns, for the rows of a table, some at a time."""

    def __init__(self, group: Sequence[Release], rows: Any, n_jobs: int) -> None:
        from hedgerow.engines.files import TableFile
        from hedgerow.inference.coverage import Unknown
        from hedgerow.release.release import missing_columns_text

        first = group[0]
        self.group, self.n_jobs = group, n_jobs
        self.table = TableFile(rows, list(first.schema.names), optional=bool(first.forest.united))
        if self.table.absent:
            warn(missing_columns_text(name for name in first.schema.names if name in self.table.absent))
        self.unknown = Unknown(first.codebook, self.table.absent)

    @property
    def beyond(self) -> str | None:
        from hedgerow.inference.vote import ADDITIVE

        first = self.group[0]
        return self.unknown.beyond_text(first.additive.most_rows) if first.vote == ADDITIVE else None

    def __iter__(self) -> Iterator[NDArray[np.float64]]:
        for codes, _ in self.table.blocks(self.group[0].codebook, labels=False):
            self.unknown.add(codes)
            few = self.table.few
            each = [forest.predict_few(codes) if few else forest.predict_codes_proba(codes, self.n_jobs) for forest in self.group]
            yield sum(each[1:], start=each[0]) / len(each)


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


def _loss_of_all(groups: Sequence[Sequence[Release]]) -> str:
    """What a person loses by all of them: of owners of the same columns perhaps the largest, of owners of different columns the sum."""
    from fractions import Fraction

    from hedgerow import formatting

    forests = [forest for group in groups for forest in group]
    said = f"the mean of {len(forests)} forests"
    if len(groups) > 1:
        said = f"the log-odds of {len(groups)} owners of different columns, added up"
    if any(one.certificate.epsilon is None for one in forests):
        return f"{said}; not all of them have a guarantee"
    losses = [[(Fraction(one.certificate.epsilon or 0), Fraction(one.certificate.delta or 0)) for one in group] for group in groups]
    together = [sum(amounts, Fraction(0)) for amounts in zip(*(each for group in losses for each in group), strict=True)]
    if len(groups) == len(forests):
        return f"{said}. A person who is in all of their tables loses {formatting.loss(*together)}"
    largest = [
        sum(amounts, Fraction(0)) for amounts in zip(*([max(each) for each in zip(*group, strict=True)] for group in losses), strict=True)
    ]
    of = "" if len(groups) == 1 else " with the same columns"
    return (
        f"{said}. A person loses {formatting.loss(*largest)} in all if nobody is in two of their tables{of}, and "
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
