"""The release as a file, field by field, and everything that is checked before a file is believed.

A file is untrusted until every check here has passed; it is parsed into fixed types, bounded in size, and never executed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.events import (
    DISCRETE_GAUSSIAN,
    DISCRETE_LAPLACE,
    EXPONENTIAL,
    PERMUTE_AND_FLIP,
)
from hedgerow.accounting.loss import MAX_SCALE, exact_delta, plain_fraction, text_of_fraction
from hedgerow.accounting.noise import noise_from_text, text_of_noise
from hedgerow.accounting.zcdp import rho_of_gaussian
from hedgerow.errors import PlanError, ReleaseError, SchemaError
from hedgerow.inference.vote import ADDITIVE, VOTES
from hedgerow.queries import BY_NAME, ChoiceQuery, CountingQuery
from hedgerow.release.certificate import (
    COUNTING,
    MAX_NAME,
    Certificate,
    EventRecord,
    Part,
    anonymity_certificate,
    by_ensemble,
    certificate_of,
)
from hedgerow.release.files import MAX_SIGNATURES, HashedDocument, check_hash, head_of
from hedgerow.release.version_1 import from_version_1
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import MAX_ROWS_PER_PERSON, Schema
from hedgerow.schema.toml import from_plain, to_plain
from hedgerow.trees.forest import Correction, CountedForest, Ensemble
from hedgerow.trees.tree import Tree, tree_of_lists

FORMAT = "hedgerow-release"
VERSION = 2
MAX_TREES = 10_000
MAX_PARTS = 10_000
PLAN_FORMAT = "hedgerow-plan"  # the other document that owners exchange: named here for its message

Scalar = str | int | float | bool | None


class TreeRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`attribute` and `branch` as in tree.py; `counts` row by row, one row of classes for each leaf (or each node) in order."""

    attribute: list[int]
    branch: list[int]
    counts: list[int] = []


class CorrectionRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tree of a correction by gradient steps; `scores` and `errors` node by node, class by class, in millionths."""

    attribute: list[int]
    branch: list[int]
    scores: list[int]
    errors: list[int]


class EnsembleRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """So many trees, in order, over these columns; the noise that each of their counts holds, one for each table: the scale of
    Laplace noise, or "gaussian" and σ².
    """

    trees: int
    columns: list[str]
    noise: list[str]


class Document(HashedDocument, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file, field by field."""

    format: str
    version: int
    made_by: str
    algorithm: str
    parameters: dict[str, Scalar]
    chosen: dict[str, Scalar]
    vote: str
    schema: dict[str, Any]
    bins: int
    ensembles: list[EnsembleRecord]
    certificate: Certificate
    trees: list[TreeRecord]
    measured: Literal["leaves", "nodes"] = "leaves"
    corrections: list[CorrectionRecord] | msgspec.UnsetType = msgspec.UNSET


MIGRATIONS: dict[int, Any] = {1: from_version_1}  # version -> function from that version's bytes or dict to the next one's dict


def parse(data: bytes) -> Document:
    """A sound document, its hash and its signatures checked."""
    head = head_of(data)
    if head.format == PLAN_FORMAT:
        raise ReleaseError("it is a plan: nothing was counted yet. `hedgerow count` makes a release from it.")
    if head.format != FORMAT:
        raise ReleaseError(f"its format is {head.format[:40]!r}; expected {FORMAT!r}.")
    if not 1 <= head.version <= VERSION:
        raise ReleaseError(
            f"it has version {str(head.version)[:20]}; this program reads versions 1 to {VERSION}. Install a newer hedgerow."
        )
    try:
        if head.version == VERSION:
            document = msgspec.json.decode(data, type=Document)
            check_hash(document, FORMAT)
            return document
        plain: Any = data
        for version in range(head.version, VERSION):
            plain = MIGRATIONS[version](plain)
        return msgspec.convert(plain, type=Document)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError, UnicodeDecodeError) as error:
        raise ReleaseError(f"it is not a sound release document: {str(error)[:200]}") from error


