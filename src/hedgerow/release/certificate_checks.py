"""What is checked of a certificate in a file before it is believed: each event has a proof, and the losses add up to what it claims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from hedgerow.accounting.events import (
    DISCRETE_GAUSSIAN,
    DISCRETE_LAPLACE,
    EXPONENTIAL,
    LOCAL_SENSITIVITY,
    PERMUTE_AND_FLIP,
)
from hedgerow.accounting.loss import MAX_SCALE, exact_delta, plain_fraction, text_of_fraction
from hedgerow.accounting.noise import Noise
from hedgerow.accounting.shared_gaussian import near_one_draw, shared_rho
from hedgerow.accounting.zcdp import rho_of_gaussian
from hedgerow.queries import BY_NAME, ChoiceQuery, CountingQuery
from hedgerow.release.certificate import by_ensemble, certificate_of
from hedgerow.release.files import MAX_SIGNATURES
from hedgerow.release.parts import COUNTING, MAX_NAME, EventRecord, Part, Together
from hedgerow.schema.attributes import MAX_ROWS_PER_PERSON
from hedgerow.schema.schema import Schema
from hedgerow.trees.forest import Ensemble

if TYPE_CHECKING:
    from hedgerow.release.document import Document

MAX_PARTS = 10_000


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
    for text in (part.id, part.owner, part.group, part.source or ""):
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
    if isinstance(part.together, Together):
        _check_together(part, part.together)
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


def _check_together(part: Part, together: Together) -> None:
    """Tables of several owners as one: what M4 proves, and nothing else."""
    for name in together.owners:
        if not 0 < len(name) <= MAX_NAME or not name.isprintable() or not name.strip():
            raise ValueError("the name of an owner is too long or cannot be printed")
    if not together.sound or part.owner or not part.disjoint:
        raise ValueError("owners who counted together are too few, too many absent, or do not all state that their persons are disjoint")
    if any(event.query != "leaf_counts" for event in part.events) or not _shared_noise_proven(part, together):
        raise ValueError("owners who counted together did what is not proven of noise in shares")
    if part.events and isinstance(together.beyond, str) and together != together.stating(part.events, part.exact_delta):
        raise ValueError("the ε against one more owner who knows its share does not follow from its events")


def _shared_noise_proven(part: Part, together: Together) -> bool:
    """Laplace noise alone; or with a δ one count with Gaussian noise that is enough for its shares (M6)."""
    if not part.exact_delta:
        return all(event.mechanism == DISCRETE_LAPLACE for event in part.events)
    if [event.mechanism for event in part.events] != [DISCRETE_GAUSSIAN]:
        return False
    (event,), shares = part.events, len(together.owners) - together.tolerated
    changed = event.queries * plain_fraction(event.sensitivity, MAX_SCALE**2)
    paid = event.zcdp_cost <= shared_rho(plain_fraction(part.epsilon), part.exact_delta)
    return paid and near_one_draw(plain_fraction(event.scale, MAX_SCALE**2), changed, shares)


def _check_event(event: EventRecord, n_classes: int, k: int) -> None:
    """Its noise follows from its loss, and what it counts has the sensitivity that is proven, for k rows of a person."""
    if event.mechanism == DISCRETE_GAUSSIAN:
        if not _counts(event) or event.epsilon != "0" or isinstance(event.rho, msgspec.UnsetType):
            raise ValueError("an event with Gaussian noise does not count, or does not say its ρ alone")
        sigma_squared = plain_fraction(event.scale, MAX_SCALE**2)
        squared = plain_fraction(event.sensitivity, MAX_SCALE**2)
        if plain_fraction(event.rho) != rho_of_gaussian(event.queries * squared, sigma_squared):
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
    elif issubclass(query, ChoiceQuery) and event.mechanism != LOCAL_SENSITIVITY:  # of that any may be stated, and no ε is claimed
        halved_rate = plain_fraction(event.scale) == 2 * plain_fraction(event.sensitivity) / plain_fraction(event.epsilon)
        if event.queries != 1 or not query.proven(plain_fraction(event.sensitivity) / k, halved_rate, n_classes):
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
    noises = [counted_noise(part, ensemble.trees) for part in parts]
    if not noises or None in noises:
        raise ValueError("the noise of its counts is not what its events say: a table was not counted in all of its trees")
    if tuple(noises) != ensemble.noise or measured != "leaves":
        raise ValueError("the noise of its counts is not what its events say")


def counted_noise(part: Part, trees: int) -> Noise | None:
    """The noise on a table's counts: of one event for all trees, or of one event for each, where they were chosen one after the other."""
    counts = [event for event in part.events if event.query == "leaf_counts"]
    if counts and counts[-1].queries == trees:
        return part.noise(counts[-1])
    each = counts[-trees:]
    alike = len(each) == trees and all(event.queries == 1 and event.noise == each[0].noise for event in each)
    return part.noise(each[0]) if alike else None


def last_count(part: Part) -> EventRecord | None:
    """The event of the counts that were kept: a search may have tried forests before."""
    return next((event for event in reversed(part.events) if event.query == "leaf_counts"), None)
