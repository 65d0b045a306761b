"""Attack our own guarantee: train many times on neighbouring tables, and bound from below the ε that the outputs give away.

    from hedgerow.audit import audit, pairs_for
    audit(train, pairs_for(schema), epsilon=1, runs=5000)      train: any function from a table to an output

Or replay one run on the other table with the same answers, and compare every query: no statistics.

    from hedgerow.audit import random_pairs, replay
    replay(train, [*pairs_for(schema), *random_pairs(schema, 20)], epsilon=1)      train: looks at rows through `PrivateTable`
"""

from hedgerow.audit.attack import Audit, Finding, audit
from hedgerow.audit.neighbours import Pair, Table, pairs_for
from hedgerow.audit.random_neighbours import random_pairs
from hedgerow.audit.replaying import Compared, Replay, replay

__all__ = ["Audit", "Compared", "Finding", "Pair", "Replay", "Table", "audit", "pairs_for", "random_pairs", "replay"]
