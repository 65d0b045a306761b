"""The algorithms that keep ε: how each plans, and how it grows through the queries of a private table."""
