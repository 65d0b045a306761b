"""`hedgerow.pseudo_data`: a table that is made from releases and from no rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import PlanError
from hedgerow.inference.vote import vote_named
from hedgerow.release.release import Release
from hedgerow.schema.attributes import Categorical
from hedgerow.schema.schema import Schema
from hedgerow.sharing.pseudo.certificate import ANONYMITY, PseudoCertificate, certificate_for
from hedgerow.sharing.pseudo.decoding import same_meaning, values_array, values_by_code
from hedgerow.sharing.pseudo.diversity import Diversity
from hedgerow.sharing.pseudo.files import write_table
from hedgerow.sharing.pseudo.generate import (
    BLOCK,
    COUNTS,
    FOREST,
    METHODS,
    PGEN,
    Block,
    Model,
    PseudoRows,
    Recipe,
    joined,
    model_of,
    model_of_paths,
)
from hedgerow.sharing.pseudo.values import UNIFORM
from hedgerow.sharing.rules.rule_set import RuleSet

if TYPE_CHECKING:
    import pandas

AUTO = "auto"
Shared = Release | RuleSet


class PseudoData:
    """Pseudo-rows: as whole columns, as blocks that need little memory, or as a file.

    columns, target    declared values, one array for each attribute, and the classes
    X, y               the same as one array of objects, and the classes
    frame()            a pandas data frame, the target last
    blocks()           codes, block by block
    save(path)         CSV or Parquet, with `<path>.certificate.json` beside it
    certificate        what may be said about their privacy
    """

    def __init__(self, made: PseudoRows, releases: list[Shared]) -> None:
        self._made, self._releases = made, releases

    def __len__(self) -> int:
        return self._made.rows

    def __repr__(self) -> str:
        return f"PseudoData({len(self):,} rows, {self.method}, seed {self.seed})"

    @property
    def schema(self) -> Schema:
        """Of the made rows: they are nobody's, so it names no column of persons."""
        return replace(self._made.codebook.schema, person=None, rows_per_person=None)

    @property
    def method(self) -> str:
        return self._made.recipe.method

    @property
    def seed(self) -> int:
        return int(self._made.recipe.seed)

    @cached_property
    def certificate(self) -> PseudoCertificate:
        """Where a release is anonymous, the diversity of the rows is measured, too: they are all made for it."""
        if not self._anonymous:
            return certificate_for(self._releases, self._made)
        found = self._diversity()
        for block in self.blocks():
            found.add(block)
        return self._certified(found)

    @property
    def _anonymous(self) -> bool:
        return any(str(release.certificate.guarantee) == ANONYMITY for release in self._releases)

    def _diversity(self) -> Diversity:
        return Diversity(self._made.codebook.n_classes)

    def _certified(self, found: Diversity | None) -> PseudoCertificate:
        certificate = certificate_for(self._releases, self._made)
        return certificate if found is None else msgspec.structs.replace(certificate, diversity=found.measured())

    # ------------------------------------------------------------ rows

    def blocks(self, at_once: int = BLOCK, n_jobs: int = 1) -> Iterator[Block]:
        """Codes, numbers and class codes, `at_once` rows at a time. The same rows whatever the size of a block."""
        return self._made.blocks(at_once, n_jobs)

    def decoded(self, block: Block) -> dict[str, NDArray[Any]]:
        """The declared values of a block's attributes. A missing value is None, or NaN in a numeric column."""
        return {
            entry.name: values_array(values_by_code(entry))[block.codes[:, j]] if isinstance(entry, Categorical) else block.numbers[j]
            for j, entry in enumerate(self.schema.attributes)
        }

    @cached_property
    def _all(self) -> Block:
        return joined(list(self.blocks()) or [self._made.no_rows()])

    @property
    def codes(self) -> NDArray[Any]:
        """All rows as codes, as `Codebook.encode` gives them."""
        return self._all.codes

    @property
    def class_codes(self) -> NDArray[np.uint16]:
        return self._all.classes

    @cached_property
    def columns(self) -> dict[str, NDArray[Any]]:
        return self.decoded(self._all)

    @cached_property
    def target(self) -> NDArray[Any]:
        return np.asarray(values_array(list(self.schema.target.classes))[self.class_codes])

    @property
    def X(self) -> NDArray[Any]:
        table = np.empty((len(self), len(self.columns)), dtype=object)
        for place, values in enumerate(self.columns.values()):
            table[:, place] = values
        return table

    @property
    def y(self) -> NDArray[Any]:
        return self.target

    def frame(self) -> pandas.DataFrame:
        try:
            import pandas
        except ImportError as error:
            raise ImportError(
                "PseudoData.frame needs pandas. Install it (`pip install 'hedgerow[pandas]'`), or use .columns, .X and .y."
            ) from error
        return pandas.DataFrame({**self.columns, self.schema.target.name: self.target})

    # ------------------------------------------------------------ files

    def save(self, path: str | Path, n_jobs: int = 1, progress: Callable[[float], None] | None = None) -> PseudoCertificate:
        """Write .csv, .csv.gz or .parquet and the certificate beside it, block by block. Existing files are replaced."""
        found = self._diversity() if self._anonymous else None
        done = 0

        def wrote(rows: int) -> None:
            nonlocal done
            done += rows
            if progress is not None:
                progress(done / len(self))

        def measured() -> Iterator[Block]:
            for block in self.blocks(n_jobs=n_jobs):
                if found is not None:
                    found.add(block)
                yield block

        return write_table(Path(path), self.schema, measured(), lambda: self._certified(found), wrote)


