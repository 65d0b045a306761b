"""A plan that owners agree on before anyone looks at data: schema, tree structures and ε, in a file.

It holds no data: `training.shared_plans.rebuild` makes the same trees again from the schema, the settings and the seed, if there is one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hedgerow import __version__
from hedgerow.accounting.events import Event
from hedgerow.accounting.loss import exact_delta, exact_epsilon, plain_fraction, text_of_fraction
from hedgerow.accounting.noise import Noise
from hedgerow.accounting.prices import Price
from hedgerow.accounting.shared_gaussian import counts_price, shared_rho
from hedgerow.errors import PlanError, ReleaseError, SchemaError
from hedgerow.formatting import loss, pairs_html
from hedgerow.inference.additive import FLAT, checked_reading, strength_of_counts
from hedgerow.inference.vote import ADDITIVE, VOTES
from hedgerow.queries import LeafCounts
from hedgerow.release.certificate import certificate_of, shaping_part
from hedgerow.release.document import FORMAT as RELEASE_FORMAT
from hedgerow.release.document import MAX_TREES, PLAN_FORMAT, Scalar, TreeRecord, codebook_of, tree_of
from hedgerow.release.files import MAX_BYTES, HashedDocument, check_hash, head_of, read_document, signed_text, with_hash, write_document
from hedgerow.release.parts import Part
from hedgerow.release.release import Release
from hedgerow.release.signing import Signature, sign
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.schema.toml import to_plain
from hedgerow.trees.forest import LEAVES, CountedForest
from hedgerow.trees.tree import Tree

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

FORMAT = PLAN_FORMAT
VERSION = 1


class PlanDocument(HashedDocument, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file, field by field. `drawn_with` names the generator of the structures: another may draw others from one seed.

    `tables` is how many owners were planned for.
    """

    format: str
    version: int
    made_by: str
    algorithm: str
    parameters: dict[str, Scalar]
    chosen: dict[str, Scalar]
    vote: str
    schema: dict[str, Any]
    bins: int
    epsilon: str
    seed: int | None
    drawn_with: str
    tables: int
    trees: list[TreeRecord]
    delta: str | msgspec.UnsetType = msgspec.UNSET  # where it is 0 the file has no such field


@dataclass(frozen=True, eq=False)
class PublicPlan:
    """Trees that are to be counted, and what each owner's count costs.

    PublicPlan.load(path), plan.save(path); made by `estimator.public_plan()` or `hedgerow plan --save`
    """

    codebook: Codebook
    trees: tuple[Tree, ...]
    epsilon: Fraction
    algorithm: str
    vote: str
    parameters: dict[str, Scalar]
    chosen: dict[str, Scalar] = field(default_factory=dict)
    seed: int | None = None
    drawn_with: str = ""
    tables: int = 1
    made_by: str = f"hedgerow {__version__}"
    signatures: tuple[Signature, ...] = ()
    shaped_by: tuple[Part, ...] = ()  # of the trees of a forest: never of a plan in a file
    delta: Fraction = Fraction(0)

    @property
    def schema(self) -> Schema:
        """The public facts that it was made from."""
        return self.codebook.schema

    @property
    def price(self) -> Price:
        """What a count is asked for: ε with Laplace noise; with a δ, ρ with Gaussian noise, a hair less than (ε, δ) is worth.  [M6]"""
        return counts_price(self.epsilon, self.delta)

    @property
    def event(self) -> Event:
        """What a count charges."""
        return LeafCounts.cost(self.price, self.schema.k, len(self.trees))

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        leaves = sum(len(tree.leaves) for tree in self.trees)
        lines = [
            ("each owner pays", loss(self.epsilon, self.delta)),
            ("predicts", self.schema.target.name),
            ("trees", f"{len(self.trees)}, with {leaves:,} leaves"),
            ("owners", str(self.tables)),
            ("holds", "no data: the schema, the trees and the ε"),
        ]
        return pairs_html(lines, f"Public plan: {self.algorithm}")

    @classmethod
    def of(cls, release: Release, epsilon: Fraction, chosen_beforehand: bool = False) -> PublicPlan:
        """The trees of a release, to count another table in them. Its tables stay named, each with its ε.

        chosen_beforehand: you state that taking these trees did not depend on their counts; then each counts with what it lost before
        them. (A Hedgerow forest goes one way or another by its number of rows: what it lost before its counts was not set beforehand.)
        """
        forest = release.forest
        if forest.united:
            raise PlanError(
                "the forest unites ensembles of owners with different columns: no one table has all of its columns. Add new rows to "
                "each owner's own forest, then `hedgerow merge --columns` again."
            )
        return cls(
            forest.codebook,
            forest.trees,
            epsilon,
            release.algorithm,
            release.vote,
            release.parameters,
            release.chosen,
            shaped_by=tuple(
                shaping_part(part, chosen_beforehand and (release.vote != ADDITIVE or len(part.events) == 1))
                for part in release.certificate.parts
            ),
        )

    @property
    def n_counts(self) -> int:
        return sum(len(tree.leaves) for tree in self.trees) * self.codebook.n_classes

    def release_of(self, counts: Any, noise: Noise, part: Part) -> Release:
        """The counts of one table in these trees, as a release."""
        forest = CountedForest(self.codebook, self.trees, tuple(counts), (noise,), LEAVES)
        return Release(
            forest,
            certificate_of([part, *self.shaped_by]),
            algorithm=self.algorithm,
            vote=self.vote,
            parameters=self.parameters,
            chosen=self.chosen,
        )

    # ------------------------------------------------------------ write

    def document(self) -> PlanDocument:
        if self.shaped_by:
            raise PlanError(
                "plan: its trees are those of a forest, and a plan in a file does not name the tables behind them. Count in the forest "
                "itself (`hedgerow count forest.json`), or make a plan with `hedgerow plan --save`."
            )
        draft = with_hash(
            PlanDocument(
                format=FORMAT,
                version=VERSION,
                made_by=self.made_by,
                algorithm=self.algorithm,
                parameters=self.parameters,
                chosen=self.chosen,
                vote=self.vote,
                schema=to_plain(self.schema),
                bins=self.codebook.bins,
                epsilon=text_of_fraction(self.epsilon),
                seed=self.seed,
                drawn_with=self.drawn_with,
                tables=self.tables,
                trees=[TreeRecord(tree.attribute.tolist(), tree.branch.tolist()) for tree in self.trees],
                delta=text_of_fraction(self.delta) if self.delta else msgspec.UNSET,
            )
        )
        return msgspec.structs.replace(draft, signatures=list(self.signatures))

    @property
    def content_hash(self) -> str:
        """SHA-256 of its content: the same for all who have this plan."""
        return self.document().content_hash

    def save(self, path: str | Path) -> None:
        """Write it as JSON, for every owner."""
        write_document(path, msgspec.json.encode(self.document()), "plan")

    def signed(self, key: Ed25519PrivateKey) -> PublicPlan:
        """The same plan with one signature more."""
        signature = sign(key, signed_text(FORMAT, self.content_hash))
        return replace(self, signatures=(*(old for old in self.signatures if old.key != signature.key), signature))

    # ------------------------------------------------------------ read

    @classmethod
    def load(cls, path: str | Path, max_bytes: int = MAX_BYTES) -> PublicPlan:
        """Read and check a plan. Raises ReleaseError for anything that is not a sound plan."""
        return cls.from_json(read_document(path, "plan", max_bytes), str(path))

    @classmethod
    def from_json(cls, data: bytes, source: str = "plan") -> PublicPlan:
        """A plan from its JSON text, every part of it checked."""
        try:
            return _from_document(_parse(data))
        except ReleaseError as error:
            raise ReleaseError(f"{source}: {error}") from error


