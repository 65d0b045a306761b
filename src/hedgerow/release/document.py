"""The release as a file, field by field, and everything that is checked before a file is believed.

A file is untrusted until every check here has passed; it is parsed into fixed types, bounded in size, and never executed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.noise import noise_from_text, text_of_noise
from hedgerow.errors import PlanError, ReleaseError, SchemaError
from hedgerow.inference.additive import UNCHOSEN, strength_of_counts
from hedgerow.inference.vote import ADDITIVE, VOTES
from hedgerow.release.certificate import Certificate, anonymity_certificate
from hedgerow.release.certificate_checks import check_certificate
from hedgerow.release.files import HashedDocument, check_hash, head_of
from hedgerow.release.version_1 import from_version_1
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.schema.toml import from_plain, to_plain
from hedgerow.schema.value_edges import VALUES
from hedgerow.trees.additive_model import gradient_width
from hedgerow.trees.forest import Correction, CountedForest, Ensemble
from hedgerow.trees.oblivious import ObliviousTree, runs_of, tree_of_runs
from hedgerow.trees.tree import Tree, tree_of_lists

FORMAT = "hedgerow-release"
VERSION = 2
MAX_TREES = 10_000
PLAN_FORMAT = "hedgerow-plan"  # the other document that owners exchange: named here for its message
RULE_SET_FORMAT = "hedgerow-rule-set"  # and what owners share instead of a tree (`sharing/rules`)

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


class BoostedRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A boosted tree: what its levels ask, their answers as runs (`trees/oblivious.py`), and leaf by leaf in ten-thousandths the score of
    each class (of two classes that of the second alone) and the error that the noise may have given it.
    """

    asks: list[int]
    answers: list[list[int]]
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
    boosted: list[BoostedRecord] | msgspec.UnsetType = msgspec.UNSET


MIGRATIONS: dict[int, Any] = {1: from_version_1}  # version -> function from that version's bytes or dict to the next one's dict


def parse(data: bytes) -> Document:
    """A sound document, its hash and its signatures checked."""
    head = head_of(data)
    if head.format == PLAN_FORMAT:
        raise ReleaseError("it is a plan: nothing was counted yet. `hedgerow count` makes a release from it.")
    if head.format == RULE_SET_FORMAT:
        raise ReleaseError("it is a rule set, not a forest: `hedgerow show`, `hedgerow anonymity` and `hedgerow synth` take it.")
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
STEPS = 10_000  # for 1 in a boosted tree's scores
MOST_STEPS = 100 * STEPS


def correction_of(document: Document, codebook: Codebook) -> Correction:
    """What gradient steps or boosted trees added, if the file says that such steps were paid for."""
    if not isinstance(document.boosted, msgspec.UnsetType):
        return _boosted_of(document, document.boosted, codebook)
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


def _boosted_of(document: Document, records: list[BoostedRecord], codebook: Codebook) -> Correction:
    alone = isinstance(document.corrections, msgspec.UnsetType) and document.vote == ADDITIVE
    paid = document.certificate.guarantee == "none" or _rounds_pay(document, records)
    if not alone or not 1 <= len(records) <= MAX_TREES or not paid:
        raise ReleaseError("it holds boosted trees that were not paid for, or that its vote does not use.")
    width = gradient_width(codebook.n_classes)
    trees, scores, errors = [], [], []
    for record in records:
        tree = tree_of_runs(codebook.sizes, record.asks, record.answers)
        own, error = _numbers(record.scores), _numbers(record.errors)
        most = max(abs(own).max(initial=0), error.max(initial=0))
        if (len(own), len(error)) != (tree.n_nodes * width, tree.n_nodes) or most > MOST_STEPS or (error < 0).any():
            raise ReleaseError("a boosted tree does not have one score for each leaf and class, or they are out of range.")
        numbers = own.reshape(tree.n_nodes, width) / STEPS
        trees.append(tree)
        scores.append(np.hstack([-numbers, numbers]) if width == 1 else numbers)
        errors.append(np.repeat(error[:, None] / STEPS, codebook.n_classes, axis=1))
    return Correction(tuple(trees), tuple(scores), tuple(errors))


