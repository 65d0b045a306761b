"""Coders: from the values of one attribute to small integers, each value by itself, never an error because of one."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import TableError
from hedgerow.schema.attributes import Categorical, Numeric, is_missing, spellings, text_of
from hedgerow.schema.columns import objects
from hedgerow.schema.dates import day_of, day_of_object, days_of_datetimes, has_separators

_WIDE = 1 << 16  # integer domains wider than this are searched instead of looked up
LONG_TEXT, MOST_TEXTS = 64, 1 << 14  # characters of a value, and values, that a compiled loop looks up
NARROW = 256  # integer domains up to this are looked up for all attributes of a row in one pass


class Coder:
    """Codes for one attribute. `stop` is the code that has no branch."""

    missing: int
    stop: int

    def whole_column(self, column: Any) -> NDArray[Any]:
        """The column as something that can be cut into blocks: an array, or codes already.

        Which way is taken depends on the declared type of the column and never on the values in it.
        """
        import narwhals as nw

        if isinstance(column, np.ma.MaskedArray):
            if column.dtype.kind in "biuf":
                return self.with_missing(np.asarray(column.data), np.ma.getmaskarray(column))
            return objects(column.tolist())
        if isinstance(column, np.ndarray):
            return column
        series, native = column, column.to_native()
        dtype, categorical = series.dtype, isinstance(series.dtype, (nw.Categorical, nw.Enum))
        if type(native).__module__.startswith("pandas"):
            # A library would guess the type of objects from the first values; Python text may hold what is not UTF-8.
            if native.dtype == np.dtype(object) or getattr(native.dtype, "storage", "") == "python":
                return np.asarray(native, dtype=object)
            if categorical:  # and that of the categories from whether one is null: code −1, the last of `values`
                values = objects([*native.cat.categories.tolist(), None])
                return np.asarray(values[native.cat.codes.to_numpy()])
        if categorical:
            series, dtype = series.cast(nw.String), nw.String()
        if isinstance(dtype, nw.String):
            return self.from_text_series(series)
        if dtype.is_integer() or isinstance(dtype, nw.Boolean):  # to_numpy would make floats or objects of them if one is null
            if series.null_count() == 0:
                return np.asarray(series.to_numpy())
            nulls = np.asarray(series.is_null().to_numpy(), dtype=bool)
            filler = False if isinstance(dtype, nw.Boolean) else 0
            return self.with_missing(np.asarray(series.fill_null(filler).to_numpy()), nulls)
        if dtype.is_float():
            return np.asarray(series.to_numpy(), dtype=np.float64)
        return objects(series.to_list())

    def guarded(self, column: Any, name: str) -> NDArray[Any]:
        """`whole_column`, with one fixed error for whatever a library may say about a value in it."""
        try:
            return self.whole_column(column)
        except Exception:
            pass
        except BaseException as error:
            if isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit)):
                raise
        raise TableError(f"column {name!r} cannot be read by the library that holds it. Convert it to text or numbers first.")

    def with_missing(self, values: NDArray[Any], missing: NDArray[np.bool_]) -> NDArray[Any]:
        """Whole numbers or booleans, some of which stand for missing values."""
        raise NotImplementedError

    def from_text_series(self, series: Any) -> NDArray[Any]:
        raise NotImplementedError

    def encode(self, block: NDArray[Any]) -> NDArray[Any]:
        raise NotImplementedError

    def encode_into(self, block: NDArray[Any], out: NDArray[Any]) -> None:
        """As `encode`, written to `out`; coders override it where a compiled loop can do it in one pass."""
        out[:] = self.encode(block)


class Codes(np.ndarray[Any, np.dtype[np.int32]]):
    """An array that holds codes already."""


class CategoricalCoder(Coder):
    def __init__(self, attribute: Categorical) -> None:
        domain = [text_of(value) for value in attribute.domain]
        self.stop = len(domain)
        self.other = domain.index(text_of(attribute.other)) if attribute.other is not None else self.stop
        self.missing = domain.index(text_of(attribute.missing)) if attribute.missing is not None else self.other
        self.code_of_text = {text_of(value): code for code, value in enumerate(attribute.values)}
        self.code_of_spelling = {s: code for text, code in self.code_of_text.items() for s in spellings(text)}
        numbers = {}
        for text, code in self.code_of_text.items():
            number = _number(text)
            if number is not None and text_of(number) == text:
                numbers[number] = code  # the values that a numeric column can hold
        self._lookup_numbers(numbers)
        inside = max((abs(n) for n in numbers), default=0) < 2**53  # floats hold these whole numbers exactly
        self.float_lut = self.lut if inside and self.only_whole else None

    def _lookup_numbers(self, numbers: dict[float | int, int]) -> None:
        """Tables for numeric columns: `lut` for whole numbers in a narrow range, sorted keys for the rest."""
        whole = {int(n): code for n, code in numbers.items() if n == int(n) and abs(n) < 2**62}
        self.low = min(whole, default=0) - 1  # the first and the last place of the table mean `other`
        width = max(whole, default=0) - self.low + 2
        self.lut: NDArray[np.int32] | None = None
        if width <= _WIDE:
            self.lut = np.full(width, self.other, dtype=np.int32)
            for n, code in whole.items():
                self.lut[n - self.low] = code
        self.int_keys = np.array(sorted(whole), dtype=np.int64)
        self.int_codes = np.array([whole[n] for n in sorted(whole)], dtype=np.int32)
        self.float_keys = np.array(sorted(numbers), dtype=np.float64)
        self.float_codes = np.array([numbers[n] for n in sorted(numbers)], dtype=np.int32)
        self.only_whole = len(whole) == len(numbers)

    @property
    def narrow(self) -> bool:
        return self.lut is not None and len(self.lut) <= NARROW

    @property
    def padded(self) -> NDArray[np.int32]:
        """`lut` at a common width; what is beyond its end means `other`."""
        assert self.lut is not None
        return np.concatenate([self.lut, np.full(NARROW - len(self.lut), self.other, dtype=np.int32)])

    def with_missing(self, values: NDArray[Any], missing: NDArray[np.bool_]) -> NDArray[Any]:
        codes = np.asarray(self.encode(values), dtype=np.int32)
        codes[missing] = self.missing
        return codes.view(Codes)

    def from_text_series(self, series: Any) -> NDArray[Any]:
        import narwhals as nw

        old, new = [*self.code_of_spelling, ""], [*self.code_of_spelling.values(), self.missing]
        codes = series.replace_strict(old, new, default=self.other, return_dtype=nw.Int32)
        filled = np.array(codes.fill_null(self.other).to_numpy(), dtype=np.int32)
        filled[np.asarray(series.is_null().to_numpy(), dtype=bool)] = self.missing
        return filled.view(Codes)

    def encode(self, block: NDArray[Any]) -> NDArray[Any]:
        if isinstance(block, Codes):
            return block
        kind = block.dtype.kind
        if kind == "b":
            codes = [self.code_of_text.get("false", self.other), self.code_of_text.get("true", self.other)]
            return np.array(codes, dtype=np.int32)[block.astype(np.int8)]
        if kind == "u" and block.dtype.itemsize == 8:
            block = np.minimum(block, np.uint64(2**62))
        if kind in "iu":
            return self._whole_numbers(block.astype(np.int64))
        if kind == "f":
            return self._floats(as_floats(block))
        if kind == "U":
            return self._texts(block)
        known: dict[Any, int] = {}
        return np.fromiter((self._any_value(value, known) for value in block.tolist()), dtype=np.int32, count=len(block))

    def encode_into(self, block: NDArray[Any], out: NDArray[Any]) -> None:
        if self.lut is not None and block.dtype == np.int64:
            from hedgerow.schema.coding_loops import look_up

            look_up(block, self.low, self.lut, out)
        else:
            out[:] = self.encode(block)

    def _whole_numbers(self, block: NDArray[np.int64]) -> NDArray[Any]:
        if self.lut is not None:
            return self.lut[np.clip(block, self.low, self.low + len(self.lut) - 1) - self.low]
        return self._search(self.int_keys, self.int_codes, block)

    def _floats(self, block: NDArray[np.float64]) -> NDArray[Any]:
        if self.float_lut is not None:
            near = np.clip(np.nan_to_num(block, nan=self.low), self.low, self.low + len(self.float_lut) - 1)
            whole = near.astype(np.int64)
            codes = np.where(whole == near, self.float_lut[whole - self.low], np.int32(self.other))
        else:
            codes = self._search(self.float_keys, self.float_codes, block)
        return np.where(np.isnan(block), np.int32(self.missing), codes)

    def _search(self, keys: NDArray[Any], codes: NDArray[np.int32], block: NDArray[Any]) -> NDArray[Any]:
        if not len(keys):
            return np.full(len(block), self.other, dtype=np.int32)
        place = np.minimum(np.searchsorted(keys, block), len(keys) - 1)
        return np.where(keys[place] == block, codes[place], np.int32(self.other))

    def _texts(self, block: NDArray[Any]) -> NDArray[Any]:
        """Text as it is declared by a compiled loop; any other by itself, which is seldom."""
        from hedgerow.schema.coding_loops import look_up_text

        codes = np.empty(len(block), dtype=np.int32)
        look_up_text(_characters(block), *self._declared_texts, codes)
        others, known = np.flatnonzero(codes < 0), dict[Any, int]()
        codes[others] = [self._any_value(text, known) for text in block[others].tolist()]
        return codes

    @cached_property
    def _declared_texts(self) -> tuple[NDArray[np.uint32], NDArray[np.int32], NDArray[np.int32]]:
        """The characters of each, where they stand in a hash table, and their codes."""
        from hedgerow.schema.coding_loops import fill_slots

        few = self.code_of_text if len(self.code_of_text) <= MOST_TEXTS else {}  # others, and long ones, would need much room
        plain = [text for text in few if text_of(text) == text != "" and len(text) <= LONG_TEXT and not text.endswith("\0")]
        texts = {text: few[text] for text in plain}
        characters = _characters(np.array([*texts, ""]))[:-1]
        slots = np.full(4 << len(texts).bit_length(), -1, dtype=np.int32)
        fill_slots(characters, slots)
        return characters, slots, np.array(list(texts.values()), dtype=np.int32)

    def _any_value(self, value: Any, known: dict[Any, int]) -> int:
        """The code of any object. Text is remembered; other values are not, since equal ones may differ in their text."""
        try:
            if type(value) is str:
                code = known.get(value)
                if code is None:
                    code = known[value] = self.missing if value == "" else self.code_of_text.get(text_of(value), self.other)
                return code
            return self.missing if is_missing(value) else self.code_of_text.get(text_of(value), self.other)
        except Exception:  # whatever an object does when it is looked at, it is nothing that is declared
            return self.other


def _characters(block: NDArray[Any]) -> NDArray[np.uint32]:
    """Of an array of text: (texts, characters), filled up with 0."""
    width = max(1, block.dtype.itemsize // 4)
    return np.ascontiguousarray(block, dtype=f"=U{width}").view(np.uint32).reshape(len(block), width)


def _number(text: str) -> int | float | None:
    """The finite number that a declared text means, if it means one that an array can hold."""
    try:
        number = int(text) if len(text) < 25 else float(text)
    except ValueError:
        try:
            number = float(text)
        except ValueError:
            return None
    return number if abs(number) < 1e300 else None  # not for nan


def number_coder(attribute: Numeric, bins: int) -> NumericCoder:
    return NumericCoder(attribute, bins) if attribute.date is None else DateCoder(attribute, bins)


class NumericCoder(Coder):
    def __init__(self, attribute: Numeric, bins: int) -> None:
        edges = attribute.cell_edges(bins)
        cells = len(edges) - 1
        self.inner = np.array(edges[1:-1], dtype=np.float64)
        per_unit = float(np.float64(cells) / (edges[-1] - edges[0])) if edges[-1] - edges[0] > 1e-290 else 0.0
        self.low, self.per_unit = edges[0], per_unit
        self.stop = cells + (attribute.missing is not None)
        self.missing = cells  # the branch for missing values, or the code without a branch: the same number

    def with_missing(self, values: NDArray[Any], missing: NDArray[np.bool_]) -> NDArray[Any]:
        numbers = as_floats(values).copy()
        numbers[missing] = np.nan
        return numbers

    def from_text_series(self, series: Any) -> NDArray[Any]:
        return objects(series.to_list())

    def numbers(self, block: NDArray[Any]) -> NDArray[np.float64]:
        """The values of a column as numbers; what is none is NaN."""
        return as_floats(block)

    def encode(self, block: NDArray[Any]) -> NDArray[Any]:
        codes = np.empty(len(block), dtype=np.int32)
        self.encode_into(block, codes)
        return codes

    def encode_into(self, block: NDArray[Any], out: NDArray[Any]) -> None:
        from hedgerow.schema.coding_loops import cells

        cells(self.numbers(block), self.inner, self.low, self.per_unit, self.missing, out)

    def encode_few(self, block: NDArray[Any], out: NDArray[Any]) -> None:
        """As `encode_into`, for a few rows: the number of inner edges that are not above each number."""
        numbers = self.numbers(block)
        out[:] = np.where(np.isnan(numbers), self.missing, np.searchsorted(self.inner, numbers, side="right"))


class DateCoder(NumericCoder):
    """Dates, written as declared or of a type of their own, as days; other numbers are days already."""

    def __init__(self, attribute: Numeric, bins: int) -> None:
        super().__init__(attribute, bins)
        assert attribute.date is not None
        self.written = attribute.date

    def whole_column(self, column: Any) -> NDArray[Any]:
        import narwhals as nw

        if isinstance(column, nw.Series) and isinstance(column.dtype, (nw.Date, nw.Datetime)):
            return objects(column.to_list())
        return super().whole_column(column)

    def numbers(self, block: NDArray[Any]) -> NDArray[np.float64]:
        if block.dtype.kind == "M":
            return days_of_datetimes(block)
        if block.dtype.kind in "iufb" and (has_separators(self.written) or block.dtype.kind == "b"):
            return as_floats(block)
        days: dict[str, float] = {}  # of this block only: the values are private and must not live on
        return np.fromiter((self._day(value, days) for value in block.tolist()), dtype=np.float64, count=len(block))

    def _day(self, value: Any, days: dict[str, float]) -> float:
        """Texts are remembered, and nothing else: what a text means follows from it alone, so that no row changes what another's is."""
        if type(value) is not str:
            return self._read(value)
        if value not in days:
            days[value] = self._read(value)
        return days[value]

    def _read(self, value: Any) -> float:
        try:
            day = None if isinstance(value, str) else day_of_object(value)
            if day is None:
                day = day_of(text_of(value), self.written)
            return _as_float(value) if day is None else float(day)
        except Exception:  # whatever an object does when it is looked at
            return float("nan")


def look_up_few(block: NDArray[Any], low: int, table: NDArray[Any], out: NDArray[Any]) -> None:
    """As the compiled `look_up`, for a few rows: what lies outside has the table's first entry, `other`."""
    inside = (block >= low) & (block < low + len(table))
    out[:] = table[np.where(inside, block.astype(np.int64) - low, 0)]


def as_floats(block: NDArray[Any]) -> NDArray[np.float64]:
    """Anything as floats; what is not a number is missing. Never raises."""
    if block.dtype.kind in "iufb":
        with np.errstate(all="ignore"):  # a long double beyond the range of floats is infinite: no warning about it
            return block.astype(np.float64, copy=False)
    return np.fromiter(map(_as_float, block.tolist()), dtype=np.float64, count=len(block))


def _as_float(value: Any) -> float:
    try:
        readable = not isinstance(value, str) or (value.isascii() and "_" not in value)  # as files are read, too
        return float(value) if readable else float("nan")
    except Exception:  # whatever an object does when it is looked at
        return float("nan")
