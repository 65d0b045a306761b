"""What `count`, `update` and `merge` have in common: how a counted table is named, and what is shown about several."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow import formatting
from hedgerow.cli.console import say, table, warn
from hedgerow.errors import PlanError

if TYPE_CHECKING:
    from hedgerow.release.release import Release

SHOWN = 20  # tables that are listed

Owner = Annotated[str | None, typer.Option("--owner", help="Whose rows these are: a name that others will see.", show_default=False)]
Batch = Annotated[
    str | None,
    typer.Option(
        "--batch",
        help="A name for these rows, such as 2026-03, so that they cannot be added twice.  [default: a random one]",
        show_default=False,
    ),
]
Disjoint = Annotated[
    bool,
    typer.Option(
        "--disjoint",
        help="You state: a person with rows here has none in another table that is counted in these trees, now or later, and which table a "
        "row is in depends on that row alone.",
    ),
]
SignKey = Annotated[
    Path | None, typer.Option("--sign", help="A private key (see `hedgerow key`) to sign the result with.", show_default=False)
]
TrustedKeys = Annotated[
    list[Path] | None,
    typer.Option("--trust", help="A public key (.pub) that you know, or a folder of them. May be given again.", show_default=False),
]


def known_keys(places: Iterable[Path] | None) -> dict[str, str]:
    """How public keys are called here, by their text: the name in the key was chosen by whoever made it, the file's by you."""
    from hedgerow.errors import KeyFileError
    from hedgerow.release.signing import load_public_key

    found: dict[str, str] = {}
    for place in places or ():
        files = sorted(place.glob("*.pub")) if place.is_dir() else [place]
        if not files:
            raise KeyFileError(f"--trust: the folder {str(place)!r} holds no public key (.pub).")
        for file in files:
            key = load_public_key(file)
            found[key.text] = f"{key.name} [{file.name}]"
    return found


def who_signed(keys: Iterable[str], known: dict[str, str] | None = None) -> str:
    """Names of the keys that are trusted; of others the fingerprint."""
    from hedgerow.release.signing import fingerprint

    other = "key" if known is None else "a key that is not trusted,"
    return ", ".join((known or {}).get(key, f"{other} {fingerprint(key)}") for key in keys) or "nobody"


def show_tables(release: Release) -> None:
    """The counted tables, one line each, and what their number means for the noise."""
    from hedgerow.inference.rebuild import accumulated

    parts = release.certificate.parts
    if len(parts) > 1:
        columns = [", ".join(ensemble.columns) for ensemble in release.forest.ensembles]
        united = len(columns) > 1
        delta = any(part.exact_delta for part in parts)
        persons = any(part.of_persons for part in parts)
        heads = ["owner", "batch", "ε", *(["δ"] if delta else []), "persons disjoint"]
        heads += [*(["rows of a person"] if persons else []), *(["columns"] if united else [])]
        rows = [
            (
                " + ".join(part.owners) or "–",
                part.id,
                formatting.amount(Fraction(part.epsilon)),
                *([formatting.amount(part.exact_delta)] if delta else []),
                part.statement,
                *([f"at most {part.k}" if part.of_persons else "1, assumed"] if persons else []),
                *([columns[part.ensemble]] if united else []),
            )
            for part in parts[:SHOWN]
        ]
        table(f"counted tables: {sum(part.counted for part in parts)}", heads, rows, numbers=(2, 3) if delta else (2,))
        if len(parts) > SHOWN:
            say(f"  and {len(parts) - SHOWN} more")
    found = accumulated(release.forest)
    if found is not None and found.drowned:
        warn(found.sentence())
    elif found is not None:
        say(f"rebuilding: {found.sentence()}")


def say_what_else(algorithm: str) -> None:
    """Of counts of a Hedgerow forest that are added up: what was better wherever it was measured."""
    from hedgerow.trees.plan import HEDGEROW

    if algorithm == HEDGEROW:
        say(
            "what else: counts that add up have no boosted trees. If no more rows will come, let each owner fit a forest of "
            "its own (`hedgerow fit … --delta 1e-6`) and take the mean of what they predict (`hedgerow predict a.json ROWS --with b.json "
            "--with c.json`). It was more accurate on every public set with thousands of rows for each owner (docs/OWNERS_FIGURES.md)."
        )


def show_recorded_signers(release: Release) -> None:
    """What the certificate records about signatures of the merged files: whoever merged saw them, this program does not."""
    parts = [part for part in release.certificate.parts if part.signed_by]
    if parts:
        rows = [(part.name, who_signed(part.signed_by)) for part in parts[:SHOWN]]
        table("signatures that were recorded when the files were merged", ["table", "signed by"], rows)


def checked_owner(owner: str | None, otherwise: str, option: str = "--owner") -> str:
    if owner is not None and not owner.strip():
        raise PlanError(f"{option}: expected a name; leave the option out if there is none to give.")
    return otherwise if owner is None else owner


def warn_of_alike(forest: Release, owner: str, key: Any) -> None:
    """Of an owner who may be in the forest already: under a name that is written nearly so, or one whose table this key has signed."""
    from hedgerow.release.signing import public_text

    own = "" if key is None else public_text(key)
    parts = forest.certificate.parts
    signed = [signature.key for signature in forest.signatures] if len(parts) == 1 else []
    for part in () if any(part.owner == owner for part in parts) else parts:
        alike = _letters(owner) == _letters(part.owner)
        if part.owner and (alike or own in (*part.signed_by, *signed)):
            why = "the names are nearly the same" if alike else "the key that signs is the same"
            warn(
                f"--owner: {f'{owner!r} is' if owner else 'without it, the rows are'} taken for another owner than {part.owner!r}, who "
                f"is in the forest already; but {why}. If both are one, give --owner {part.owner!r}, and a --batch: the same rows would be "
                "paid and counted twice."
            )
            return


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))


def stem(path: Path) -> str:
    """office-a.json.gz → office-a"""
    name = path.name
    for ending in (".gz", ".json"):
        name = name.removesuffix(ending)
    return name or path.name


def warn_of_few(release: Release, where: object = "") -> None:
    """Of counts that may hold no row at all, as the released numbers say: it costs nothing. where: they come from."""
    from hedgerow.inference.coverage import hardly_any

    few = hardly_any(release.forest) if release.forest.noisy else None
    if few is not None:
        warn(f"{where}: {few}" if where else few)