def forest_of(document: Document) -> CountedForest:
    """The forest in a document, if the document is sound in itself."""
    if document.vote not in VOTES:
        raise ReleaseError(f"it votes by {document.vote[:40]!r}; expected one of {', '.join(VOTES)}.")
    if not 1 <= len(document.trees) <= MAX_TREES:
        raise ReleaseError(f"it has no trees, or more than {MAX_TREES}.")
    try:
        codebook = codebook_of(document.schema, document.bins)
        ensembles = _ensembles(document, codebook.schema)
        check_certificate(document, codebook.schema, ensembles)
    except (SchemaError, PlanError, ValueError, ArithmeticError, RecursionError) as error:
        raise ReleaseError(f"its schema, noise or certificate is not sound: {str(error)[:300]}") from error
    trees, counts = [], []
    for record in document.trees:
        tree = tree_of(record, codebook)
        counted = len(tree.leaves) if document.measured == "leaves" else tree.n_nodes
        if len(record.counts) != counted * codebook.n_classes:
            raise ReleaseError(
                f"a tree with {counted} counted {document.measured} and {codebook.n_classes} classes has {len(record.counts)} counts."
            )
        trees.append(tree)
        counts.append(_numbers(record.counts).reshape(counted, codebook.n_classes))
    check_total(counts)
    if document.certificate.guarantee == "anonymity":
        _check_anonymity(document, CountedForest(codebook, tuple(trees), tuple(counts), (), document.measured))
    if ensemble_records_of(ensembles) != document.ensembles or (len(ensembles) == 1 and ensembles[0].columns != codebook.schema.names):
        raise ReleaseError("its ensembles are not written in the one form that they have in a document.")
    if len(ensembles) == 1:
        return CountedForest(codebook, tuple(trees), tuple(counts), ensembles[0].noise, document.measured)
    return CountedForest(codebook, tuple(trees), tuple(counts), (), document.measured, ensembles)


MILLION = 1_000_000
_MOST_MILLIONTHS = 1_000 * MILLION


def correction_of(document: Document, codebook: Codebook) -> Correction:
    """What gradient steps added, if the file says that such steps were paid for."""
    if isinstance(document.corrections, msgspec.UnsetType):
        return Correction()
    records = document.corrections
    steps = [event for event in document.certificate.events if event.query == "gradient_sums"]
    paid = bool(steps) and all(event.queries == len(records) for event in steps)
    if document.vote != ADDITIVE or not 1 <= len(records) <= MAX_TREES or (document.certificate.guarantee != "none" and not paid):
        raise ReleaseError("it holds corrections that no gradient steps paid for, or that its vote does not use.")
    trees, scores, errors = [], [], []
    for record in records:
        tree = tree_of(TreeRecord(record.attribute, record.branch), codebook)
        numbers = [_numbers(record.scores), _numbers(record.errors)]
        if any(len(n) != tree.n_nodes * codebook.n_classes or (abs(n) > _MOST_MILLIONTHS).any() for n in numbers) or (numbers[1] < 0).any():
            raise ReleaseError("a correction does not have one score and one error for each node and class, or they are out of range.")
        trees.append(tree)
        scores.append(numbers[0].reshape(tree.n_nodes, -1) / MILLION)
        errors.append(numbers[1].reshape(tree.n_nodes, -1) / MILLION)
    return Correction(tuple(trees), tuple(scores), tuple(errors))


def check_additive(document: Document, forest: CountedForest) -> None:
    """What a Hedgerow forest chose by looking at rows (n̂, attributes, top questions, reading, steps, scale) must be paid for."""
    chosen, events = document.chosen, [event.query for event in document.certificate.events]
    questions = chosen.get("top questions", 0)
    if type(questions) is not int or type(chosen.get("together", 1)) is not int:
        raise ReleaseError("it does not say in whole numbers how its trees stand.")
    if document.certificate.guarantee == "none":
        return
    plain = (chosen.get("reading", "flat"), chosen.get("strength", 1.0)) == ("tree" if questions else "flat", 1.0)
    few = not questions and len(forest.trees) < len(forest.codebook.sizes)
    fitted = "signal to noise" in chosen or questions or few or chosen.get("together", 1) != 1
    unpaid = [
        events.count("choose") < questions + few * len(forest.trees),
        not plain and "best" not in events,
        chosen.get("scale", 1.0) != 1.0 and "best_scale" not in events,
        fitted and forest.codebook.schema.rows is None and "rows" not in events,
        not isinstance(document.corrections, msgspec.UnsetType) and chosen.get("gradient steps") != events.count("gradient_sums"),
    ]
    if any(unpaid):
        raise ReleaseError("something in it was chosen by looks at rows that its certificate does not name.")


