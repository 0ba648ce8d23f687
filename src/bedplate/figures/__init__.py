"""Figures: what is made of the raw record of a run, on the host."""
