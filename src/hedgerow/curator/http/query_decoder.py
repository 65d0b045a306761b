"""From the body of a look to the call of a verb: everything read and bounded before anything is charged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.curator.http.limits import Limits
from hedgerow.errors import PlanError, ReleaseError
from hedgerow.evaluation.private import ready_probabilities
from hedgerow.mechanisms.scores import score_named
from hedgerow.private_table import PrivateTable
from hedgerow.queries.predictors import Predictor, Probabilities
from hedgerow.release.release import Release
from hedgerow.remote import codec
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.additive_model import AdditiveModel, MostProbable, gradient_width
from hedgerow.trees.tree import Tree

Call = Callable[[PrivateTable], list[NDArray[np.int64]]]
MOST_TREES = 60_000  # of one look: as many as a schema may have attributes
MOST_CHOICES = 1000  # predictors or scales of one choice
UNPROVEN = "choose_locally: its ε is not proven, so it is not answered from afar. Use choose."


@dataclass(frozen=True)
class Reader:
    """What a look is read by: the public codebook of its session, and what the service takes on."""

    codebook: Codebook
    limits: Limits

    def call(self, verb: str, content: bytes) -> Call:
        """The verb with what it is asked about. A PlanError for all that is not sound or is too large."""
        if verb not in codec.LOOKS:
            raise PlanError(UNPROVEN if verb == "choose_locally" else f"expected one of the verbs {', '.join(codec.LOOKS)}.")
        form: Any = codec.read_form(content, codec.LOOKS[verb])
        call: Call = getattr(self, f"_{verb}")(form)
        return call

    def _rows(self, form: codec.RowsForm) -> Call:
        price = codec.price_of(form.price)
        return lambda table: [np.array([table.rows(price)], dtype=np.int64)]

    def _leaf_counts(self, form: codec.LeafCountsForm) -> Call:
        trees, price = self._trees(form.trees), codec.price_of(form.price)
        self._bound(sum(len(tree.leaves) for tree in trees) * self.codebook.n_classes)
        return lambda table: table.leaf_counts(trees, price)

    def _sizes(self, form: codec.NodesForm) -> Call:
        tree, nodes, price = self._nodes(form, self.codebook.n_classes + 1)
        return lambda table: [table.sizes(tree, nodes, price)]

    def _class_counts(self, form: codec.NodesForm) -> Call:
        tree, nodes, price = self._nodes(form, self.codebook.n_classes + 1)
        return lambda table: [table.class_counts(tree, nodes, price)]

    def _tables(self, form: codec.TablesForm) -> Call:
        tree, nodes, price = self._nodes(form, self._cells())
        if len(form.asked) != len(nodes):
            raise PlanError("asked: expected one list of attributes for each node.")
        asked = codec.read_mask(form.asked, len(self.codebook.sizes), "asked")
        return lambda table: [table.tables(tree, nodes, asked, price)]

    def _nodes(self, form: codec.NodesForm, each: int) -> Any:
        tree = codec.read_tree(form.tree, self.codebook)
        self._bound(len(form.nodes) * each)
        return tree, codec.read_nodes(form.nodes, tree), codec.price_of(form.price)

    def _gradient_sums(self, form: codec.GradientSumsForm) -> Call:
        trees = self._trees(form.asked)
        model, price = codec.read_model(form.model, self.codebook), codec.price_of(form.price)
        self._bound(sum(len(tree.leaves) for tree in trees) * gradient_width(self.codebook.n_classes))
        return lambda table: table.gradient_sums(trees, model, price)

    def _choose(self, form: codec.ChooseForm) -> Call:
        tree = codec.read_tree(form.tree, self.codebook)
        self._bound(len(form.nodes) * max(self._cells(), len(form.candidates)), self.limits.counted_numbers)
        nodes, candidates = codec.read_nodes(form.nodes, tree), codec.read_candidates(form.candidates, self.codebook)
        if len(form.allowed) != len(nodes):
            raise PlanError("allowed: expected one list of candidates for each node.")
        allowed = codec.read_mask(form.allowed, len(candidates), "allowed")
        score, epsilon = score_named(form.score), codec.fraction_of(form.epsilon)
        if score is None:
            raise PlanError("score: expected one of the list of proven scores.")
        return lambda table: [table.choose(tree, nodes, candidates, allowed, score, epsilon, form.mechanism)]

    def _confusion(self, form: codec.ConfusionForm) -> Call:
        self._confusions(1)
        predict, price = self._predictor(form.predictor), codec.price_of(form.price)
        return lambda table: [table.confusion(predict, price)]

    def _reliability(self, form: codec.ReliabilityForm) -> Call:
        release, price = codec.read_predictor(form.predictor, self.codebook), codec.price_of(form.price)
        if not isinstance(release, Release):
            raise PlanError("reliability: expected a release.")
        shares = _ready(release)
        return lambda table: [table.reliability(shares, form.bins, price)]

    def _best(self, form: codec.BestForm) -> Call:
        self._bound(len(form.predictors), MOST_CHOICES)
        self._confusions(len(form.predictors))
        predictors, epsilon = [self._predictor(each) for each in form.predictors], codec.fraction_of(form.epsilon)
        return lambda table: [np.array([table.best(predictors, epsilon)], dtype=np.int64)]

    def _best_scale(self, form: codec.BestScaleForm) -> Call:
        model, epsilon = codec.read_model(form.model, self.codebook), codec.fraction_of(form.epsilon)
        self._bound(len(form.scales), MOST_CHOICES)
        return lambda table: [np.array([table.best_scale(model, form.scales, epsilon)], dtype=np.int64)]

    def _trees(self, forms: list[codec.TreeForm]) -> list[Tree]:
        self._bound(len(forms), MOST_TREES)
        return [codec.read_tree(tree, self.codebook) for tree in forms]

    def _predictor(self, form: codec.PredictorForm) -> Predictor:
        found = codec.read_predictor(form, self.codebook)
        if isinstance(found, AdditiveModel):
            return MostProbable(found)
        _ready(found)
        return found.predict_codes

    def _confusions(self, predictors: int) -> None:
        self._bound(predictors * (self.codebook.n_classes + 1) * self.codebook.n_classes)

    def _cells(self) -> int:
        """Numbers that are counted for a node that may be split."""
        return (sum(self.codebook.sizes) + len(self.codebook.sizes)) * (self.codebook.n_classes + 1)

    def _bound(self, numbers: int, most: int | None = None) -> None:
        most = self.limits.answer_numbers if most is None else most
        if numbers > most:
            raise PlanError(f"a look at {numbers} numbers is too large; this service takes at most {most}. Nothing was spent.")


def _ready(release: Release) -> Probabilities:
    """Its vote is made now, before anything is charged: whatever could fail about a stranger's release fails here."""
    try:
        return ready_probabilities(release)
    except (ReleaseError, ArithmeticError, ValueError, LookupError):
        raise PlanError("predictor: the release cannot predict a row; expected one that can.") from None
