"""`hedgerow explain`: why rows are predicted as they are; and the effects that `hedgerow show` prints. Both cost no ε."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow.cli.console import note, say
from hedgerow.cli.outputs import check_output
from hedgerow.cli.places import CSVOfRows, csv_rows
from hedgerow.errors import PlanError

if TYPE_CHECKING:
    from hedgerow.inference.explain import Explanation
    from hedgerow.release.release import Release

MOST_ROWS = 20
IN_TEXT, IN_PICTURES, PAIRS = 4, 6, 3  # attributes that `show` tells of, and pairs of them
PICTURES = (".svg", ".html", ".htm")


def explain(
    forest: Annotated[Path, typer.Argument(help="A saved Hedgerow forest.", show_default=False)],
    rows: Annotated[Path, typer.Argument(help="CSV (also .gz, .zst) or Parquet file.", show_default=False)],
    row: Annotated[
        list[str] | None,
        typer.Option("--row", help="Which row, counted from 1; several times, or a range such as 1-20.  [default: 1]", show_default=False),
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, help="How many attributes; the others are added up.")] = 8,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A picture: a name that ends in .svg (one row) or .html.", show_default=False),
    ] = None,
    csv: CSVOfRows = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output file.")] = False,
) -> None:
    """Tell why a row is predicted as it is: what each attribute adds, the largest first. Costs no ε. Without --row: the first row.

    For two classes the numbers are log-odds of the second class: +0.7 doubles its odds. For more they are what speaks for the predicted
    class, against the mean of all classes. The ± is the standard error that the noise gives a number. A line "together" adds
    everything up; its score and those of the other classes give the probability. An explanation tells about the row it is
    made for: keep it as private as that row.

    Only a Hedgerow forest (--algorithm hedgerow) adds up what its attributes say; the trees of the others vote.

    Example:

        hedgerow explain forest.json new-rows.csv --row 3

        hedgerow explain forest.json new-rows.csv --row 1-5 --top 6 -o why.html
    """
    if output is not None:
        check_picture(output)
        check_output(output, [forest, rows], force)
    numbers = _numbers(row or ["1"])
    if output is not None and output.suffix.lower() == ".svg" and len(numbers) > 1:
        raise PlanError(f"--row: an .svg shows one row, and {len(numbers)} are asked for. Choose one, or a name that ends in .html.")
    from hedgerow.engines.files import TableFile
    from hedgerow.inference.explain import explain as explanations_of
    from hedgerow.release.release import Release

    release = Release.load(forest)
    additive = release.additive
    codes = TableFile(csv_rows(rows, csv), list(release.schema.names)).codes(release.codebook)
    if max(numbers) > len(codes):
        raise PlanError(f"--row: got {max(numbers)}; the table {str(rows)!r} has fewer rows than that, counted from 1.")
    found = explanations_of(additive, codes, [number - 1 for number in numbers])
    if row is None and len(codes) > 1:
        note(f"row 1 of {len(codes):,} is explained; --row 3 or --row 1-{min(len(codes), MOST_ROWS)} shows others")
    if output is None:
        _say(release, found, top)
        return
    output.write_text(_picture(release, found, top, output.suffix.lower()), encoding="utf-8")
    say(f"wrote {output}: {len(found)} {'row' if len(found) == 1 else 'rows'} explained")


def check_picture(output: Path) -> None:
    if output.suffix.lower() not in PICTURES:
        raise PlanError(f"output {str(output)!r}: expected a name that ends in .svg or .html.")


def _numbers(given: list[str]) -> list[int]:
    """ "3", "7" and "1-5" as row numbers, each once, in their order."""
    numbers: dict[int, None] = {}
    for text in given:
        first, dash, last = text.partition("-")
        try:
            low, high = int(first), int(last) if dash else int(first)
        except ValueError:
            low = high = 0
        if not 1 <= low <= high:
            raise PlanError(f"--row: got {text!r}; expected the number of a row, from 1, or a range such as 1-20.")
        numbers |= dict.fromkeys(range(low, min(high, low + MOST_ROWS) + 1))
        if len(numbers) > MOST_ROWS:
            raise PlanError(f"--row: at most {MOST_ROWS} rows are explained at a time.")
    return list(numbers)


def _say(release: Release, found: tuple[Explanation, ...], top: int) -> None:
    from hedgerow.plots.effect_text import FEW_LEGEND, explanation_text, legend_of_choices

    say("\n\n".join(explanation_text(one, top) for one in found))
    if any(said.few for one in found for said in one.top(top)[0]):
        say()
        say(FEW_LEGEND)
    if legend := legend_of_choices(release.additive):
        say()
        say(legend)


def _picture(release: Release, found: tuple[Explanation, ...], top: int, suffix: str) -> str:
    if suffix == ".svg":
        from hedgerow.plots.waterfall_svg import waterfall_svg

        return waterfall_svg(found[0], top)
    from hedgerow.plots.report import explain_page

    return explain_page(release, found, top)


# ---------------------------------------------------------------- for `hedgerow show`


def show_effects(release: Release, named: Sequence[str], output: Path | None) -> None:
    """The effects of the most important attributes, or of those that are named: as text, or as a picture."""
    from hedgerow.inference.effects import Effects, effect_named
    from hedgerow.plots.effect_svg import effects_svg
    from hedgerow.plots.effect_text import FEW_LEGEND, VALUES, effect_text, legend_of_choices

    effects = release.effects()
    if named:
        effects = Effects(effect_named(effects, name, release.schema.names) for name in dict.fromkeys(named))
    if output is None:
        most = len(named) or IN_TEXT
        for effect in effects[:most]:
            say()
            say(effect_text(effect, len(effect.values) if named else VALUES))
        if any(effect.few_rows.any() for effect in effects[:most]):
            say()
            say(FEW_LEGEND)
        if legend := legend_of_choices(release.additive):
            say()
            say(legend)
        rest = [effect.attribute for effect in effects[most:]]
        if rest:
            say()
            say(f"and {len(rest):,} less important attributes: --attribute NAME shows one")
        together = () if named else release.interactions()[:PAIRS]
        if together:
            say()
            say("what two say only together, as a share of all that they do:")
            for one in together:
                say(f"  {one.text()}")
        return
    shown = effects[: len(named) or IN_PICTURES]
    if output.suffix.lower() == ".svg":
        output.write_text(effects_svg(shown), encoding="utf-8")
    else:
        from hedgerow.plots.report import effects_page

        output.write_text(effects_page(release, shown), encoding="utf-8")
    say(f"wrote {output}: what {len(shown)} {'attribute does' if len(shown) == 1 else 'attributes do'}")
