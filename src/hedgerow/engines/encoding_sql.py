"""From any DuckDB relation to codes, batch by batch: text is coded where it is read, numbers are sent as they are and put into cells here.

How a column is read follows from its declared type and from the schema, never from its values, and a value that is not declared takes the
branch that the schema names for it, exactly as `Codebook.encode` does it: the codes of a table do not depend on where it is.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import TableError
from hedgerow.schema.attributes import Value
from hedgerow.schema.codebook import BLOCK, Codebook
from hedgerow.schema.coders import CategoricalCoder, Coder, DateCoder, NumericCoder, as_floats, look_up_few
from hedgerow.schema.column_types import check_codes, check_values
from hedgerow.schema.columns import objects

BATCH, MOST_CELLS = 65_536, 1 << 21  # rows, and values, that come at a time
WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")  # what an int64 holds
NUMBERS = (*WHOLE, "UBIGINT", "HUGEINT", "UHUGEINT", "FLOAT", "DOUBLE", "BOOLEAN")
DTYPES = {f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}  # of Arrow, for NumPy
DTYPES |= {"float": "float32", "double": "float64"}
NO_NUMBERS = ("DATE", "TIME", "INTERVAL", "UUID")  # types that begin so
DATES = ("DATE", "TIMESTAMP", "DATETIME", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")
NO_VALUES = ("BLOB", "BIT", "STRUCT", "MAP", "UNION", "VARIANT", "GEOMETRY")


class Encoding:
    """SQL expressions for the declared columns, and how a batch of their values becomes codes.

    columns: name and DuckDB type of every column that the relation has
    sql_name: how a column is called in the relation, quoted
    labels: whether the class is read, too
    absent: declared columns that the relation does not have; no row has a branch for them
    few: of a few rows codes are made without the compiled loops, which take longer to be loaded; they are the same
    """

    def __init__(
        self,
        codebook: Codebook,
        columns: Mapping[str, str],
        sql_name: Callable[[str], str],
        labels: bool = True,
        absent: Collection[str] = (),
        few: bool = False,
    ) -> None:
        self.codebook = codebook
        names = [*codebook.schema.names, *([codebook.schema.target.name] if labels else [])]
        self._labels = labels
        self._columns: list[tuple[int, Callable[[Any, NDArray[Any]], None]]] = []
        self.expressions: list[str] = []
        for j, (name, coder) in enumerate(zip(names, codebook.coders, strict=False)):
            if name not in absent:
                expression, decode = _column(coder, sql_name(name), columns[name], name, few)
                attribute = codebook.schema.attributes[j] if j < len(codebook.schema.names) else None
                values = codebook.schema.target.classes if attribute is None else getattr(attribute, "values", ())
                _check_type(name, values, columns[name], predicted=not labels)
                self.expressions.append(f"{expression} AS c{j}")
                self._columns.append((j, decode))

    def decode(self, batch: Any) -> tuple[NDArray[Any], NDArray[np.uint16]]:
        """Codes and class codes of a record batch whose first columns are the expressions."""
        rows, attributes = batch.num_rows, len(self.codebook.sizes)
        codes = np.empty((rows, attributes), dtype=self.codebook.dtype)
        classes = np.empty(rows if self._labels else 0, dtype=np.uint16)
        if len(self._columns) < attributes + self._labels:
            codes[:] = self.codebook.sizes
        arrays = [batch.column(i) for i in range(len(self._columns))]
        for start in range(0, rows, BLOCK):
            for (j, decode), array in zip(self._columns, arrays, strict=True):
                out = codes[start : start + BLOCK, j] if j < attributes else classes[start : start + BLOCK]
                decode(array.slice(start, BLOCK), out)
        return codes, classes

    @property
    def batch_rows(self) -> int:
        """Rows that come at a time: fewer of a wide table."""
        return max(1024, min(BATCH, MOST_CELLS // len(self.expressions)))

    def blocks(self, connection: Any, relation: str) -> Iterator[tuple[NDArray[Any], NDArray[np.uint16]]]:
        """All rows of a relation, encoded, one batch after the other."""
        with connection.sql(self.select(relation)).to_arrow_reader(self.batch_rows) as reader:
            for batch in reader:
                yield self.decode(batch)

    def select(self, relation: str, *more: str) -> str:
        return f"SELECT {', '.join([*self.expressions, *more])} FROM {relation}"


def _check_type(name: str, values: Sequence[Value], kind: str, predicted: bool) -> None:
    """Refuse a type that holds no declared value; of rows that are predicted, one that holds no code."""
    base = kind.split("(")[0].upper()
    whole = base in WHOLE or base.endswith(("BIGINT", "HUGEINT"))
    held = "booleans" if base == "BOOLEAN" else "whole" if whole else "numbers" if base in (*NUMBERS, "DECIMAL") else None
    check_codes(name, values, held)
    if values and not predicted:
        check_values(name, values, held)


def _column(coder: Coder, column: str, kind: str, name: str, few: bool) -> tuple[str, Callable[[Any, NDArray[Any]], None]]:
    base = kind.split("(")[0].split(" ")[0].upper()
    nested = kind.endswith("]") or base in NO_VALUES
    if isinstance(coder, DateCoder) and (base == "VARCHAR" or base in DATES) and "ZONE" not in kind.upper():
        return _days(coder, column, base, few)
    if nested or (isinstance(coder, NumericCoder) and base.startswith(NO_NUMBERS)):
        expected = "numbers" if isinstance(coder, NumericCoder) else "text, numbers or booleans"
        raise TableError(f"column {name!r}: got the type {kind[:60]}; expected {expected}. Convert it first.")
    if isinstance(coder, NumericCoder):
        return _number_sql(column, base), _cells_of(coder, few)
    assert isinstance(coder, CategoricalCoder)
    if base in (*WHOLE, "UBIGINT", "FLOAT", "DOUBLE"):
        return column, _numbers_of(coder, few)
    text = column if base == "VARCHAR" else f"CAST({column} AS VARCHAR)"
    spellings = [spelling for spelling in coder.code_of_spelling if spelling]
    known = f"ENUM({', '.join(map(quoted, ['', *spellings]))})"  # the first of them stands for what is missing
    codes = np.array([coder.missing, *(coder.code_of_spelling[spelling] for spelling in spellings)], dtype=np.int32)
    return f"enum_code(TRY_CAST(coalesce({text}, '') AS {known}))", _spellings_of(codes, coder.other, few)


def _days(coder: DateCoder, column: str, base: str, few: bool) -> tuple[str, Callable[[Any, NDArray[Any]], None]]:
    """Dates: of a type of their own as numbers of days; text is sent as it is, and read here as it is read everywhere."""
    if base in DATES:
        day = f"TRY_CAST(left(CAST({column} AS VARCHAR), 10) AS DATE)"
        return f"CASE WHEN isfinite({day}) THEN date_diff('day', DATE '1970-01-01', {day}) END", _cells_of(coder, few)
    encode_into = coder.encode_few if few else coder.encode_into

    def decode(array: Any, out: NDArray[Any]) -> None:
        encode_into(objects(array.to_pylist()), out)

    return column, decode


def _number_sql(column: str, base: str) -> str:
    if base in NUMBERS:
        return column if base in (*WHOLE, "FLOAT", "DOUBLE") else f"CAST({column} AS DOUBLE)"
    text = column if base == "VARCHAR" else f"CAST({column} AS VARCHAR)"
    return f"CASE WHEN contains({text}, '_') OR contains({text}, '+-') THEN NULL ELSE TRY_CAST({text} AS DOUBLE) END"


def _values(array: Any, filler: int) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """The numbers of an Arrow array, and where they are missing. Read from its buffers: Arrow's own way would import pandas."""
    if not len(array):
        return np.empty(0, dtype=DTYPES[str(array.type)]), None
    there, numbers = array.buffers()
    values = np.frombuffer(numbers, dtype=DTYPES[str(array.type)], count=array.offset + len(array))[array.offset :]
    if array.null_count == 0:
        return values, None
    bits = np.frombuffer(there, dtype=np.uint8)
    missing = np.unpackbits(bits, count=array.offset + len(array), bitorder="little")[array.offset :] == 0
    filled = np.where(missing, values.dtype.type(filler), values)
    filled.setflags(write=False)  # as those of a buffer: loops are compiled for one kind
    return filled, missing


