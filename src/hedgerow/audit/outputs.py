"""What an attacker sees of an output: named numbers and names. An event is a statement about one of them, or about all together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import AuditError
from hedgerow.release.release import Release
from hedgerow.trees.tree import NODE, Tree

Feature = float | int | str
Features = Mapping[str, Feature]
Columns = dict[str, NDArray[Any]]  # a number for each run (nan where an output has none), or text ("" where it has none)


def features_of(output: Any) -> Features:
    """Of a release: shape, roots, every released number. Of numbers, text, or a mapping of them: themselves."""
    if isinstance(output, Release):
        return release_features(output)
    if isinstance(output, Mapping):
        return with_digits(output)
    if isinstance(output, int | float | str | np.integer | np.floating):
        return with_digits({"output": output})  # type: ignore[dict-item]
    if isinstance(output, Sequence | np.ndarray):
        return with_digits({f"output[{i}]": value for i, value in enumerate(np.asarray(output).ravel().tolist())})
    raise AuditError(
        f"audit: the audited function returned {type(output).__name__}; expected a Release, a number, text, numbers, or a mapping of them. "
        "Next: give features=, a function from such an output to a mapping from names to numbers or text."
    )


def with_digits(features: Features) -> Features:
    """Beside every float how many binary digits it has after the point: noise added in floating point leaves a grid that tells its base."""
    grids = {
        f"{name}: digits after the point": float(value).as_integer_ratio()[1].bit_length() - 1
        for name, value in features.items()
        if isinstance(value, float) and np.isfinite(value) and value != int(value)
    }
    return {**features, **grids} if grids else features


def release_features(release: Release) -> Features:
    """Shape, root and size of each tree, class counts and majority of every node, what was chosen, n̂, what the certificate says."""
    forest, found = release.forest, dict[str, Feature]()
    classes = tuple(map(str, release.schema.target.classes))
    for t, (tree, counts) in enumerate(zip(forest.trees, forest.node_counts, strict=True)):
        names, shape, root = _tree_words(tree.sizes, tree.attribute.tobytes(), tree.branch.tobytes(), release.schema.names, classes, t)
        found[f"tree {t + 1}: shape"], found[f"tree {t + 1}: root"], found[f"tree {t + 1}: nodes"] = shape, root, tree.n_nodes
        found.update(zip(names, counts.ravel().tolist(), strict=True))
        best = counts.argmax(axis=1).tolist()
        found.update({f"{names[node * len(classes)].rpartition(':')[0]}: majority": classes[c] for node, c in enumerate(best)})
    found["certificate: spent"], found["noise"] = str(release.certificate.spent), str(forest.noise)
    found["certificate: events"] = str([(event.query, event.epsilon, event.rho) for event in release.certificate.events])
    found |= {f"released {name}": number for name, number in release.released.items()}
    found |= {f"chosen {name}": _plain(value) for name, value in release.chosen.items()}
    for t, scores in enumerate(release.correction.scores):
        found |= {f"gradient step {t + 1} [{i}]": value for i, value in enumerate(scores.ravel().tolist())}
    return found


def _plain(value: Any) -> Feature:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


@lru_cache(maxsize=4096)
def _tree_words(
    sizes: tuple[int, ...], attribute: bytes, branch: bytes, attributes: tuple[str, ...], classes: tuple[str, ...], number: int
) -> tuple[tuple[str, ...], str, str]:
    """Names of its counts in the order of the nodes, its shape in words, and its root. Most runs repeat a tree: remembered."""
    tree, names = Tree(sizes, np.frombuffer(attribute, dtype=NODE), np.frombuffer(branch, dtype=NODE)), list[str]()
    for node in range(tree.n_nodes):
        where = ", ".join(f"{attributes[a]}={'|'.join(map(str, codes))}" for a, codes in tree.path(node)) or "all rows"
        names += [f"tree {number + 1}, {where}: {label}" for label in classes]
    asked = [attributes[a] if a >= 0 else "·" for a in tree.attribute.tolist()]
    return tuple(names), " ".join(asked), asked[0]


def columns_of(outputs: Iterable[Features]) -> Columns:
    """The features of many runs, column by column."""
    rows = list(outputs)
    names: dict[str, None] = {}
    for row in rows:
        for name in row:
            names.setdefault(name)
    found: Columns = {}
    for name in names:
        values = [row.get(name) for row in rows]
        if any(isinstance(value, str) for value in values):
            found[name] = np.array([as_text(value) for value in values], dtype=object)
        else:
            found[name] = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    return found


def as_text(value: Feature | None) -> str:
    """The same number is the same text, whatever type it came in; "" where there is none."""
    if value is None or value != value:
        return ""
    return value if isinstance(value, str) else repr(float(value))


def aligned(first: Columns, second: Columns) -> tuple[Columns, Columns]:
    """The runs of two tables with the same features in the same form: else a feature that is rare would seem to tell them apart."""
    runs, both = (len(next(iter(first.values()))) if first else 0), together([first, second])
    return {name: values[:runs] for name, values in both.items()}, {name: values[runs:] for name, values in both.items()}


def together(parts: Sequence[Columns]) -> Columns:
    """Runs of several batches. A feature that one batch lacks is missing in all its runs."""
    sizes = [len(next(iter(part.values()))) if part else 0 for part in parts]
    found: Columns = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        text = any(part[name].dtype == object for part in parts if name in part)
        pieces = []
        for part, size in zip(parts, sizes, strict=True):
            values = part.get(name)
            if values is None:
                values = np.full(size, "", dtype=object) if text else np.full(size, np.nan)
            elif text and values.dtype != object:
                values = np.array([as_text(value) for value in values.tolist()], dtype=object)
            pieces.append(values)
        found[name] = np.concatenate(pieces)
    return found


Describe = Callable[[Any], Features]
