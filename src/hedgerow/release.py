"""The release: one JSON document with the trees, their noisy counts, the public schema and the guarantee. Never pickle.

A file is untrusted until every check here has passed; it is parsed into fixed types, bounded in size, and never executed.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tempfile
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from hedgerow import __version__
from hedgerow.accounting.events import DISCRETE_LAPLACE, EXPONENTIAL, PERMUTE_AND_FLIP
from hedgerow.accounting.loss import MAX_SCALE, text_of_fraction
from hedgerow.after.confidence import unreliable
from hedgerow.after.importance import importances
from hedgerow.after.prune import pruned_nodes
from hedgerow.after.rules import COLUMNS
from hedgerow.after.rules import rules as rules_of
from hedgerow.after.vote import MAJORITY, MOST_CONFIDENT, PRUNED_SUM, VOTES, WEIGHTED, Vote, probabilities, vote_named
from hedgerow.certificate import NEIGHBOURS, Certificate
from hedgerow.encoding import Codebook
from hedgerow.errors import PlanError, ReleaseError, SchemaError
from hedgerow.forest import NODES, CountedForest
from hedgerow.schema import Schema
from hedgerow.schema_toml import from_plain, to_plain
from hedgerow.tree import NODE, Tree

FORMAT = "hedgerow-release"
VERSION = 1
GZIP_ABOVE = 1 << 20  # bytes of JSON from which a file is compressed
MAX_BYTES = 1 << 28  # bytes of JSON that `load` reads at most, compressed or not

MAX_TREES = 10_000

Scalar = str | int | float | bool | None


class TreeRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`attribute` and `branch` as in tree.py; `counts` row by row, one row of classes for each leaf (or each node) in order."""

    attribute: list[int]
    branch: list[int]
    counts: list[int]


class Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file, field by field. `content_hash` is the SHA-256 of the same document with an empty hash."""

    format: str
    version: int
    made_by: str
    algorithm: str
    parameters: dict[str, Scalar]
    chosen: dict[str, Scalar]
    released: dict[str, int]
    vote: str
    schema: dict[str, Any]
    bins: int
    noise: list[str]
    certificate: Certificate
    trees: list[TreeRecord]
    measured: Literal["leaves", "nodes"] = "leaves"
    content_hash: str = ""


MIGRATIONS: dict[int, Any] = {}  # version -> function from that version's plain dict to the next version's


class Release:
    """A trained forest as it may be published: predict with it, look at it, save it.

    Release.load(path), release.save(path), release.predict(rows), release.predict_proba(rows), release.rules()
    """

    def __init__(
        self,
        forest: CountedForest,
        certificate: Certificate,
        *,
        algorithm: str,
        vote: str,
        parameters: dict[str, Scalar] | None = None,
        chosen: dict[str, Scalar] | None = None,
        released: dict[str, int] | None = None,
        made_by: str | None = None,
    ) -> None:
        self.forest = forest
        self.certificate = certificate
        self.algorithm = algorithm
        self.vote = vote
        self.parameters = dict(parameters or {})
        self.chosen = dict(chosen or {})
        self.released = dict(released or {})
        self.made_by = made_by or f"hedgerow {__version__}"

    # ------------------------------------------------------------ use

    @property
    def schema(self) -> Schema:
        return self.forest.codebook.schema

    @property
    def codebook(self) -> Codebook:
        return self.forest.codebook

    @property
    def classes(self) -> NDArray[Any]:
        """The declared classes, in the order of the columns of `predict_proba`."""
        return class_array(self.schema)

    @property
    def noise_rule(self) -> str:
        return str(self.parameters.get("noise_rule", "paper"))

    @cached_property
    def _vote(self) -> Vote:
        return vote_named(self.vote, self.forest, self.noise_rule)

    def predict_codes_proba(self, codes: NDArray[Any], n_jobs: int = 1) -> NDArray[np.float64]:
        return probabilities(self._vote, codes, self.codebook.n_classes, n_jobs)

    def predict_codes(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        """Class codes for rows of codes: a function of each row alone."""
        return np.asarray(self.predict_codes_proba(codes).argmax(axis=1), dtype=np.int64)

    def predict_proba(self, table: Any, n_jobs: int = 1) -> NDArray[np.float64]:
        return self.predict_codes_proba(self.codebook.encode(table, n_jobs), n_jobs)

    def predict(self, table: Any, n_jobs: int = 1) -> NDArray[Any]:
        return np.asarray(self.classes[self.predict_proba(table, n_jobs).argmax(axis=1)])

    # ------------------------------------------------------------ read what was learnt

    @cached_property
    def removed(self) -> tuple[NDArray[np.bool_], ...] | None:
        """For each tree, the nodes that its own vote prunes away; None where the vote uses whole trees."""
        trees = range(len(self.forest.trees))
        if self.vote == MOST_CONFIDENT:
            with np.errstate(over="ignore"):  # without noise the ratio is infinite, which is what it should be
                return tuple(unreliable(self.forest, t, self.noise_rule) for t in trees)
        if self.vote in (WEIGHTED, MAJORITY, PRUNED_SUM):
            return tuple(pruned_nodes(self.forest, t) for t in trees)
        return None

    def rules(
        self,
        *,
        sub_rules: bool = False,
        min_support: float | None = None,
        min_confidence: float | None = None,
        label: Any = None,
        top: int | None = None,
        sort: str = "default",
        pruned: bool = True,
        as_frame: bool = False,
    ) -> Any:
        """What the trees say, as a list of `Rule` (`after/rules.py` tells how its numbers and errors are made).

        sub_rules:      paths to inner nodes too
        min_support, min_confidence, label:  keep only rules with at least that support or confidence, or for that class
        top:            at most so many
        sort:           "default" (surest after taking off twice the noise), "confidence" or "support"
        pruned:         False also lists the nodes that the release itself does not predict with
        as_frame:       a pandas data frame instead, one row for each rule
        """
        found = rules_of(
            self.forest,
            sub_rules=sub_rules,
            min_support=min_support,
            min_confidence=min_confidence,
            label=label,
            top=top,
            sort=sort,
            removed=self.removed if pruned else None,
        )
        if not as_frame:
            return found
        try:
            import pandas
        except ImportError as error:
            raise ImportError(
                "rules(as_frame=True) needs pandas. Install it (`pip install pandas`), or leave as_frame out to get a list."
            ) from error
        return pandas.DataFrame([rule.row() for rule in found], columns=list(COLUMNS))

    def feature_importances(self) -> dict[str, float]:
        """The share of each attribute in what the (pruned) trees tell about the class, from released counts alone."""
        return importances(self.forest, self.removed)

    def __repr__(self) -> str:
        return f"Release({self.algorithm}, {len(self.forest.trees)} trees, {self.certificate.sentence()})"

    # ------------------------------------------------------------ write

    def document(self) -> Document:
        trees = [
            TreeRecord(tree.attribute.tolist(), tree.branch.tolist(), counts.ravel().tolist())
            for tree, counts in zip(self.forest.trees, self.forest.counts, strict=True)
        ]
        draft = Document(
            FORMAT, VERSION, self.made_by, self.algorithm, self.parameters, self.chosen, self.released, self.vote,
            to_plain(self.schema), self.codebook.bins, [text_of_fraction(scale) for scale in self.forest.noise],
            self.certificate, trees, "nodes" if self.forest.measured == NODES else "leaves",
        )  # fmt: skip
        return msgspec.structs.replace(draft, content_hash=_hash(draft))

    @property
    def content_hash(self) -> str:
        return self.document().content_hash

    def to_json(self) -> bytes:
        return msgspec.json.encode(self.document())

    def save(self, path: str | Path) -> None:
        """Write the document; gzip when it is large or the name ends in .gz. The file is replaced whole or not at all."""
        path = Path(path)
        data = self.to_json()
        if path.suffix == ".gz" or len(data) > GZIP_ABOVE:
            data = gzip.compress(data, compresslevel=6, mtime=0)
        else:
            data += b"\n"
        try:
            with tempfile.NamedTemporaryFile(dir=path.resolve().parent, prefix=f".{path.name}.", delete=False) as file:
                file.write(data)
            os.chmod(file.name, 0o644)
            os.replace(file.name, path)
        except OSError as error:
            raise ReleaseError(f"release {str(path)!r} cannot be written: {error.strerror}.") from error

    # ------------------------------------------------------------ read

    @classmethod
    def load(cls, path: str | Path, max_bytes: int = MAX_BYTES) -> Release:
        """Read and check a release file. Raises ReleaseError for anything that is not a sound release."""
        try:
            with open(path, "rb") as file:
                data = _read_bounded(file, max_bytes)
        except OSError as error:
            raise ReleaseError(
                f"release {str(path)!r} cannot be read: {error.strerror or type(error).__name__}."
            ) from error
        except ReleaseError as error:
            raise ReleaseError(f"{path}: {error}") from error
        return cls.from_json(data, source=str(path))

    @classmethod
    def from_json(cls, data: bytes, source: str = "release") -> Release:
        try:
            return _from_document(_parse(data))
        except ReleaseError as error:
            raise ReleaseError(f"{source}: {error}") from error

    def __reduce__(self) -> Any:
        return (Release.from_json, (self.to_json(),))


def class_array(schema: Schema) -> NDArray[Any]:
    """The classes as an array of their own type; objects where the types are mixed."""
    classes = schema.target.classes
    if len({type(value) for value in classes}) == 1:
        return np.array(classes)
    array = np.empty(len(classes), dtype=object)
    array[:] = classes
    return array


def _hash(document: Document) -> str:
    return hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(document, content_hash=""))).hexdigest()


def _read_bounded(file: io.BufferedReader, max_bytes: int) -> bytes:
    """The JSON bytes, decompressed if need be, never more than `max_bytes` of them."""
    head = file.peek(2)[:2]
    stream: Any = gzip.GzipFile(fileobj=file) if head == b"\x1f\x8b" else file
    try:
        data = stream.read(max_bytes + 1)
    except (EOFError, gzip.BadGzipFile, OSError) as error:
        raise ReleaseError("the compressed file is damaged or truncated. Get it again from its source.") from error
    except Exception as error:  # zlib.error has no common base with the others
        raise ReleaseError("the compressed file is damaged. Get it again from its source.") from error
    if len(data) > max_bytes:
        raise ReleaseError(
            f"the document is larger than {max_bytes:,} bytes. If you trust it, load it with a larger max_bytes."
        )
    return bytes(data)


def _parse(data: bytes) -> Document:
    class Head(msgspec.Struct):
        format: str
        version: int

    try:
        head = msgspec.json.decode(data, type=Head)
        if head.format != FORMAT:
            raise ReleaseError(f"its format is {head.format[:40]!r}; expected {FORMAT!r}.")
        if not 1 <= head.version <= VERSION:
            raise ReleaseError(
                f"it has version {head.version}; this program reads versions 1 to {VERSION}. Install a newer hedgerow."
            )
        if head.version == VERSION:
            return msgspec.json.decode(data, type=Document)
        plain = msgspec.json.decode(data)
        for version in range(head.version, VERSION):
            plain = MIGRATIONS[version](plain)
        return msgspec.convert(plain, type=Document)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError, UnicodeDecodeError) as error:
        raise ReleaseError(f"it is not a sound release document: {str(error)[:200]}") from error


def _from_document(document: Document) -> Release:
    if _hash(document) != document.content_hash:
        raise ReleaseError(
            "its content does not match its content hash: the file was changed or damaged. Get it again from its source."
        )
    if document.vote not in VOTES:
        raise ReleaseError(f"it votes by {document.vote[:40]!r}; expected one of {', '.join(VOTES)}.")
    if not 1 <= len(document.trees) <= MAX_TREES:
        raise ReleaseError(f"it has no trees, or more than {MAX_TREES}.")
    try:
        codebook = Codebook(from_plain(document.schema), document.bins)
        noise = tuple(_scale(text) for text in document.noise)
        _check_certificate(document, codebook.schema, noise)
    except (SchemaError, PlanError, ValueError, ArithmeticError, RecursionError) as error:
        raise ReleaseError(f"its schema, noise or certificate is not sound: {str(error)[:300]}") from error
    trees, counts = [], []
    for record in document.trees:
        try:
            tree = Tree(codebook.sizes, np.array(record.attribute, dtype=NODE), np.array(record.branch, dtype=NODE))
            numbers = np.array(record.counts, dtype=np.int64)
        except (OverflowError, ValueError) as error:
            raise ReleaseError("a tree holds a number that is too large.") from error
        tree.check()
        counted = len(tree.leaves) if document.measured == "leaves" else tree.n_nodes
        if len(numbers) != counted * codebook.n_classes:
            raise ReleaseError(
                f"a tree with {counted} counted {document.measured} and {codebook.n_classes} classes has {len(numbers)} counts."
            )
        trees.append(tree)
        counts.append(numbers.reshape(counted, codebook.n_classes))
    if sum(float(np.abs(c.astype(np.float64)).sum()) for c in counts) >= 2.0**62:
        raise ReleaseError("its counts are too large to be added up.")
    return Release(
        CountedForest(codebook, tuple(trees), tuple(counts), noise, document.measured),
        document.certificate,
        algorithm=document.algorithm,
        vote=document.vote,
        parameters=document.parameters,
        chosen=document.chosen,
        released=document.released,
        made_by=document.made_by,
    )


def _scale(text: str) -> Fraction:
    if len(text) > 400 or "e" in text.lower():
        raise ValueError("a noise scale is not a plain fraction")
    scale = Fraction(text)
    if not 0 < scale <= MAX_SCALE:
        raise ValueError("a noise scale is out of range")
    return scale


def _check_certificate(document: Document, schema: Schema, noise: tuple[Fraction, ...]) -> None:
    """A certificate may not contradict itself or the forest it comes with. (The hash is no signature: who wrote it may lie.)"""
    certificate = document.certificate
    counting = []
    for event in certificate.events:
        scale = event.queries * _scale(event.sensitivity) / _scale(event.epsilon)
        if _scale(event.scale) != scale and (event.mechanism == DISCRETE_LAPLACE or _scale(event.scale) != 2 * scale):
            raise ValueError("an event's noise scale does not follow from its ε")
        if event.verb in ("leaf_counts", "class_counts", "tables"):
            counting.append(event)
    if certificate.guarantee == "none":
        if certificate.epsilon is not None:
            raise ValueError("it states an ε but claims no guarantee")
        return
    if certificate.epsilon is None or _scale(certificate.epsilon) < certificate.spent or not certificate.events:
        raise ValueError("the claimed ε is less than its events add up to")
    known = {DISCRETE_LAPLACE, EXPONENTIAL, PERMUTE_AND_FLIP}
    if any(event.mechanism not in known or event.queries < 1 for event in certificate.events):
        raise ValueError("it claims ε with an event that has no proof")
    if (certificate.neighbours, certificate.unit) != (NEIGHBOURS, "one row") or "test coins" in certificate.sampler:
        raise ValueError("it claims ε under other neighbours, or with coins that anyone can replay")
    if "rows" in document.released and all(event.verb != "rows" for event in certificate.events):
        raise ValueError("it holds a number of rows that was not paid for")
    if schema.unreviewed:
        raise ValueError("it claims ε with a schema that was not reviewed")
    paid = [event for event in counting if _scale(event.scale) in noise]
    # A search may have tried forests at the same scale; the last one is the one that was kept.
    kept = [event.queries for event in paid if event.verb == "leaf_counts"][-1:]
    if len({event.scale for event in paid}) != len(noise) or kept not in ([], [len(document.trees)]):
        raise ValueError("the noise of its counts is not what its events say")
    if not noise:
        raise ValueError("it claims ε but names no noise")
