"""The quick way to run a mutant (scripts/mutate.py): tests are collected once, and a mutant is a function with other byte code.

A process loads the package and collects the tests of a module. For each mutant it forks; the child gives the function in question the
byte code of the mutated source, whoever holds it (imported by name, in a class, behind a cache), and runs the tests in the order that it
is told until one fails. Nothing is loaded or collected again: most mutants take a few hundredths of a second.

Only code inside functions can be exchanged so; not constants of a module or a class, defaults, decorators, nor machine code. What a
cache or a module keeps from before the exchange may hide a mutant, never kill one. So a survivor here is a survivor of these tests only
until `run --survivors` has tried it in a process of its own.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import json
import os
import resource
import signal
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WARM = (
    "tests/private_table/test_queries_by_hand.py", "tests/queries/test_small_print.py", "tests/queries/test_boosting.py",
    "tests/mechanisms/test_known_draws.py", "tests/engines/test_persons.py",
)  # fmt: skip
MOST_BYTES = 12 * 2**30  # a loop that fills a list for ever ends here


class CannotSwap(Exception):
    """The change is not inside a function."""


def changed(old: types.CodeType, new: types.CodeType) -> Iterator[tuple[types.CodeType, types.CodeType]]:
    """The outermost functions that differ, in the code of a module or of a class."""
    bare = [code.replace(co_consts=(), co_linetable=b"") for code in (old, new)]  # a line table knows where each function ends
    if len(old.co_consts) != len(new.co_consts) or bare[0] != bare[1]:
        raise CannotSwap
    for a, b in zip(old.co_consts, new.co_consts, strict=True):
        if not isinstance(a, types.CodeType):
            if repr(a) != repr(b):
                raise CannotSwap
        elif a != b or _all_consts(a) != _all_consts(b):
            if a.co_flags & inspect.CO_OPTIMIZED:
                yield a, b
            else:
                yield from changed(a, b)


def _all_consts(code: types.CodeType) -> list[str]:
    """As texts: 1 and True are equal."""
    found = []
    for each in code.co_consts:
        found += _all_consts(each) if isinstance(each, types.CodeType) else [repr(each)]
    return found


def _with_inner(old: types.CodeType, new: types.CodeType) -> Iterator[tuple[types.CodeType, types.CodeType]]:
    """A function and those defined in it: some may live already."""
    yield old, new
    inner = [[each for each in code.co_consts if isinstance(each, types.CodeType)] for code in (old, new)]
    if [each.co_name for each in inner[0]] == [each.co_name for each in inner[1]]:
        for a, b in zip(*inner, strict=True):
            yield from _with_inner(a, b)


def key(code: types.CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def functions_of(package: Path) -> dict[tuple[str, str, int], list[types.FunctionType]]:
    """All functions of the package that live, by their code."""
    found: dict[tuple[str, str, int], list[types.FunctionType]] = {}
    for each in gc.get_objects():
        if isinstance(each, types.FunctionType) and each.__code__.co_filename.startswith(str(package)):
            found.setdefault(key(each.__code__), []).append(each)
    return found


def swap(path: str, module: str, old: str, new: str, live: dict[tuple[str, str, int], list[types.FunctionType]]) -> None:
    """Give the functions that differ their new code. Lines must stay where they are."""
    if module not in sys.modules:  # it will be loaded from the mutated file
        return
    codes = [compile(source, path, "exec", dont_inherit=True) for source in (old, new)]
    pairs = list(changed(codes[0], codes[1]))
    for a, b in pairs:
        if key(a) not in live:
            raise CannotSwap
        for inner, other in _with_inner(a, b):
            for function in live.get(key(inner), []):
                try:
                    function.__code__ = other
                except ValueError as error:  # other variables of the function around
                    raise CannotSwap from error
    if not pairs:
        raise CannotSwap


class Server:
    """Serves in the place of pytest's loop over the tests: one forked child for each request."""

    def __init__(self, tree: Path, asked: Any, answers: Any) -> None:
        self.tree, self.asked, self.answers = tree, asked, answers
        self.child = False
        self.measuring = False
        self.begun = 0.0
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()
        self.known: dict[str, float] = {}
        self.patience = (0.0, 0.0, 0.0)

    def pytest_configure(self, config: Any) -> None:
        from hypothesis import HealthCheck, Phase, settings

        settings.register_profile(
            "mutate", deadline=None, derandomize=True, database=None, phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        settings.load_profile("mutate")

    def pytest_runtestloop(self, session: Any) -> bool:
        if session.testsfailed:
            self.answer({"error": f"tests cannot be collected: see {self.tree}/log.txt"})
            return True
        items = {item.nodeid: item for item in session.items}
        self.warm([item for item in session.items if item.nodeid.startswith(WARM)])
        package = self.tree / "src" / "hedgerow"
        live = functions_of(package)
        caches = [each for each in gc.get_objects() if isinstance(each, functools._lru_cache_wrapper)]
        self.caches = [each for each in caches if str(each.__module__).startswith("hedgerow")]
        gc.collect()
        gc.freeze()  # the children share what is there
        self.answer({"tests": list(items)})
        for line in self.asked:
            request = json.loads(line)
            begun = time.monotonic()
            killer = self.tree / "killer.txt"
            killer.write_text("")
            child = os.fork()
            if child == 0:
                self.child = True
                self.run(request, items, package, live, killer)
            _, status = os.waitpid(child, 0)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # what its tests have started
            result = "killed"
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGPROF, signal.SIGALRM):
                result = "timeout"
            elif os.WIFEXITED(status):
                result = {0: "survived", 77: "cannot"}.get(os.WEXITSTATUS(status), "killed")
            by = [each for each in killer.read_text().splitlines() if each]
            code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            self.answer({"result": result, "by": by[:1], "code": code, "seconds": round(time.monotonic() - begun, 2)})
        return True

    def warm(self, items: list[Any]) -> None:
        """Load machine code here, once, and not in each child: run some tests that start no thread, and forget what they cached."""
        for item, after in zip(items, [*items[1:], None][: len(items)], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        for cached in gc.get_objects():
            if isinstance(cached, functools._lru_cache_wrapper) and str(cached.__module__).startswith("hedgerow"):
                cached.cache_clear()
        print("threads:", len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else "unknown", flush=True)
        self.seconds.clear()
        self.failed.clear()

    def answer(self, what: dict[str, Any]) -> None:
        print(json.dumps(what), file=self.answers, flush=True)

    def run(self, request: dict[str, Any], items: dict[str, Any], package: Path, live: Any, killer: Path) -> None:
        """In the child; it does not return."""
        os.setsid()
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
            self.killer, self.known, self.patience = killer, request["seconds"], request["patience"]
            watching = None
            if request["lines"]:
                import coverage

                self.measuring = True
                watching = coverage.Coverage(data_file=None, config_file=False, source=[str(package)])
                watching.start()
            else:
                swap(request["path"], request["module"], request["old"], request["new"], live)
            chosen = [items[name] for name in request["tests"]]
            for item, after in zip(chosen, [*chosen[1:], None], strict=True):
                if watching is not None:
                    watching.switch_context(item.nodeid)
                    for cached in self.caches:  # else only the first test that needs a value comes past the lines that compute it
                        cached.cache_clear()
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if watching is not None:
                watching.stop()
                data = watching.get_data()
                lines = {str(Path(file).relative_to(package)): data.contexts_by_lineno(file) for file in data.measured_files()}
                Path(request["lines"]).write_text(json.dumps([self.seconds, lines, sorted(self.failed)]))
            code = 0
        except (CannotSwap, SyntaxError):  # a statement that has lost lines may not be one any more
            code = 77
        finally:
            os._exit(code)

    def pytest_runtest_setup(self, item: Any) -> None:
        """Processor time, since an endless loop uses it and a busy machine does not; and the clock, for what waits for ever."""
        self.begun = sum(os.times()[:4])
        if not self.child:
            return
        times, more, waits = self.patience
        known = self.known.get(item.nodeid, 0.0)
        signal.setitimer(signal.ITIMER_PROF, times * known + more)
        signal.alarm(int(waits * (times * known + more)))

    def pytest_runtest_teardown(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] = sum(os.times()[:4]) - self.begun  # of the processor: as many on a busy machine
        if report.failed:
            self.failed.add(report.nodeid)
        if report.failed and self.child and not self.measuring:
            self.killer.write_text(report.nodeid)
            os._exit(1)


def serve(tree: Path, interpreted: bool, kinds: str, tests: list[str]) -> None:
    """Collect, then answer requests, one in a line of standard input, until it ends."""
    import pytest

    asked, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    log = os.open(tree / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    null = os.open(os.devnull, os.O_RDONLY)
    for old, new in ((null, 0), (log, 1), (log, 2)):
        os.dup2(old, new)
    sys.path[0] = str(tree)
    sys.dont_write_bytecode = True
    if interpreted:
        import numba

        numba.config.DISABLE_JIT = True
    words = ["-q", "-s", "--tb=line", "-p", "no:cacheprovider", "-p", "no:xdist", f"--basetemp={tree}/tmp", "-m", kinds]
    code = pytest.main([*words, *tests], plugins=[Server(tree, asked, answers)])
    sys.exit(int(code))
