"""Speed, memory and throughput beside peers: `python -m benchmarks` runs all and writes RESULTS.md and results.json."""
