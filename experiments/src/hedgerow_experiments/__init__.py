"""The papers' experiments and the peers beside us: run, store as they come, report from what is stored. See docs/REPRODUCTION.md."""
