"""What travels between an analyst's machine and a curator, as JSON: trees, candidates, models, prices; each checked when it is read."""
