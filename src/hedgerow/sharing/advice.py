"""Why pruning left the empty tree, and what to change so that it would not."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from hedgerow.accounting.loss import text_of_fraction
from hedgerow.anonymity.groups import together
from hedgerow.anonymity.requirement import Requirement
from hedgerow.sharing.prune import BEST, REATTACH, Encoded, groups_of, prune
from hedgerow.trees.forest import CountedForest

WEAKER = (Fraction(3, 2), 2, 3, 5, 10, 20, 50)  # times c, or one over it times k


def why_empty(forest: CountedForest, requirement: Requirement, siblings: str, hits_only: bool, rows: Encoded | None = None) -> str:
    """One or two sentences for the owner."""
    n_classes = forest.codebook.n_classes
    everybody = together(groups_of(forest, hits_only), n_classes)
    if not everybody.published_satisfies(requirement, n_classes):
        why = everybody.why_not(requirement) or everybody.in_whole_numbers(n_classes).why_not(requirement)
        return f"All persons together do not satisfy {requirement.words()} ({why}): no tree can. Ask for less."
    if len(forest.trees[0].leaves) < 2:
        return "The tree asks nothing: there was nothing to learn, or it was learnt with too large a leaf."
    if siblings not in (REATTACH, BEST):
        return (
            "Take --siblings best, with the table at hand (`anonymity prune --table`): then a failing branch is joined to its sibling, and "
            "more of the tree stays."
        )
    for factor in WEAKER:
        less = _weaker(requirement, Fraction(factor))
        if less is not None and not prune(forest, less, siblings=siblings, hits_only=hits_only, rows=rows).empty:
            return f"No question leaves two groups that both satisfy it: the classes are told apart too well. {less.words()} leaves a tree."
    return "No question leaves two groups that both satisfy it: the classes are told apart too well. Ask for a smaller l or k."


def _weaker(requirement: Requirement, factor: Fraction) -> Requirement | None:
    if requirement.c is not None:
        return replace(requirement, c=_short(requirement.c * factor))
    if requirement.k is not None and requirement.alpha is None and requirement.k > factor:
        return replace(requirement, k=int(requirement.k / factor))
    return None


def _short(number: Fraction) -> Fraction:
    return Fraction(text_of_fraction(number)) if number.denominator < 1000 else Fraction(round(number))
