"""Parsing of amounts in requests: short ones only, so that the exact sums in the ledger stay short too."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Annotated, Any

from pydantic import AfterValidator, StrictFloat, StrictInt, StrictStr, WithJsonSchema

from hedgerow.accounting.loss import text_of_fraction
from hedgerow.remote.codec import MOST_DENOMINATOR

DIGITS = 12
EXPECTED = f"a decimal of at most {DIGITS} digits, such as 0.5, or a fraction with a denominator of at most {MOST_DENOMINATOR}, such as 1/3"
_DECIMAL = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,12}))?(?:[eE](-?[0-9]{1,2}))?")
_FRACTION = re.compile(r"([0-9]{1,12})/([0-9]{1,3})")


def amount_of(value: str | int | float) -> Fraction:
    """An amount from JSON, exactly: a number is the decimal that was written. ValueError for all else."""
    text = value if isinstance(value, str) else repr(value)
    fraction = _FRACTION.fullmatch(text) if len(text) <= 40 else None
    if fraction is not None and 0 < int(fraction[2]) <= MOST_DENOMINATOR:
        return Fraction(int(fraction[1]), int(fraction[2]))
    decimal = _DECIMAL.fullmatch(text) if len(text) <= 40 else None
    if decimal is not None:
        amount = Fraction(text)
        if (amount * 10**DIGITS).denominator == 1 and amount < 10**DIGITS and _digits(amount) <= DIGITS:
            return amount
    raise ValueError(f"expected {EXPECTED}")


def _digits(amount: Fraction) -> int:
    """Of the whole part and after the point, without zeros at either end."""
    return len(str(int(amount * 10**DIGITS)).strip("0"))


def _from_zero(value: str | int | float) -> str:
    return text_of_fraction(amount_of(value))


def _above_zero(value: str | int | float) -> str:
    amount = amount_of(value)
    if not amount:
        raise ValueError(f"expected a number above 0: {EXPECTED}")
    return text_of_fraction(amount)


_Given = StrictStr | StrictInt | StrictFloat
_DOCUMENTED: dict[str, Any] = {
    "description": EXPECTED,
    "anyOf": [
        {"type": "string", "pattern": f"^({_DECIMAL.pattern}|{_FRACTION.pattern})$"},
        {"type": "number", "minimum": 0, "exclusiveMaximum": 10**DIGITS},
    ],
}
Amount = Annotated[_Given, AfterValidator(_above_zero), WithJsonSchema({**_DOCUMENTED, "examples": ["0.5"]})]
AmountFromZero = Annotated[_Given, AfterValidator(_from_zero), WithJsonSchema({**_DOCUMENTED, "examples": ["0"]})]