def _rounds_pay(document: Document, records: list[BoostedRecord]) -> bool:
    """Whether the first rounds asked about all attributes that have joint scores (trees of one level), and the others for other trees."""
    rounds = [event.queries for event in document.certificate.events if event.query == "boost_round"]
    joint = [record.asks[0] for record in records if len(record.asks) == 1]
    first = document.chosen.get("joint rounds", 0)
    if type(first) is not int or not 0 <= first <= len(rounds) or bool(first) != bool(joint) or len(set(joint)) != len(joint):
        return False
    other = len(records) - len(joint)
    if not first:
        return other <= sum(rounds)
    return all(queries == len(joint) for queries in rounds[:first]) and other == sum(rounds[first:])


def boosted_records_of(correction: Correction) -> list[BoostedRecord] | msgspec.UnsetType:
    if not correction.boosted:
        return msgspec.UNSET
    return [
        BoostedRecord(
            list(tree.attributes),
            [runs_of(answers) for answers in tree.answers],
            _steps(scores[:, scores.shape[1] - gradient_width(scores.shape[1]) :]),
            _steps(errors[:, 0]),
        )
        for tree, scores, errors in zip(correction.trees, correction.scores, correction.errors, strict=True)
        if isinstance(tree, ObliviousTree)
    ]


def _steps(values: NDArray[np.float64]) -> list[int]:
    return [int(value) for value in np.rint(values * STEPS).ravel()]


def check_additive(document: Document, forest: CountedForest) -> None:
    """What a Hedgerow forest chose by looking at rows (n̂, attributes, top questions, reading, steps, scale) must be paid for."""
    chosen, events = document.chosen, [event.query for event in document.certificate.events]
    questions = chosen.get("top questions", 0)
    if type(questions) is not int or type(chosen.get("together", 1)) is not int:
        raise ReleaseError("it does not say in whole numbers how its trees stand.")
    if document.certificate.guarantee == "none":
        return
    reading = (chosen.get("reading", "flat"), chosen.get("strength", 1.0))
    public = ("flat", strength_of_counts(len(forest.codebook.sizes)))
    plain = reading == ("tree", 1.0) if questions else reading in (("flat", 1.0), ("flat", 0.0), public)  # 0: scores were fitted jointly
    few = not questions and len(forest.trees) < len(forest.codebook.sizes)
    fitted = "signal to noise" in chosen or questions or few or chosen.get("together", 1) != 1
    grouped = chosen.get("rules", 1) != 1
    boosted = 0 if isinstance(document.boosted, msgspec.UnsetType) else sum(len(tree.asks) > 1 for tree in document.boosted)
    numbers = any(forest.codebook.numeric_cells(j) > 2 for j in range(len(forest.codebook.sizes)))
    unpaid = [
        events.count("choose") < questions + (not grouped) * few * len(forest.trees),
        events.count("choose_tree") < grouped * few * len(forest.trees) + boosted,
        grouped and numbers and "signal to noise" in chosen and "leaf_sizes" not in events,
        not plain and "best_model" not in events and "best" not in events,
        chosen.get("scale", 1.0) not in (1.0, UNCHOSEN if boosted else 1.0) and "best_scale" not in events,
        fitted and forest.codebook.schema.rows is None and "rows" not in events,
        not isinstance(document.corrections, msgspec.UnsetType) and chosen.get("gradient steps") != events.count("gradient_sums"),
    ]
    if any(unpaid):
        raise ReleaseError("something in it was chosen by looks at rows that its certificate does not name.")


def correction_records_of(correction: Correction) -> list[CorrectionRecord] | msgspec.UnsetType:
    if not correction.trees or correction.boosted:
        return msgspec.UNSET
    return [
        CorrectionRecord(tree.attribute.tolist(), tree.branch.tolist(), millionths(scores), millionths(errors))
        for tree, scores, errors in zip(correction.trees, correction.scores, correction.errors, strict=True)
        if isinstance(tree, Tree)
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
    at_values = document.parameters.get("bins") == VALUES
    if document.certificate != anonymity_certificate(requirement.record(), requirement.words(), hits, at_values):
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
