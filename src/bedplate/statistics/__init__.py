"""Statistics: summaries, intervals and verdicts; pure."""
