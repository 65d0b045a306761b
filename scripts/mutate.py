"""Mutations: does a test fail for every small mistake in the code that keeps the guarantee?

    python scripts/mutate.py run                     every mutant that has no result yet, on all cores; goes on where it was stopped
    python scripts/mutate.py run private_table.py    those of some modules
    python scripts/mutate.py run --survivors         what survived once more, after tests were written
    python scripts/mutate.py run --survivors --whole the same with slow tests too, in a process that loads the mutated file: the last word
    python scripts/mutate.py report                  scores; what survived, with its reason where scripts/mutants_explained.toml has one
    python scripts/mutate.py report --write          the scores into docs/MUTATIONS.md
    python scripts/mutate.py show 3f9a2c1b           the change that a mutant makes

A mutant is one change: another comparison, a constant that is one more or less, another operator, a condition turned round, a statement
left out, `min` for `max`, a `with` without its lock. Texts of errors, docstrings, type hints, `__repr__` and what
an attack does in words are left as they are. Each
mutant runs against the quick tests of its module that come past its line, those that killed others first, until one fails: in a process
that has collected them, and in which the function in question gets other byte code (scripts/mutate_swap.py); a compiled loop without its
compiler. What is not inside a function (a constant of a module, a default) runs in a process that has loaded every library and none of this
package, in a copy of the source tree with the mutated file. So does all that survives, with `--whole`: machine code that Numba has kept of
the mutated package is taken away, and all tests of the module run on the compiled mutant. A mutant for which a test uses far more of the
processor than it does unchanged counts as killed: an endless loop is seen.

Property tests draw the same examples each time and do not shrink them. Results: one line for each mutant in scripts/mutants.jsonl. They
are known by the text of the function and the change, so that they stay true while other functions change.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import tomllib
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "hedgerow"
STORE = ROOT / ".mutants"
RESULTS = ROOT / "scripts" / "mutants.jsonl"
DOCUMENT, BEGIN, END = ROOT / "docs" / "MUTATIONS.md", "<!-- mutations -->\n", "<!-- end of mutations -->"
EXPLAINED = ROOT / "scripts" / "mutants_explained.toml"

LONGEST_TEST = 120  # seconds of the processor: a mutant for which a test takes longer counts as killed; where it is known how long,
PATIENCE, AT_LEAST = 6, 3  # so many times as long, and so many seconds more;
WAITING = 8  # and by the clock so many times that: a busy machine is not a mistake that was found
LONGEST = 3600  # seconds for all tests of a mutant
QUICK = 6  # seconds for all tests of a mutant, at first
KILLERS = 8  # tests that have killed others of the module are tried first
KINDS = "not audit and not postgres and not spark and not curator and not browser"
# The tests that matter for a module, the quickest first.
QUERIES = [
    "tests/private_table/test_private_table.py", "tests/whole/test_user_level.py", "tests/whole/test_delta.py",
    "tests/private_table/test_query_noise.py", "tests/private_table/test_gaussian_queries.py", "tests/mechanisms/test_noise_paths.py",
]  # fmt: skip
KNOWN = "tests/mechanisms/test_known_draws.py"
SAMPLING = [KNOWN, "tests/mechanisms/test_samplers.py", "tests/mechanisms/test_sampler_distributions.py"]
DETAILS = "tests/accounting/test_accounting_details.py"
METERS = [
    DETAILS, "tests/accounting/test_meter.py", "tests/queries/test_small_print.py", "tests/accounting/test_meter_races.py",
    "tests/accounting/test_budget_crashes.py",
    "tests/contracts/test_meters.py", "tests/whole/test_delta.py",
]  # fmt: skip
STORES = [
    "tests/engines/test_person_store.py",
    "tests/engines/test_one_person.py",
    "tests/contracts/test_engine.py",
    "tests/engines/test_places.py",
]
PERSONS = ["tests/engines/test_persons.py", *STORES]
EXAMPLES = "tests/whole/test_examples.py"
LOSSES = [DETAILS, "tests/accounting/test_loss.py", EXAMPLES, "tests/contracts/test_meters.py"]
RELEASES = ["tests/whole/test_delta.py", "tests/release/test_certificate.py", "tests/release/test_release.py"]
NO_QUERIES = ("__init__", "attacks", "kernels", "scores")  # attacks test others, and the two others have tests of their own
NAMES_OF_QUERIES = sorted(path.stem for path in (PACKAGE / "queries").glob("*.py") if path.stem not in NO_QUERIES)
BOOSTING = ("boost", "bundles")
ANY_QUERY = [
    "tests/queries/test_query_details.py", "tests/queries/test_small_print.py",
    "tests/private_table/test_queries_by_hand.py", "tests/queries/test_queries.py",
    "tests/private_table/test_private_table.py",
    "tests/queries/test_boosting.py", "tests/whole/test_docs.py::test_every_query_has_a_theorem", "tests/whole/test_user_level.py",
    "tests/queries/test_gradients.py",
    "tests/private_table/test_best_scale.py", "tests/audit/test_guarantee.py", "tests/remote/test_remote_table.py",
]  # fmt: skip
NOT_QUICK = (  # whole attacks, services and forests: with `--whole` alone
    "tests/audit/test_guarantee.py", "tests/remote/test_remote_table.py", "tests/whole/test_user_level.py", "tests/queries/test_queries.py",
    "tests/queries/test_gradients.py", "tests/whole/test_delta.py", "tests/estimators/test_estimators.py",
)  # fmt: skip
LOOPS = ["tests/queries/test_kernels.py", "tests/queries/test_query_details.py"]
BOUNDED = "tests/queries/test_gradients.py::test_each_of_the_two_norms_is_bounded"
TESTS: dict[str, list[str]] = {  # a file that is not there is left out
    "mechanisms/exactmath.py": ["tests/mechanisms/test_enclosures.py", *SAMPLING],
    "mechanisms/samplers.py": SAMPLING,
    "mechanisms/choices.py": SAMPLING,
    "mechanisms/gaussian.py": [KNOWN, "tests/mechanisms/test_gaussian.py", "tests/mechanisms/test_gaussian_distribution.py"],
    "mechanisms/shares.py": ["tests/mechanisms/test_shares.py"],
    "mechanisms/noise.py": ["tests/mechanisms/test_mechanisms.py", "tests/mechanisms/test_shares.py", *QUERIES],
    "private_table.py": [
        "tests/private_table/test_queries_by_hand.py", "tests/private_table/test_best_scale.py", "tests/accounting/test_units.py", *QUERIES,
        "tests/queries/test_gradients.py", "tests/queries/test_small_print.py", "tests/remote/test_remote_table.py",
        "tests/private_table/test_secure_sum_seam.py", "tests/private_table/test_remote_seam.py", "tests/multiparty/test_together.py",
    ],
    "queries/scores.py": [
        "tests/mechanisms/test_scores.py", "tests/private_table/test_best_scale.py", "tests/private_table/test_private_table.py",
        "tests/growers/test_greedy.py",
    ],
    "mechanisms/coins.py": [
        "tests/mechanisms/test_mechanisms.py", KNOWN, "tests/mechanisms/test_samplers.py", "tests/whole/test_traps.py",
        "tests/estimators/test_estimators.py",
    ],
    **{f"queries/{name}.py": ANY_QUERY for name in NAMES_OF_QUERIES if not name.startswith(BOOSTING)},
    **{f"queries/{name}.py": ["tests/queries/test_boosting.py", *ANY_QUERY] for name in NAMES_OF_QUERIES if name.startswith(BOOSTING)},
    "trees/lookups.py": ["tests/trees/test_lookups.py", "tests/queries/test_boosting.py"],
    "queries/forms.py": ["tests/queries/test_forms.py", *ANY_QUERY],
    "queries/kernels.py": [*LOOPS, "tests/queries/test_gradients.py", "tests/private_table/test_best_scale.py", *ANY_QUERY],
    "accounting/charges.py": ["tests/mechanisms/test_mechanisms.py", *QUERIES],
    "accounting/meter.py": METERS,
    "accounting/budget_file.py": [*METERS],
    "accounting/units.py": ["tests/accounting/test_units.py", EXAMPLES, *METERS],
    "accounting/zcdp.py": [
        DETAILS, "tests/mechanisms/test_enclosures.py", "tests/accounting/test_zcdp.py", EXAMPLES, "tests/whole/test_delta.py",
    ],
    "accounting/loss.py": [*LOSSES, *RELEASES],
    "accounting/noise.py": [*LOSSES, "tests/whole/test_delta.py", "tests/whole/test_user_level.py"],
    "accounting/prices.py": ["tests/accounting/test_prices.py", *LOSSES, "tests/whole/test_delta.py"],
    "accounting/events.py": ["tests/accounting/test_events.py", *LOSSES, "tests/accounting/test_zcdp.py", *RELEASES],
    "engines/persons.py": PERSONS,
    "engines/person_ids.py": PERSONS,
    "engines/person_store.py": STORES,
}  # fmt: skip
SAMPLERS = "mechanisms/__pycache__/*.nb?"
SAMPLED = "tests/mechanisms/test_samplers.py"
COMPILED = {  # machine code that depends on a module, and tests that are quick without it
    "mechanisms/exactmath.py": (SAMPLERS, ["tests/mechanisms/test_enclosures.py", KNOWN, SAMPLED]),
    "mechanisms/samplers.py": (SAMPLERS, [KNOWN, SAMPLED]),
    "mechanisms/choices.py": (SAMPLERS, [KNOWN, SAMPLED]),
    "mechanisms/gaussian.py": (SAMPLERS, [KNOWN, "tests/mechanisms/test_gaussian.py"]),
    "mechanisms/shares.py": (SAMPLERS, ["tests/mechanisms/test_shares.py"]),
    "engines/persons.py": ("engines/__pycache__/persons.*.nb?", ["tests/engines/test_persons.py"]),
    "queries/kernels.py": ("queries/__pycache__/kernels.*.nb?", [*LOOPS, BOUNDED]),
    "queries/boosting_loops.py": ("queries/__pycache__/boosting_loops.*.nb?", ["tests/queries/test_boosting.py"]),
    "trees/lookups.py": ("*/__pycache__/*loo[pk]*.nb?", ["tests/trees/test_lookups.py"]),  # its loops are compiled into others, too
}
LIBRARIES = (
    "pytest hypothesis hypothesis.strategies hypothesis.extra numpy numba scipy.stats scipy.optimize sklearn.base sklearn.utils.validation "
    "sklearn.model_selection pandas polars pyarrow pyarrow.compute pyarrow.parquet duckdb msgspec narwhals "
    "cryptography.hazmat.primitives.asymmetric.ed25519 rich typer opendp.prelude sqlalchemy fastapi.testclient uvicorn jinja2 urllib3 "
)


# ---------------------------------------------------------------- the mutants of a module


@dataclass(frozen=True)
class Mutant:
    """One change of the bytes [start, stop) of a module."""

    module: str
    start: int
    stop: int
    new: str
    line: int
    where: str  # the function or class that holds it
    what: str  # in words, as `old → new`
    id: str
    top: int  # the first line of the function, 0 outside of one


COMPARE = {
    ast.Lt: ("<=", ">="), ast.LtE: ("<", ">"), ast.Gt: (">=", "<="), ast.GtE: (">", "<"), ast.Eq: ("!=",), ast.NotEq: ("==",),
    ast.In: ("not in",), ast.NotIn: ("in",), ast.Is: ("is not",), ast.IsNot: ("is",),
}  # fmt: skip
ARITHMETIC = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "//", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "//", ast.Pow: "*", ast.LShift: ">>",
    ast.RShift: "<<", ast.BitAnd: "|", ast.BitOr: "&", ast.BitXor: "|",
}  # fmt: skip
NAMES = {
    "min": "max", "max": "min", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor", "minimum": "maximum", "maximum": "minimum",
    "argmin": "argmax", "argmax": "argmin", "zeros": "ones", "ones": "zeros", "isqrt": "int", "ascontiguousarray": "zeros_like",
    "append": "extend", "abs": "int", "sorted": "list",
}  # fmt: skip


class Finder(ast.NodeVisitor):
    def __init__(self, module: str, source: bytes) -> None:
        self.module, self.source = module, source
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.found: list[Mutant] = []
        self.where: list[str] = []
        self.top = 0
        self.block: list[str] = []  # texts of the statements around, the outermost first
        self.seen: dict[str, int] = {}

    def span(self, node: Any) -> tuple[int, int]:
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[node.end_lineno - 1] + node.end_col_offset

    def text(self, start: int, stop: int) -> str:
        return self.source[start:stop].decode()

    def add(self, start: int, stop: int, new: str, node: Any, what: str) -> None:
        where = ".".join(self.where) or "module"
        name = f"{self.module}|{where}|{self.block[0]}|{what}"
        self.seen[name] = self.seen.get(name, 0) + 1
        made = hashlib.sha256(f"{name}|{self.seen[name]}".encode()).hexdigest()[:8]
        self.found.append(Mutant(self.module, start, stop, new, node.lineno, where, " ".join(what.split()), made, self.top))

    def between(self, left: Any, right: Any, old: str, new: str, node: Any) -> None:
        """The operator between two operands; brackets and white space stay."""
        start, stop = self.span(left)[1], self.span(right)[0]
        gap = self.text(start, stop)
        place = gap.find(old)
        if place < 0:
            return
        at = start + len(gap[:place].encode())
        self.add(at, at + len(old.encode()), new, node, f"{self.line_of(node)} : {old} → {new}")

    def line_of(self, node: Any) -> str:
        return self.text(*self.span(node)).split("\n")[0][:100]

    # ------------------------------------------------------------ what is left as it is

    def visit_Raise(self, node: ast.Raise) -> None:
        self.add(*self.span(node), "pass", node, f"{self.line_of(node)} → pass")

    def visit_Import(self, node: Any) -> None: ...

    visit_ImportFrom = visit_JoinedStr = visit_Import

    def visit_Assert(self, node: ast.Assert) -> None: ...

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self.condition(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        if not (isinstance(node.test, ast.Constant) and node.test.value is True):
            self.condition(node.test)
            self.visit(node.test)
        for child in [*node.body, *node.orelse]:
            self.visit(child)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.condition(node.test)
        self.generic_visit(node)

    def condition(self, test: Any) -> None:
        """Turned round, where no change of a comparison or of `not` does the same."""
        denied = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        if not denied and not isinstance(test, (ast.Compare, ast.BoolOp)):
            old = self.text(*self.span(test))
            self.add(*self.span(test), f"(not ({old}))", test, f"if {self.line_of(test)} → if not")

    def visit_FunctionDef(self, node: Any) -> None:
        if node.name == "__repr__":
            return
        self.where.append(node.name)
        for default in [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]:
            self.visit(default)
        around, self.top = self.top, node.lineno
        self.body(node.body)
        self.top = around
        self.where.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.where.append(node.name)
        around, self.block = self.block, []  # what is known of one method stays true while another changes
        self.body(node.body)
        self.block = around
        self.where.pop()

    def body(self, statements: list[Any]) -> None:
        for i, child in enumerate(statements):
            doc = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            if not doc or (i and not isinstance(child.value.value, str)):  # type: ignore[attr-defined]
                self.block.append(self.text(*self.span(child)))
                self.visit(child)
                self.block.pop()

    def visit_Module(self, node: ast.Module) -> None:
        self.body(node.body)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        if isinstance(node.targets[0], ast.Name) and node.targets[0].id == "why":
            return
        alias = isinstance(node.value, (ast.Subscript, ast.BinOp)) and not self.where and _is_type(node.value)
        if not alias and not (isinstance(node.targets[0], ast.Name) and node.targets[0].id in ("__slots__", "__all__")):
            self.visit(node.value)
            for target in node.targets:
                self.visit(target)

    # ------------------------------------------------------------ what is changed

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for op, left, right in zip(node.ops, operands, operands[1:], strict=False):
            old = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.In: "in", ast.NotIn: "not in",
                   ast.Is: "is", ast.IsNot: "is not"}[type(op)]  # fmt: skip
            for new in COMPARE[type(op)]:
                self.between(left, right, old, new, node)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        old = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.LShift: "<<",
               ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}.get(type(node.op))  # fmt: skip
        if old is not None:
            self.between(node.left, node.right, old, ARITHMETIC[type(node.op)], node)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.add(*self.span(node), "pass", node, f"{self.line_of(node)} → pass")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self.between(left, right, old, new, node)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        start, stop = self.span(node)
        inner = self.text(self.span(node.operand)[0], stop)
        if isinstance(node.op, (ast.USub, ast.Not, ast.Invert)):
            whole = inner.count("(") == inner.count(")")
            self.add(start, stop, f"({inner})" if whole else inner, node, f"{self.line_of(node)} → {inner[:60]}")
        self.visit(node.operand)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            changes = [repr(not value)]
        elif isinstance(value, int):
            changes = [f"({value} + 1)", f"({value} - 1)"]
        elif isinstance(value, float):
            changes = [f"({value!r} + 1.0)", *([f"({value!r} * 0.5)"] if value else [])]
        elif isinstance(value, str) and value:
            changes = [repr("~" + value)]
        else:
            changes = []
        for new in changes:
            self.add(*self.span(node), new, node, f"{self.text(*self.span(node))[:60]} → {new[:60]}")

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name in ("Attack", "case") and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
            del node.args[1]  # what an attack does, in words
        if name in NAMES:
            stop = self.span(node.func)[1]
            self.add(stop - len(name), stop, NAMES[name], node, f"{self.line_of(node)} : {name} → {NAMES[name]}")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self.add(*self.span(node), "pass", node, f"{self.line_of(node)} → pass")
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            self.add(*self.span(node), "return None", node, f"{self.line_of(node)} → return None")
        self.generic_visit(node)

    def visit_Continue(self, node: Any) -> None:
        self.add(*self.span(node), "break", node, "continue → break")

    def visit_Break(self, node: Any) -> None:
        self.add(*self.span(node), "pass", node, "break → pass")

    def visit_With(self, node: ast.With) -> None:
        """Locks: the block without them. A block that binds a name needs it."""
        if all(item.optional_vars is None for item in node.items):
            start = self.span(node)[0]
            head = self.text(start, self.span(node.body[0])[0])
            self.add(start, start + len(head[: head.rindex(":")].encode()), "if True", node, f"{self.line_of(node)} → if True")
        self.generic_visit(node)


def _is_type(node: Any) -> bool:
    """Whether a value at the top of a module is a name for a type, such as NDArray[np.int64]."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Name)
    return isinstance(node.op, ast.BitOr)


