"""Where bedplate finds what comes with it: beside a checkout's package, or in an installed one."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from bedplate import installation

ASKED = "from bedplate.installation import COMMAND, launcher, shipped; print(COMMAND, launcher(), shipped('plans'), sep='\\n')"


def installed_at(folder: Path) -> list[str]:
    python = [sys.executable, "-P", "-s", "-c", ASKED]
    done = subprocess.run(
        python, capture_output=True, check=True, text=True, env={"PYTHONPATH": str(folder)}, cwd="/"
    )
    return done.stdout.splitlines()


def test_a_checkout_has_them_beside_its_sources(repository: Path) -> None:
    assert not installation.IS_INSTALLED
    assert (repository / "src", repository) == (installation.sources(), installation.top())
    assert repository / "bedplate" == installation.launcher()
    for folder in ("plans", "claims", "drivers"):
        assert repository / folder == installation.shipped(folder)
        assert any(installation.shipped(folder).iterdir())
    assert "./bedplate" == installation.COMMAND


def test_an_installed_package_has_them_within(tmp_path: Path, repository: Path) -> None:
    package = tmp_path / "src" / "bedplate"
    (package / "shipped" / "plans").mkdir(parents=True)
    for name in ("__init__.py", "installation.py"):
        shutil.copy(repository / "src" / "bedplate" / name, package)
    plans = str(package / "shipped" / "plans")
    assert ["bedplate", str(Path(sys.prefix) / "bin" / "bedplate"), plans] == installed_at(tmp_path / "src")
    (tmp_path / "bedplate").touch()
    assert ["bedplate", str(tmp_path / "bedplate"), plans] == installed_at(tmp_path / "src")


def test_the_program_of_a_wheel_runs_the_job_of_a_cluster_without_libraries(
    repository: Path, tmp_path: Path
) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, _, function = project["scripts"]["bedplate"].partition(":")
    program = f"import sys; sys.argv[0] = 'bedplate'; from {module} import {function}; sys.exit({function}())"
    for words, reason in (
        (("run-visits-of-job", tmp_path), f"{tmp_path}/job.json cannot be read"),
        (("run-visit-on-node", tmp_path / "not-there"), "No such file or directory"),
        (("run-visit", tmp_path / "not-there", tmp_path), f"{tmp_path}/not-there cannot be read"),
    ):
        done = subprocess.run(
            [sys.executable, "-S", "-P", "-c", program, *words],
            env={"PYTHONPATH": str(repository / "src")},
            capture_output=True,
            check=False,
            text=True,
        )
        assert done.returncode
        assert reason in done.stderr, words
