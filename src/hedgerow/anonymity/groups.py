"""Persons of one group: their class counts, or only hit and miss; and several groups put together (Sharkey et al. 2008, Eq. 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.anonymity.requirement import Requirement

Counts = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Group:
    """Where the class counts are known they decide, and hit and miss follow from them."""

    label: int
    hit: float
    miss: float
    counts: Counts | None = None

    @classmethod
    def of_counts(cls, counts: Counts) -> Group:
        label = int(counts.argmax())
        return cls(label, float(counts[label]), float(counts.sum() - counts[label]), counts)

    @property
    def total(self) -> float:
        return self.hit + self.miss

    def satisfies(self, requirement: Requirement) -> bool:
        counts = None if self.counts is None else self.counts[None, :]
        found = requirement.satisfied(np.array([self.label]), np.array([self.hit]), np.array([self.miss]), counts)
        return bool(found[0])

    def in_whole_numbers(self, n_classes: int) -> Group:
        """As it is published where only hit and miss are known: whole persons."""
        counts = spread(self.label, self.hit, self.miss, n_classes)
        label = int(counts.argmax())
        return Group(label, float(counts[label]), float(counts.sum() - counts[label]))

    def published_satisfies(self, requirement: Requirement, n_classes: int) -> bool:
        """Whether it satisfies the requirement, also in the whole persons in which it is published (Eq. 1 makes fractions)."""
        if not self.satisfies(requirement):
            return False
        return self.counts is not None or self.in_whole_numbers(n_classes).satisfies(requirement)

    def why_not(self, requirement: Requirement) -> str:
        return requirement.why_not(self.hit, self.miss, self.counts)


def together(groups: Sequence[Group], n_classes: int) -> Group:
    """The group of all persons of some groups.

    Class counts are added. Where only hit and miss are known, Eq. 1 estimates the number of each class c_j: the hits of the groups
    whose class it is, and an even share, 1/(|C| − 1), of the misses of the others.
    """
    known = [group.counts for group in groups if group.counts is not None]
    if len(known) == len(groups):
        return Group.of_counts(np.sum(known, axis=0))
    hits = np.zeros(n_classes)
    for group in groups:
        share = group.miss / (n_classes - 1) if n_classes > 1 else 0.0
        hits += share
        hits[group.label] += group.hit - share
    label = int(hits.argmax())
    return Group(label, float(hits[label]), sum(group.total for group in groups) - float(hits[label]))


def spread(label: int, hit: float, miss: float, n_classes: int) -> Counts:
    """Class counts that tell hit and miss and nothing more: whole numbers, the misses as even as they can be."""
    counts = np.zeros(n_classes)
    others = [c for c in range(n_classes) if c != label]
    misses = round(miss)
    for place, c in enumerate(others):
        counts[c] = misses // len(others) + (place < misses % len(others))
    counts[label] = round(hit + miss) - misses
    return counts
