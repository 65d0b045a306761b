"""`hedgerow.RuleSet`: disjoint rules, the other model that owners share (Sharkey et al. 2008). A rule is a path without its tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import __version__
from hedgerow.anonymity.requirement import Requirement
from hedgerow.errors import PlanError, ReleaseError
from hedgerow.release.certificate import Certificate, anonymity_certificate, no_certificate
from hedgerow.release.release import Release, class_array
from hedgerow.release.signing import Signature
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.schema.value_edges import VALUES
from hedgerow.sharing.anonymous_release import check_schema
from hedgerow.sharing.measure import measure
from hedgerow.sharing.rules.disjoint import check_disjoint
from hedgerow.sharing.rules.reading import paths_of_rules, rules_of_paths
from hedgerow.training.algorithms import ALGORITHMS
from hedgerow.trees.paths import Paths, paths_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from hedgerow.sharing.rules.prune import PrunedRules
    from hedgerow.sharing.rules.vote import RuleVote

ALGORITHM = "rule set"
BINS = ALGORITHMS["local-tree"].bins  # cells of a number without declared edges, if nothing else is said
EXACT = "exact counts of rules, as they were given"


class RuleSet:
    """Disjoint rules with the persons of each: what an owner may prune and share instead of a tree.

    RuleSet.from_release(tree), RuleSet.load(path, schema), RuleSet.of(schema, rules); rules.prune(k=50).rule_set.save(path)

    paths:       the rules as paths: which codes of each attribute a rule allows, and its class counts, or hit and miss
    certificate: anonymity, where they were pruned; nothing else is ever claimed
    at_values:   they are those of a tree whose thresholds were found between the values of rows, and tell of them
    """

    def __init__(
        self,
        paths: Paths,
        certificate: Certificate | None = None,
        *,
        at_values: bool = False,
        made_by: str | None = None,
        signatures: tuple[Signature, ...] = (),
    ) -> None:
        check_disjoint(paths)
        self.paths = paths
        self.certificate = no_certificate(EXACT) if certificate is None else certificate
        self.at_values = at_values
        self.made_by = f"hedgerow {__version__}" if made_by is None else made_by
        self.signatures = signatures

    # ------------------------------------------------------------ make

    @classmethod
    def of(cls, schema: Schema | str | Path, rules: Sequence[Any], bins: int = BINS) -> RuleSet:
        """From rules as a file has them: a list of {"if": conditions, "counts": persons of each class} (docs/RULE_SETS.md).

        bins: cells of equal width of a numeric attribute without declared edges
        """
        return cls(paths_of_rules(Codebook(schema if isinstance(schema, Schema) else Schema.load(schema), bins), rules))

    @classmethod
    def from_release(cls, release: Release) -> RuleSet:
        """The paths of one tree with exact counts, such as a local tree's. If it was pruned, the rules keep its anonymity."""
        forest = release.forest
        if forest.noisy:
            raise PlanError("rule set: the counts are noisy. Expected a tree with exact counts: a private release is shared as it is.")
        if len(forest.trees) != 1:
            raise PlanError(f"rule set: got {len(forest.trees)} trees, whose paths overlap; expected one tree (`--algorithm local-tree`).")
        paths = possible(paths_of(forest))
        if paths.counts is None or (paths.counts < 0).any():
            raise PlanError("rule set: a count is below 0; expected a tree with exact counts.")
        certificate, at_values = release.certificate, release.parameters.get("bins") == VALUES
        if certificate.by_hits:
            paths = replace(paths, counts=None)
        if certificate.guarantee == "anonymity":
            claimed = certificate_for(requirement_in(certificate), certificate.by_hits, at_values)
            return cls(paths, claimed, at_values=at_values)
        return cls(paths, no_certificate(certificate.reason), at_values=at_values)

    @classmethod
    def load(cls, path: str | Path, schema: Schema | str | Path | None = None, bins: int | None = None) -> RuleSet:
        """Read a rule set: one of ours, which holds its schema, or plain rules in JSON or CSV, which need one (docs/RULE_SETS.md)."""
        from hedgerow.sharing.rules.files import load

        return load(path, schema if schema is None or isinstance(schema, Schema) else Schema.load(schema), bins)

    # ------------------------------------------------------------ use

    def __len__(self) -> int:
        return len(self.paths)

    def __repr__(self) -> str:
        return f"RuleSet({len(self)} rules, {self.certificate.sentence()})"

    @property
    def codebook(self) -> Codebook:
        return self.paths.codebook

    @property
    def schema(self) -> Schema:
        """The public facts that its rules are about."""
        return self.codebook.schema

    @property
    def algorithm(self) -> str:
        return f"anonymity-pruned {ALGORITHM}" if self.certificate.guarantee == "anonymity" else ALGORITHM

    @property
    def rules(self) -> list[dict[str, Any]]:
        """As they stand in a file."""
        return rules_of_paths(self.paths)

    def prune(self, k: Any = None, c: Any = None, l: Any = None, alpha: Any = None, *, hits_only: bool = False) -> PrunedRules:  # noqa: E741
        """Merge rules until each satisfies k-anonymity, (c, l)-diversity, (alpha, k)-anonymity, or what of it is asked for."""
        from hedgerow.sharing.rules.prune import prune_rules

        paths = replace(self.paths, counts=None) if hits_only else self.paths
        return prune_rules(paths, Requirement.of(k, c, l, alpha), at_values=self.at_values)

    @cached_property
    def vote(self) -> RuleVote:
        from hedgerow.sharing.rules.vote import RuleVote

        return RuleVote(self.paths)

    def predict_proba(self, table: Any) -> NDArray[np.float64]:
        """The class shares of each row's rule; of all rules together where a row is in none."""
        return self.vote.probabilities(self.codebook.encode(table))

    def predict(self, table: Any) -> NDArray[Any]:
        """The class of each row, by the rules that cover it."""
        return np.asarray(class_array(self.schema)[self.predict_proba(table).argmax(axis=1)])

    # ------------------------------------------------------------ write

    def save(self, path: str | Path) -> None:
        """As one JSON document with its schema. What claims anonymity is measured again first."""
        from hedgerow.sharing.rules.files import save

        save(self, path)

    @property
    def content_hash(self) -> str:
        """SHA-256 of its content."""
        from hedgerow.sharing.rules.files import document_of

        return document_of(self).content_hash

    def signed(self, key: Ed25519PrivateKey) -> RuleSet:
        """The same rules with one signature more."""
        from hedgerow.sharing.rules.files import signature_of

        signature = signature_of(self, key)
        others = tuple(old for old in self.signatures if old.key != signature.key)
        every = (*others, signature)
        return RuleSet(self.paths, self.certificate, at_values=self.at_values, made_by=self.made_by, signatures=every)


