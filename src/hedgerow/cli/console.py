"""Everything that the commands print goes through here: sentences, tables, a gauge, a progress bar."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

# Names may come from a file of somebody else: control characters could rewrite what the terminal shows.
_CONTROL = {code: "\N{REPLACEMENT CHARACTER}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}
_WIDTH_IN_A_PIPE = 160
_COLOURS = {"FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"}  # variables by which colours may be asked for in a pipe, too


# Nor may a line end, or a change of the direction of writing, make one line look like two.
_LINES = {**_CONTROL, **dict.fromkeys((9, 10, 8232, 8233, *range(8234, 8239), *range(8294, 8298)), "�")}


def clean(text: object) -> str:
    return str(text).translate(_CONTROL)


def one_line(text: object) -> str:
    """Text from somebody else's file, for the inside of a line."""
    return str(text).translate(_LINES)


def console(stderr: bool = False) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    in_a_pipe = not stream.isatty() and "COLUMNS" not in os.environ
    # No markup and no emoji: a name such as "[b]" or ":x:" is printed as it is.
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, width=_WIDTH_IN_A_PIPE if in_a_pipe else None)


def say(text: object = "", style: str | None = None) -> None:
    _line(clean(text), style)


def warn(text: object) -> None:
    _line(f"warning: {clean(text)}", "yellow", stderr=True)


def note(text: object) -> None:
    """Beside the output, which may go to another program."""
    _line(f"note: {clean(text)}", "dim", stderr=True)


def complain(text: object) -> None:
    _line(f"error: {clean(text)}", "red", stderr=True)


def _line(text: str, style: str | None, stderr: bool = False) -> None:
    """With its colour on a terminal. Elsewhere there is none, and `rich`, which takes a while to be imported, would print the same."""
    stream = sys.stderr if stderr else sys.stdout
    if stream.isatty() or not _COLOURS.isdisjoint(os.environ):
        console(stderr).print(text, style=style, soft_wrap=True)
    else:
        print("\n".join(line.expandtabs() for line in text.split("\n")), file=stream)


def guarantee(sentence: str, holds: bool) -> None:
    """The most important line of any output."""
    say(f"guarantee: {one_line(sentence)}", style="bold green" if holds else "bold yellow")


def table(title: str, heads: Sequence[str], rows: Sequence[Sequence[object]], numbers: Sequence[int] = ()) -> None:
    """A table; the columns whose places are in `numbers` stand flush right."""
    from rich import box
    from rich.table import Table

    shown = Table(title=clean(title) or None, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for place, head in enumerate(heads):
        shown.add_column(clean(head), justify="right" if place in numbers else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(one_line(cell) for cell in row))
    console().print(shown)


def pairs(title: str, lines: Sequence[tuple[str, str]]) -> None:
    """(what, how much) pairs."""
    from rich.table import Table

    shown = Table(title=clean(title) or None, title_justify="left", title_style="bold", box=None, show_header=False)
    shown.add_column(style="cyan", no_wrap=True)
    shown.add_column(overflow="fold")
    for what, how_much in lines:
        shown.add_row(one_line(what), one_line(how_much))
    console().print(shown)


def gauge(spent: Fraction, total: Fraction, width: int = 40) -> str:
    """A bar that shows how much is spent; any spending at all shows, and only an empty budget is full."""
    share = min(max(spent / total, Fraction(0)), Fraction(1))
    filled = round(share * width)
    if share > 0:
        filled = max(filled, 1)
    if share < 1:
        filled = min(filled, width - 1)
    return f"[{'█' * filled}{'░' * (width - filled)}] {float(share):.0%} spent"


class Shown:
    """Progress as a bar: the share that is done, and how many rows a second are read. It is gone when the work is done, since how many
    rows there are is private: it is for the screen of whoever holds the table, and never for a file."""

    def __init__(self, bar: Any, text: str) -> None:
        self._bar, self._text, self._passes = bar, clean(text), 1
        self._task = bar.add_task(clean(text), total=None, rows="")  # it pulses until the first share is known
        self._begun, self._rows = time.monotonic(), 0

    def __call__(self, share: float) -> None:
        self._bar.update(self._task, total=1.0, completed=share)

    def rows_seen(self, rows: int) -> None:
        if rows < self._rows:
            self._begun, self._passes = time.monotonic(), self._passes + 1
            self._bar.update(self._task, description=f"{self._text}, pass {self._passes}")
        self._rows = rows
        speed = rows / max(time.monotonic() - self._begun, 1e-3)
        self._bar.update(self._task, rows=f"{rows:,} rows, {speed:,.0f} rows/s")


@contextmanager
def progress_bar(text: str) -> Iterator[Callable[[float], None]]:
    """A bar on the terminal while the work goes on; nothing where stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield lambda share: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns: list[Any] = [TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.fields[rows]}")]
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        yield Shown(bar, text)