def _look_up(few: bool) -> Callable[..., None]:
    if few:
        return look_up_few
    from hedgerow.schema.coding_loops import look_up

    return cast(Callable[..., None], look_up)


def _cells_of(coder: NumericCoder, few: bool) -> Callable[[Any, NDArray[Any]], None]:
    encode_into = coder.encode_few if few else coder.encode_into

    def decode(array: Any, out: NDArray[Any]) -> None:
        values, missing = _values(array, 0)
        encode_into(as_floats(values), out)
        if missing is not None:
            out[missing] = coder.missing

    return decode


def _numbers_of(coder: CategoricalCoder, few: bool) -> Callable[[Any, NDArray[Any]], None]:
    look_up = _look_up(few)

    def decode(array: Any, out: NDArray[Any]) -> None:
        values, missing = _values(array, 0)
        if coder.lut is not None and values.dtype.kind in "iu" and values.dtype != np.uint64:
            look_up(values, coder.low, coder.lut, out)
        else:
            out[:] = coder.encode(values)
        if missing is not None:
            out[missing] = coder.missing

    return decode


def _spellings_of(codes: NDArray[np.int32], other: int, few: bool) -> Callable[[Any, NDArray[Any]], None]:
    """`codes[place]` is the code of the spelling that stands there; null is what nobody declared."""
    look_up = _look_up(few)

    def decode(array: Any, out: NDArray[Any]) -> None:
        values, undeclared = _values(array, 0)
        look_up(values, 0, codes, out)
        if undeclared is not None:
            out[undeclared] = other

    return decode


