"""`hedgerow anonymity check` and `prune`: the other kind of guarantee, for trees and rule sets; `generalise`, for tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli.console import guarantee, one_line, pairs, say, table
from hedgerow.cli.generalise import generalise
from hedgerow.cli.outputs import check_output
from hedgerow.cli.requirement import Alpha, C, K, L, requirement_of
from hedgerow.cli.tables import SignKey
from hedgerow.errors import PlanError

if TYPE_CHECKING:
    from hedgerow.release.release import Release
    from hedgerow.sharing.prune import Encoded
    from hedgerow.sharing.rules.prune import PrunedRules
    from hedgerow.sharing.rules.rule_set import RuleSet
    from hedgerow.trees.paths import Paths

app = typer.Typer(no_args_is_help=True)
SHOWN = 20  # paths or cuts that are listed

TreeFile = Annotated[
    Path,
    typer.Argument(
        help="A saved tree with exact counts (`hedgerow fit --algorithm local-tree`), or a rule set (JSON or CSV).", show_default=False
    ),
]
RulesSchema = Annotated[
    Path | None, typer.Option("--schema", help="Of plain rules, which do not hold their schema (TOML).", show_default=False)
]
RulesBins = Annotated[
    int | None,
    typer.Option("--bins", help="Of plain rules: cells of a number without declared edges.  [default: 32]", show_default=False),
]
Hits = Annotated[bool, typer.Option("--hits", help="As if the tree told only hit and miss of each path, not the counts of all classes.")]


@app.callback()
def anonymity() -> None:
    """Anonymity of a tree's paths, of rules, or of a table's rows: k, (c, l)-diversity, (alpha, k). This is not differential privacy."""


@app.command("check")
def check(
    tree: TreeFile,
    k: K = None,
    c: C = None,
    l: L = None,  # noqa: E741
    alpha: Alpha = None,
    hits: Hits = False,
    schema: RulesSchema = None,
    bins: RulesBins = None,
) -> None:
    """Does every path of a tree, or every rule of a rule set, satisfy a requirement? Says yes or no first, then which fail and why.

    Leaves with 0 for yes and 1 for no. A path is a group of persons: those who answer the tree's questions alike. A rule is one, too.

    Example:

        hedgerow anonymity check tree.json -c 5 -l 3
    """
    from hedgerow.sharing.measure import largest_k, measure, smallest_alpha, smallest_c

    model, requirement = _open(tree, schema, bins), requirement_of(k, c, l, alpha)
    groups = _groups(model)
    found = [measure(paths, requirement) for paths in _paths(model, hits)]
    good = all(each.satisfied for each in found)
    paths = sum(len(each.paths) for each in found)
    failing = sum(int((~each.good).sum()) for each in found)
    verdict = f"{requirement.words()}: {f'all {paths} {groups}' if good else f'{failing} of {paths} {groups} do not'} satisfy it"
    say(f"{'yes' if good else 'no'}: {verdict}", style="bold green" if good else "bold yellow")
    rows = [(number + 1, path, why) for number, each in enumerate(found) for path, why in each.failures()]
    if rows:
        if groups == "paths":
            table("paths that fail", ["tree", "path", "why"], rows[:SHOWN], numbers=(0,))
        else:
            table("rules that fail", ["rule", "why"], [row[1:] for row in rows[:SHOWN]])
        if len(rows) > SHOWN:
            say(f"  and {len(rows) - SHOWN} more")
    worst = [each.paths for each in found]
    lines = [
        ("k", f"{min(map(largest_k, worst))} at most"),
        ("alpha", f"{max(map(smallest_alpha, worst)):.4g} at least"),
        *((f"c for l = {m}", _above(max(smallest_c(each, m) for each in worst))) for m in range(2, model.codebook.n_classes + 1)),
    ]
    pairs("what it satisfies", lines)
    if len(found) > 1:
        say("several trees about the same persons tell more together than each by itself: no requirement on each of them bounds that.")
    say("anonymity is not differential privacy: see `hedgerow anonymity prune --help`")
    if not good:
        raise typer.Exit(1)


@app.command("prune")
def prune(
    tree: TreeFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to save what may be shared.", show_default=False)],
    k: K = None,
    c: C = None,
    l: L = None,  # noqa: E741
    alpha: Alpha = None,
    rows: Annotated[
        Path | None,
        typer.Option("--table", help="The table that the tree was learnt from: more of the tree can stay.", show_default=False),
    ] = None,
    siblings: Annotated[
        str | None,
        typer.Option(
            "--siblings",
            help="needed: merge a failing branch with the nearest, step by step. all: merge all at once. reattach: join it to the nearest "
            "and keep what hangs below that. best: the better of needed and reattach.  [default: best with --table, else needed]",
            show_default=False,
        ),
    ] = None,
    hits: Hits = False,
    schema: RulesSchema = None,
    bins: RulesBins = None,
    sign: SignKey = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output file.")] = False,
) -> None:
    """Merge branches of a tree, or rules, until every path satisfies a requirement, and save what may be shared.

    Every merge is explained. The result is measured again, and comes with a report of what it still tells. If no tree with two leaves
    satisfies the requirement, the result is the empty tree: nothing is saved, the command says what to change, and leaves with 1. A rule
    that makes no rule with others is left out; if no rule is left, nothing is saved either.

    With the table that the tree was learnt from (--table) a failing branch can be joined to its sibling and what hangs below that can stay:
    the persons go on down there, and every path is counted again.

    Anonymity is NOT differential privacy: it protects against somebody who knows nothing else. For a guarantee that holds whatever others
    know, publish a forest with an exact ε (`hedgerow fit`).

    Example:

        hedgerow anonymity prune tree.json -c 5 -l 3 -o shared.json
    """
    check_output(output, [tree, sign, rows, schema], force)
    from hedgerow.cli.count import private_key
    from hedgerow.sharing.anonymous_release import anonymous_release
    from hedgerow.sharing.disclosure import disclosure
    from hedgerow.sharing.prune import BEST, NEEDED
    from hedgerow.sharing.prune import prune as prune_tree
    from hedgerow.sharing.rules.prune import prune_rules
    from hedgerow.sharing.rules.rule_set import RuleSet

    release, requirement, key = _open(tree, schema, bins), requirement_of(k, c, l, alpha), private_key(sign)
    if isinstance(release, RuleSet):
        if siblings is not None or rows is not None:
            raise PlanError("--siblings, --table: these are for trees; rules have no siblings. Leave them out.")
        shared = _save_rules(prune_rules(_paths(release, hits)[0], requirement, at_values=release.at_values), output, key)
        say(f"saved {output}: {len(shared)} rules of {len(release)}")
        guarantee(shared.certificate.sentence(), holds=False)
        pairs("what it tells", disclosure(shared.paths, requirement))
        return
    how = siblings or (NEEDED if rows is None else BEST)
    hits = hits or release.certificate.by_hits
    known = None if rows is None else _encoded(release, rows)
    pruned = prune_tree(release.forest, requirement, siblings=how, hits_only=hits, rows=known)
    table(f"merges: {len(pruned.cuts)}", ["where", "what", "why"], [
        (cut.where, f"all of {cut.attribute}" if cut.whole_family else cut.merged, cut.why) for cut in pruned.cuts[:SHOWN]
    ])  # fmt: skip
    if len(pruned.cuts) > SHOWN:
        say(f"  and {len(pruned.cuts) - SHOWN} more")
    if pruned.empty:
        from hedgerow.sharing.advice import why_empty

        empty = f"the empty tree: merging leaves no tree with two leaves that satisfies {requirement.words()}. Nothing was saved."
        say(empty, style="bold yellow")
        say(why_empty(release.forest, requirement, how, hits, known))
        raise typer.Exit(1)
    made = anonymous_release(pruned, release.parameters.get("bins"))
    if key is not None:
        made = made.signed(key)
    made.save(output)
    say(f"saved {output}: {len(pruned.groups)} of {len(release.forest.trees[0].leaves)} paths are left")
    guarantee(made.certificate.sentence(), holds=False)
    pairs("what it tells", disclosure(pruned.paths, requirement))


def _save_rules(pruned: PrunedRules, output: Path, key: Any) -> RuleSet:
    """Says what was done to which rule; the empty rule set is not saved."""
    steps = [(step.rule, step.why, step.into or "left out") for step in pruned.steps[:SHOWN]]
    table(f"merges: {len(pruned.steps) - len(pruned.left_out)}; left out: {len(pruned.left_out)}", ["rule", "why", "merged into"], steps)
    if len(pruned.steps) > SHOWN:
        say(f"  and {len(pruned.steps) - SHOWN} more")
    if pruned.empty:
        say(f"the empty rule set: no rule is left that satisfies {pruned.requirement.words()}. Nothing was saved.", style="bold yellow")
        raise typer.Exit(1)
    shared = pruned.rule_set if key is None else pruned.rule_set.signed(key)
    shared.save(output)
    if pruned.left_out:
        persons = sum(step.persons for step in pruned.left_out)
        say(
            f"left out: {len(pruned.left_out)} rules with {persons:.6g} persons, which make no rule with others. Who knows how many "
            "persons your table has knows that number, too."
        )
    return shared


def _open(path: Path, schema: Path | None, bins: int | None) -> Release | RuleSet:
    from hedgerow.schema.schema import Schema
    from hedgerow.sharing.rules.files import load_shared
    from hedgerow.sharing.rules.rule_set import RuleSet

    release = load_shared(path, None if schema is None else Schema.load(schema), bins)
    if not isinstance(release, RuleSet) and release.forest.noisy:
        raise PlanError(
            f"{path} holds noisy counts ({one_line(release.certificate.sentence())}). Its guarantee does not rest on anonymity: publish it "
            "as it is."
        )
    return release


def _encoded(release: Release, path: Path) -> Encoded:
    """The rows of the owner's table, as the tree has them."""
    from hedgerow.engines.files import TableFile
    from hedgerow.sharing.pipeline import encoded

    schema = release.schema
    needed = [*schema.names, schema.target.name]
    columns = TableFile(path, needed, dialect=schema.csv).text_columns(needed)
    return encoded(release.codebook, columns, columns.pop(schema.target.name))


def _groups(model: Release | RuleSet) -> str:
    return "paths" if hasattr(model, "forest") else "rules"


def _paths(model: Release | RuleSet, hits: bool) -> list[Paths]:
    """Of each tree, or of the rules. Real class counts decide where they are known, and nobody asks for less."""
    from dataclasses import replace

    from hedgerow.sharing.rules.rule_set import RuleSet
    from hedgerow.trees.paths import paths_of

    trees = range(0 if isinstance(model, RuleSet) else len(model.forest.trees))
    found = [model.paths] if isinstance(model, RuleSet) else [paths_of(model.forest, number) for number in trees]
    return [replace(paths, counts=None) for paths in found] if hits or model.certificate.by_hits else found


def _above(value: float) -> str:
    return "none is enough" if value == float("inf") else f"above {value:.4g}"


app.command("generalise")(generalise)
