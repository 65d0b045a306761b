"""Looks at an owner's rows that share one reservation: each is checked and charged here as on one's own rows, then asked there."""

from __future__ import annotations

import time
import uuid
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn
from urllib.parse import quote

import msgspec
import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.events import PERMUTE_AND_FLIP
from hedgerow.accounting.loss import text_of_fraction
from hedgerow.accounting.meter import Reservation
from hedgerow.accounting.prices import Price
from hedgerow.errors import BudgetError, CuratorError, HedgerowError, HedgerowWarning, PlanError
from hedgerow.mechanisms.scores import Score
from hedgerow.private_table import Nodes, PrivateTable, checked_bins
from hedgerow.queries.predictors import Predictor, Probabilities
from hedgerow.remote import codec
from hedgerow.remote.responses import amount
from hedgerow.remote.transport import MOST_JSON, Transport, one_line
from hedgerow.remote_stub import Charged, RowsElsewhere
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.additive_model import AdditiveModel, gradient_width
from hedgerow.trees.splits import Candidates
from hedgerow.trees.tree import Tree

BUSY_TRIES = 30  # a second each: longer than a service waits for a look that nobody waits for any more
Shapes = Sequence[tuple[int, ...]]


@dataclass(frozen=True)
class OwnersCoins:
    """Where the owner's noise comes from, as the service says; nothing can be drawn from it here."""

    name: str
    secret: bool

    def bytes(self, n: int) -> NoReturn:
        raise CuratorError("the noise is drawn where the rows are.")


UNKNOWN = OwnersCoins("the owner's coins", True)


