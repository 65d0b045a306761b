"""From the body of a request to a query and its price: everything is read and bounded before anything is charged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hedgerow.accounting.prices import Price
from hedgerow.curator.http.limits import Limits
from hedgerow.errors import PlanError, ReleaseError
from hedgerow.evaluation.private import ready_probabilities
from hedgerow.queries import BY_NAME, ChooseLocally, Query
from hedgerow.queries.choose import UNPROVEN
from hedgerow.queries.forms import PredictorForm, TreeForm, read_tree
from hedgerow.queries.predictors import Predictor, Probabilities
from hedgerow.release.release import Release
from hedgerow.remote import codec
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.additive_model import AdditiveModel, MostProbable
from hedgerow.trees.tree import Tree

MOST_TREES = 60_000  # of one query: as many as a schema may have attributes


@dataclass(frozen=True)
class QueryDecoder:
    """What a query is read by: the public codebook of its session, and what the service takes on."""

    codebook: Codebook
    limits: Limits

    def query(self, name: str, content: bytes) -> tuple[Query[Any], Price]:
        """A PlanError for all that is not sound or is too large."""
        if name not in BY_NAME:
            raise PlanError(UNPROVEN if name == ChooseLocally.name else f"expected one of the queries {', '.join(BY_NAME)}.")
        kind = BY_NAME[name]
        form = codec.read_form(content, kind.Form)
        query = kind.decode(form, self)
        return query, kind.price(form)

    def bound(self, numbers: int, most: int | None = None) -> None:
        most = self.limits.answer_numbers if most is None else most
        if numbers > most:
            raise PlanError(f"a query for {numbers} numbers is too large; this service takes at most {most}. Nothing was spent.")

    def bound_counted(self, numbers: int) -> None:
        self.bound(numbers, self.limits.counted_numbers)

    def trees(self, forms: list[TreeForm]) -> list[Tree]:
        self.bound(len(forms), MOST_TREES)
        return [read_tree(tree, self.codebook) for tree in forms]

    def predictor(self, form: PredictorForm) -> Predictor:
        found = codec.read_predictor(form, self.codebook)
        if isinstance(found, AdditiveModel):
            return MostProbable(found)
        _ready(found)
        return found.predict_codes

    def probabilities(self, form: PredictorForm) -> Probabilities:
        found = codec.read_predictor(form, self.codebook)
        return found.probabilities if isinstance(found, AdditiveModel) else _ready(found)


def _ready(release: Release) -> Probabilities:
    """Its vote is made now, before anything is charged: whatever could fail about a stranger's release fails here."""
    try:
        return ready_probabilities(release)
    except (ReleaseError, ArithmeticError, ValueError, LookupError):
        raise PlanError("predictor: the release cannot predict a row; expected one that can.") from None
