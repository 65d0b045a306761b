"""Anything as named texts: so two outputs, or what two queries ask for, are compared by their content, and what differs has a name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cached_property
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from hedgerow.accounting.meter import Budget, Reservation
from hedgerow.release.release import Release

Parts = tuple[tuple[str, str], ...]  # (where, what), in order
SHOWN = 60  # characters of a value that a difference tells, at most
SMALL = 8  # numbers of an array that are told one by one
PLAIN = (int, float, complex, str, Fraction, Decimal, Enum, np.generic, type(None))


def parts_of(thing: Any) -> Parts:
    """Every plain value inside it, with the way that leads there. Addresses, times and the keys of a budget's entries are left out."""
    return _parts(thing, {}, ())


def difference(first: Parts, second: Parts) -> str:
    """The first thing that is not the same, in words; "" if there is none."""
    for (name, text), (other, value) in zip(first, second, strict=False):
        if (name, text) != (other, value):
            where = name if name == other else f"{name} / {other}"
            at = next((i for i, (a, b) in enumerate(zip(text, value, strict=False)) if a != b), 0)
            start = max(0, at - SHOWN // 2)
            ours, theirs = (f"{'…' if start else ''}{each[start : start + SHOWN]}" for each in (text, value))
            return f"{where.strip('.') or 'it'} is {ours} on one table and {theirs} on the other"
    if len(first) != len(second):
        name, text = max(first, second, key=len)[min(len(first), len(second))]
        return f"{name.strip('.') or 'it'} ({text[:SHOWN]}) is there on one table alone"
    return ""


def _parts(thing: Any, known: dict[int, tuple[Any, Parts]], above: tuple[int, ...]) -> Parts:
    if isinstance(thing, PLAIN):
        return (("", repr(thing)),)
    if isinstance(thing, np.ndarray) and thing.dtype != object:
        values = thing.ravel().tolist() if thing.size <= SMALL else f"hash {_hash(np.ascontiguousarray(thing).tobytes())}"
        return (("", f"{thing.dtype.str} {thing.shape} {values}"),)
    if type(thing) in (tuple, list) and all(isinstance(each, PLAIN) for each in thing):
        return (("", repr(thing)),)
    if id(thing) in above:
        return (("", f"itself, {len(above) - above.index(id(thing))} up"),)
    if id(thing) not in known:
        found: list[tuple[str, str]] = []
        for name, inner in _inside(thing):
            found += [(name + rest, text) for rest, text in _parts(inner, known, (*above, id(thing)))]
        known[id(thing)] = (thing, (("", type(thing).__name__), *found))  # the thing stays alive, and its number its own
    return known[id(thing)][1]


def _inside(thing: Any) -> Iterable[tuple[str, Any]]:
    """The named things of which it consists."""
    if isinstance(thing, np.ndarray):
        return [("", thing.shape), ("", thing.ravel().tolist())]
    if isinstance(thing, bytes | bytearray | memoryview):
        return [("", f"{len(thing)} bytes, hash {_hash(bytes(thing))}")]
    if isinstance(thing, Mapping):
        return [(f".{key}" if isinstance(key, str) and key.isidentifier() else f"[{key!r}]", value) for key, value in thing.items()]
    if isinstance(thing, list | tuple):
        return [(f"[{i}]", value) for i, value in enumerate(thing)]
    if isinstance(thing, set | frozenset):
        return [("", sorted(map(repr, thing)))]
    if isinstance(thing, BaseException):
        return [("", str(thing))]
    if isinstance(thing, type | ModuleType | BuiltinFunctionType):
        return [("", getattr(thing, "__qualname__", thing.__name__))]
    if isinstance(thing, MethodType):
        return [("", thing.__name__), (".self", thing.__self__)]
    if isinstance(thing, FunctionType):
        cells = [cell.cell_contents for cell in thing.__closure__ or ()]
        return [("", f"{thing.__module__}.{thing.__qualname__}"), (".default", thing.__defaults__), (".closure", cells)]
    if isinstance(thing, Budget):
        entries = [(entry.what, entry.reserved, entry.spent, entry.delta) for entry in thing.entries]
        return [(".epsilon", thing.epsilon), (".delta", thing.delta), (".entries", entries)]
    if isinstance(thing, Reservation):
        return [(".epsilon", thing.epsilon), (".delta", thing.delta), (".events", thing.events)]
    document = [(".to_json()", thing.to_json())] if isinstance(thing, Release) else []
    return [*((f".{name}", value) for name, value in _attributes(thing)), *document]


def _attributes(thing: Any) -> Iterable[tuple[str, Any]]:
    """Fields, slots or what it holds; not what it remembers of them, since an object that both runs share may have been asked before."""
    if is_dataclass(thing):
        return [(field.name, getattr(thing, field.name)) for field in fields(thing)]
    if hasattr(type(thing), "__struct_fields__"):
        return [(name, getattr(thing, name)) for name in thing.__struct_fields__]
    kinds = type(thing).__mro__
    slots = [name for kind in kinds for name in getattr(kind, "__slots__", ()) if isinstance(name, str) and hasattr(thing, name)]
    held = [name for name in getattr(thing, "__dict__", {}) if not isinstance(getattr(type(thing), name, None), cached_property)]
    return [(name, getattr(thing, name)) for name in (*slots, *held) if not name.startswith("__")]


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
