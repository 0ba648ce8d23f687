"""From a TOML text to cells and a schedule.

Here: the tables of a plan, their errors all at once, what cannot exist and why, the order, estimates of time and space.
Not here: whether this machine can: no file is read but those that a plan names, and nothing is started.
May import: `model`; pydantic.
Must not import: `host`, `study`, `workloads`; subprocess.
"""
