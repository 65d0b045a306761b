"""Peers that need an environment of their own."""
