"""Shared set-up: randomness that comes again (tests/streams.py); the README's example writes its files into a temporary folder."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import streams
import typer.testing
from hypothesis import settings

# Compiled loops make the first example slow; a deadline would measure the compiler.
settings.register_profile("hedgerow", deadline=None, max_examples=50, derandomize=streams.SEED != "fresh")
settings.load_profile("hedgerow")
# Else each call makes all commands anew, which takes longer than most of them.
typer.testing._get_command = cache(typer.testing._get_command)
streams.install()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    streams.begin(collector.nodeid)  # what a module draws while it is read
    return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    streams.begin(item.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Iterator[None]:
    if fixturedef.scope == "function":
        return (yield)
    with streams.stream(f"{fixturedef.baseid} {fixturedef.argname} {getattr(request, 'param', '')}"):  # whichever test is the first
        return (yield)


@pytest.fixture(autouse=True)
def _work_in_a_temporary_folder(request: pytest.FixtureRequest) -> None:
    if request.node.name == "README.md":  # no other test pays for a folder that it does not use
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))
