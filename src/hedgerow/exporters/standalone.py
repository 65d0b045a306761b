"""What a forest that was exported as Python runs by. Its text is copied, so it imports nothing but Python itself."""

# ---- from here on it is copied
from __future__ import annotations

import csv
import datetime
import itertools
import json
import math
import os
import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Any

MODEL: dict[str, Any] = json.loads("{}")
# ---- the model stands above

COLUMNS, TREES, CLASSES = MODEL.get("columns", []), MODEL.get("trees", []), MODEL.get("classes", [])
CERTIFICATE = MODEL.get("facts", {})
_WHOLE = re.compile(r"^-?\d+$")


def predict(row: Mapping[str, Any]) -> Any:
    """The most probable class of one row, given as {column: value}. What is None, NaN or "" is missing."""
    shares = predict_proba(row)
    return CLASSES[shares.index(max(shares))]


def predict_proba(row: Mapping[str, Any]) -> list[float]:
    """The probability of each of CLASSES."""
    codes = [_code(column, row) for column in COLUMNS]
    return _finished([tree["values"][_place(tree, codes)] for tree in TREES])


# ---------------------------------------------------------------- values to codes


def _code(column: dict[str, Any], row: Mapping[str, Any]) -> int:
    if column["name"] not in row:
        if not MODEL["may_lack_columns"]:
            raise KeyError(f"the row has no column {column['name']!r}; expected {', '.join(each['name'] for each in COLUMNS)}")
        return int(column["absent"])
    value = row[column["name"]]
    if column["edges"] is None:
        return int(column["missing"] if _is_missing(value) else column["codes"].get(_text_of(value), column["other"]))
    number = _number(value) if column["date"] is None else _day(value, column["date"])
    return int(column["missing"] if math.isnan(number) else bisect_right(column["edges"], number))


def _is_missing(value: Any) -> bool:
    if value is None or (isinstance(value, str) and value == ""):
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # a missing value of some libraries refuses to be a truth value
        return True


def _text_of(value: Any) -> str:
    """The text by which values are compared: 1.0 and "1.0" are "1", True is "true"."""
    if not isinstance(value, str) and hasattr(value, "item"):
        return _text_of(value.item())
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = str(value)
    if text in ("True", "TRUE", "False", "FALSE"):
        return text.lower()
    if text.endswith(".0") and _WHOLE.match(text[:-2]):
        text = text[:-2]
    return "0" if text == "-0" else text


def _number(value: Any) -> float:
    """What is not a number is missing."""
    if isinstance(value, str) and (not value.isascii() or "_" in value):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
    except OverflowError:
        return math.nan


def _day(value: Any, pattern: str) -> float:
    """Days since 1970-01-01, of a date or of a text that is written as declared; what is neither is a number of days."""
    start = datetime.date(1970, 1, 1)
    if isinstance(value, datetime.datetime):
        value = value.date() if value == value else None
    if isinstance(value, datetime.date):
        return float((value - start).days)
    found = re.compile(pattern, re.ASCII).fullmatch(_text_of(value).strip(" "))
    try:
        if found is not None:
            return float((datetime.date(int(found["Y"]), int(found["m"]), int(found["d"])) - start).days)
    except ValueError:
        pass
    return _number(value)


# ---------------------------------------------------------------- codes to probabilities


def _place(tree: dict[str, Any], codes: list[int]) -> int:
    node = 0 if tree["attribute"] else -1
    while node >= 0:
        node = tree["branch"][node][codes[tree["attribute"][node]]]
    return int(~node)


def _finished(met: list[list[float]]) -> list[float]:
    """met: the numbers of the place where the row ends in each tree."""
    finish, n = MODEL["finish"], len(CLASSES)
    if finish == "confident":
        return _most_confident(met, n)
    sums = list(MODEL["base"])
    for numbers in met:
        sums = [a + b for a, b in zip(sums, numbers, strict=True)]
    if finish == "shares":
        return sums
    if finish == "softmax":
        highest = max(sums)
        return _divided([math.exp(each - highest) for each in sums])
    if finish == "sums":
        positive = [each if each > 0 else 0.0 for each in sums]
        return _divided(positive) if sum(positive) > 0 else list(MODEL["prior"])
    shares, votes = sums[:n], sums[n:]  # "votes"
    total = sum(votes)
    return _divided([(vote / total if total > 0 else 0.0) + 1e-9 * share for vote, share in zip(votes, shares, strict=True)])


