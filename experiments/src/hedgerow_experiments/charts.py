"""What the charts of the experiments show, as plain data: lines in one plot or in several, and box plots. drawing.py draws them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Point:
    """One mark. `error` is half the length of its whisker; 0 or nan draws none."""

    x: float
    y: float
    error: float = 0.0


@dataclass(frozen=True)
class Series:
    """A line. `dashed` is for non-private yardsticks."""

    name: str
    points: Sequence[Point]
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    """One of several small plots."""

    title: str
    series: Sequence[Series]


@dataclass(frozen=True)
class Lines:
    """Lines with markers and whiskers: one plot, or small ones side by side with one legend and one horizontal scale.

    x_ticks: places on the horizontal axis, and what is written there
    """

    title: str
    panels: Sequence[Panel]
    x_label: str
    y_label: str
    x_ticks: Sequence[tuple[float, str]]
    log_x: bool = False
    columns: int = 3


@dataclass(frozen=True)
class Boxes:
    """Box plots by group: whiskers to the least and the greatest value, a box between the quartiles, a line at the median.

    levels: dashed lines across the plot, by name
    """

    title: str
    groups: Sequence[tuple[str, Sequence[float]]]
    x_label: str
    y_label: str
    levels: Sequence[tuple[str, float]] = ()


Chart = Lines | Boxes
