"""Counts are paid for once: the key of a budget's entry says in which trees rows were counted, and under which names."""

from __future__ import annotations

import hashlib
import json
import uuid
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hedgerow import formatting
from hedgerow.accounting.budget_file import BudgetFile
from hedgerow.accounting.meter import Budget
from hedgerow.errors import PlanError


@dataclass(frozen=True)
class Counts:
    """source: the plan or forest in which rows are counted; owner, batch: how the rows are named; together: counted with other owners

    The trees count, of a plan whatever its ε, and of a forest whatever was counted in them: the same rows, counted in them once more, would
    be merged twice.
    """

    source: Any
    owner: str
    batch: str | None
    together: bool = False

    @cached_property
    def _trees(self) -> list[str]:
        """How entries name what was counted in, the first from now on: until lately a plan was named with its ε, a forest by its counts."""
        found = self.source.document()
        return [_hash([found.schema, found.bins, *[[tree.attribute, tree.branch] for tree in found.trees]]), found.content_hash]

    def _named(self, trees: str) -> str:
        return _hash([trees, self.owner, self.batch])

    def _of_anybody(self, trees: str) -> str:
        return _hash([trees, self.batch])

    def check_unpaid(self, budget: Budget, owner_given: bool) -> None:
        """Refuse counts that the budget has paid for: in the same trees, of the same owner and batch.

        owner_given: False where nobody has named an owner, so that the same rows may be there under another name: refused, too
        """
        paid = [(entry, entry.key.split("-")) for entry in budget.entries if entry.cost or entry.delta]
        own, anybodys = set(map(self._named, self._trees)), set(map(self._of_anybody, self._trees))
        same = next((entry for entry, key in paid if key[0] in own), None)
        alike = None if owner_given else next((entry for entry, key in paid if anybodys & set(key[1:2])), None)
        before = same or alike
        if before is None:
            return
        who = budget.name if isinstance(budget, BudgetFile) else "the budget"
        named = same is not None and (self.batch is not None or owner_given or self.together)
        which = "these counts already" if named else "counts in these trees already, and nothing says that these are other rows"
        paid_for = f"{before.shown}: {formatting.loss(before.cost, before.delta)} at {before.when}"
        instead = (
            "If nothing was released then, if these are other rows, or to pay anew, again=True."
            if self.together
            else "If these are other rows, name them: batch='NAME'; if they are other people's, owner='NAME'; or to pay anew, again=True."
        )
        raise PlanError(
            f"{who} has paid for {which} ({paid_for}). The same rows would be paid for twice, and may be merged once. Nothing was spent. "
            f"Use what was saved then. {instead}"
        )

    def key(self, budget: Budget, again: bool) -> str:
        """Of the entry. Two processes that count the same at once get the same, and one of them pays; `again`: one that nobody has."""
        named, of_anybody = self._named(self._trees[0]), self._of_anybody(self._trees[0])
        number = uuid.uuid4().hex if again else str(sum(entry.key.split("-")[0] == named for entry in budget.entries))
        return f"{named}-{of_anybody}-{number}"


def _hash(names: list[Any]) -> str:
    return hashlib.sha256(json.dumps(names).encode()).hexdigest()[:32]
