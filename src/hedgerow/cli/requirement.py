"""How an anonymity requirement is given on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hedgerow.anonymity.requirement import Requirement

K = Annotated[int | None, typer.Option("-k", "--k", help="Every path, or group of rows, has at least so many persons.", show_default=False)]
C = Annotated[str | None, typer.Option("-c", "--c", help="(c, l)-diversity: how much the largest class may outweigh.", show_default=False)]
L = Annotated[int | None, typer.Option("-l", "--l", help="(c, l)-diversity: from which class on the others count.", show_default=False)]
Alpha = Annotated[str | None, typer.Option("--alpha", help="(alpha, k)-anonymity: the largest share of one class.", show_default=False)]


def requirement_of(k: int | None, c: str | None, l: int | None, alpha: str | None) -> Requirement:  # noqa: E741
    from hedgerow.anonymity.requirement import Requirement

    return Requirement.of(k, c, l, alpha)
