"""Numbers as people read them: at most four digits, no exponents where there need be none. What is exact stays so in files.

amount       an ε, δ or ρ: as it is where that is short, else "about 0.3333"
at_most      what may be asked for where so much is left: rounded down
loss         "ε = 1", "(ε = 1, δ = 1e-06)"
number       any other number: 1,053 and not 1.05e+03
bound        a bound that somebody declared: never rounded
edges        the ends of cells, as round as the width of the cells allows
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from html import escape

DIGITS = 4
ABOUT = "about "
_LONG = 10**15  # whole numbers from here on have an exponent


def number(value: float, digits: int = DIGITS) -> str:
    """At most so many digits that say something; thousands have commas, and only what is very small or very large an exponent."""
    if value != value:
        return "not known"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0 or abs(value) < 10**-digits or abs(value) >= _LONG:
        return _minus(f"{value:.{digits}g}")
    rounded = Decimal(f"{value:.{digits - 1}e}")
    return _minus(_trimmed(rounded))


def _trimmed(value: Decimal) -> str:
    text = f"{value:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _minus(text: str) -> str:
    return text.replace("-", "−", 1) if text.startswith("-") else text


def amount(value: Fraction) -> str:
    """An ε, a δ or a ρ. "1/3" and "0.05" are exact; what would be longer is told in four digits, and says so."""
    rough = f"{float(value):.{DIGITS}g}"
    if Fraction(rough) == value:
        return repr(float(value)) if "e" in rough else rough
    if max(abs(value.numerator), value.denominator) < 1000:
        return str(value)
    return f"{ABOUT}{number(float(value))}"


def rough(value: Fraction) -> str:
    """An amount in a table of many, whose head or context says that they are rounded."""
    return amount(value).removeprefix(ABOUT)


def at_most(value: Fraction) -> str:
    """An amount that may be asked for where this much is left: itself, or the nearest below it in four digits."""
    if not amount(value).startswith(ABOUT):
        return amount(value)
    step = Fraction(10) ** (math.floor(math.log10(value)) - DIGITS + 1)
    return amount(value // step * step)


def loss(epsilon: Fraction, delta: Fraction = Fraction(0)) -> str:
    """A loss in words: ε alone where δ is 0."""
    return f"(ε {_equals(epsilon)}, δ {_equals(delta)})" if delta else f"ε {_equals(epsilon)}"


def _equals(value: Fraction) -> str:
    text = amount(value)
    return f"≈ {text.removeprefix(ABOUT)}" if text.startswith(ABOUT) else f"= {text}"


def bound(value: float) -> str:
    """All digits that were declared, as a person writes them: 1,000,000 and not 1e+06; and 1996, which may be a year."""
    if abs(value) >= _LONG or 0 < abs(value) < 1e-6:
        return _minus(f"{value:g}")
    return _of_value(Decimal(repr(float(value))))


def _of_value(value: Decimal) -> str:
    """A value of a column: from five digits on with commas."""
    text = _minus(_trimmed(value))
    return text if abs(value) >= 10_000 else text.replace(",", "")


def edges(ends: Sequence[float]) -> list[str]:
    """The ends of neighbouring cells. Inner ones are rounded to a twentieth of the narrower cell beside them; the bounds are as declared.

    The rounding is for whoever reads: cells are where they are.
    """
    texts = [bound(ends[0])]
    for below, here, above in zip(ends, ends[1:], ends[2:], strict=False):
        texts.append(rounded(here, min(here - below, above - here)))
    return [*texts, bound(ends[-1])]


def rounded(value: float, width: float) -> str:
    """A number with the digits that matter beside something of this width."""
    exact = bound(value)
    if not 0 < width < math.inf or "e" in exact:
        return exact
    step = Decimal(1).scaleb(math.floor(math.log10(width / 10)))
    shorter = _of_value((Decimal(repr(float(value))) / step).to_integral_value() * step)
    return shorter if _digits(shorter) < _digits(exact) else exact


def _digits(text: str) -> int:
    """How many digits have to be read before the zeros at the end."""
    return len(text.replace(",", "").replace(".", "").strip("−").strip("0"))


def pairs_text(lines: Sequence[tuple[str, str]]) -> str:
    """(what, how much) pairs, one beside the other."""
    width = max(len(what) for what, _ in lines)
    return "\n".join(f"{what:<{width}}  {text}" for what, text in lines)


def pairs_html(lines: Sequence[tuple[object, object]], title: str = "") -> str:
    """(what, how much) pairs as a small table for a notebook; everything is escaped."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(str(what))}</th><td style="text-align:left">{escape(str(text))}</td></tr>'
        for what, text in lines
    )
    return f"<table>{f'<caption>{escape(title)}</caption>' if title else ''}<tbody>{rows}</tbody></table>"


def gauge_html(share: float, words: str) -> str:
    """A bar of what is spent, with its words."""
    width = 100 * min(max(share, 0.0), 1.0)
    bar = f'<div style="width:{width:.1f}%;height:100%;background:#0072b2;border-radius:7px"></div>'
    return f'<div style="max-width:30em"><div style="height:14px;background:#e3e8ee;border-radius:7px">{bar}</div>{escape(words)}</div>'
