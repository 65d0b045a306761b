"""Models that anybody may learn from public rows, pseudo-data above all (Sharkey et al. 2008, section 4). Nothing here is private."""
