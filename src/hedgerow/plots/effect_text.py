"""Effects and explanations as text: bars to the left and to the right of 0, each number with its ±.

age: 16 % of what the attributes say; what its values add to the log-odds of >50K; shares of rows ± 2 %
  below 26.125      22 % of rows  ████████████│              −2.10 ± 0.21
  26.125 to 35.25   24 % of rows            ██│              −0.32 ± 0.04
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hedgerow.formatting import number
from hedgerow.inference.additive import AdditiveForest
from hedgerow.inference.effect_noise import scale_error
from hedgerow.inference.effects import WEIGHED, Effect, about
from hedgerow.inference.explain import Explanation, Said
from hedgerow.inference.text import share_text

HALF = 14  # characters of a bar on each side of 0
LONGEST = 40  # characters of a name or value
VALUES = 12  # of one attribute
FEW, UNKNOWN = "few rows: drawn towards the others", "unknown: no rows stand above the noise"
FEW_LEGEND = (
    '"few rows": too few to tell. What is said is mostly what the other values say, and may be wrong by more than its ±, even in its sign.'
)

CHOSEN_LEGEND = (
    "The ± are of the noise alone: which top splits were asked, and how strongly attributes are read, was privately chosen, and another "
    "fit may choose otherwise. Its effects may differ by several ±."
)
STRENGTH_LEGEND = (
    "How strongly attributes are read was privately chosen: in another fit all effects may be twice or half as large. The ± of a value "
    "leave that out."
)
WEIGHT_LEGEND = (
    '"its counts weigh": of what the counts of an attribute say alone only that part is added, since attributes repeat each other and '
    "would be too sure together. A small effect does not mean that an attribute has nothing to do with the class."
)
MAY_DIFFER = 0.05  # of the effects: so much about a scale is worth saying


def legend_of_choices(forest: AdditiveForest) -> str | None:
    """Why effects may be small, and what their ± leave out, where something was privately chosen that matters."""
    said = [WEIGHT_LEGEND] if min(forest.weights.values(), default=1.0) < WEIGHED else []
    said += [CHOSEN_LEGEND] if forest.tables.layout.asks else [STRENGTH_LEGEND] if forest.reading_rate else []
    if forest.scale_rate and (off := scale_error(forest.scale_rate, forest.tables.n)) > MAY_DIFFER:
        said.append(
            f"All effects are scaled by {number(forest.scale)}, which was privately chosen: in another fit all may be larger or smaller "
            f"together, by about {off:.0%}. The ± of a value leave that out."
        )
    return " ".join(said) or None


def signed(value: float) -> str:
    """ "+1.22", "−0.40"; what rounds to nothing has no sign."""
    text = f"{value:+.2f}".replace("-", "−")
    return "0.00" if text in ("+0.00", "−0.00") else text


def with_error(value: float, error: float) -> str:
    """An error below the last digit is stated as that digit: it is there."""
    return f"{signed(value)} ± {max(error, 0.01):.2f}" if error > 0 else signed(value)


def with_mark(number: str, few: bool, error: float) -> str:
    """The same with a mark where a value has few rows; a score of nothing with no error is no number."""
    return number if not few else f"{number}  {FEW}" if error > 0 else UNKNOWN


def short_number(number: str, few: bool, error: float) -> str:
    """The same in a picture, where the mark stands elsewhere."""
    return "unknown" if few and not error > 0 else number


def two_sided_bar(value: float, largest: float, half: int = HALF) -> str:
    """A bar that goes left of │ for a value below 0, right of it for one above."""
    filled = min(half, round(abs(value) / largest * half)) if largest > 0 else 0
    left, right = ("█" * filled, "") if value < 0 else ("", "█" * filled)
    return f"{left:>{half}}│{right:<{half}}"


def cut(text: str, longest: int = LONGEST) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def values_to_show(effect: Effect, most: int) -> tuple[NDArray[np.int64], str]:
    """The places of the values with the most rows, in their order, and what was left out in words."""
    order = np.argsort(-effect.rows, kind="stable")
    left_out = order[most:]
    if not len(left_out):
        return np.arange(len(effect.values)), ""
    many = f"{len(left_out):,} more value{'s' if len(left_out) > 1 else ''}"
    return np.sort(order[:most]), f"and {many} with {share_text(float(effect.rows[left_out].sum()))} of the rows"


def effect_text(effect: Effect, most: int = VALUES) -> str:
    """One attribute, a line for each value: with two classes the log-odds of the second, with more the class that gains most."""
    shown, more = values_to_show(effect, most)
    if len(effect.classes) == 2:
        scores, errors = effect.log_odds
        head = f"{about(effect)}; what its values add to the log-odds of {effect.classes[1]}"
        numbers = [with_error(scores[v], errors[v]) for v in shown]
    else:
        best, worst = effect.scores.argmax(axis=1), effect.scores.argmin(axis=1)
        scores = effect.scores.max(axis=1)
        head = f"{about(effect)}; the class that each value speaks for most, and against most"
        numbers = [f"{_class(effect, v, best[v])}; {_class(effect, v, worst[v])}" for v in shown]
    head += f"; {effect.rows_note}" if effect.rows_note else ""
    few = effect.few_rows
    numbers = [with_mark(number, few[v], float(effect.errors[v].max())) for v, number in zip(shown, numbers, strict=True)]
    largest = float(np.abs(scores[shown]).max(initial=0.0))
    lines = [
        (cut(effect.values[v]), f"{effect.share_of(v)} of rows", two_sided_bar(float(scores[v]), largest), number)
        for v, number in zip(shown.tolist(), numbers, strict=True)
    ]
    return "\n".join([head, *_aligned(lines, ">"), *([f"  {more}"] if more else [])])


def _class(effect: Effect, value: int, c: int) -> str:
    return f"{effect.classes[c]} {with_error(float(effect.scores[value, c]), float(effect.errors[value, c]))}"


def explanation_text(one: Explanation, most: int = 8) -> str:
    """One row: the answer, then what the attributes add, the largest first."""
    shown, rest = one.top(most)
    every = [*shown, *([rest] if rest is not None else [])]
    largest = max((abs(said.score) for said in every), default=0.0)
    lines = [("intercept", "", " " * HALF + "│" + " " * HALF, signed(one.start))]
    lines += [(cut(said.attribute), cut(said.value), two_sided_bar(said.score, largest), said_text(said)) for said in every]
    lines.append(("together", "", " " * HALF + "│" + " " * HALF, with_error(one.total, one.error)))
    head = f"row {one.row}: {one.predicted}, probability {one.probability:.2f}"
    unknown = [f"  {one.unknown_text}"] if one.unknown else []
    return "\n".join([head, f"  what adds to the {one.about}:", *_aligned(lines), *unknown])


def said_text(said: Said) -> str:
    return with_mark(with_error(said.score, said.error), said.few, said.error)


def _aligned(lines: Sequence[tuple[str, str, str, str]], flush: str = "<") -> list[str]:
    first, second = (max(len(line[place]) for line in lines) for place in (0, 1))
    return [f"  {a:<{first}}  {b:{flush}{second}}  {bar} {number}".rstrip() for a, b, bar, number in lines]
