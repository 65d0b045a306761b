"""The groups of persons that a tree speaks of. They are defined in `hedgerow.paths`, where post-processing can reach them, too."""

from hedgerow.paths import Paths as Paths
from hedgerow.paths import from_counts as from_counts
from hedgerow.paths import paths_left as paths_left
from hedgerow.paths import paths_of as paths_of
from hedgerow.paths import paths_with_hits as paths_with_hits
from hedgerow.paths import reach as reach
