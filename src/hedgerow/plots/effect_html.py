"""Effects and explanations as parts of an HTML page: each picture, and below it the same as text."""

from __future__ import annotations

from collections.abc import Sequence

from hedgerow.inference.effects import Effect
from hedgerow.inference.explain import Explanation
from hedgerow.plots.effect_svg import effect_svg
from hedgerow.plots.effect_text import effect_text, explanation_text
from hedgerow.plots.svg import escape
from hedgerow.plots.waterfall_svg import waterfall_svg

HOW_TO_READ = (
    "Each attribute adds to the scores of the classes, and the class with the highest sum is predicted. Adding 0.7 to the log-odds "
    "doubles the odds. The bands are what the noise may have done, and no more: a value with few rows, marked *, is drawn towards "
    "the others, and may be wrong by more than its band, even in its sign. What was privately chosen (top splits, how strongly attributes "
    "are read, the scale) is not in them, and another fit may choose otherwise. Nor do they tell what causes what, or how another sample "
    "of people would look."
)


def effects_content(effects: Sequence[Effect]) -> str:
    """The pictures of some attributes."""
    if not effects:
        return "<p>No attribute was measured.</p>"
    pictures = "".join(_figure(effect_svg(effect), effect_text(effect)) for effect in effects)
    return f'<p class="soft">{escape(HOW_TO_READ)}</p>{pictures}'


def explanations_content(explanations: Sequence[Explanation], top: int) -> str:
    """A section for each row."""
    return "".join(
        f"<section>{_figure(waterfall_svg(one, top), explanation_text(one, top))}{_unknown(one)}</section>" for one in explanations
    )


def _unknown(one: Explanation) -> str:
    return f"<p>Row {one.row}: {escape(one.unknown_text)}.</p>" if one.unknown else ""


def _figure(svg: str, text: str) -> str:
    lines = "\n".join(escape(line) for line in text.split("\n"))
    return f'<figure class="scroll wide">{svg}</figure><details><summary>The same as text</summary><pre>{lines}</pre></details>'