def _most_confident(met: list[list[float]], n: int) -> list[float]:
    highest = max(numbers[n] for numbers in met)
    best = [numbers for numbers in met if numbers[n] == highest]
    winner = best[0]
    if any(numbers[n + 1] != winner[n + 1] for numbers in best) or winner[:n].count(highest) > 1:
        return [sum(numbers[c] for numbers in met) / len(met) for c in range(n)]
    return list(winner[:n])


def _divided(numbers: list[float]) -> list[float]:
    total = sum(numbers)
    return [number / total for number in numbers]


def main() -> None:
    """Predictions for a CSV file, or for standard input, as CSV on standard output."""
    if sys.argv[1:2] in (["-h"], ["--help"]):
        print(f"usage: python {sys.argv[0]} [rows.csv] > predictions.csv")
        return
    name = sys.argv[1] if len(sys.argv) > 1 else "standard input"
    try:
        with open(name, encoding="utf-8-sig", newline="") if len(sys.argv) > 1 else sys.stdin as file:
            _write_predictions(_rows(file, name))
            sys.stdout.flush()  # here, where a broken pipe is handled
    except BrokenPipeError:  # whoever reads the predictions has enough; what is left to write goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        if error.filename is None:  # not the file: whoever reads the predictions
            raise
        sys.exit(f"error: {name}: {error.strerror or type(error).__name__}.")
    except UnicodeDecodeError:
        sys.exit(f"error: {name}: it is not text in UTF-8. Save it as CSV in UTF-8.")
    except csv.Error as error:
        sys.exit(f"error: {name}: it cannot be read as CSV ({error}).")


def _rows(lines: Iterable[str], name: str) -> Iterable[dict[str, Any]]:
    """The rows of a CSV file. Its delimiter is the one of , ; tab | that shows most of the declared columns in the header."""
    rest = iter(lines)
    head = next(rest, "").removeprefix("\ufeff")
    wanted = [column["name"] for column in COLUMNS]

    def known(delimiter: str) -> int:
        return len(set(wanted) & set(next(csv.reader([head], delimiter=delimiter), [])))

    reader = csv.reader(itertools.chain([head], rest), delimiter=max(",;\t|", key=known), strict=True)
    header = next(reader, [])
    lacking = [each for each in wanted if each not in header]
    if lacking and (not MODEL["may_lack_columns"] or len(lacking) == len(wanted)):
        sys.exit(f"error: {name}: it has no column {', '.join(map(repr, lacking))}; expected a header with {', '.join(map(repr, wanted))}.")
    return _below(header, reader, name)


def _below(header: list[str], reader: Any, name: str) -> Iterable[dict[str, Any]]:
    """Cells that a line lacks are missing values; more than the header has, or an open quote, would put values into other columns."""
    n, line = len(header), reader.line_num + 1
    try:
        for cells in reader:
            if any(cells[n:]) or (len(cells) < n and reader.line_num > line):
                raise csv.Error
            if cells or n == 1:
                yield {column: cells[i] if i < len(cells) else None for i, column in enumerate(header)}
            line = reader.line_num + 1
    except csv.Error:
        sys.exit(f"error: {name}: line {line:,} is no row: it has more cells than the header, or a quote is left open. Correct it.")


def _write_predictions(rows: Iterable[dict[str, Any]]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    names = [each if isinstance(each, str) else _text_of(each) for each in CLASSES]
    writer.writerow([f"predicted_{MODEL['target']}", *(f"probability_{name}" for name in names)])
    for row in rows:
        shares = predict_proba(row)
        writer.writerow([names[shares.index(max(shares))], *shares])


if __name__ == "__main__":
    main()
