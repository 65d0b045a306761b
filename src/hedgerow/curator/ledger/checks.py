"""Validation of names, texts and amounts: whatever both databases can hold and both compare alike."""

from __future__ import annotations

import unicodedata
from fractions import Fraction
from typing import Any

from hedgerow.accounting.loss import exact_epsilon
from hedgerow.errors import LedgerError

LONGEST_NAME, LONGEST_TEXT = 200, 2000
BIDIRECTIONAL = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # they turn what stands around them
LINES = "\u2028\u2029"


def checked_name(value: str, what: str) -> str:
    if not isinstance(value, str) or not value or value != value.strip() or len(value) > LONGEST_NAME:
        raise LedgerError(f"{what}: got {value!r:.100}; expected 1 to {LONGEST_NAME} characters without blanks around them.")
    return checked_text(value, what)


def unsafe_to_show(text: str) -> bool:
    """Whether it holds control characters, or such as turn the direction of writing: it would not be shown as what it is."""
    return any(sign in BIDIRECTIONAL or sign in LINES or unicodedata.category(sign) == "Cc" for sign in text)


def safe_to_show(text: str) -> str:
    """The same without such characters."""
    return "".join(sign for sign in text if not unsafe_to_show(sign))


def checked_new_name(value: str, what: str) -> str:
    """A name that comes into being now. What older versions have taken can still be read."""
    if unsafe_to_show(checked_name(value, what)):
        raise LedgerError(f"{what}: got {value!r:.100}; expected no control characters, and none that turn the direction of writing.")
    return value


def checked_text(value: str, what: str) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_TEXT or "\0" in value or any("\ud800" <= sign <= "\udfff" for sign in value):
        raise LedgerError(f"{what}: got {value!r:.100}; expected a text of at most {LONGEST_TEXT} characters that UTF-8 can write.")
    return value


def checked_hash(request: str) -> str:
    """The SHA-256 of a request."""
    if not isinstance(request, str) or len(request) != 64 or set(request) - set("0123456789abcdef"):
        raise LedgerError(f"request: got {checked_text(request, 'request')!r:.100}; expected its SHA-256 as 64 hexadecimal digits.")
    return request


def amount_from_zero(value: Any, what: str) -> Fraction:
    """An ε that may be 0: a ceiling that allows nothing, a request that has cost nothing."""
    if not isinstance(value, bool) and value in (0, "0"):
        return Fraction(0)
    return value if isinstance(value, Fraction) and value > 0 else exact_epsilon(value, what)
