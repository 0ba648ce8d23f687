"""What a study of pairs says after each block: intervals that hold at every look, a condition, what follows, the answer."""