def possible(paths: Paths) -> Paths:
    """Without the paths that nobody can be on, since an attribute was asked to pieces; what allows every value asks nothing."""
    parts = np.split(paths.allowed, paths.first_code[1:-1], axis=1)
    asked = np.stack([~part.all(axis=1) for part in parts], axis=1)
    there = np.stack([part.any(axis=1) for part in parts], axis=1).all(axis=1)
    counts = None if paths.counts is None else paths.counts[there]
    return Paths(paths.codebook, paths.allowed[there], asked[there], paths.label[there], paths.hit[there], paths.miss[there], counts)


# ---------------------------------------------------------------- what it claims


def certificate_for(requirement: Requirement, by_hits: bool, at_values: bool) -> Certificate:
    return anonymity_certificate(requirement.record(), requirement.words(), by_hits, at_values, group="rule")


def requirement_in(certificate: Certificate) -> Requirement:
    return Requirement.from_record({name: text for name, text in (certificate.requirement or {}).items() if name != "by"})


def check_claim(rules: RuleSet) -> None:
    """What claims anonymity is measured, and says no more than such a rule set says. Nothing else may be claimed."""
    certificate = rules.certificate
    if certificate.guarantee == "none":
        if certificate != no_certificate(certificate.reason):
            raise ReleaseError("it claims nothing in other words than such a rule set does.")
        return
    if certificate.guarantee != "anonymity":
        raise ReleaseError("it claims differential privacy, which no rule set has. Do not use it.")
    requirement = requirement_in(certificate)
    if certificate != certificate_for(requirement, rules.paths.counts is None, rules.at_values):
        raise ReleaseError("it claims anonymity in other words than such a rule set does.")
    check_schema(rules.schema, "a rule set", "rule")
    if not len(rules) or not measure(rules.paths, requirement).satisfied:
        raise ReleaseError(f"it claims {requirement.words()}, and its rules do not satisfy that. Do not use it.")
