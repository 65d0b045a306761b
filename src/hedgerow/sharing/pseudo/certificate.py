"""What may be said about the privacy of pseudo-data: a file beside the table, made from the certificates of its releases.

Pseudo-data are a function of releases and public coins. So they keep an ε (post-processing); of several releases the ε add up here. That
a tree is anonymous says nothing about rows that are made from it, and never an ε.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import msgspec

from hedgerow import __version__
from hedgerow.accounting.loss import exact_sum, plain_fraction, text_of_delta, text_of_fraction
from hedgerow.release.certificate import neighbours_of
from hedgerow.release.parts import EPSILON_DELTA_DP, EPSILON_DP, UNIT_OF_PARTS
from hedgerow.sharing.pseudo.generate import PseudoRows

if TYPE_CHECKING:
    from hedgerow.release.release import Release
    from hedgerow.sharing.rules.rule_set import RuleSet

FORMAT = "hedgerow-pseudo-data"
VERSION = 1
DP, DELTA_DP, ANONYMITY, NONE = EPSILON_DP, EPSILON_DELTA_DP, "anonymity", "none"


class SourceRecord(msgspec.Struct, frozen=True):
    """A release that rows were made from, and how many. A rule set has no trees."""

    content_hash: str
    algorithm: str
    trees: int
    guarantee: str
    epsilon: str | None
    reason: str
    rows: int
    delta: str | msgspec.UnsetType = msgspec.UNSET  # where it is 0 the file has no such field

    @property
    def loss(self) -> str:
        """Its ε for a table; with δ, both."""
        return (self.epsilon or "–") + _and_delta(self.delta)


class PseudoCertificate(msgspec.Struct, frozen=True, kw_only=True):
    """The side-car, field by field.

    statement: in words what holds, and for what
    seed:      with the releases, the method and the program's version it makes the same rows again
    diversity: measured on the rows, where the releases are anonymous; it is no guarantee
    table, sha256: the file that it stands beside
    """

    format: str = FORMAT
    version: int = VERSION
    made_by: str = f"hedgerow {__version__}"
    guarantee: str
    epsilon: str | None
    neighbours: str
    unit: str
    statement: str
    assumptions: list[str]
    sources: list[SourceRecord]
    method: str
    numeric: str
    classes: str
    every_tree: bool
    rows: int
    seed: str
    diversity: dict[str, Any] | None = None
    table: str = ""
    sha256: str = ""
    delta: str | msgspec.UnsetType = msgspec.UNSET  # where it is 0 the file has no such field

    def to_json(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"

    def sentence(self) -> str:
        """The guarantee in one line."""
        if self.guarantee == DP:
            return f"ε = {self.epsilon} differential privacy, neighbours: {self.neighbours}; {self.statement}"
        if self.guarantee == DELTA_DP:
            loss = f"(ε = {self.epsilon}{_and_delta(self.delta)})"
            return f"{loss} differential privacy, neighbours: {self.neighbours}; {self.statement}"
        return self.statement


def certificate_for(releases: Sequence[Release | RuleSet], made: PseudoRows) -> PseudoCertificate:
    """What the rows may claim."""
    sources = [_source(release, rows) for release, rows in zip(releases, made.of_model.tolist(), strict=True)]
    guarantee, epsilon, statement = _claim(sources)
    delta = exact_sum(_chance(source) for source in sources) if guarantee == DELTA_DP else Fraction(0)
    one = releases[0].certificate if len(releases) == 1 else None
    claims = guarantee in (DP, DELTA_DP)
    parts = [part for release in releases for part in release.certificate.parts]
    recipe = made.recipe
    return PseudoCertificate(
        guarantee=guarantee,
        epsilon=epsilon,
        neighbours="" if not claims else neighbours_of(parts) if one is None else one.neighbours,
        unit="" if not claims else UNIT_OF_PARTS if one is None else one.unit,
        statement=statement,
        assumptions=list(dict.fromkeys(text for release in releases for text in release.certificate.assumptions)),
        sources=sources,
        method=recipe.method,
        numeric=recipe.numeric,
        classes=recipe.classes,
        every_tree=recipe.every_tree,
        rows=made.rows,
        seed=str(int(recipe.seed)),
        delta=text_of_fraction(delta) if delta else msgspec.UNSET,
    )


def _source(release: Release | RuleSet, rows: int) -> SourceRecord:
    certificate = release.certificate
    epsilon = certificate.epsilon if certificate.private else None
    return SourceRecord(
        release.content_hash,
        release.algorithm,
        len(release.forest.trees) if hasattr(release, "forest") else 0,
        str(certificate.guarantee),
        epsilon,
        certificate.reason,
        rows,
        certificate.delta or msgspec.UNSET,
    )


def _chance(source: SourceRecord) -> Fraction:
    return Fraction(0) if isinstance(source.delta, msgspec.UnsetType) else plain_fraction(source.delta)


def _and_delta(delta: str | msgspec.UnsetType) -> str:
    return "" if isinstance(delta, msgspec.UnsetType) else f", δ = {text_of_delta(plain_fraction(delta))}"


def _claim(sources: Sequence[SourceRecord]) -> tuple[str, str | None, str]:
    """Guarantee, ε and statement of the whole."""
    kinds = {source.guarantee for source in sources}
    several = len(sources) > 1
    if kinds <= {DP, DELTA_DP}:
        loss = "(ε, δ)" if DELTA_DP in kinds else "ε"
        epsilon = text_of_fraction(exact_sum(plain_fraction(source.epsilon or "") for source in sources))
        said = f"pseudo-data made from a release with differential privacy keep its {loss} (post-processing)"
        if several:
            said = (
                f"pseudo-data made from releases with differential privacy keep their {loss} (post-processing), which add up: one person "
                "may be in several tables. If persons are stated to be disjoint, merge the releases first"
            )
        return DELTA_DP if DELTA_DP in kinds else DP, epsilon, said
    if kinds == {ANONYMITY}:
        reasons = "; ".join(dict.fromkeys(source.reason for source in sources))
        model = " or ".join(dict.fromkeys("tree" if source.trees else "rule set" for source in sources))
        trees = f"{'each' if several else 'its'} source {model} satisfies its requirement"
        return ANONYMITY, None, f"{trees} ({reasons}); the pseudo-data itself need not. This is not differential privacy"
    without = [source for source in sources if source.guarantee not in (DP, DELTA_DP, ANONYMITY)]
    lacking = "; ".join(dict.fromkeys(source.reason for source in without))
    if without:
        which = "a release without a guarantee" if several else "its release has none"
        return NONE, None, f"no privacy guarantee, since {'it was made from ' if several else ''}{which}: {lacking}"
    return NONE, None, "no privacy guarantee for the whole: some releases have differential privacy and others only anonymity (see sources)"
