"""Why a cut was bad, and a bundle that shows it to somebody else.

Here: the commands `power-cut blame` and `power-cut bundle`, and the script of a bundle.
Not here: replays (`workloads/power_cut/run`), whose fault it is (`model/power_cut_blame.py`).
May import: every room below `cli`.
Must not import: nothing is above it.
"""
