"""What a fitted Hedgerow forest chose for itself, in words: for `hedgerow show` and the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hedgerow.formatting import number
from hedgerow.inference.additive import FLAT, AdditiveForest
from hedgerow.inference.boosted_words import boosted
from hedgerow.inference.effects import WEIGHED
from hedgerow.inference.text import plain, share_text

_STRENGTH = {
    1.0: "attributes at full strength",
    0.7: "attributes at 0.7 of their strength, as always where so many tables are only added up or rows are few",
    0.5: "attributes at half strength",
    0.25: "attributes at a quarter of their strength",
    0.125: "attributes at an eighth of their strength",
    0.0: "the top tree alone",
}


def chosen_in_words(forest: AdditiveForest, chosen: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(what, words) pairs; what belongs to the file format alone is left out."""
    layout, reading = forest.tables.layout, forest.reading
    names = forest.tables.codebook.schema.names
    lines = [("top splits", "none")]
    if layout.asks:
        levels = [[int(layout.top.attribute[node]) for node in nodes if layout.top.attribute[node] >= 0] for nodes in layout.top.levels]
        asked = [" / ".join(dict.fromkeys(plain(names[a]) for a in level)) for level in levels if level]
        lines = [("top splits", "; then, by the answer, ".join(asked))]
    strength = _STRENGTH.get(reading.strength, f"attributes at strength {reading.strength:g}")
    where = "inside the branches of the top splits" if layout.joined else "beside the top split"
    where = "without top splits" if reading.kind == FLAT else where
    if "joint rounds" in chosen:
        lines.append(("scores", f"of all attributes, fitted jointly in {chosen['joint rounds']} rounds"))
    else:
        lines.append(("reading", strength if not reading.strength else f"{strength}, {where}"))
        least = min(forest.cap, key=forest.cap.__getitem__, default=0)
        if forest.cap.get(least, 1.0) < WEIGHED:
            told = f"from {share_text(max(forest.cap.values()))} down to {share_text(forest.cap[least])} ({plain(names[least])})"
            lines.append(("weights", f"of what each attribute says alone, {told}: together they would say more than there is to know"))
    few = len(forest.tables.tables) < len(names)
    lines.append(("measured", f"{len(forest.tables.tables)} of {len(names)} attributes" if few else f"all {len(names)} attributes"))
    if layout.together > 1:
        lines.append(("numeric cells", f"{layout.together} neighbours counted as one: rows are few"))
    lines.append(("probabilities", _probabilities(forest, "joint rounds" in chosen)))
    if forest.moved.any():
        rare = int(np.abs(forest.moved).argmax())
        named = plain(forest.tables.codebook.schema.target.classes[rare])
        lines.append(
            (
                "intercept",
                f"moved by {f'{forest.moved[rare]:+.2f}'.replace('-', '−')} in the log-odds of {named}, towards its released share",
            )
        )
    if "signal to noise" in chosen:
        lines.append(("signal to noise", f"{number(chosen['signal to noise'], 3)} when it was fitted"))
    found = boosted(forest)
    if found is not None:
        lines.append(("boosted trees", found.text()))
    elif forest.correction.trees:
        lines.append(("gradient steps", str(chosen.get("gradient steps", "yes"))))
    return lines


def _probabilities(forest: AdditiveForest, joint: bool) -> str:
    if forest.scale_rate:
        scaled = f"scores scaled by {forest.scale:g}, as private counts chose it: those of a rare class may be too low or too high"
        return scaled if forest.scale != 1 else "as the scores say"
    few = "too few rows for a choice of a scale"
    if forest.scale != 1:
        return f"scores scaled by {forest.scale:g}, as always where trees are boosted in pure ε with {few}; of a rarer class mostly too low"
    return f"as the scores say{f'; of a rarer class mostly too low: {few}' if joint else ''}"
