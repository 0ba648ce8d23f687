"""Whole studies through the real command line on a machine whose kernel is a factor of the plan."""

from __future__ import annotations

import json
import os

import pytest
from tests.support.studies.study_lab import Lab

pytestmark = [pytest.mark.host, pytest.mark.third_lane]

RUNNING = os.uname().release
KERNELS = ("[canary]", f'[machine]\nkernel = {{ vary = ["99.9", "{RUNNING}"] }}\n[canary]')


def history(lab: Lab) -> list[str]:
    return [entry["what"] for entry in json.loads((lab.study / "study.json").read_text())["history"]]


def test_a_study_stops_where_another_kernel_is_needed_says_so_and_goes_on_after_the_boot(lab: Lab) -> None:
    plan = lab.plan(KERNELS)
    said = lab.run(plan, status=3)
    assert f"the next visit needs kernel 99.9, this is {RUNNING}" in said
    assert f"go on with: bedplate run {plan} --study {lab.study}" in said
    # Whichever came first in the random order: nothing was measured under a kernel that does not run.
    assert {RUNNING} >= {record.cell.kernel.release for record in lab.visits().values()}
    before = lab.visits()

    # As after a boot: the kernel changed, which is declared, and the machine did not.
    facts = lab.study / "study.json"
    facts.write_text(facts.read_text().replace(f'"kernel_release": "{RUNNING}"', '"kernel_release": "99.9"'))
    said = lab.run(plan, status=3)
    assert "going on with" in said
    assert f"went on under kernel {RUNNING}" in history(lab)
    assert before == lab.visits()
    assert [] == lab.left_behind()


def test_the_visits_of_the_running_kernel_are_measured_and_the_study_is_then_complete(lab: Lab) -> None:
    plan = lab.plan(("[canary]", f'[machine]\nkernel = "{RUNNING}"\n[canary]'))
    lab.run(plan)
    (record,) = lab.visits().values()
    assert RUNNING == record.cell.kernel.release == record.provenance["kernel"]
    assert "is complete" in lab.run(plan)


def test_a_kernel_that_is_no_factor_may_not_change(lab: Lab) -> None:
    plan = lab.plan()
    lab.run(plan)
    facts = lab.study / "study.json"
    facts.write_text(facts.read_text().replace(f'"kernel_release": "{RUNNING}"', '"kernel_release": "99.9"'))
    assert "begun under kernel 99.9" in lab.run(plan, status=2)


def test_a_study_keeps_the_executor_that_it_was_begun_with(lab: Lab) -> None:
    plan = lab.plan()
    lab.run(plan)
    said = lab.run(plan, "--executor", "qemu", status=2)
    assert "executor: was local, is qemu" in said
    assert "is complete" in lab.run(plan, "--executor", "local")
    # `auto` chose this machine; it stays with it, whatever it would choose by now.
    automatic = lab.plan(("seed = 3", 'seed = 3\nexecutor = "auto"'), name="auto.toml")
    study = lab.base / "auto"
    lab.call("run", automatic, "--study", study)
    assert "local" == json.loads((study / "study.json").read_text())["executor"]
    assert 'executor = "auto"' in (study / "plan.toml").read_text()
    assert "is complete" in lab.call("run", automatic, "--study", study)
    lab.call("run", study, "--repetitions", "2")
    assert "extended from 1 to 2 repetitions" in (study / "study.json").read_text()
