"""Packages: two builds are equal byte for byte, and what each one holds starts and finds its own files."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from distribution.requirements import DEPENDS, RECOMMENDS
from tests.support.studies.synthetic_study import Recipe, write_study

from bedplate import __version__
from bedplate.campaign.planning import own_plans, planned_study
from bedplate.campaign.preparation import requirements_of

pytestmark = [pytest.mark.host, pytest.mark.second_lane]

WHEEL = f"bedplate-{__version__}-py3-none-any.whl"
DEBIAN = f"bedplate_{__version__}-1_all.deb"
BILL = f"bedplate-{__version__}.cdx.json"


def build(repository: Path, into: Path, *kinds: str) -> dict[str, str]:
    done = subprocess.run(
        [repository / "package", *kinds, "--with-changes", "--into", into],
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in into.iterdir()}


@pytest.fixture(scope="module")
def built(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    into: Path = tmp_path_factory.mktemp("packages")
    build(repository, into, "wheel", "deb", "materials")
    return into


# Of every ready plan: what it names lies where it says.
READ_PLANS = """
from bedplate.campaign.planning import own_plans, read_plan
print(*(read_plan(path).plan.title for path in sorted(own_plans().glob("*.toml"))), sep="\\n")
"""


def read_plans(path: Path, sources: Path) -> int:
    """How many ready plans an installed bedplate has, after it has read each."""
    told = say(
        sys.executable, "-P", "-s", "-c", READ_PLANS, path=path, environment={"PYTHONPATH": str(sources)}
    )
    return len(told.splitlines())


def say(*words: str | Path, path: Path, environment: dict[str, str] | None = None) -> str:
    """What an installed bedplate prints; the caller's own one cannot be found by it."""
    there = {"PATH": os.environ["PATH"], "HOME": str(path), "LC_ALL": "C.UTF-8", **(environment or {})}
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, check=False, env=there, cwd=path
    )
    assert 0 == done.returncode, done.stderr
    return done.stdout


def test_two_builds_are_equal_byte_for_byte(repository: Path, built: Path, tmp_path: Path) -> None:
    before = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in built.iterdir()}
    assert {WHEEL, DEBIAN, BILL} == set(before)
    assert before == build(repository, tmp_path, "wheel", "deb", "materials")


def test_an_unknown_kind_is_a_sentence(repository: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [repository / "package", "msi", "--into", tmp_path], capture_output=True, text=True, check=False
    )
    assert 2 == done.returncode
    assert "there is no msi; there are wheel, deb" in done.stderr
    assert [] == list(tmp_path.iterdir())


def test_a_wheel_starts_with_its_own_plans_claims_and_drivers(built: Path, tmp_path: Path) -> None:
    # Unlike an unpacked archive it has the rights of its files.
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps")
    say(*pip, "--target", tmp_path / "site", built / WHEEL, path=tmp_path)
    python = [sys.executable, "-P", "-s", "-m", "bedplate"]
    paths = {"PYTHONPATH": str(tmp_path / "site")}
    assert f"bedplate {__version__}\n" == say(*python, "--version", path=tmp_path, environment=paths)
    planned = json.loads(say(*python, "plan", "quick", "--json", path=tmp_path, environment=paths))
    assert 4 == len(planned["cells"])
    shipped = tmp_path / "site" / "bedplate" / "shipped"
    names = {folder.name: {each.name for each in folder.iterdir()} for folder in shipped.iterdir()}
    assert {"plans", "claims", "drivers", "examples"} == set(names)
    assert {"quick.toml", "vondra-2011.toml", "power_cut_recorder.c"} <= set().union(*names.values())
    assert read_plans(tmp_path, tmp_path / "site") == len(list((shipped / "plans").glob("*.toml")))
    # A message says the command as it is typed there.
    asked = "from bedplate.installation import COMMAND, launcher; print(COMMAND, launcher())"
    told = say(sys.executable, "-P", "-s", "-c", asked, path=tmp_path, environment=paths)
    assert f"bedplate {Path(sys.prefix) / 'bin' / 'bedplate'}\n" == told