def pseudo_data(
    releases: Shared | Iterable[Shared],
    rows: int | None = None,
    *,
    method: str = AUTO,
    numeric: str = UNIFORM,
    classes: str = COUNTS,
    seed: int | None = None,
    every_tree: bool = False,
) -> PseudoData:
    """Pseudo-data from one release, or from those of several owners, whose rows are added. Post-processing: it costs no ε.

    releases:   forests, trees (`Release`) and rule sets (`RuleSet`), in any mixture
    rows:       how many; None: as many as the releases (noisily) speak of
    method:     "pgen", "basegen", "forest" (see `generate.py`); "auto": pgen for rule sets and single trees with exact counts, else forest
    numeric:    a number that a path asks about, from its interval: "uniform", "middle", "low", "high" or "normal"
    classes:    pgen: by the released class "counts", or by "hits": the misses spread evenly over the other classes, as in the paper
    seed:       fixes the rows; None draws one, which the certificate names
    every_tree: the rows of each tree in full, instead of divided among the trees
    """
    given: list[Shared] = _listed(releases)
    _check_alike(given)
    if method == AUTO:
        method = PGEN if all(map(_tells_exact_paths, given)) else FOREST
    elif method not in METHODS:
        raise PlanError(f"method: got {method!r}; expected one of {', '.join((AUTO, *METHODS))}.")
    seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
    recipe = Recipe(method, rows, numeric, classes, seed, every_tree)
    return PseudoData(PseudoRows([_model(release, method) for release in given], recipe), given)


def _listed(releases: Any) -> list[Shared]:
    expected = "expected a Release or a RuleSet, or several. Of paths alone: RuleSet(paths)."
    if isinstance(releases, (Release, RuleSet)):
        return [releases]
    if not isinstance(releases, Iterable):
        raise PlanError(f"releases: got {type(releases).__name__}; {expected}")
    given = list(releases)
    strange = [type(release).__name__ for release in given if not isinstance(release, (Release, RuleSet))]
    if strange or not given:
        raise PlanError(f"releases: got {strange[0] if strange else 'nothing'}; {expected}")
    return given


def _tells_exact_paths(release: Shared) -> bool:
    return isinstance(release, RuleSet) or (len(release.forest.trees) == 1 and not release.forest.noisy)


def _model(release: Shared, method: str) -> Model:
    """Noise in small leaves hurts where it decides the classes: pgen then uses the nodes that the release itself predicts with."""
    if isinstance(release, RuleSet):
        return model_of_paths(release.paths, release.vote)
    pruned = method == PGEN and release.forest.noisy
    vote = vote_named(release.vote, release.forest, release.noise_rule) if method != PGEN else None
    return model_of(release.forest, vote, release.removed if pruned else None)


def _check_alike(releases: list[Shared]) -> None:
    for number, release in enumerate(releases[1:], 2):
        if not same_meaning(releases[0].schema, release.schema):
            raise PlanError(
                f"release {number} has other columns, values, bounds or classes than the first: their rows do not fit into one table. "
                "Make pseudo-data of each by itself."
            )
    if len({release.content_hash for release in releases}) < len(releases):
        raise PlanError("releases: the same one is there twice; its rows would be counted twice. Leave one out.")