class RemoteRows(RowsElsewhere):
    """Rows at a service, read by one codebook: a session for each request, which `close` ends."""

    def __init__(self, transport: Transport, dataset: str, purpose: str, codebook: Codebook) -> None:
        self.codebook, self.assumed = codebook, ""
        self._transport, self._dataset, self._purpose = transport, dataset, purpose
        self._wanted: tuple[Fraction, Fraction, str] | None = None
        self._session: codec.SessionForm | None = None
        self._whole = Fraction(0)  # what was reserved, as the service says
        self._reservation: Reservation | None = None
        self._number = 0
        self._agreed = True

    def reserve(self, epsilon: Fraction, delta: Fraction, what: str) -> None:
        self.want(epsilon, delta, what)
        self._begun()

    def want(self, epsilon: Fraction, delta: Fraction, what: str) -> None:
        """The same when the first look is asked for, and not before."""
        self._wanted = (codec.payable(epsilon), delta, what)

    def _begun(self) -> codec.SessionForm:
        if self._session is None:
            if self._wanted is None:
                raise CuratorError(f"{self._dataset}: the session has ended, or nothing was reserved. Begin another.")
            epsilon, delta, what = self._wanted
            body = {"purpose": self._purpose, "epsilon": text_of_fraction(epsilon), "bins": self.codebook.bins, "what": what[:100]}
            if delta:
                body["delta"] = text_of_fraction(delta)
            path = f"/v1/datasets/{quote(self._dataset, safe='')}/sessions"
            content = self._transport.bytes("POST", path, body, key=uuid.uuid4().hex, most=MOST_JSON)
            session = self._read(content, codec.SessionForm)
            try:
                self._whole, _ = amount(session.epsilon), amount(session.delta)
            except (ValueError, ZeroDivisionError):
                raise self._unreadable() from None
            self._session, self._wanted = session, None
        return self._session

    def table(self, reservation: Reservation) -> PaidTable:
        self._reservation = reservation
        said = self._session
        return PaidTable(self, reservation, UNKNOWN if said is None else OwnersCoins(one_line(said.coins), said.secret))

    def ask(self, verb: str, form: codec.LookForm, shapes: Shapes) -> list[NDArray[np.int64]]:
        """One look: sent again with the same number where a connection was lost, it is the same look."""
        agreed, self._agreed = self._agreed, False
        number = self._number + 1
        path, body = f"{_path(self._begun())}/{verb}", msgspec.json.encode(msgspec.structs.replace(form, number=number))
        answer = self._read(self._sent(path, body), codec.AnswerForm)
        self._number = number
        assert self._reservation is not None
        if answer.number != number or answer.event != codec.event_form(self._reservation.events[-1]):
            raise CuratorError(
                f"{self._transport.url}: {verb} was charged otherwise than it would be here, so that no certificate could state its cost. "
                "Do both sides have the same version of hedgerow and the same schema?"
            )
        self.assumed, self._agreed = answer.assumed, agreed
        try:
            return codec.read_arrays(answer, shapes)
        except (ValueError, OverflowError):
            raise self._unreadable() from None

    def among(self, chosen: NDArray[np.int64], allowed: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Choices, each of what was allowed."""
        if ((chosen < 0) | (chosen >= allowed.shape[1])).any() or not allowed[np.arange(len(chosen)), chosen].all():
            raise self._unreadable()
        return chosen

    def _sent(self, path: str, body: bytes | None) -> bytes:
        """The answer. Where the service is busy, or the look is still being made, it is asked again."""
        busy, ends = 0, time.monotonic() + self._transport.look_timeout
        while True:
            try:
                content = self._transport.bytes("POST", path, body, repeatable=True)
            except CuratorError as error:
                busy += 1
                if error.status not in (429, 503) or error.code != "busy" or busy > BUSY_TRIES:
                    raise
                time.sleep(1)
            else:
                if content != codec.RUNNING:
                    return content
                if time.monotonic() > ends:
                    raise self._late()
                time.sleep(0.1)

    def close(self) -> None:
        """End the session: what its looks did not cost is given back."""
        session, self._session, self._wanted = self._session, None, None
        if session is None:
            return
        try:
            said = msgspec.json.decode(self._sent(f"{_path(session)}/end", None))
            spent = amount(said["spent"]["epsilon"])
        except (HedgerowError, msgspec.MsgspecError, ValueError, TypeError, KeyError, ZeroDivisionError, RecursionError) as error:
            text = f"the session could not be ended: {error} It ends by itself when it is not used, and keeps what its looks have cost."
            warnings.warn(text, HedgerowWarning, stacklevel=3)
            return
        expected = self._cost()
        if self._agreed and spent != expected:
            text = f"the service has charged ε = {text_of_fraction(spent)}; expected ε = {text_of_fraction(expected)}, what the looks cost."
            warnings.warn(text, HedgerowWarning, stacklevel=3)

    def _cost(self) -> Fraction:
        """What is charged for the looks so far, in the ledger's short amounts."""
        if self._reservation is None or not self._number:
            return Fraction(0)
        return self._whole if self._reservation.delta else min(self._whole, codec.rounded_up(self._reservation.charged))

    def _read(self, content: bytes, kind: type[codec.FormType]) -> codec.FormType:
        try:
            return msgspec.json.decode(content, type=kind)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            raise self._unreadable() from None

    def _late(self) -> CuratorError:
        text = f"the look has not ended in {self._transport.look_timeout:g} seconds, and may have been paid for."
        return CuratorError(f"{self._transport.url}: {text} Ask the owner, or connect with a longer look_timeout for a new session.")

    def _unreadable(self) -> CuratorError:
        return CuratorError(f"{self._transport.url}: its answer cannot be read. Is it a Hedgerow service of the same version?")


def _path(session: codec.SessionForm) -> str:
    return f"/v1/sessions/{quote(session.id, safe='')}"


class PaidTable(PrivateTable):
    """The verbs on one session. The reservation is charged first, and here: what it cannot pay is not sent."""

    __slots__ = ("_rows",)

    def __init__(self, rows: RemoteRows, reservation: Reservation, coins: Any) -> None:
        super().__init__(rows, reservation, coins)
        self._rows = rows

    def _asked(self, verb: str, form: codec.LookForm, shapes: Shapes, check: Callable[..., Any], *given: Any) -> list[NDArray[np.int64]]:
        """`check` is the verb as it is on rows that are here: it refuses and charges, and comes to its end where it would look."""
        try:
            check(*given)
        except Charged:
            return self._rows.ask(verb, form, shapes)
        raise BudgetError(f"{verb}: it was not charged.")

    def rows(self, price: Price) -> int:
        form = codec.RowsForm(number=0, price=codec.price_form(price))
        return int(self._asked("rows", form, [(1,)], super().rows, price)[0][0])

    def leaf_counts(self, trees: Sequence[Tree], price: Price) -> list[NDArray[np.int64]]:
        trees = list(trees)
        form = codec.LeafCountsForm(number=0, trees=[codec.tree_form(tree) for tree in trees], price=codec.price_form(price))
        shapes = [(len(tree.leaves), self.codebook.n_classes) for tree in trees]
        return self._asked("leaf_counts", form, shapes, super().leaf_counts, trees, price)

    def confusion(self, predict: Predictor, price: Price) -> NDArray[np.int64]:
        form = codec.ConfusionForm(number=0, predictor=codec.predictor_form(predict, self.codebook), price=codec.price_form(price))
        classes = self.codebook.n_classes
        return self._asked("confusion", form, [(classes + 1, classes)], super().confusion, predict, price)[0]

    def reliability(self, probabilities: Probabilities, bins: int, price: Price) -> NDArray[np.int64]:
        predictor = codec.predictor_form(probabilities, self.codebook, probable=True)
        form = codec.ReliabilityForm(number=0, predictor=predictor, bins=checked_bins(bins), price=codec.price_form(price))
        return self._asked("reliability", form, [(form.bins, 2)], super().reliability, probabilities, bins, price)[0]

    def sizes(self, tree: Tree, nodes: Nodes, price: Price) -> NDArray[np.int64]:
        form = codec.NodesForm(number=0, tree=codec.tree_form(tree), nodes=codec.nodes_form(nodes), price=codec.price_form(price))
        return self._asked("sizes", form, [(len(form.nodes),)], super().sizes, tree, nodes, price)[0]

    def class_counts(self, tree: Tree, nodes: Nodes, price: Price) -> NDArray[np.int64]:
        form = codec.NodesForm(number=0, tree=codec.tree_form(tree), nodes=codec.nodes_form(nodes), price=codec.price_form(price))
        shape = (len(form.nodes), self.codebook.n_classes)
        return self._asked("class_counts", form, [shape], super().class_counts, tree, nodes, price)[0]

    def tables(self, tree: Tree, nodes: Nodes, asked: NDArray[np.bool_], price: Price) -> NDArray[np.int64]:
        places, mask = codec.nodes_form(nodes), codec.mask_form(asked)
        form = codec.TablesForm(number=0, tree=codec.tree_form(tree), nodes=places, asked=mask, price=codec.price_form(price))
        shape = (len(places), sum(self.codebook.sizes), self.codebook.n_classes)
        return self._asked("tables", form, [shape], super().tables, tree, nodes, asked, price)[0]

    def gradient_sums(self, asked: Sequence[Tree], model: AdditiveModel, price: Price) -> list[NDArray[np.int64]]:
        asked = list(asked)
        trees = [codec.tree_form(tree) for tree in asked]
        form = codec.GradientSumsForm(number=0, asked=trees, model=codec.model_form(model), price=codec.price_form(price))
        shapes = [(len(tree.leaves), gradient_width(self.codebook.n_classes)) for tree in asked]
        return self._asked("gradient_sums", form, shapes, super().gradient_sums, asked, model, price)

    def choose(
        self,
        tree: Tree,
        nodes: Nodes,
        candidates: Candidates,
        allowed: NDArray[np.bool_],
        score: Score,
        epsilon: Fraction,
        mechanism: str = PERMUTE_AND_FLIP,
    ) -> NDArray[np.int64]:
        form = codec.ChooseForm(
            number=0, tree=codec.tree_form(tree), nodes=codec.nodes_form(nodes), candidates=codec.candidates_form(candidates),
            allowed=codec.mask_form(allowed), score=str(getattr(score, "name", "")), epsilon=codec.short_form(epsilon), mechanism=mechanism,
        )  # fmt: skip
        given = (tree, nodes, candidates, allowed, score, epsilon, mechanism)
        return self._rows.among(self._asked("choose", form, [(len(form.nodes),)], super().choose, *given)[0], allowed)

    def choose_locally(self, *given: Any, **more: Any) -> NoReturn:
        raise PlanError("choose_locally: its ε is not proven, so it is not answered from afar. Use choose.")

    def best(self, predictors: Sequence[Predictor], epsilon: Fraction) -> int:
        forms = [codec.predictor_form(each, self.codebook) for each in predictors]
        form = codec.BestForm(number=0, predictors=forms, epsilon=codec.short_form(epsilon))
        answer = self._asked("best", form, [(1,)], super().best, predictors, epsilon)[0]
        return int(self._rows.among(answer, np.ones((1, len(forms)), dtype=bool))[0])

    def best_scale(self, model: AdditiveModel, scales: Sequence[float], epsilon: Fraction) -> int:
        numbers = [float(scale) for scale in scales]
        form = codec.BestScaleForm(number=0, model=codec.model_form(model), scales=numbers, epsilon=codec.short_form(epsilon))
        answer = self._asked("best_scale", form, [(1,)], super().best_scale, model, scales, epsilon)[0]
        return int(self._rows.among(answer, np.ones((1, len(numbers)), dtype=bool))[0])