def test_a_wheel_in_a_fresh_environment_reads_studies_and_has_every_command(
    built: Path, tmp_path: Path
) -> None:
    bin_folder = tmp_path / "environment" / "bin"
    venv.create(bin_folder.parent, with_pip=True)
    python = bin_folder / "python"
    quiet = ("--quiet", "--disable-pip-version-check", "--no-index", "--no-deps")
    say(python, "-m", "pip", "install", *quiet, built / WHEEL, path=tmp_path)
    # The packages that the wheel asks for are those of this Python, and have its versions (requirements/).
    (site,) = bin_folder.parent.glob("lib/python3*/site-packages")
    (site / "packages.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    write_study(tmp_path / "my-study", Recipe(repetitions=1, course_s=2))
    program = bin_folder / "bedplate"
    assert "ext4" in say(program, "show", "my-study", path=tmp_path)
    said = say(program, "report", "my-study", "-o", "page.html", path=tmp_path)
    assert "page.html" in said
    assert "<html" in (tmp_path / "page.html").read_text(encoding="utf-8")
    lines = "import bedplate; print(bedplate.__file__, bedplate.read_study('my-study').runs.height)"
    place, height = say(python, "-P", "-c", lines, path=tmp_path).split()
    assert (True, True) == (Path(place).is_relative_to(site), int(height) > 0)
    assert "--points N" in say(program, "power-cut", "try", "--help", path=tmp_path)
    # Begins at once, so what it is asked of here is no engine.
    (tmp_path / "no-engine").mkdir()
    done = subprocess.run(
        [program, "power-cut", "try", tmp_path / "no-engine", "--on", "ext4"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
    )
    assert (2, True) == (done.returncode, "no-engine/engine.toml cannot be read" in done.stderr), done.stderr


def test_a_wheel_asks_for_the_locked_versions(repository: Path, built: Path) -> None:
    with zipfile.ZipFile(built / WHEEL) as wheel:
        metadata = wheel.read(f"bedplate-{__version__}.dist-info/METADATA").decode()
    asked = {line.partition(": ")[2] for line in metadata.splitlines() if line.startswith("Requires-Dist:")}
    locked = (repository / "requirements" / "runtime.txt").read_text()
    assert asked == {
        line.removesuffix(" \\").replace(" ; ", "; ") for line in locked.splitlines() if "==" in line
    }


def test_debians_package_starts_and_is_complete(built: Path, tmp_path: Path) -> None:
    subprocess.run(["dpkg-deb", "--extract", built / DEBIAN, tmp_path], check=True)
    program = tmp_path / "usr/bin/bedplate"
    here = {name: value for name, value in os.environ.items() if name.startswith(("BEDPLATE_", "PIP_"))}
    assert f"bedplate {__version__}\n" == say(program, "--version", path=tmp_path, environment=here)
    planned = json.loads(say(program, "plan", "quick", "--json", path=tmp_path, environment=here))
    assert 4 == len(planned["cells"])
    assert read_plans(tmp_path, tmp_path / "usr/share/bedplate/src") == len(list(own_plans().glob("*.toml")))
    listed = subprocess.run(
        ["dpkg-deb", "--fsys-tarfile", built / DEBIAN], capture_output=True, check=True
    ).stdout
    (tmp_path / "files.tar").write_bytes(listed)
    with tarfile.open(tmp_path / "files.tar") as files:
        members = {member.name: member for member in files}
    assert {0} == {member.uid for member in members.values()}
    assert not any("__pycache__" in name for name in members)
    for place in ("man/man1/bedplate.1.gz", "bash-completion/completions/bedplate", "doc/bedplate/README.md"):
        assert f"./usr/share/{place}" in members
    assert shutil.which("man") is None or "BEDPLATE(1)" in say(
        "man", tmp_path / "usr/share/man/man1/bedplate.1.gz", path=tmp_path
    )


def test_the_bill_names_every_locked_package_with_its_hashes(repository: Path, built: Path) -> None:
    locked = {
        line.split("==")[0]
        for line in (repository / "requirements" / "runtime.txt").read_text().splitlines()
        if "==" in line
    }
    bill = json.loads((built / BILL).read_text())
    named = {each["name"] for each in bill["components"]}
    assert locked == named
    assert all(each["externalReferences"][0]["hashes"] for each in bill["components"])
    assert ("bedplate", __version__) == tuple(
        bill["metadata"]["component"][key] for key in ("name", "version")
    )


def test_what_ready_plans_need_of_a_distribution_is_in_the_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEDPLATE_CACHE", str(tmp_path))
    needed = set()
    for plan in sorted(own_plans().glob("*.toml")):
        found = planned_study(plan)
        needed |= {
            each.package for each in requirements_of(found.cells, found.workloads, executor=found.executor)
        }
    # Every Debian has the two, which some guests' packages are read with.
    assert needed - {"apt", "dpkg"} <= {*DEPENDS, *RECOMMENDS}