def _parse(data: bytes) -> PlanDocument:
    head = head_of(data)
    if head.format == RELEASE_FORMAT:
        raise ReleaseError("it is a release, with counts; expected a plan.")
    if head.format != FORMAT:
        raise ReleaseError(f"its format is {head.format[:40]!r}; expected {FORMAT!r}.")
    if head.version != VERSION:
        raise ReleaseError(f"it has version {str(head.version)[:20]}; this program reads version {VERSION}. Install a newer hedgerow.")
    try:
        document = msgspec.json.decode(data, type=PlanDocument)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError, UnicodeDecodeError) as error:
        raise ReleaseError(f"it is not a sound plan: {str(error)[:200]}") from error
    check_hash(document, FORMAT)
    return document


def _from_document(document: PlanDocument) -> PublicPlan:
    if document.vote not in VOTES or not 1 <= len(document.trees) <= MAX_TREES:
        raise ReleaseError("its vote is not known, or its number of trees is out of range.")
    versions = f"{document.made_by}, {document.drawn_with}"
    if not re.fullmatch(r"hedgerow [0-9a-z.+]{1,40}, (numpy [0-9a-z.+]{1,40})?", versions) or not 1 <= document.tables <= MAX_TREES:
        raise ReleaseError("it does not say in the usual words by which versions it was made, or its number of owners is out of range.")
    if any(record.counts for record in document.trees):
        raise ReleaseError("a plan holds no counts, and this one does. Do not use it: ask for the plan again.")
    try:
        codebook = codebook_of(document.schema, document.bins)
        epsilon = exact_epsilon(plain_fraction(document.epsilon))
        if text_of_fraction(epsilon) != document.epsilon:
            raise PlanError("ε is not written in its shortest form")
        delta = Fraction(0) if isinstance(document.delta, msgspec.UnsetType) else exact_delta(plain_fraction(document.delta))
        if delta and (text_of_fraction(delta) != document.delta or not shared_rho(epsilon, delta)):
            raise PlanError("δ is not written in its shortest form")
    except (SchemaError, PlanError, ValueError, ArithmeticError, RecursionError) as error:
        raise ReleaseError(f"its schema or ε is not sound: {str(error)[:300]}") from error
    trees = tuple(tree_of(record, codebook) for record in document.trees)
    if document.vote == ADDITIVE:  # what could not be read is refused before anybody counts it
        layout, reading = checked_reading(CountedForest(codebook, trees, ()), document.chosen)
        if layout.asks or reading.kind != FLAT or reading.strength not in (1.0, strength_of_counts(len(codebook.sizes))):
            raise ReleaseError(
                "its questions or its reading were chosen by looking at rows, and a plan in a file does not say whose. Count in the forest "
                "itself (`hedgerow count forest.json`), or make a plan with `hedgerow plan --save`."
            )
    return PublicPlan(
        codebook,
        trees,
        epsilon,
        document.algorithm,
        document.vote,
        document.parameters,
        document.chosen,
        document.seed,
        document.drawn_with,
        document.tables,
        document.made_by,
        tuple(document.signatures),
        delta=delta,
    )
