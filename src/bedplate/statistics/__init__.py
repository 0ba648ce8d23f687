"""Summaries, intervals, verdicts, effects, claims: numbers in, numbers out.

Here: each method with its source, and what it was simulated to do (docs/METHOD.md).
Not here: cells, studies, sentences about them; no file is read.
May import: `model`; numpy, scipy.
Must not import: `figures`, `study`, `plan`, `analysis`, `workloads`; subprocess.
"""
