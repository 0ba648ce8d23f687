"""What each factor does to each figure, all else equal, and the sentences about it."""
