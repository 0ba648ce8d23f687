"""The launcher, run for real on a copy of the repository whose locked requirements are empty.

An empty list makes the environment without a network; everything else is what a user meets. The first environment is made
as a user's is; where one is made again, a Python is found that copies the first.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_PROGRAM = """
import json, os, sys
print(json.dumps({"arguments": sys.argv[1:], "python": sys.executable, "flags": [sys.flags.no_site, sys.flags.safe_path]}))
sys.exit(int(os.environ.get("STAND_IN_EXIT", "0")))
"""
# Python needs seconds to make an environment, most of them for pip.
_COPYING_PYTHON = """#!/bin/sh
case "$*" in
    "-I -S -c "*) {python} "$@" | while read -r state version key _; do echo "$state $version $key $0"; done ;;
    "-I -m venv "*) exec cp -R -- {environment} "$4" ;;
    *) exec {python} "$@" ;;
esac
"""
_UNINSTALLABLE = f"no-such-package==1 --hash=sha256:{'0' * 64}\n"


# A Python of this machine without its shims, so that the tests do not depend on a version manager.
_PYTHON = os.path.realpath(getattr(sys, "_base_executable", sys.executable))


@dataclass(frozen=True)
class Checkout:
    """A copy of the repository's launcher with a stand-in for the program, and a cache of its own."""

    root: Path
    cache: Path
    # Of the environment that it is started in, beside what every checkout is.
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def requirements(self) -> Path:
        return self.root / "requirements/runtime.txt"

    @property
    def environments(self) -> list[Path]:
        return sorted(path for path in (self.cache / "environments").glob("runtime-*") if path.is_dir())

    def with_python(self, finds: Mapping[str, str]) -> Checkout:
        """The same, started where the launcher finds that Python."""
        return replace(self, more=finds)

    def take_environment_of(self, other: Checkout) -> Path:
        """Copy a finished environment instead of making one, which takes seconds."""
        (finished,) = other.environments
        copied = self.cache / finished.relative_to(other.cache)
        _copy_environment(finished, copied)
        return copied

    def environment(self, **extra: str) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        return {
            **kept,
            "BEDPLATE_PYTHON": _PYTHON,
            "BEDPLATE_CACHE": str(self.cache),
            "PIP_NO_INDEX": "1",
            **self.more,
            **extra,
        }

    def start(
        self, *arguments: str, cwd: Path | None = None, **extra: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.root / "bedplate"), *arguments],
            env=self.environment(**extra),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )


def _copy(repository: Path, folder: Path) -> Checkout:
    root = folder / "a check'out"  # a blank and a quote: nothing may be split or evaluated
    (root / "requirements").mkdir(parents=True)
    (root / "src/bedplate").mkdir(parents=True)
    shutil.copy2(repository / "bedplate", root / "bedplate")
    shutil.copy2(repository / "requirements/environment.sh", root / "requirements/environment.sh")
    (root / "requirements/runtime.txt").write_text("# nothing\n", encoding="utf-8")
    (root / "src/bedplate/__init__.py").write_text("", encoding="utf-8")
    (root / "src/bedplate/__main__.py").write_text(_PROGRAM, encoding="utf-8")
    return Checkout(root, folder / "a cache")


def _copy_environment(made: Path, target: Path) -> None:
    """With its own Python and files; pip, a thousand more, is in the one that was made, and nothing else is installed."""
    shutil.copytree(made, target, symlinks=True, ignore=shutil.ignore_patterns("lib"))
    (target / "lib").symlink_to(made / "lib")


@pytest.fixture
def checkout(repository: Path, tmp_path: Path) -> Checkout:
    return _copy(repository, tmp_path)


