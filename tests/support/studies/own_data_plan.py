"""The plan of a pgbench workload on somebody's own data: `lines` of the workload say whose, `engine` is a table before it."""

_PLAN = """
{engine}
[[filesystem]]
type = "ext4"
[[workload]]
type = "pgbench"
{lines}
[[workload.run]]
script = "mine.sql"
duration = "10 s"
"""


def own_data_plan(lines: str, engine: str = "") -> str:
    """Its text."""
    return _PLAN.format(lines=lines, engine=engine)
