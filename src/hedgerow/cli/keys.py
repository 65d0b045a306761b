"""`hedgerow key new`, `hedgerow sign` and `hedgerow verify`: who vouches for a plan or a forest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow import formatting
from hedgerow.cli.console import guarantee, one_line, say, warn
from hedgerow.cli.tables import TrustedKeys, known_keys, who_signed

if TYPE_CHECKING:
    from hedgerow.release.public_plan import PublicPlan
    from hedgerow.release.release import Release
    from hedgerow.sharing.rules.rule_set import RuleSet

app = typer.Typer(no_args_is_help=True, help="Keys to sign plans and forests with (Ed25519).")

Document = Annotated[Path, typer.Argument(help="A plan, a forest or a rule set.", show_default=False)]


@app.callback()
def key() -> None:
    """Keys to sign plans and forests with (Ed25519)."""


@app.command("new")
def new(
    path: Annotated[Path, typer.Argument(help="The private key's file; the public key gets the ending .pub.", show_default=False)],
    name: Annotated[
        str | None, typer.Option("--name", help="A name that goes with the public key.  [default: the file's]", show_default=False)
    ] = None,
) -> None:
    """Make a pair of keys: one to sign with, which stays with you, and one for others to check with.

    Example:

        hedgerow key new office-a.key --name "Office A"
    """
    from hedgerow.release.signing import make_key

    public = make_key(path, name if name is not None else path.stem)
    say(f"wrote {path}: your private key. Keep it to yourself; whoever has it can sign in your name.")
    say(f"wrote {path}.pub: your public key. Give it to those who merge, and let them compare the fingerprint:")
    say(f"  {public.fingerprint}")


def sign(
    document: Document,
    key: Annotated[Path, typer.Option("--key", help="The private key (`hedgerow key new`).", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to save the signed file.  [default: in place]", show_default=False)
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output file.")] = False,
) -> None:
    """Sign a plan or a forest: others can check that it is yours and that nobody has changed it.

    Example:

        hedgerow sign office-a.json --key office-a.key
    """
    from hedgerow.cli.outputs import check_output, file_lock
    from hedgerow.release.signing import fingerprint, load_private_key

    if output is not None:
        check_output(output, [document, key], force)
    private = load_private_key(key)
    with file_lock(document):
        signed = open_document(document).signed(private)
        signed.save(output or document)
    say(f"signed {output or document} with {fingerprint(signed.signatures[-1].key)}")


def verify(document: Document, trust: TrustedKeys = None) -> None:
    """Check a plan or a forest: its content, who signed it, and of a plan that it holds no data.

    Leaves with 1 if --trust is given and none of those keys has signed, or if a plan's trees do not follow from its public facts.

    Example:

        hedgerow verify office-a.json --trust office-a.key.pub
    """
    from hedgerow.release.public_plan import PublicPlan

    known = known_keys(trust)
    found = open_document(document)
    keys = [signature.key for signature in found.signatures]
    say(f"{document}: its content is whole ({found.content_hash})")
    say(f"signed by: {who_signed(keys, known if trust else None)}")
    good = not known or any(key in known for key in keys)
    if not good:
        warn("none of the trusted keys has signed it.")
    if isinstance(found, PublicPlan):
        good = _holds_no_data(found) and good
    else:
        guarantee(found.certificate.sentence(), found.certificate.private)
    if not good:
        raise typer.Exit(1)


def _holds_no_data(plan: PublicPlan) -> bool:
    from hedgerow.training.shared_plans import rebuild

    cost = formatting.loss(plan.epsilon, plan.delta)
    say(f"plan: {one_line(plan.algorithm)}, {len(plan.trees)} trees, {cost} for each table that is counted")
    if rebuild(plan):
        seed = "" if plan.seed is None else " and its seed"
        say(f"it holds no data: its trees follow from its schema{', its settings' if seed else ' and its settings'}{seed} alone")
        say("its author chose the schema freely: read it with your own eyes, it must hold public facts only")
        return True
    warn(
        "its trees do not follow from its schema, settings and seed"
        + (f" with this generator (it was drawn with {plan.drawn_with}, try that version)" if plan.seed is not None else " (it names none)")
        + ". Whoever made it may have chosen them by looking at data. Counting it still costs you no more than its ε."
    )
    return False


def open_document(path: Path) -> PublicPlan | Release | RuleSet:
    from hedgerow.errors import ReleaseError
    from hedgerow.release.document import RULE_SET_FORMAT
    from hedgerow.release.files import head_of, read_document
    from hedgerow.release.public_plan import FORMAT, PublicPlan
    from hedgerow.release.release import Release

    data = read_document(path, "file")
    try:
        head = head_of(data)
    except ReleaseError as error:
        raise ReleaseError(f"{path}: {error}") from error
    if head.format == RULE_SET_FORMAT:
        from hedgerow.sharing.rules.rule_set import RuleSet

        return RuleSet.load(path)
    return PublicPlan.from_json(data, str(path)) if head.format == FORMAT else Release.from_json(data, str(path))