def quoted(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def dotted(table: str) -> str:
    """`table` or `schema.table`, quoted; a part with a dot or a quote in it is written in double quotes, as in SQL."""
    parts = re.fullmatch(r'(?:("(?:[^"]|"")+"|[^".]+)\.)?("(?:[^"]|"")+"|[^".]+)', table)
    if parts is None or "\0" in table:
        raise TableError(f"table {table!r}: expected table or schema.table; in double quotes where a name has dots or quotes in it.")
    names = [part[1:-1].replace('""', '"') if part.startswith('"') else part for part in parts.groups() if part]
    return ".".join(map(identifier, names))


def identifier(name: str) -> str:
    """A column's name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def needed_columns(codebook: Codebook) -> list[str]:
    """What a table must have: the attributes, the target, and whose row it is, if the schema names that."""
    schema = codebook.schema
    return [*schema.names, schema.target.name, *([] if schema.person is None else [schema.person])]


def spelled(columns: Iterable[str], needed: Sequence[str]) -> str:
    """A hint where a column is spelled otherwise. Other names are not repeated: of a file without a header they are a private row. So what
    is only alike is named where half of the needed columns are there: then it is a header.
    """
    have = list(columns)
    absent = [name for name in needed if name not in have]
    near = [found for found in have for name in absent if found.strip().casefold() == name.strip().casefold()]
    if near:
        return f" It has {', '.join(map(repr, near))}: spelling and case matter."
    others = [found for found in have if found not in needed]
    alike = [match for name in absent for match in difflib.get_close_matches(name, others, n=1, cutoff=0.6)]
    if not alike or 2 * len(absent) > len(needed):
        return ""
    return f" Did you mean {', '.join(map(repr, dict.fromkeys(alike)))}?"
