"""Hedgerow, the papers' forests and the peers side by side: same folds, same public bounds, same ε. See docs/PEERS.md."""