def correction_records_of(correction: Correction) -> list[CorrectionRecord] | msgspec.UnsetType:
    if not correction.trees:
        return msgspec.UNSET
    return [
        CorrectionRecord(tree.attribute.tolist(), tree.branch.tolist(), millionths(scores), millionths(errors))
        for tree, scores, errors in zip(correction.trees, correction.scores, correction.errors, strict=True)
    ]


def millionths(values: NDArray[np.float64]) -> list[int]:
    limited = np.clip(np.rint(values * MILLION), -_MOST_MILLIONTHS, _MOST_MILLIONTHS)
    return [int(value) for value in limited.astype(np.int64).ravel()]


def _check_anonymity(document: Document, forest: CountedForest) -> None:
    """An anonymity release is measured again: its paths satisfy what it claims, and it says no more than such a release says."""
    from hedgerow.anonymity.requirement import Requirement

    record = dict(document.certificate.requirement or {})
    hits = record.pop("by", "") == "hits"
    try:
        requirement = Requirement.from_record(record)
        requirement.check_classes(forest.codebook.n_classes)
    except (PlanError, ValueError, ArithmeticError) as error:
        raise ReleaseError(f"its anonymity requirement is not sound: {str(error)[:200]}") from error
    if document.certificate != anonymity_certificate(requirement.record(), requirement.words(), hits):
        raise ReleaseError("it claims anonymity in other words than such a release does.")
    exact = document.measured == "leaves" and not any(ensemble.noise for ensemble in document.ensembles)
    if len(forest.trees) != 1 or not exact or (forest.counts[0] < 0).any():
        raise ReleaseError("it claims anonymity for several trees, for counts below 0 or with noise, or for counts of inner nodes.")
    if forest.codebook.schema.unreviewed:
        raise ReleaseError("it claims anonymity with a schema that was not reviewed.")
    if forest.codebook.schema.k > 1:
        raise ReleaseError("it claims anonymity where a person may have several rows, and a path's rows are not its persons then.")
    numbers = forest.counts[0].astype(np.float64)
    hit = numbers.max(axis=1)
    if hits and not all(_tells_hits_alone(counts) for counts in forest.counts[0]):
        raise ReleaseError("it claims to tell hit and miss alone, and tells more.")
    good = requirement.satisfied(numbers.argmax(axis=1), hit, numbers.sum(axis=1) - hit, None if hits else numbers)
    if not good.all():
        raise ReleaseError(f"it claims {requirement.words()}, and its paths do not satisfy that. Do not use it.")


def _tells_hits_alone(counts: NDArray[np.int64]) -> bool:
    """Whether the counts are one class's hits and everybody else's misses, spread as evenly as they can be."""
    from hedgerow.anonymity.groups import spread

    total, n = int(counts.sum()), len(counts)
    return any((spread(c, float(counts[c]), float(total - counts[c]), n) == counts).all() for c in range(n))


def codebook_of(plain: dict[str, Any], bins: int) -> Codebook:
    """The codebook of a schema in a file; the file must say it as this program would, so that its hash is of what was read."""
    schema = from_plain(plain)
    if msgspec.json.encode(to_plain(schema)) != msgspec.json.encode(plain):
        raise SchemaError("the schema is not written in the one form that it has in a document")
    return Codebook(schema, bins)


def tree_of(record: TreeRecord, codebook: Codebook) -> Tree:
    return tree_of_lists(codebook.sizes, record.attribute, record.branch)


def _numbers(counts: list[int]) -> NDArray[np.int64]:
    try:
        return np.array(counts, dtype=np.int64)
    except (OverflowError, ValueError) as error:
        raise ReleaseError("a tree holds a number that is too large.") from error


def check_total(counts: Sequence[NDArray[np.int64]], most: float = 2.0**62) -> None:
    if sum(float(np.abs(c.astype(np.float64)).sum()) for c in counts) >= most:
        raise ReleaseError("its counts are too large to be added up.")


def ensemble_records_of(ensembles: Sequence[Ensemble]) -> list[EnsembleRecord]:
    return [EnsembleRecord(ensemble.trees, list(ensemble.columns), list(map(text_of_noise, ensemble.noise))) for ensemble in ensembles]


