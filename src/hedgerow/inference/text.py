"""Words and numbers as a person would read them: shared by rules, pictures and reports.

Names of columns, values and classes come from a release file that anyone may have written. `plain` takes out what could
move a terminal's cursor or turn the direction of the text; escaping for XML and HTML is a second step, in `svg.py`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from hedgerow.schema.attributes import text_of
from hedgerow.schema.codebook import Codebook

_JOINERS = "\u200c\u200d"  # invisible, but spelling in several languages
MANY_VALUES = 6  # a longer list of values is cut: nobody reads sixty of them
SCORE_MORE = "score more rows, or with a larger epsilon (`score_error` says what error to expect, for free)"


def plain(value: object) -> str:
    """The text of a value with every character that does not print replaced."""
    text = text_of(value)
    if text.isprintable():
        return text
    return "".join(_printable(character) for character in text)


def _printable(character: str) -> str:
    if character.isprintable() or character in _JOINERS:
        return character
    return " " if unicodedata.category(character) == "Zs" or character in "\t\n\r" else "\ufffd"


# ---------------------------------------------------------------- numbers


def count_text(value: float) -> str:
    return f"{round(value):,}".replace("-", "−")


def error_text(error: float) -> str:
    return f"{error:,.0f}" if error >= 10 else f"{error:.2g}"


def count_with_error(value: float, error: float) -> str:
    """ "1,204 ± 35"; an exact count stands alone."""
    return f"{count_text(value)} ± {error_text(error)}" if error > 0 else count_text(value)


def share_text(share: float) -> str:
    """ "61 %"; what is there but would round to nothing is "below 1 %"."""
    return "below 1 %" if 0 < share < 0.005 else f"{share * 100:.0f} %"


def share_with_error(share: float, error: float) -> str:
    """ "81 % ± 3 %", with one more digit where the error is below one per cent."""
    if error <= 0:
        return f"{share * 100:.0f} %" if share in (0, 1) else f"{share * 100:.3g} %"
    places = 0 if error >= 0.01 else 1
    return f"{share * 100:.{places}f} % ± {max(error * 100, 0.1):.{places}f} %"


LOST = 0.25  # a share whose error is at least this could be nearly any: two errors to each side are all of 0 to 1


def is_lost(share: float, error: float) -> bool:
    """Whether the noise is larger than the answer."""
    return not error < LOST or share != share


def score_with_error(share: float, error: float) -> str:
    """ "0.812 ± 0.03"; where the noise is larger than the answer, that and no number."""
    return "lost in the noise" if is_lost(share, error) else f"{share:.3f} ± {error:.2g}"


# ---------------------------------------------------------------- values


def values_in_words(codebook: Codebook, attribute: int, codes: Sequence[int]) -> str:
    """What the codes of one attribute mean together: "below 40", "40 to 60", "red or blue", "any value but red"."""
    labels = codebook.labels[attribute]
    cells = codebook.numeric_cells(attribute)
    numeric = sorted(code for code in codes if code < cells)
    named = sorted(code for code in codes if code >= cells)
    if len(numeric) == cells > 0:
        words = ["any number"]
    else:
        words = [_range_in_words(codebook, attribute, first, last) for first, last in _runs(numeric)]
    left_out = [code for code in range(cells, len(labels)) if code not in set(named)]
    if not cells and len(named) > 3 and 0 < len(left_out) < len(named) and len(left_out) <= MANY_VALUES:
        return "any value but " + any_of([plain(labels[code]) for code in left_out])
    words += [plain(labels[code]) for code in named]
    if len(words) > MANY_VALUES:
        hidden = len(words) - MANY_VALUES + 1
        words = [*words[: MANY_VALUES - 1], f"{hidden} other values"]
    return any_of(words)


def any_of(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]


def _runs(codes: Sequence[int]) -> list[tuple[int, int]]:
    """Ascending codes as (first, last) of each unbroken run."""
    runs: list[tuple[int, int]] = []
    for code in codes:
        if runs and runs[-1][1] == code - 1:
            runs[-1] = (runs[-1][0], code)
        else:
            runs.append((code, code))
    return runs


def _range_in_words(codebook: Codebook, attribute: int, first: int, last: int) -> str:
    """A range of cells. A bound of the schema is no bound of the rule: the outer cells hold what lies beyond it too."""
    edges = codebook.edge_texts[attribute]
    if first == 0:
        return f"below {edges[last + 1]}"
    return f"{edges[first]} or more" if last == len(edges) - 2 else codebook.range_text(attribute, first, last)
