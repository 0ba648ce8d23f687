"""Probes: counters read once a second beside a run."""