def _ensembles(document: Document, schema: Schema) -> tuple[Ensemble, ...]:
    found = tuple(Ensemble(e.trees, tuple(e.columns), tuple(map(noise_from_text, e.noise))) for e in document.ensembles)
    if not found or any(e.trees < 1 for e in found) or sum(e.trees for e in found) != len(document.trees):
        raise ValueError("its ensembles do not have its trees")
    place = {name: number for number, name in enumerate(schema.names)}
    columns = {name for e in found for name in e.columns}
    if columns != place.keys() or any(len(set(e.columns)) != len(e.columns) or not e.columns for e in found):
        raise ValueError("its ensembles do not have the columns of its schema")
    if len({frozenset(e.columns) for e in found}) != len(found):
        raise ValueError("two of its ensembles have the same columns")
    first = 0
    for e in found:
        allowed = {place[name] for name in e.columns} | {-1}
        if any(not set(tree.attribute) <= allowed for tree in document.trees[first : first + e.trees]):
            raise ValueError("a tree asks about a column that its ensemble does not have")
        first += e.trees
    return found


# ---------------------------------------------------------------- the certificate


def check_certificate(document: Document, schema: Schema, ensembles: Sequence[Ensemble]) -> None:
    """A certificate may not contradict itself or the forest it comes with. (Without a signature, who wrote it may lie.)"""
    certificate = document.certificate
    if len(certificate.parts) > MAX_PARTS:
        raise ValueError(f"it has more than {MAX_PARTS} counted tables")
    for part in certificate.parts:
        _check_part(part, len(ensembles), len(schema.target.classes))
        if (len(ensembles) == 1 or schema.person is not None) and part.rows_per_person != (schema.rows_per_person or msgspec.UNSET):
            raise ValueError("a table was counted with another number of rows for each person than the schema names")
    if len({(part.ensemble, *part.key) for part in certificate.parts}) != len(certificate.parts):
        raise ValueError("a counted table is in it twice")
    if not certificate.parts:
        if certificate.private or certificate.epsilon is not None or certificate.delta is not None:
            raise ValueError("the claimed ε has no counted table behind it")
        if (certificate.guarantee == "anonymity") != (certificate.requirement is not None):
            raise ValueError("anonymity is claimed without a requirement, or the reverse")
        return
    if certificate != certificate_of(certificate.parts):
        raise ValueError("the certificate does not follow from its tables: its ε is not what their events add up to, or a text differs")
    parts = by_ensemble(certificate.parts)
    for number, ensemble in enumerate(ensembles):
        _check_noise([part for part in parts.get(number, []) if part.counted], ensemble, document.measured)
    if certificate.guarantee != "none":
        if schema.unreviewed:
            raise ValueError("it claims ε with a schema that was not reviewed")
        if not all(ensemble.noise for ensemble in ensembles):
            raise ValueError("it claims ε but names no noise")


def _check_part(part: Part, ensembles: int, n_classes: int) -> None:
    for text in (part.id, part.owner, part.group):
        if len(text) > MAX_NAME or not text.isprintable() or (text and not text.strip()):
            raise ValueError("the name of a counted table is too long or cannot be printed")
    if not part.id or not 0 <= part.ensemble < ensembles or len(part.signed_by) > MAX_SIGNATURES:
        raise ValueError("a counted table has no name or no trees")
    if not 1 <= part.counting <= COUNTING:
        raise ValueError(f"a table was counted by rules of version {part.counting}, known here is {COUNTING}: install a newer hedgerow")
    if part.k < 1 or part.k > MAX_ROWS_PER_PERSON:
        raise ValueError("a table was counted with a number of rows for each person that is out of range")
    for event in part.events:
        _check_event(event, n_classes, part.k)
    before = ([event.query for event in part.events] or ["rows"]) == ["rows"]
    if part.chosen_beforehand is not msgspec.UNSET and not (part.chosen_beforehand and not part.counted and before):
        raise ValueError("that its trees were chosen beforehand is stated of a table that was counted or chose, or is not stated")
    _check_loss(part)
    if part.problem:
        return
    if any(event.query not in BY_NAME for event in part.events):
        raise ValueError("it claims ε with a query that has no proof")
    if any(_chooses(event) and event.mechanism not in (EXPONENTIAL, PERMUTE_AND_FLIP) for event in part.events):
        raise ValueError("it claims ε with an event that has no proof")
    if "test coins" in part.sampler:
        raise ValueError("it claims ε with coins that anyone can replay")
    if part.released and (set(part.released) != {"rows"} or all(event.query != "rows" for event in part.events)):
        raise ValueError("it holds a number of rows that was not paid for")


