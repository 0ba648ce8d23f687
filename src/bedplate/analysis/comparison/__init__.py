"""Which cells may be held against each other, and what comes of it: ratios, intervals, verdicts."""