def mutants_of(module: str) -> list[Mutant]:
    source = (PACKAGE / module).read_bytes()
    finder = Finder(module, source)
    finder.visit(ast.parse(source))
    made = []
    for mutant in finder.found:
        with contextlib.suppress(SyntaxError):
            compile(mutated(source, mutant), module, "exec")
            made.append(mutant)
    return made


def mutated(source: bytes, mutant: Mutant, same_lines: bool = False) -> bytes:
    lost = source[mutant.start : mutant.stop].count(b"\n") - mutant.new.count("\n") if same_lines else 0
    return source[: mutant.start] + mutant.new.encode() + lost * b"\n" + source[mutant.stop :]


# ---------------------------------------------------------------- one worker: a copy of the tree, and processes that start in it


@dataclass(frozen=True)
class Measured:
    """A module's quick tests where nothing is changed."""

    seconds: dict[str, float]  # of each test
    lines: dict[str, dict[str, list[str]]]  # by module and line, the tests that come past it

    def past(self, mutant: Mutant) -> list[str]:
        """The tests that come past the mutant's statement; all of them if none was seen, as where it runs when the module is loaded."""
        lines = self.lines.get(mutant.module, {})
        for line in range(mutant.line, mutant.top if mutant.top else mutant.line, -1):  # a part of a statement may have no line of its own
            if str(line) in lines:
                return [test for test in lines[str(line)] if test in self.seconds]
        return list(self.seconds)


