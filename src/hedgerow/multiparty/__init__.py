"""Several owners, one release: who they are, how they meet, and the secure sum of their counts."""
