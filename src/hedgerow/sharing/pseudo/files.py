"""Pseudo-data as CSV or Parquet, written block by block, with the certificate beside it. A file is there whole or not at all."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import stat
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec
import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import PlanError
from hedgerow.schema.attributes import Categorical, Target, Value
from hedgerow.schema.schema import Schema
from hedgerow.sharing.pseudo.decoding import one_type, value_text, values_by_code
from hedgerow.sharing.pseudo.generate import Block

if TYPE_CHECKING:
    from hedgerow.sharing.pseudo.certificate import PseudoCertificate

PARQUET, CSV = ".parquet", ".csv"
ROW_GROUP = 1 << 20  # rows of a Parquet file that are written together


def kind_of(path: Path) -> str:
    """.csv or .parquet"""
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    if ending not in (CSV, PARQUET) or (ending == PARQUET and path.name.endswith(".gz")):
        raise PlanError(f"output {str(path)!r}: expected a name that ends in .csv, .csv.gz or .parquet.")
    return ending


def certificate_path(path: Path) -> Path:
    """out.csv → out.csv.certificate.json"""
    return path.with_name(path.name + ".certificate.json")


def write_table(
    path: Path, schema: Schema, blocks: Iterable[Block], certificate: Callable[[], PseudoCertificate], wrote: Callable[[int], None]
) -> PseudoCertificate:
    """Write all blocks; `wrote` hears of the rows. The certificate is asked for when all rows have been seen."""
    place = path.parent.resolve() / path.name
    try:
        with ExitStack() as stack:
            file = stack.enter_context(replacing(place))
            write_blocks(file, path, schema, _counted(blocks, wrote))
            complete = msgspec.structs.replace(certificate(), table=path.name, sha256=sha256_of(file))
            stack.enter_context(replacing(certificate_path(place))).write(complete.to_json())
        return complete  # the certificate was put in place first: a table is never there without one
    except OSError as error:
        raise PlanError(f"output {str(path)!r} cannot be written: {error.strerror or type(error).__name__}.") from error


def write_blocks(file: BinaryIO, path: Path, schema: Schema, blocks: Iterable[Block]) -> None:
    """All blocks into an open file, in the way that the name of the path says."""
    write = write_parquet if kind_of(path) == PARQUET else write_csv
    write(file, schema, blocks, path.name.endswith(".gz"))
    file.flush()


def _counted(blocks: Iterable[Block], wrote: Callable[[int], None]) -> Iterator[Block]:
    for block in blocks:
        yield block
        wrote(len(block))


@contextmanager
def replacing(path: Path) -> Iterator[Any]:
    """A new file that takes the name at the end, if nothing went wrong. Until then its name ends alike, so that it can be read."""
    new = path.parent / f".new-{uuid.uuid4().hex[:8]}-{path.name}"
    try:  # before it is there: an interrupt at any moment leaves nothing behind
        with open(new, "x+b", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.chmod(new, stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o644)
            os.replace(new, path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def sha256_of(file: Any) -> str:
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()


# ---------------------------------------------------------------- CSV


def write_csv(file: BinaryIO, schema: Schema, blocks: Iterable[Block], packed: bool = False) -> None:
    """Comma-separated UTF-8 with a header, the target last; an empty cell where a value is missing."""
    texts = {j: _texts(entry) for j, entry in enumerate(schema.attributes) if isinstance(entry, Categorical)}
    classes = _texts(schema.target)
    with ExitStack() as stack:
        raw: Any = file
        if packed:  # no name and no time in the header: the same rows give the same bytes
            raw = stack.enter_context(gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6, mtime=0))
        text = io.TextIOWrapper(raw, encoding="utf-8", newline="")
        text.write(",".join(map(_cell, (*schema.names, schema.target.name))) + "\n")
        for block in blocks:
            columns = [
                texts[j][block.codes[:, j]].tolist() if j in texts else _number_texts(block.numbers[j]) for j in range(len(schema.names))
            ]
            text.writelines(",".join(row) + "\n" for row in zip(*columns, classes[block.classes].tolist(), strict=True))
        text.flush()
        text.detach()


def _texts(entry: Categorical | Target) -> NDArray[Any]:
    array = np.empty(len(values := values_by_code(entry)), dtype=object)
    array[:] = [_cell(value_text(value)) for value in values]
    return array


def _cell(text: str) -> str:
    """In quotes where it could be taken for something else. (Python's csv leaves a lone carriage return as it is.)"""
    plain = text == text.strip() and not any(mark in text for mark in ',;|"\t\r\n\ufeff')
    return text if plain else '"' + text.replace('"', '""') + '"'


def _number_texts(numbers: NDArray[np.float64]) -> list[str]:
    return ["" if number != number else repr(number) for number in numbers.tolist()]


# ---------------------------------------------------------------- Parquet


def write_parquet(file: BinaryIO, schema: Schema, blocks: Iterable[Block], packed: bool = False) -> None:
    """Text columns with a dictionary, whole numbers and booleans as such, numeric attributes as doubles; null where missing."""
    import pyarrow as pa
    from pyarrow import parquet

    columns = [_ArrowColumn(entry) if isinstance(entry, Categorical) else None for entry in schema.attributes]
    target = _ArrowColumn(schema.target)
    types = [pa.float64() if column is None else column.type for column in columns]
    fields = [pa.field(name, type_) for name, type_ in zip((*schema.names, schema.target.name), (*types, target.type), strict=True)]
    layout = pa.schema(fields)
    textual = [field.name for field in fields if pa.types.is_dictionary(field.type)]
    # Random codes do not compress: their dictionary is all that can be saved.
    with parquet.ParquetWriter(file, layout, compression="none", use_dictionary=textual, write_statistics=False) as writer:
        waiting: list[Any] = []
        for block in blocks:
            arrays = [
                pa.array(block.numbers[j], from_pandas=True) if column is None else column.array(block.codes[:, j])
                for j, column in enumerate(columns)
            ]
            waiting += pa.Table.from_arrays([*arrays, target.array(block.classes)], schema=layout).to_batches()
            if sum(batch.num_rows for batch in waiting) >= ROW_GROUP:
                writer.write_table(pa.Table.from_batches(waiting, layout), ROW_GROUP)
                waiting = []
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting, layout), ROW_GROUP)


class _ArrowColumn:
    """The declared values of one column as Arrow holds them: what is neither whole numbers nor booleans is text."""

    def __init__(self, entry: Categorical | Target) -> None:
        import pyarrow as pa

        values: list[Value | None] = values_by_code(entry)
        self.missing = values.index(None) if None in values else None
        kind = one_type(values)
        fits = kind is bool or (kind is int and all(value is None or -(2**63) <= value < 2**63 for value in values))  # type: ignore[operator]
        self.plain = np.array([0 if value is None else value for value in values]) if fits else None
        self.texts = None if fits else pa.array([value_text(value) for value in values], pa.string())
        self.index = np.uint8 if len(values) <= 256 else np.uint16
        index_type = pa.from_numpy_dtype(self.index)
        self.type = (pa.bool_() if kind is bool else pa.int64()) if fits else pa.dictionary(index_type, pa.string())

    def array(self, codes: NDArray[Any]) -> Any:
        import pyarrow as pa

        mask = None if self.missing is None else codes == self.missing
        if self.plain is not None:
            return pa.array(self.plain[codes], self.type, mask=mask)
        indices = np.ascontiguousarray(codes, dtype=self.index)
        return pa.DictionaryArray.from_arrays(pa.array(indices, mask=mask), self.texts)
