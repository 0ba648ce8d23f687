"""A PostgreSQL that nobody here compiled lives through a visit: the distribution's packages, and a server that is installed."""

from __future__ import annotations

import json
import re

import pytest
from tests.support.studies.study_lab import Lab

from bedplate.engines.postgresql import ready_made
from bedplate.host.requirement import read_os_release
from bedplate.model.cell import PACKAGED, BuildLevels

pytestmark = pytest.mark.host

PLAN = """
repetitions = 1
scratch_device.image_size = "512 MB"
[[filesystem]]
type = "ext4"
[postgresql]
server = "{server}"
version = "{version}"
[postgresql.settings]
wal_compression = "lz4"
[canary]
enabled = false
[[workload]]
type = "pgbench"
scale = 1
[[workload.run]]
script = "read-write"
warmup = "0 s"
duration = "2 s"
"""


def lived(lab: Lab, levels: BuildLevels) -> tuple[str, dict[str, str]]:
    """What the server said of itself in a visit, and the levels of its cell."""
    plan = lab.base / "plan.toml"
    plan.write_text(PLAN.format(server=levels.server, version=levels.version), encoding="utf-8")
    lab.call("run", plan, "--study", lab.study, "--yes")
    (path,) = lab.study.glob("visits/*/*/*/visit.json")
    record = json.loads(path.read_text(encoding="utf-8"))
    assert "completed" == record["outcome"], record["reasons"]
    return record["versions"]["postgresql"], record["cell"]["build"]


def test_the_distributions_packages_live_through_a_visit(lab: Lab) -> None:
    version = ready_made.packaged_version(read_os_release())
    if version is None:
        pytest.skip("which PostgreSQL this distribution has is not known")
    said, build = lived(lab, BuildLevels(version=version, server=PACKAGED))
    assert re.match(rf"{version}\.\d+ \(\w+ .+\)", said), said
    assert (PACKAGED, version) == (build["server"], build["version"])


def test_an_installed_server_lives_through_a_visit(lab: Lab) -> None:
    installed = ready_made.installed_servers()
    if not installed:
        pytest.skip("no PostgreSQL is installed")
    version, place = installed[0]
    said, build = lived(lab, BuildLevels(version=version, server=str(place)))
    assert said.startswith(f"{version}.")
    assert str(place) == build["server"]
