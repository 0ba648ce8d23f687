"""What a study answers, in eight lines: what to take, how far ahead and how sure, what not, and what would tell more."""
