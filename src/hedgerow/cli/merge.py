"""`hedgerow merge`: one forest from the noisy counts of several owners or batches, or from owners with different columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow import formatting
from hedgerow.cli.console import note, progress_bar, say, table
from hedgerow.cli.count import private_key
from hedgerow.cli.fit import summarise
from hedgerow.cli.outputs import check_output, file_lock
from hedgerow.cli.tables import SHOWN, SignKey, TrustedKeys, known_keys, say_what_else, show_tables, warn_of_few, who_signed
from hedgerow.errors import MergeError

if TYPE_CHECKING:
    from hedgerow.release.release import Release


def merge(
    files: Annotated[list[Path], typer.Argument(help="Counts from `hedgerow count`, or forests.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to save the forest.")] = Path("merged.json"),
    columns: Annotated[
        bool, typer.Option("--columns", help="The owners hold different columns of the same persons: unite their trees.")
    ] = False,
    disjoint: Annotated[
        bool,
        typer.Option(
            "--disjoint",
            help="You state: no person has rows in two of these files, and which table a row is in depends on that row alone.",
        ),
    ] = False,
    batches: Annotated[bool, typer.Option("--batches", help="An owner may appear again, with another batch of rows.")] = False,
    trust: TrustedKeys = None,
    require_signed: Annotated[
        bool, typer.Option("--require-signed", help="Refuse a file that none of the --trust keys has signed.")
    ] = False,
    sign: SignKey = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output file.")] = False,
) -> None:
    """Put forests together that were counted from one plan. Reads no rows, costs no ε.

    The certificate of the result has every owner with its own ε. The whole costs the largest of them if it is stated that nobody
    is in two tables, and their sum if not. To leave an owner out, merge the files of the others again. Refused are files that were
    counted in other trees (another schema, other settings), altered files, and a table that is there twice. Plans with the same trees and
    another ε go together: their counts answer the same questions, and the output says that they are several plans.

    With --columns the owners hold different columns of the same persons. Their ε add up. Rows to predict may lack the columns of some.

    Example:

        hedgerow merge office-a.json office-b.json office-c.json -o forest.json --disjoint

        hedgerow merge --columns hospital.json registry.json -o forest.json
    """
    check_output(output, [*files, sign, *(trust or [])], force)
    from hedgerow.release.merging import merge as merge_rows
    from hedgerow.release.merging import merge_columns
    from hedgerow.release.release import Release

    if require_signed and not trust:
        raise MergeError("--require-signed: no key is trusted. Give the owners' public keys with --trust.")
    if columns and (disjoint or batches):
        raise MergeError("--columns: the owners hold the same persons, so --disjoint and --batches mean nothing here. Leave them out.")
    known, key = known_keys(trust), private_key(sign)
    signers: list[tuple[str, str]] = []

    def read() -> Iterator[Release]:
        """One at a time: the counts of a hundred owners need not fit into memory together."""
        for place, file in enumerate(files):
            progress(place / len(files))
            release = Release.load(file)
            signers.append((str(file), _checked_signers(file, release, known, require_signed)))
            warn_of_few(release, file)
            yield release

    with progress_bar("merging") as progress:
        names = [str(file) for file in files]
        merged = merge_columns(read(), names=names) if columns else merge_rows(read(), disjoint=disjoint, batches=batches, names=names)
    if key is not None:
        merged = merged.signed(key)
    with file_lock(output) if output.exists() else nullcontext():
        merged.save(output)
    table("read, signatures checked", ["file", "signed by"], signers[:SHOWN])
    if len(signers) > SHOWN:
        say(f"  and {len(signers) - SHOWN} more")
    summarise(merged, output, events=False)
    show_tables(merged)
    if columns:
        note("forests that each owner has fitted with a δ often say more together: hedgerow predict a.json ROWS --with b.json")
    else:
        _say_several_plans(merged)
    say_what_else(merged.algorithm)


def _say_several_plans(merged: Release) -> None:
    """Of tables that were counted with different noise, as no single plan says."""
    losses = sorted({(Fraction(part.epsilon), part.exact_delta) for part in merged.certificate.parts if part.counted})
    if len(losses) > 1:
        texts = [formatting.loss(*loss) for loss in losses]
        more = f", and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
        say(f"{len(losses)} plans, or batches with an ε of their own: {' and '.join(texts[:SHOWN])}{more}. Their trees are the same")


def _checked_signers(file: Path, release: Release, known: dict[str, str], required: bool) -> str:
    keys = [signature.key for signature in release.signatures]
    if required and not any(key in known for key in keys):
        raise MergeError(
            f"{file} is signed by {who_signed(keys, known)}; expected a signature by one of the trusted keys "
            f"({', '.join(sorted(known.values()))}). Ask its owner to sign it: `hedgerow sign`."
        )
    return who_signed(keys, known)
