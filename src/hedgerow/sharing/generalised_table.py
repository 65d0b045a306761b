"""A generalised table as files: the rows, a schema that reads them, and a certificate with what was measured on the file itself.

    out.csv                     a row for each row that was kept, sorted, so that their order tells nothing
    out.csv.schema.toml         its columns: every group of a taxonomy is a value
    out.csv.certificate.json    what every group satisfies, how far each attribute was generalised. Never an ε

The file is read back with its schema and judged again before it gets its name: what fails is not published.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from hedgerow import __version__
from hedgerow.anonymity.requirement import Requirement
from hedgerow.engines.files import TableFile
from hedgerow.errors import PlanError
from hedgerow.release.certificate import ANONYMITY_RELATION, anonymity_certificate
from hedgerow.schema.attributes import Categorical, text_of
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.sharing.generalise import Generalised
from hedgerow.sharing.measure import largest_k, measure, smallest_alpha, smallest_c
from hedgerow.sharing.pseudo.files import certificate_path, replacing, sha256_of, write_blocks
from hedgerow.sharing.pseudo.generate import Block
from hedgerow.trees.paths import Paths, from_counts

FORMAT = "hedgerow-generalised-table"
VERSION = 1
NO_VALUE = "no value"  # the branch of empty cells: values that the schema of the rows has no branch for


class LevelRecord(msgspec.Struct, frozen=True):
    """How far an attribute was generalised: 0 is its finest cells or values, `of` one group of everything."""

    level: int
    of: int
    values: int
    quasi: bool


class GeneralisedCertificate(msgspec.Struct, frozen=True, kw_only=True):
    """The side-car, field by field.

    requirement: what every group satisfies, as text: k, c, l, alpha
    measured:    on the file: the level that it reaches, which may be more than was asked for
    levels:      of each attribute
    complete:    whether no generalisation that satisfies the requirement has a lower discernibility cost
    """

    format: str = FORMAT
    version: int = VERSION
    made_by: str = f"hedgerow {__version__}"
    guarantee: str = "anonymity"
    epsilon: None = None
    neighbours: str = ANONYMITY_RELATION
    unit: str = "one group"
    statement: str
    assumptions: list[str]
    requirement: dict[str, str]
    measured: dict[str, Any]
    rows: int
    left_out: int
    cost: int
    complete: bool
    levels: dict[str, LevelRecord]
    table: str
    schema: str
    sha256: str

    def sentence(self) -> str:
        return f"anonymity, NOT differential privacy: {self.statement}"


@dataclass(frozen=True)
class Saved:
    """What was published: its certificate, and the groups as they were read back."""

    certificate: GeneralisedCertificate
    groups: Paths


def schema_path(path: Path) -> Path:
    """out.csv → out.csv.schema.toml"""
    return path.with_name(path.name + ".schema.toml")


def beside(path: Path) -> tuple[Path, Path]:
    """The files that stand beside a table: its certificate, and its schema."""
    return certificate_path(path), schema_path(path)


def published_schema(result: Generalised) -> Schema:
    """The schema of the published table. Where a row has a value without a branch, the cell is empty, and the schema names it."""
    schema = result.codebook.schema
    attributes = []
    for place, attribute in enumerate(schema.attributes):
        assert isinstance(attribute, Categorical)
        if (result.codes[:, place] == result.codebook.sizes[place]).any():
            attribute = replace(attribute, missing=_free(NO_VALUE, attribute))
        attributes.append(attribute)
    return replace(schema, attributes=tuple(attributes))


def save_generalised(result: Generalised, path: Path) -> Saved:
    """Write the three files, each whole or not at all, the table last. Existing files are replaced."""
    schema, place = published_schema(result), path.parent.resolve() / path.name
    order = np.lexsort([result.labels, *result.codes.T[::-1]])
    rows = Block(result.codes[order], {}, result.labels[order])
    try:
        with ExitStack() as stack:
            file = stack.enter_context(replacing(place))
            write_blocks(file, path, schema, [rows])
            groups = groups_in(Path(file.name), schema, result.quasi)
            _judge(groups, result)
            made = _certificate(result, schema, groups, path, sha256_of(file))
            for name, text in zip(beside(place), (_json(made), schema.to_toml().encode()), strict=True):
                stack.enter_context(replacing(name)).write(text)
    except OSError as error:
        raise PlanError(f"output {str(path)!r} cannot be written: {error.strerror or type(error).__name__}.") from error
    return Saved(made, groups)


def groups_in(path: Path, schema: Schema, quasi: Sequence[int]) -> Paths:
    """The groups of rows that read alike in these attributes (by place) in a file of that schema, with their class counts."""
    codebook = Codebook(schema)
    codes, labels = TableFile(path, [*schema.names, schema.target.name]).read(codebook)
    if (codes >= np.asarray(codebook.sizes)).any() or (labels >= codebook.n_classes).any():
        raise PlanError(f"table {path.name!r}: some cells are no values of its schema. Use a table with the schema beside it.")
    return _groups(codebook, codes, labels, quasi)


def _groups(codebook: Codebook, codes: NDArray[Any], labels: NDArray[Any], quasi: Sequence[int]) -> Paths:
    places = list(quasi)
    read, of_row = np.unique(codes[:, places], axis=0, return_inverse=True) if places else (codes[:1, []], np.zeros(len(codes), np.int64))
    counts = np.zeros((len(read), codebook.n_classes))
    np.add.at(counts, (of_row.ravel(), labels), 1)
    first = np.cumsum(codebook.sizes) - codebook.sizes
    allowed, asked = np.ones((len(read), sum(codebook.sizes)), dtype=bool), np.zeros((len(read), len(codebook.sizes)), dtype=bool)
    for column, place in enumerate(places):
        asked[:, place] = codebook.sizes[place] > 1
        allowed[:, first[place] : first[place] + codebook.sizes[place]] = read[:, [column]] == np.arange(codebook.sizes[place])
    return from_counts(codebook, allowed, asked, counts)


def _judge(groups: Paths, result: Generalised) -> None:
    """What was written must be what was found, and satisfy the requirement."""
    found = measure(groups, result.requirement)
    if not found.satisfied or int(groups.totals.sum()) != len(result.codes) or len(groups) != result.groups:
        raise PlanError("generalise: the table does not read back as it was found. This is a mistake in hedgerow; nothing is published.")


def _certificate(result: Generalised, schema: Schema, groups: Paths, path: Path, sha256: str) -> GeneralisedCertificate:
    requirement: Requirement = result.requirement
    like = anonymity_certificate(requirement.record(), requirement.words())
    known = [name for place, name in enumerate(schema.names) if place in result.quasi]
    others = [] if len(known) == len(schema.names) else [f"persons can be known by {', '.join(known) or 'no attribute'} alone"]
    above = {str(at): smallest_c(groups, at) for at in range(2, groups.codebook.n_classes + 1)}
    return GeneralisedCertificate(
        statement=f"every group of rows that read alike satisfies {requirement.words()}",
        assumptions=[*like.assumptions, *others],
        requirement=requirement.record(),
        measured={
            "groups": len(groups),
            "k": largest_k(groups),
            "alpha": smallest_alpha(groups),
            "c above, by l": {at: None if c == float("inf") else c for at, c in above.items()},
        },
        rows=len(result.codes),
        left_out=result.left_out,
        cost=result.cost,
        complete=result.complete,
        levels=_levels(result),
        table=path.name,
        schema=schema_path(path).name,
        sha256=sha256,
    )


def _levels(result: Generalised) -> dict[str, LevelRecord]:
    levels = result.levels or ()
    return {
        name: LevelRecord(levels[place], result.taxonomies.n_levels(place) - 1, result.codebook.sizes[place], place in result.quasi)
        for place, name in enumerate(result.codebook.schema.names)
    }


def _json(certificate: GeneralisedCertificate) -> bytes:
    return msgspec.json.format(msgspec.json.encode(certificate), indent=2) + b"\n"


def _free(name: str, attribute: Categorical) -> str:
    taken = {text_of(value) for value in attribute.domain}
    while name in taken:
        name += "_"
    return name