class Process:
    """Asked in one line, it answers in one line."""

    def __init__(self, tree: Path, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"},
        )  # fmt: skip

    def ask(self, what: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        print(json.dumps(what), file=self.process.stdin, flush=True)
        return self.answer()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


class Worker:
    """A tree of its own, a process that forks one child for each mutant, and for the module at hand one that has collected its tests."""

    def __init__(self, number: int) -> None:
        self.tree = STORE / f"worker-{os.getpid()}-{number}"  # two runs may go on at once
        shutil.rmtree(self.tree, ignore_errors=True)
        for folder in ("src", "tests"):
            shutil.copytree(ROOT / folder, self.tree / folder)
        for name in ("pyproject.toml", "conftest.py", "README.md"):
            shutil.copy2(ROOT / name, self.tree / name)
        self.package = self.tree / "src" / "hedgerow"
        self.process = Process(self.tree, "serve", str(self.tree))
        self.killers: dict[tuple[str, ...], dict[str, int]] = {}  # by the tests of a module, how many mutants each has killed
        self.collected: dict[Any, tuple[Process, Measured]] = {}  # of the module at hand

    def quick(self, module: str, interpreted: bool) -> tuple[Process, Measured]:
        """The process that has collected the module's quick tests; how long they take where nothing is changed, which lines they pass."""
        tests = COMPILED[module][1] if interpreted else [test for test in tests_of(module) if test not in NOT_QUICK]
        key = (tuple(tests), interpreted)
        if key not in self.collected:
            for process, _ in self.collected.values():
                process.close()
            self.collected.clear()
            process = Process(self.tree, "collect", str(self.tree), str(int(interpreted)), f"{KINDS} and not slow", *tests)
            begun = process.answer()
            if "error" in begun:
                raise SystemExit(f"{module}: {begun['error']}")
            path = self.tree / "lines.json"
            found = process.ask({"tests": begun["tests"], "lines": str(path), "seconds": {}, "patience": [0, 600, 1]})
            if found["result"] != "survived":
                raise SystemExit(f"{module}: its tests cannot be measured: {found}, see {self.tree}/log.txt")
            seconds, lines, failed = json.loads(path.read_text())
            print(f"{module}: {found['seconds']:.0f} s unchanged{', interpreted' * interpreted}; not used, they fail: {failed}", flush=True)
            self.collected[key] = process, Measured({test: seconds[test] for test in begun["tests"] if test not in failed}, lines)
        return self.collected[key]

    def run(self, mutant: Mutant, whole: bool) -> dict[str, Any]:
        pattern, _ = COMPILED.get(mutant.module, ("", []))
        interpreted = bool(pattern)
        process, measured = self.quick(mutant.module, interpreted)
        path = self.package / mutant.module
        status, source = path.stat(), path.read_bytes()
        kept = {each: each.read_bytes() for each in (self.package.glob(pattern) if pattern else ())}
        try:
            for each in kept:
                each.unlink()
            path.write_bytes(mutated(source, mutant))
            killers = self.killers.setdefault(tuple(tests_of(mutant.module)), {})
            past = measured.past(mutant)
            past.sort(key=lambda test: (measured.seconds[test] + 0.01) / (1 + killers.get(test, 0)))
            past = _within(past, measured.seconds)
            name = ".".join(["hedgerow", *Path(mutant.module).with_suffix("").parts])
            found = process.ask({
                "path": str(path), "module": name, "old": source.decode(), "new": mutated(source, mutant, same_lines=True).decode(),
                "tests": past, "lines": "", "seconds": measured.seconds,
                "patience": [PATIENCE, AT_LEAST, WAITING],
            })  # fmt: skip
            if found["result"] == "cannot":
                found = self.ask([past[:KILLERS], past[KILLERS:]], interpreted, measured)
            if found["result"] == "survived" and whole:
                found = self.ask([[test] for test in tests_of(mutant.module)], False, measured)
            for test in found["by"]:
                killers[test] = killers.get(test, 0) + 1
            return found
        finally:
            path.write_bytes(source)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
            for each in self.package.glob(pattern) if pattern else ():
                each.unlink()
            for each, content in kept.items():
                each.write_bytes(content)

    def ask(self, tests: list[list[str]], interpreted: bool, measured: Measured) -> dict[str, Any]:
        return self.process.ask([tests, LONGEST, interpreted, measured.seconds])

    def close(self) -> None:
        for process in (self.process, *(process for process, _ in self.collected.values())):
            process.close()
        shutil.rmtree(self.tree, ignore_errors=True)


def _within(tests: list[str], seconds: dict[str, float]) -> list[str]:
    """As many of them as take QUICK seconds in all, none of them a large part of it."""
    chosen, total = [], 0.0
    for test in tests:
        if seconds[test] <= QUICK / 4 and total + seconds[test] <= QUICK:
            total += seconds[test]
            chosen.append(test)
    return chosen


def tests_of(module: str) -> list[str]:
    return [test for test in dict.fromkeys(TESTS[module]) if (ROOT / test.partition("::")[0]).exists()]


def serve(tree: Path) -> None:
    """In a worker: load the libraries once, then one forked process for each list of tests that is asked."""
    import importlib.metadata

    sys.path[0] = str(tree)  # as `python -m pytest` has it
    warnings.simplefilter("ignore")
    for name in LIBRARIES.split():
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for plugin in importlib.metadata.entry_points(group="pytest11"):  # what pytest would load for each mutant
        with contextlib.suppress(ImportError):
            plugin.load()
    assert not any(name == "hedgerow" or name.startswith("hedgerow.") for name in sys.modules)
    for line in sys.stdin:
        tests, limit, interpreted, seconds = json.loads(line)
        log = tree / "log.txt"
        begun = time.monotonic()
        child = os.fork()
        if child == 0:
            os.setsid()
            _child(tests, log, interpreted, seconds)
        code = _wait(child, limit)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what its tests have started
        result = {None: "timeout", -signal.SIGALRM: "timeout", -signal.SIGPROF: "timeout", 0: "survived"}.get(code, "killed")
        by = [each.split(" - ")[0].split(" ", 1)[1] for each in _lines(log) if each.startswith(("FAILED ", "ERROR "))]
        print(json.dumps({"result": result, "by": by[:1], "code": code, "seconds": round(time.monotonic() - begun, 2)}), flush=True)


def _lines(log: Path) -> list[str]:
    return log.read_text(errors="replace").splitlines() if log.exists() else []


def _wait(child: int, limit: float) -> int | None:
    """The exit code; None if it took too long."""
    timer = threading.Timer(limit, lambda: os.killpg(child, signal.SIGKILL))
    begun = time.monotonic()
    timer.start()
    _, status = os.waitpid(child, 0)
    timer.cancel()
    if os.WIFSIGNALED(status):
        return None if time.monotonic() - begun >= limit else -os.WTERMSIG(status)
    return os.WEXITSTATUS(status)


class Plugin:
    """The same examples each time, none of them shrunk or kept; no test may take far longer than it did."""

    def __init__(self, seconds: dict[str, float], wanted: list[str]) -> None:
        self.seconds = seconds
        self.places = {name: place for place, name in enumerate(wanted)}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Of a list of names those alone, in its order; a list of files is run as it is."""
        if any("::" in name for name in self.places):
            items[:] = sorted((item for item in items if item.nodeid in self.places), key=lambda item: self.places[item.nodeid])

    def pytest_configure(self, config: Any) -> None:
        from hypothesis import HealthCheck, Phase, settings

        settings.register_profile(
            "mutate", deadline=None, derandomize=True, database=None, phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        settings.load_profile("mutate")

    def pytest_runtest_setup(self, item: Any) -> None:
        known = self.seconds.get(item.nodeid)  # the alarm ends the process, wherever it is
        limit = LONGEST_TEST if known is None else PATIENCE * known + AT_LEAST
        signal.setitimer(signal.ITIMER_PROF, limit)
        signal.alarm(int(WAITING * limit))

    def pytest_runtest_teardown(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)


def _child(tests: list[list[str]], log: Path, interpreted: bool, seconds: dict[str, float]) -> None:
    import pytest

    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.dont_write_bytecode = True
    if interpreted:
        import numba

        numba.config.DISABLE_JIT = True
    words = ["-q", "-x", "--tb=line", "-rfE", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", KINDS]
    code = 3
    warnings.resetwarnings()
    try:
        for some in tests:  # one after the other: most mutants are killed by the first, and the others need not be loaded
            files = list(dict.fromkeys(name.partition("::")[0] for name in some))
            code = int(pytest.main([*words, *files], plugins=[Plugin(seconds, some)])) if some else 0
            if code not in (0, 5):  # 5: none was found
                break
            code = 0
    finally:
        sys.stdout.flush()
        os._exit(code)


# ---------------------------------------------------------------- results


def results() -> dict[str, dict[str, Any]]:
    if not RESULTS.exists():
        return {}
    return {item["id"]: item for item in map(json.loads, RESULTS.read_text().splitlines())}  # the last line of a mutant holds


def explained() -> list[dict[str, str]]:
    return list(tomllib.loads(EXPLAINED.read_text()).get("mutant", [])) if EXPLAINED.exists() else []


def reason(mutant: Mutant, known: list[dict[str, str]]) -> str | None:
    """Why a survivor does no harm. An explanation names module, function, a part of the line and a part of the change."""
    line = (PACKAGE / mutant.module).read_text(encoding="utf-8").splitlines()[mutant.line - 1]
    for each in known:
        here = (each["module"], each["where"]) == (mutant.module, mutant.where)
        if here and each["line"] in line and each["change"] in mutant.what:
            return each["why"]
    return None


def chosen(words: list[str]) -> list[str]:
    """In the order in which they are named."""
    found = list(dict.fromkeys(module for word in words or [""] for module in TESTS if module.startswith(word)))
    if not found:
        raise SystemExit(f"no such module; expected some of: {', '.join(TESTS)}")
    return found


def run(words: list[str], workers: int, survivors: bool, whole: bool, sample: int) -> None:
    STORE.mkdir(exist_ok=True)
    (STORE / ".gitignore").write_text("*\n")
    done = results()
    todo = []
    for module in chosen(words):
        made = mutants_of(module)
        if survivors:
            todo += [m for m in made if done.get(m.id, {}).get("result") == "survived" and reason(m, explained()) is None]
        else:
            todo += [m for i, m in enumerate(made) if m.id not in done and i % sample == 0]
    print(f"{len(todo)} mutants to run on {workers} workers", flush=True)
    lock, left = threading.Lock(), iter(enumerate(todo, 1))

    def work(number: int) -> None:
        worker = Worker(number)
        try:
            while True:
                with lock:
                    place, mutant = next(left, (0, None))
                if mutant is None:
                    return
                found = worker.run(mutant, whole)
                with lock:
                    item = {"id": mutant.id, "module": mutant.module, "where": mutant.where, "what": mutant.what, **found}
                    with RESULTS.open("a") as file:
                        file.write(json.dumps(item, ensure_ascii=False) + "\n")
                    sign = {"killed": ".", "timeout": "t"}.get(found["result"], "S")
                    print(f"{place}/{len(todo)} {sign} {found['seconds']:5.1f} s  {mutant.module}:{mutant.line} {mutant.what}", flush=True)
        finally:
            worker.close()

    with ThreadPoolExecutor(workers) as pool:
        for job in [pool.submit(work, number) for number in range(min(workers, len(todo)))]:
            job.result()


def report(words: list[str], write: bool) -> None:
    done, known = results(), explained()
    table = [
        "| module | mutants | run | killed | of these too slow | survived, explained | survived | killed of what is not explained |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    silent: list[tuple[Mutant, str | None]] = []
    totals = [0] * 6
    for module in chosen(words):
        made = mutants_of(module)
        ran = [(m, done[m.id]["result"]) for m in made if m.id in done]
        alive = [(m, reason(m, known)) for m, result in ran if result == "survived"]
        silent += alive
        excused = sum(why is not None for _, why in alive)
        numbers = [len(made), len(ran), len(ran) - len(alive), sum(r == "timeout" for _, r in ran), excused, len(alive) - excused]
        totals = [a + b for a, b in zip(totals, numbers, strict=True)]
        table.append(f"| {module} | {' | '.join(map(str, numbers))} | {_share(numbers)} |")
    table.append(f"| all | {' | '.join(map(str, totals))} | {_share(totals)} |")
    print("\n".join(table))
    if write:
        text = DOCUMENT.read_text(encoding="utf-8")
        before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
        DOCUMENT.write_text("\n".join([before.rstrip("\n"), *table, after]), encoding="utf-8")
    for mutant, why in silent:
        print(f"{mutant.id} {mutant.module}:{mutant.line} {mutant.where}: {mutant.what}{'' if why is None else f'   [{why}]'}")


def _share(numbers: list[int]) -> str:
    _, ran, killed, _, excused, _ = numbers
    return "-" if ran == excused else f"{killed / (ran - excused):.1%}"


def show(id: str) -> Iterator[str]:
    import difflib

    for module in TESTS:
        for mutant in mutants_of(module):
            if mutant.id == id:
                old = (PACKAGE / module).read_bytes()
                yield from difflib.unified_diff(
                    old.decode().splitlines(), mutated(old, mutant).decode().splitlines(), module, module, "", "", 2, ""
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["run", "report", "show", "serve", "collect", "list"])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--survivors", action="store_true")
    parser.add_argument("--whole", action="store_true", help="slow tests too, each mutant in a process of its own")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--sample", type=int, default=1, help="every so many mutants of a module")
    given = parser.parse_intermixed_args()
    if given.verb == "serve":
        serve(Path(given.words[0]))
    elif given.verb == "collect":
        from mutate_swap import serve as collect

        collect(Path(given.words[0]), given.words[1] == "1", given.words[2], given.words[3:])
    elif given.verb == "run":
        run(given.words, given.workers, given.survivors, given.whole, given.sample)
    elif given.verb == "report":
        report(given.words, given.write)
    elif given.verb == "list":
        for module in chosen(given.words):
            print(module, len(mutants_of(module)))
    else:
        print("\n".join(show(given.words[0])))


if __name__ == "__main__":
    main()
