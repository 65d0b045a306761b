"""What an anonymity release still tells, in words: a report that goes with it."""

from __future__ import annotations

import numpy as np

from hedgerow.anonymity.requirement import Requirement
from hedgerow.sharing.measure import largest_k, measure, smallest_alpha
from hedgerow.trees.paths import Paths

CERTAIN = 0.9  # a share of one class from which a path all but tells the class of everybody on it
NOT_DIFFERENTIAL = (
    "This is anonymity, not differential privacy: it bounds how small and how uniform the published groups are, for somebody who knows "
    "nothing else. Who knows all but one of the persons in a group learns the last one's class; and several releases about the same "
    "persons can be compared. For a guarantee that holds whatever others know, publish a forest with an exact ε instead (`hedgerow fit`)."
)


def disclosure(paths: Paths, requirement: Requirement, group: str = "path") -> list[tuple[str, str]]:
    """(what, in words) pairs for people. `group`: what persons who read alike are called."""
    found = measure(paths, requirement)
    classes = paths.codebook.schema.target.classes
    lines = [("requirement", f"{requirement.words()}: {'satisfied' if found.satisfied else 'NOT satisfied'} by {len(paths)} {group}s")]
    if len(paths):
        small = int(paths.totals.argmin())
        shares = paths.hit / np.maximum(paths.totals, 1e-300)
        sure = int(shares.argmax())
        lines += [
            (f"smallest {group}", f"{paths.totals[small]:.6g} persons: {paths.words(small)}"),
            (
                f"most certain {group}",
                f"{shares[sure]:.1%} of {paths.totals[sure]:.6g} persons are {classes[paths.label[sure]]!r}: {paths.words(sure)}",
            ),
            ("at most", f"{largest_k(paths)}-anonymous; no class has more than {smallest_alpha(paths):.1%} of a {group}"),
        ]
        certain = np.flatnonzero(shares >= CERTAIN)
        if len(certain):
            persons = paths.totals[certain].sum() / paths.totals.sum()
            lines.append(
                (
                    "homogeneity attack",
                    f"who knows that somebody is in one of {len(certain)} {group}s ({persons:.1%} of all persons) knows the class with "
                    f"a certainty of {CERTAIN:.0%} or more",
                )
            )
        else:
            lines.append(("homogeneity attack", f"no {group} tells the class with a certainty of {CERTAIN:.0%} or more"))
    lines.append(("not claimed", NOT_DIFFERENTIAL))
    return lines
