"""Why an additive forest answers as it does for a row: what each attribute adds, the largest first. It costs nothing.

Two classes: everything is said about the log-odds of the second one. More classes: about the score of the predicted class against
the mean of all classes. In both cases   start + Σ what the attributes add = total,   and the class shares are the softmax of the scores.
The error of the total has that of a privately chosen scale in it, by which all is multiplied; those of the attributes are at that scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.formatting import number
from hedgerow.inference.additive import AdditiveForest
from hedgerow.inference.effect_noise import centred
from hedgerow.inference.effects import MOSTLY, alike
from hedgerow.inference.evidence import believed
from hedgerow.inference.parts import Parts, total_errors
from hedgerow.inference.tables import Floats
from hedgerow.inference.text import plain, values_in_words
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.few_rows import few_margins, softmax


@dataclass(frozen=True)
class Said:
    """What one attribute adds for one row. `value` is what the row says, in the words of the ranges that the forest knows.

    few: the value has too few rows to tell, and what it adds is mostly what the other values add (`Effect.few_rows`)
    """

    attribute: str
    value: str
    score: float
    error: float
    few: bool = False


@dataclass(frozen=True, repr=False)
class Explanation:
    """One row's prediction. row: its number, from 1; about: whose score is explained; start: the score of a row that says nothing.

    unknown: the attributes whose value is missing in the row, or is not declared
    """

    row: int
    predicted: str
    probability: float
    about: str
    start: float
    said: tuple[Said, ...]
    total: float
    error: float
    unknown: tuple[str, ...] = ()

    @property
    def unknown_text(self) -> str:
        """ "not known of this row: age, income (missing, or a value that is not declared)"; empty where everything is known."""
        names = ", ".join(self.unknown)
        return f"not known of this row: {names} (missing, or a value that is not declared)" if names else ""

    def __repr__(self) -> str:
        added = ", ".join(f"{one.attribute} {number(one.score, 3)}" for one in self.said[:3]) + (", …" if len(self.said) > 3 else "")
        said = f"{self.predicted}, probability {number(self.probability, 3)}; intercept {number(self.start, 3)}, {added}"
        return f"Explanation(row {self.row}: {said})"

    def __str__(self) -> str:
        from hedgerow.plots.effect_text import explanation_text

        return explanation_text(self)

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        from hedgerow.plots.notebook import explanation_html  # see pyproject.toml

        return explanation_html(self)

    def top(self, most: int) -> tuple[tuple[Said, ...], Said | None]:
        """The largest so many, and the others as one."""
        shown, rest = self.said[:most], self.said[most:]
        if not rest:
            return shown, None
        error = float(np.sqrt(sum(one.error**2 for one in rest)))
        name = f"{len(rest)} other attribute{'s' if len(rest) > 1 else ''}"
        return shown, Said(name, "", sum(one.score for one in rest), error)


def explain(forest: AdditiveForest, codes: NDArray[Any], rows: list[int]) -> tuple[Explanation, ...]:
    """Explanations of some rows of codes; `rows` are their places, from 0."""
    codes = codes[rows]
    parts, codebook = Parts(forest), forest.tables.codebook
    shares = softmax(few_margins(forest.model, codes))
    added, errors = centred(parts.contributions(codes)), parts.errors(codes)
    start = centred(parts.base)
    totals = start + added.sum(axis=1)
    total_error = total_errors(forest, errors, totals)
    classes = [plain(value) for value in codebook.schema.target.classes]
    groups = {j: alike(parts, j) for j in parts.scores}
    own = {j: believed(forest, j) for j, model in parts.scores.items() if any(scores.any() for scores in model.scores)}
    found = []
    for i, row in enumerate(rows):
        best = int(shares[i].argmax())
        c, times = (1, 2.0) if len(classes) == 2 else (best, 1.0)
        about = f"log-odds of {classes[1]}" if len(classes) == 2 else f"score of {classes[best]} against the mean of the classes"
        said = [
            Said(
                plain(codebook.schema.names[j]),
                _value(codebook, j, int(codes[i, j]), groups[j]),
                times * float(added[i, j, c]),
                times * float(errors[i, j, c]),
                _few(own.get(j), int(codes[i, j]), c),
            )
            for j in groups
        ]
        said.sort(key=lambda one: -abs(one.score))
        unknown = tuple(plain(codebook.schema.names[j]) for j in groups if _unknown(codebook, j, int(codes[i, j])))
        answer = (row + 1, classes[best], float(shares[i, best]), about, times * float(start[c]))
        found.append(Explanation(*answer, tuple(said), times * float(totals[i, c]), times * float(total_error[i, c]), unknown))
    return tuple(found)


def _unknown(codebook: Codebook, j: int, code: int) -> bool:
    """No branch; or that of `missing`, where it is not a declared value, too."""
    return code >= codebook.declared[j] and code != codebook.elsewhere[j]


def _few(own: Floats | None, code: int, c: int) -> bool:
    """Of two classes one score stands for both."""
    if own is None or code >= len(own):
        return False
    return bool((own[code].min() if own.shape[1] == 2 else own[code, c]) < MOSTLY)


def _value(codebook: Codebook, j: int, code: int, groups: list[list[int]]) -> str:
    """A category by its name, a number by its range."""
    if code >= codebook.sizes[j]:
        return "missing or not declared"
    together = next(group for group in groups if code in group)
    return values_in_words(codebook, j, together if code < codebook.numeric_cells(j) else [code])
