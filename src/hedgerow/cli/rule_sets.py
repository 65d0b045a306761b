"""Rule sets on the command line: written from a tree by `hedgerow rules`, shown by `hedgerow show`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hedgerow.cli.console import guarantee, pairs, say, table
from hedgerow.cli.tables import who_signed
from hedgerow.errors import PlanError

if TYPE_CHECKING:
    from hedgerow.release.release import Release

SHOWN = 20  # rules that are listed


def write_rule_set(release: Release, only_some: Sequence[str], output: Path | None) -> None:
    """All paths of a tree. `only_some`: options that were given and would leave rules out."""
    from hedgerow.sharing.rules.files import json_of
    from hedgerow.sharing.rules.rule_set import RuleSet

    if only_some:
        raise PlanError(f"{only_some[0]}: a rule set has all paths of its tree. Leave it out, or choose another --format.")
    rules = RuleSet.from_release(release)
    if output is None:
        print(json_of(rules).decode())  # for another program: not a character is changed
        return
    rules.save(output)
    say(f"wrote {output}: {len(rules):,} rules")
    guarantee(rules.certificate.sentence(), rules.certificate.private)


def show_rule_set(path: Path, only_forests: Sequence[str]) -> None:
    """What it is, what it claims and tells, and its largest rules. `only_forests`: options that were given and need a forest."""
    from hedgerow.sharing.disclosure import disclosure
    from hedgerow.sharing.rules.rule_set import RuleSet, requirement_in

    if only_forests:
        raise PlanError(f"{only_forests[0]}: {path} is a rule set; expected a forest. Leave it out.")
    rules = RuleSet.load(path)
    paths, classes = rules.paths, rules.schema.target.classes
    known = "class counts" if paths.counts is not None else "hit and miss alone"
    lines = [
        ("algorithm", f"{rules.algorithm}, made by {rules.made_by}"),
        ("target", f"{rules.schema.target.name}: {', '.join(map(str, classes))}"),
        ("attributes", ", ".join(rules.schema.names)),
        ("rules", f"{len(rules):,}, with {paths.totals.sum():,.0f} persons, {known}"),
        ("content hash", rules.content_hash),
    ]
    if rules.signatures:
        lines.append(("signed by", who_signed([signature.key for signature in rules.signatures])))
    pairs("rule set", lines)
    guarantee(rules.certificate.sentence(), rules.certificate.private)
    order = sorted(range(len(rules)), key=lambda i: (-paths.totals[i], i))
    rows = [(paths.words(i), classes[paths.label[i]], f"{paths.hit[i]:.0f}", f"{paths.miss[i]:.0f}") for i in order[:SHOWN]]
    table("rules, the largest first", ["rule", rules.schema.target.name, "hit", "miss"], rows, numbers=(2, 3))
    if len(rules) > SHOWN:
        say(f"  and {len(rules) - SHOWN:,} more")
    if rules.certificate.guarantee == "anonymity":
        pairs("what it tells", disclosure(paths, requirement_in(rules.certificate)))