def _check_event(event: EventRecord, n_classes: int, k: int) -> None:
    """Its noise follows from its loss, and what it counts has the sensitivity that is proven, for k rows of a person."""
    if event.mechanism == DISCRETE_GAUSSIAN:
        if not _counts(event) or event.epsilon != "0" or isinstance(event.rho, msgspec.UnsetType):
            raise ValueError("an event with Gaussian noise does not count, or does not say its ρ alone")
        sigma_squared = plain_fraction(event.scale, MAX_SCALE**2)
        if plain_fraction(event.rho) != rho_of_gaussian(event.queries * plain_fraction(event.sensitivity), sigma_squared):
            raise ValueError("an event's Gaussian noise does not follow from its ρ")
    else:
        if not isinstance(event.rho, msgspec.UnsetType):
            raise ValueError("an event states a ρ that has no Gaussian noise")
        scale = event.queries * plain_fraction(event.sensitivity) / plain_fraction(event.epsilon)
        if plain_fraction(event.scale) != scale and (event.mechanism == DISCRETE_LAPLACE or plain_fraction(event.scale) != 2 * scale):
            raise ValueError("an event's noise scale does not follow from its ε")
    query = BY_NAME.get(event.query)
    if query is None:
        return
    if issubclass(query, CountingQuery):
        if not query.proven(event.mechanism, event.queries, event.sensitivity, n_classes, k):
            raise ValueError("an event counts with another sensitivity or mechanism than the proven one")
    elif issubclass(query, ChoiceQuery):
        halved_rate = plain_fraction(event.scale) == 2 * plain_fraction(event.sensitivity) / plain_fraction(event.epsilon)
        if event.queries != 1 or not query.proven(plain_fraction(event.sensitivity) / k, halved_rate):
            raise ValueError("an event chooses with another sensitivity than a proven one")


def _counts(event: EventRecord) -> bool:
    return issubclass(BY_NAME.get(event.query, object), CountingQuery)


def _chooses(event: EventRecord) -> bool:
    return issubclass(BY_NAME.get(event.query, object), ChoiceQuery)


def _check_loss(part: Part) -> None:
    """What a table is charged covers its events: the sum of their ε; with δ, or the sum of their losses in concentrated privacy."""
    if isinstance(part.delta, msgspec.UnsetType):
        if any(event.mechanism == DISCRETE_GAUSSIAN for event in part.events):
            raise ValueError("it has Gaussian noise and no δ")
        if part.stated_beforehand and not part.events and part.epsilon == "0":
            return  # it only counted, and its counts are not here
        if not part.events or plain_fraction(part.epsilon) < part.spent:
            raise ValueError("the claimed ε is less than its events add up to")
        return
    if text_of_fraction(exact_delta(plain_fraction(part.delta))) != part.delta:
        raise ValueError("δ is not written in its shortest form")
    if not part.events or plain_fraction(part.epsilon) <= 0 or not (part.all_pure or part.zcdp_cost <= part.worth):
        raise ValueError("the claimed (ε, δ) is less than its events add up to")


def _check_noise(parts: Sequence[Part], ensemble: Ensemble, measured: str) -> None:
    """The noise on the counts is what the tables' events say: one for each table, in order."""
    if len(parts) == 1 and last_count(parts[0]) is None and (measured == "nodes" or ensemble.trees == 1):  # greedy: level by level
        counts = [event for event in parts[0].events if event.query in ("class_counts", "tables")]
        paid = [event for event in counts if event.noise in ensemble.noise]
        if len({event.noise for event in paid}) != len(ensemble.noise) or len(paid) < ensemble.trees:
            raise ValueError("the noise of its counts is not what its events say")
        return
    counted = [last_count(part) for part in parts]
    if not counted or any(event is None or event.queries != ensemble.trees for event in counted):
        raise ValueError("the noise of its counts is not what its events say: a table was not counted in all of its trees")
    if tuple(event.noise for event in counted if event is not None) != ensemble.noise or measured != "leaves":
        raise ValueError("the noise of its counts is not what its events say")


def last_count(part: Part) -> EventRecord | None:
    """The event of the counts that were kept: a search may have tried forests before."""
    return next((event for event in reversed(part.events) if event.query == "leaf_counts"), None)
