"""The release: one JSON document with the trees, their noisy counts, the public schema and the guarantee. Never pickle.

`document.py` has the fields of the file and every check.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from hedgerow import __version__
from hedgerow.accounting.noise import variance_of
from hedgerow.errors import MissingColumnsWarning, ReleaseError
from hedgerow.inference.additive import AdditiveForest
from hedgerow.inference.confidence import unreliable
from hedgerow.inference.prune import pruned_nodes
from hedgerow.inference.vote import ADDITIVE, MAJORITY, MOST_CONFIDENT, PRUNED_SUM, WEIGHTED, Vote, probabilities, vote_named
from hedgerow.release.certificate import Certificate
from hedgerow.release.document import (
    FORMAT,
    VERSION,
    Document,
    Scalar,
    TreeRecord,
    boosted_records_of,
    check_additive,
    correction_of,
    correction_records_of,
    ensemble_records_of,
    forest_of,
    parse,
)
from hedgerow.release.files import MAX_BYTES, read_document, signed_text, with_hash, write_document
from hedgerow.release.signing import Signature, sign
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.columns import absent_columns
from hedgerow.schema.schema import Schema
from hedgerow.schema.toml import to_plain
from hedgerow.trees.additive_model import GRID
from hedgerow.trees.forest import NODES, Correction, CountedForest

if TYPE_CHECKING:  # what is read from a release is imported where it is read: training needs none of it
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from hedgerow.inference.effects import Effect
    from hedgerow.inference.explain import Explanation
    from hedgerow.inference.interactions import Interaction


class Release:
    """A trained forest as it may be published: predict with it, look at it, save it.

    Release.load(path), release.save(path), release.predict(rows), release.predict_proba(rows), release.rules()
    """

    origin = ""  # of one that was grown here from a service's table: a hash of its address. Files do not have it

    def __init__(
        self,
        forest: CountedForest,
        certificate: Certificate,
        *,
        algorithm: str,
        vote: str,
        parameters: dict[str, Scalar] | None = None,
        chosen: dict[str, Scalar] | None = None,
        made_by: str | None = None,
        correction: Correction | None = None,
        signatures: tuple[Signature, ...] = (),
    ) -> None:
        self.forest = forest
        self.certificate = certificate
        self.algorithm = algorithm
        self.vote = vote
        self.parameters = dict(parameters or {})
        self.chosen = dict(chosen or {})
        self.made_by = f"hedgerow {__version__}" if made_by is None else made_by
        self.correction = correction or Correction()
        self._signatures = signatures

    # ------------------------------------------------------------ use

    @property
    def released(self) -> dict[str, int]:
        """Other numbers that were paid for (the noisy n̂). Of several tables each part of the certificate has its own."""
        parts = self.certificate.parts
        return dict(parts[0].released) if len(parts) == 1 else {}

    @property
    def schema(self) -> Schema:
        """The public facts that travel with it."""
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
    def additive(self) -> AdditiveForest:
        """The additive model of a Hedgerow forest: margins, errors, what each attribute says."""
        if self.vote != ADDITIVE:
            raise ReleaseError(
                f"{self.algorithm}: its trees vote, they do not add up what each attribute says. Only a Hedgerow forest does: "
                "fit one with HedgerowClassifier, or with `hedgerow fit --algorithm hedgerow`."
            )
        spent = {"best_scale": 0.0, "best_model": 0.0}
        for event in self.certificate.events:
            if event.query in spent:
                spent[event.query] += float(Fraction(event.epsilon)) / self.schema.k
        return AdditiveForest(self.forest, self.chosen, self.correction, spent["best_scale"], spent["best_model"], *self._noise_of_sums)

    @property
    def _noise_of_sums(self) -> tuple[float, float]:
        """Standard deviations of the noise on a sum of gradients: after all rounds of a joint fit, which are the first, and of a boosted
        tree; 0 without one."""
        asked = self.chosen.get("joint rounds", 0)
        rounds = asked if isinstance(asked, int) else 0
        events = [variance_of(event.noise) for event in self.certificate.events if event.query == "boost_round" and event.noise]
        joint, boosted = events[:rounds], events[rounds:]
        return math.sqrt(sum(joint)) / max(len(joint), 1) / GRID, math.sqrt(max(boosted, default=0.0)) / GRID

    def choices(self) -> list[tuple[str, str]]:
        """What the algorithm chose for itself, as (what, words) pairs."""
        from hedgerow.inference.reading_words import chosen_in_words

        if self.vote == ADDITIVE:
            return chosen_in_words(self.additive, self.chosen)
        return [(name, str(value)) for name, value in self.chosen.items()]

    @cached_property
    def _vote(self) -> Vote:
        if self.vote == ADDITIVE:
            return self.additive
        return vote_named(self.vote, self.forest, self.noise_rule)

    def predict_codes_proba(self, codes: NDArray[Any], n_jobs: int = 1) -> NDArray[np.float64]:
        return probabilities(self._vote, codes, self.codebook.n_classes, n_jobs)

    def predict_few(self, codes: NDArray[Any]) -> NDArray[np.float64]:
        """As `predict_codes_proba`, bit for bit, for a few rows to be shown: without the compiled loops, which take longer to be loaded."""
        from hedgerow.inference.few_rows import few_rows

        return few_rows(self._vote, codes)

    def predict_codes(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        """Class codes for rows of codes: a function of each row alone."""
        return np.asarray(self.predict_codes_proba(codes).argmax(axis=1), dtype=np.int64)

    def predict_proba(self, table: Any, n_jobs: int = 1) -> NDArray[np.float64]:
        """The class probabilities of each row, in the order of `classes`. Costs no ε."""
        absent: list[str] = []
        if self.forest.united:  # owners hold different columns: a row may lack those of some
            absent = absent_columns(table, self.schema.names)
            if absent:
                warnings.warn(missing_columns_text(absent), MissingColumnsWarning, stacklevel=2)
        return self.predict_codes_proba(self.codebook.encode(table, n_jobs, absent), n_jobs)

    def predict(self, table: Any, n_jobs: int = 1, class_weight: Any = None) -> NDArray[Any]:
        """The most probable class of each row. Costs no ε."""
        shares = self.predict_proba(table, n_jobs)
        return np.asarray(self.classes[(shares if class_weight is None else self.weighted(shares, class_weight)).argmax(axis=1)])

    def weighted(self, shares: NDArray[np.float64], class_weight: Any) -> NDArray[np.float64]:
        """Probabilities for other costs, or for classes of other shares: times the weights, made to add up to 1. Costs no ε."""
        from hedgerow.inference.class_weights import class_weights
        from hedgerow.inference.coverage import class_shares

        totals = np.asarray(self.forest.class_totals, dtype=np.float64)
        least = 2 * class_shares(self.forest)[1] * totals.sum()  # of a class that may have no row, noise would be the weight
        found = shares * class_weights(class_weight, self.schema.target.classes, np.maximum(totals, least))
        return np.asarray(found / np.maximum(found.sum(axis=1, keepdims=True), 1e-300))

    def failures(self, table: Any, n_jobs: int = 1) -> NDArray[np.bool_]:
        """Which rows no tree has an answer for: each ends in a node without a count, as the leaves with value Failure of ID3 are.

        `predict` gives them the most frequent class of the whole table: whoever follows the paper takes them for wrong.
        """
        from hedgerow.trees.routing import route

        codes = self.codebook.encode(table, n_jobs)
        failed = np.ones(len(codes), dtype=bool)
        for tree, counts in zip(self.forest.trees, self.forest.node_counts, strict=True):
            failed &= (counts[route(tree, codes)] == 0).all(axis=1)
        return failed

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

    @property
    def unused(self) -> Any:
        """For each tree the nodes that predictions do not use, whatever the reason; None where they use all."""
        return self.additive.unused if self.vote == ADDITIVE else self.removed

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
        above_noise: bool = True,
        as_frame: bool = False,
    ) -> Any:
        """What the trees say, as a list of `Rule` (`inference/rules.py` tells how its numbers and errors are made).

        sub_rules:      paths to inner nodes too
        min_support, min_confidence, label:  keep only rules with at least that support or confidence, or for that class
        top:            at most so many
        sort:           "default" (surest after taking off twice the noise), "confidence" or "support"
        pruned:         False also lists the nodes that the release itself does not predict with
        above_noise:    only rules that noise alone would hardly have made, as `hedgerow rules` has them; False lists all
        as_frame:       a pandas data frame instead, one row for each rule
        """
        from hedgerow.inference.rules import frame_of
        from hedgerow.inference.rules import rules as rules_of

        found = rules_of(
            self.forest,
            sub_rules=sub_rules,
            min_support=min_support,
            min_confidence=min_confidence,
            label=label,
            top=top,
            sort=sort,
            removed=self.unused if pruned else None,
            above_noise=above_noise,
        )
        return frame_of(found) if as_frame else found

    def feature_importances(self) -> dict[str, float]:
        """The share of each attribute in what the (pruned) trees tell about the class, from released counts alone.

        Of a Hedgerow forest the share in what all attributes add to the scores (`inference/effects.py`).
        """
        from hedgerow.inference.effects import effect_importances
        from hedgerow.inference.importance import importances

        if self.vote == ADDITIVE:
            return effect_importances(self.additive)
        return importances(self.forest, self.removed)

    def within_noise(self) -> list[str]:
        """The attributes of a Hedgerow forest that add no more than noise, and the chance of who is in the table, may make them add, the
        most important first.

        Of other forests none: what noise could have made is left out of their importances.
        """
        return [each.attribute for each in self.effects() if not each.above_noise] if self.vote == ADDITIVE else []

    # ------------------------------------------------------------ what the attributes of a Hedgerow forest say

    def scores(self, table: Any, return_errors: bool = False, n_jobs: int = 1) -> Any:
        """The margins (rows, classes), whose softmax is `predict_proba`; with `return_errors` a pair, the second their standard errors.

        The errors are what the noise gives each margin against the mean of its row. They say nothing about who was in the table.
        """
        from hedgerow.inference.effects import score_errors

        forest, codes = self.additive, self.codebook.encode(table, n_jobs)
        margins = forest.model.margins(codes, n_jobs)
        return (margins, score_errors(forest, codes)) if return_errors else margins

    def contributions(self, table: Any, n_jobs: int = 1) -> NDArray[np.float64]:
        """What each attribute adds to each class's score of each row: (rows, attributes, classes). `scores` less their sum is the base."""
        from hedgerow.inference.effects import contributions

        forest = self.additive
        return contributions(forest, self.codebook.encode(table, n_jobs))

    def explain(self, table: Any) -> tuple[Explanation, ...]:
        """Of each row, what each attribute adds to its prediction, the largest first, with errors. For a few rows."""
        from hedgerow.inference.explain import explain

        codes = self.codebook.encode(table)
        return explain(self.additive, codes, list(range(len(codes))))

    def effects(self) -> tuple[Effect, ...]:
        """What each value of each attribute adds to the scores on average, with errors; the most important attribute first."""
        from hedgerow.inference.effects import effects

        return effects(self.additive)

    def interactions(self) -> tuple[Interaction, ...]:
        """Which two attributes say something only together, the strongest pair first; none where there are no boosted trees."""
        from hedgerow.inference.interactions import interactions

        return interactions(self.additive)

    def __repr__(self) -> str:
        boosted = f" and {len(self.correction.boosted_trees)} boosted ones" if self.correction.boosted_trees else ""
        return f"Release({self.algorithm}, {len(self.forest.trees)} trees{boosted}, {self.certificate.sentence()})"

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        from hedgerow.plots.notebook import release_html  # drawn from the release alone: see pyproject.toml

        return release_html(self)

    # ------------------------------------------------------------ write

    def document(self) -> Document:
        trees = [
            TreeRecord(tree.attribute.tolist(), tree.branch.tolist(), counts.ravel().tolist())
            for tree, counts in zip(self.forest.trees, self.forest.counts, strict=True)
        ]
        draft = with_hash(
            Document(
                format=FORMAT,
                version=VERSION,
                made_by=self.made_by,
                algorithm=self.algorithm,
                parameters=self.parameters,
                chosen=self.chosen,
                vote=self.vote,
                schema=to_plain(self.schema),
                bins=self.codebook.bins,
                ensembles=ensemble_records_of(self.forest.ensembles),
                certificate=self.certificate,
                trees=trees,
                measured="nodes" if self.forest.measured == NODES else "leaves",
                corrections=correction_records_of(self.correction),
                boosted=boosted_records_of(self.correction),
            )
        )
        return msgspec.structs.replace(draft, signatures=list(self._signatures))

    @property
    def content_hash(self) -> str:
        """SHA-256 of its content, without signatures."""
        return self.document().content_hash

    def to_json(self) -> bytes:
        """The document as JSON: what `save` writes."""
        return msgspec.json.encode(self.document())

    def save(self, path: str | Path) -> None:
        """Write the document; gzip when it is large or the name ends in .gz. The file is replaced whole or not at all."""
        write_document(path, self.to_json())

    def report(self, path: str | Path, *, score: Any = None, calibration: Any = None) -> None:
        """Write one HTML page with the certificate and pictures of what was learnt, as `hedgerow show --report` does. Costs no ε.

        score, calibration: of `private_score` and `private_calibration`, to be shown on it
        """
        from hedgerow.plots.report import html_report  # drawn from the release alone: see pyproject.toml

        Path(path).write_text(html_report(self, score=score, calibration=calibration), encoding="utf-8")

    # ------------------------------------------------------------ sign

    @property
    def signatures(self) -> tuple[Signature, ...]:
        """Signatures of this document. They were checked when it was loaded: one that does not fit is refused."""
        return self._signatures

    def signed(self, key: Ed25519PrivateKey) -> Release:
        """The same release with one signature more."""
        signature = sign(key, signed_text(FORMAT, self.content_hash))
        others = tuple(old for old in self._signatures if old.key != signature.key)
        return _with(self, signatures=(*others, signature))

    def with_signatures_of(self, copies: Iterable[Release]) -> Release:
        """The same release with the signatures of its copies, too: the content of each must be the same."""
        found = {signature.key: signature for signature in self._signatures}
        for copy in copies:
            if copy.content_hash != self.content_hash:
                raise ReleaseError("the releases are not the same: their contents differ.")
            found |= {signature.key: signature for signature in copy.signatures}
        return _with(self, signatures=tuple(found.values()))

    # ------------------------------------------------------------ read

    @classmethod
    def load(cls, path: str | Path, max_bytes: int = MAX_BYTES) -> Release:
        """Read and check a release file. Raises ReleaseError for anything that is not a sound release."""
        return cls.from_json(read_document(path, max_bytes=max_bytes), source=str(path))

    @classmethod
    def from_json(cls, data: bytes, source: str = "release") -> Release:
        """A release from its JSON text, every part of it checked."""
        try:
            return _from_document(parse(data))
        except ReleaseError as error:
            raise ReleaseError(f"{source}: {error}") from error

    def __reduce__(self) -> Any:
        """As its document. A vote that was made goes with it, so that machines which share a table's rows answer with the same numbers."""
        made = {name: self.__dict__[name] for name in ("_vote",) if name in self.__dict__}
        return (Release.from_json, (self.to_json(),), (__version__, made) if made else None)

    def __setstate__(self, state: tuple[str, dict[str, Any]]) -> None:
        """Another version makes its own."""
        version, made = state
        if version == __version__:
            self.__dict__.update(made)


def missing_columns_text(absent: Iterable[str]) -> str:
    return f"the column(s) {', '.join(absent)} are missing: the rows are classified by those that they have."


def class_array(schema: Schema) -> NDArray[Any]:
    """The classes as an array of their own type; objects where the types are mixed."""
    classes = schema.target.classes
    if len({type(value) for value in classes}) == 1:
        return np.array(classes)
    array = np.empty(len(classes), dtype=object)
    array[:] = classes
    return array


def _from_document(document: Document) -> Release:
    forest = forest_of(document)
    release = Release(
        forest,
        document.certificate,
        algorithm=document.algorithm,
        vote=document.vote,
        parameters=document.parameters,
        chosen=document.chosen,
        made_by=document.made_by,
        correction=correction_of(document, forest.codebook),
        signatures=tuple(document.signatures),
    )
    if release.vote == ADDITIVE:
        check_additive(document, forest)
        _ = release.additive  # a file whose trees do not stand as they should is refused now, not at the first prediction
    return release


def _with(release: Release, **changes: Any) -> Release:
    kept = {name: getattr(release, name) for name in ("algorithm", "vote", "parameters", "chosen", "made_by", "correction", "signatures")}
    return Release(release.forest, release.certificate, **{**kept, **changes})
