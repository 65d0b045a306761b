"""Rules as a file has them, and as paths of the codebook.

    {"if": {"smoker": ["never", "former"], "age": {"high": 40}}, "counts": {"no": 120, "yes": 14}}
    {"if": {"smoker": "current"}, "class": "yes", "hit": 60, "miss": 20}

`if` has a condition for each attribute that the rule asks about (`conditions.py`); `counts` the persons of every class. Where those are not
known, `class` is the class that most of them have, `hit` their number and `miss` that of all others: in all rules of a set, or in none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import PlanError
from hedgerow.schema.attributes import text_of
from hedgerow.schema.codebook import Codebook
from hedgerow.sharing.rules.conditions import allowed_codes, named, written
from hedgerow.trees.paths import Paths, from_counts

IF, COUNTS, CLASS, HIT, MISS = "if", "counts", "class", "hit", "miss"
BY_COUNTS, BY_HITS = (IF, COUNTS), (IF, CLASS, HIT, MISS)
FORMS = '{"if": …, "counts": …} or {"if": …, "class": …, "hit": …, "miss": …}'
MAX_RULES = 100_000
MAX_CELLS = 1 << 28  # rules times values of all attributes
MAX_PERSONS = 2**40  # of one count: sums of all rules are exact


def paths_of_rules(codebook: Codebook, rules: Any) -> Paths:
    """The rules of a file, each checked; that they are disjoint is for the rule set to check."""
    if not isinstance(rules, Sequence) or isinstance(rules, (str, bytes)) or not 1 <= len(rules) <= MAX_RULES:
        raise PlanError(f"rules: got {_kind(rules)}; expected a list of 1 to {MAX_RULES:,} rules.")
    first = np.concatenate([[0], np.cumsum(codebook.sizes)])
    if len(rules) * int(first[-1]) > MAX_CELLS:
        raise PlanError(
            f"rules: {len(rules):,} rules over {int(first[-1]):,} values are too many. Expected fewer rules, or a smaller --bins."
        )
    allowed = np.ones((len(rules), int(first[-1])), dtype=bool)
    for number, rule in enumerate(rules):
        name = f"rule {number + 1}"
        _check_form(rule, name)
        for attribute, mask in _conditions(codebook, rule[IF], name):
            allowed[number, first[attribute] : first[attribute + 1]] = mask
    asked = ~np.logical_and.reduceat(allowed, first[:-1], axis=1)
    by_hits = [HIT in rule for rule in rules]
    if len(set(by_hits)) > 1:
        one, other = by_hits.index(False) + 1, by_hits.index(True) + 1
        raise PlanError(
            f"rules: rule {one} has counts of all classes, rule {other} only hit and miss; expected the same in all rules. Give hit and "
            "miss in all of them."
        )
    if by_hits[0]:
        found = [_hits(codebook, rule, f"rule {number + 1}") for number, rule in enumerate(rules)]
        label, hit, miss = (np.array([each[place] for each in found]) for place in range(3))
        return Paths(codebook, allowed, asked, label, hit.astype(np.float64), miss.astype(np.float64))
    counts = [_counts(codebook, rule[COUNTS], f"rule {number + 1}") for number, rule in enumerate(rules)]
    return from_counts(codebook, allowed, asked, np.array(counts, dtype=np.float64))


def rules_of_paths(paths: Paths) -> list[dict[str, Any]]:
    """The one form that each rule has in a file of ours: `paths_of_rules` gives the same paths back."""
    names, classes = paths.codebook.schema.names, paths.codebook.schema.target.classes
    found = []
    for path in range(len(paths)):
        asked = [int(j) for j in np.flatnonzero(paths.asked[path])]
        rule: dict[str, Any] = {IF: {names[j]: written(paths.codebook, j, paths.codes(path, j)) for j in asked}}
        if paths.counts is not None:
            rule[COUNTS] = {text_of(value): int(count) for value, count in zip(classes, paths.counts[path], strict=True)}
        else:
            rule |= {CLASS: classes[paths.label[path]], HIT: int(paths.hit[path]), MISS: int(paths.miss[path])}
        found.append(rule)
    return found


def _check_form(rule: Any, name: str) -> None:
    if not isinstance(rule, Mapping):
        raise PlanError(f"{name}: got {_kind(rule)}; expected {FORMS}.")
    if set(rule) in ({*BY_COUNTS}, {*BY_HITS}) and isinstance(rule[IF], Mapping):
        return
    raise PlanError(f"{name}: got the fields {', '.join(map(repr, rule)) or 'none'}; expected {FORMS}.")


def _conditions(codebook: Codebook, conditions: Mapping[str, Any], rule: str) -> list[tuple[int, NDArray[np.bool_]]]:
    names = codebook.schema.names
    for name in conditions:
        if name not in names:
            raise PlanError(f"{rule}: {name!r:.80} is no attribute of the schema; expected {named(names)}.")
    return [(names.index(name), allowed_codes(codebook, names.index(name), given, rule)) for name, given in conditions.items()]


def _counts(codebook: Codebook, counts: Any, rule: str) -> list[int]:
    classes = tuple(text_of(value) for value in codebook.schema.target.classes)
    if not isinstance(counts, Mapping):
        raise PlanError(f"{rule}: got {_kind(counts)} as counts; expected the persons of each class, such as {{{classes[0]!r}: 12, …}}.")
    given = {text_of(name): number for name, number in counts.items()}
    if len(given) < len(counts):
        raise PlanError(f"{rule}: a class is named twice in its counts; expected each once.")
    for name in given:
        if name not in classes:
            raise PlanError(f"{rule}: {name!r:.80} is no class; expected {named(classes)}.")
    for name in classes:
        if name not in given:
            raise PlanError(f"{rule}: got no count of the class {name!r}; expected one of each class. Say 0 where nobody has it.")
    return [_persons(given[name], f"{rule}: persons of class {name!r}") for name in classes]


def _hits(codebook: Codebook, rule: Mapping[str, Any], name: str) -> tuple[int, int, int]:
    classes = tuple(text_of(value) for value in codebook.schema.target.classes)
    said = rule[CLASS]
    if not isinstance(said, (str, int, float, bool)) or text_of(said) not in classes:
        raise PlanError(f"{name}: {said!r:.80} is no class; expected {named(classes)}.")
    hit, miss = (_persons(rule[what], f"{name}: {what}") for what in (HIT, MISS))
    if hit * (len(classes) - 1) < miss:
        raise PlanError(
            f"{name}: got hit {hit} and miss {miss}; with {len(classes)} classes another one must be larger then. Expected the class that "
            "most persons of the rule have, and its number as hit."
        )
    return classes.index(text_of(said)), hit, miss


def _persons(number: Any, what: str) -> int:
    if isinstance(number, bool) or not hasattr(number, "__index__") or not 0 <= int(number) < MAX_PERSONS:
        raise PlanError(f"{what}: got {number!r:.80}; expected a whole number from 0 to {MAX_PERSONS - 1:,}.")
    return int(number)


def _kind(thing: Any) -> str:
    if isinstance(thing, (list, tuple)):
        return f"a list of {len(thing):,}"
    return f"{thing!r:.80}"