@pytest.fixture(scope="module")
def started(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    """A checkout whose environment is made; its tests change nothing."""
    checkout = _copy(repository, tmp_path_factory.mktemp("launcher"))
    first = checkout.start()
    assert first.returncode == 0, first.stderr
    assert "making the Python environment" in first.stderr
    yield checkout
    assert len(checkout.environments) == 1


@pytest.fixture(scope="module")
def copying(started: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """What makes the launcher find a Python that copies an environment where it is asked to make one."""
    place = tmp_path_factory.mktemp("copying python")
    (made,) = started.environments
    _copy_environment(made, place / "environment")
    for name in ("complete", "requirements.txt", "used-by"):
        (place / "environment" / name).unlink()
    words = {"python": shlex.quote(_PYTHON), "environment": shlex.quote(str(place / "environment"))}
    (place / "python3").write_text(_COPYING_PYTHON.format(**words))
    (place / "python3").chmod(0o755)
    return {"BEDPLATE_PYTHON": "", "PATH": f"{place}:{os.environ['PATH']}"}


def test_later_starts_make_nothing(started: Checkout) -> None:
    again = started.start("--help")
    assert again.stderr == ""
    assert str(started.environments[0]) in again.stdout


def test_passes_arguments_and_exit_status_unchanged(started: Checkout) -> None:
    ended = started.start("a b", "", "*", "$HOME", "it's", "two\nlines", "--yes", STAND_IN_EXIT="130")
    assert '["a b", "", "*", "$HOME", "it\'s", "two\\nlines", "--yes"]' in ended.stdout
    assert ended.returncode == 130


def test_starts_through_a_link_and_from_its_own_folder(started: Checkout, tmp_path: Path) -> None:
    link = tmp_path / "bedplate"
    link.symlink_to(started.root / "bedplate")
    for argv in ([str(link)], ["./bedplate"], ["sh", "bedplate"]):
        ended = subprocess.run(
            argv,
            cwd=started.root,
            env=started.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (ended.returncode, ended.stderr) == (0, "")


def test_code_in_the_current_directory_is_never_run(started: Checkout, tmp_path: Path) -> None:
    for name in ("json.py", "bedplate.py", "sitecustomize.py"):
        (tmp_path / name).write_text("raise SystemExit(99)\n", encoding="utf-8")
    assert started.start(cwd=tmp_path).returncode == 0
    assert started.start("run-visit", cwd=tmp_path).returncode == 0
    assert started.start(PYTHONPATH=str(tmp_path)).returncode == 0


def test_run_visit_starts_without_site_packages(started: Checkout) -> None:
    assert '"flags": [1, true]' in started.start("run-visit").stdout
    assert '"flags": [0, true]' in started.start("status").stdout


def test_run_visit_needs_no_environment(checkout: Checkout) -> None:
    checkout.requirements.write_text(_UNINSTALLABLE, encoding="utf-8")
    visit = checkout.start("run-visit", "request.json")
    assert (visit.returncode, visit.stderr) == (0, "")
    assert '["run-visit", "request.json"]' in visit.stdout
    assert not checkout.cache.exists()


def test_a_shell_that_completes_a_line_makes_no_environment(checkout: Checkout, started: Checkout) -> None:
    asked = checkout.start(_BEDPLATE_COMPLETE="bash_complete")
    assert (asked.returncode, asked.stdout, asked.stderr) == (0, "", "")
    assert not checkout.cache.exists()
    assert '"arguments": []' in started.start(_BEDPLATE_COMPLETE="bash_complete").stdout


def test_changed_requirements_are_noticed(
    checkout: Checkout, started: Checkout, copying: Mapping[str, str]
) -> None:
    checkout.take_environment_of(started)
    checkout.requirements.write_text("# nothing else\n", encoding="utf-8")
    assert "making the Python environment" in checkout.with_python(copying).start().stderr
    assert len(checkout.environments) == 2
    assert checkout.with_python(copying).start().stderr == ""
    assert checkout.start().stderr == ""


def test_an_environment_whose_python_is_gone_is_made_anew(
    checkout: Checkout, started: Checkout, copying: Mapping[str, str]
) -> None:
    made = checkout.take_environment_of(started)
    (made / "bin/python").unlink()
    (made / "bin/python").symlink_to("/nonexistent/python3")
    ended = checkout.with_python(copying).start()
    assert ended.returncode == 0
    assert "making the Python environment" in ended.stderr
    assert checkout.environments == [made]


def test_starts_at_once_make_an_interrupted_environment_anew_and_once(
    checkout: Checkout, started: Checkout, copying: Mapping[str, str]
) -> None:
    made = checkout.take_environment_of(started)
    (made / "complete").unlink()
    (made / "left-behind").touch()
    starts = [
        subprocess.Popen(
            [str(checkout.root / "bedplate")],
            env=checkout.with_python(copying).environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    errors = [start.communicate(timeout=120)[1] for start in starts]
    assert [start.returncode for start in starts] == [0, 0, 0]
    assert "".join(errors).count("making the Python environment") == 1
    assert checkout.environments == [made]
    assert (made / "complete").exists()
    assert not (made / "left-behind").exists()


def test_a_failing_pip_names_the_ways_out_and_leaves_nothing_complete(
    checkout: Checkout, copying: Mapping[str, str]
) -> None:
    checkout.requirements.write_text(_UNINSTALLABLE, encoding="utf-8")
    failed = checkout.with_python(copying).start("--help")
    assert failed.returncode == 3
    assert failed.stdout == ""
    assert "no-such-package" in failed.stderr
    assert "pip download --require-hashes" in failed.stderr
    assert "BEDPLATE_CACHE" in failed.stderr
    assert not list(checkout.cache.rglob("complete"))


def test_a_requirement_without_a_hash_is_refused(checkout: Checkout, copying: Mapping[str, str]) -> None:
    checkout.requirements.write_text("no-such-package==1\n", encoding="utf-8")
    failed = checkout.with_python(copying).start()
    assert failed.returncode == 3
    assert "hash" in failed.stderr.lower()


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ("old 3.9.2 - /usr/bin/python3.9", "is Python 3.9.2; 3.11 or newer is needed"),
        ("no-venv 3.12.3 x /usr/bin/python3.12", "is Python 3.12.3 without its venv and ensurepip modules"),
        ("", "is not a Python that starts"),
    ],
)
def test_an_override_that_will_not_do_is_explained(checkout: Checkout, answer: str, sentence: str) -> None:
    python = checkout.root / "python"
    python.write_text(f"#!/bin/sh\n[ -n '{answer}' ] || exit 127\necho '{answer}'\n", encoding="utf-8")
    python.chmod(0o755)
    refused = checkout.start(BEDPLATE_PYTHON=str(python))
    assert refused.returncode == 3
    assert re.search(re.escape(sentence), refused.stderr)
    assert "BEDPLATE_PYTHON" in refused.stderr
    assert not checkout.cache.exists()


def test_a_cache_that_cannot_be_made_is_explained(checkout: Checkout) -> None:
    checkout.cache.touch()
    refused = checkout.start()
    assert refused.returncode == 3
    assert f"cannot write to {checkout.cache}/environments; set BEDPLATE_CACHE" in refused.stderr


def test_an_environment_knows_the_checkouts_that_use_it_each_once(
    repository: Path, started: Checkout, tmp_path: Path
) -> None:
    other = _copy(repository, tmp_path / "another")
    shared = Checkout(other.root, started.cache)
    for checkout in (started, shared, started, shared):
        assert checkout.start().stderr == ""
    noted = (started.environments[0] / "used-by").read_text().splitlines()
    assert noted == [str(started.requirements), str(shared.requirements)]


def test_an_environment_that_is_read_only_is_used_all_the_same(checkout: Checkout, started: Checkout) -> None:
    environment = checkout.take_environment_of(started)
    (environment / "used-by").unlink()
    (environment / "used-by").mkdir()
    ended = checkout.start()
    assert ended.returncode == 0
    assert '"arguments": []' in ended.stdout


def test_the_cache_of_a_user_without_home_is_where_the_file_of_users_has_it(
    repository: Path, tmp_path: Path
) -> None:
    # As in a job of Slurm 24, whose environment has nothing but Slurm's own.
    script = tmp_path / "script"
    script.write_text(
        f""". {shlex.quote(str(repository / "requirements/environment.sh"))}
id() {{ echo 12345; }}
getent() {{ [ "$2" != 12345 ] || echo "$USER_LINE"; }}
locate_environments
echo "$environments"
""",
        encoding="utf-8",
    )

    def located(line: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": os.environ["PATH"], "USER_LINE": line}
        return subprocess.run(
            ["sh", str(script)], env=environment, capture_output=True, text=True, check=False, timeout=60
        )

    assert located("x:x:12345:1::/people/x:/bin/sh").stdout == "/people/x/.cache/bedplate/environments\n"
    unknown = located("")
    assert unknown.returncode != 0
    assert "set HOME, or BEDPLATE_CACHE" in unknown.stderr
