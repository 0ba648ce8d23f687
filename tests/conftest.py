"""Skips what this machine cannot run, saying why, and ends a session that ran out of time."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from types import FrameType

# A slow machine breaks no test. Each session draws other examples, so that fewer at a time are as many in the end.
settings.register_profile("bedplate", deadline=None, max_examples=50)
settings.load_profile("bedplate")

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def find_chromium() -> Path | None:
    found = next(filter(None, map(shutil.which, _BROWSERS)), None)
    return Path(found) if found else None


@dataclass(frozen=True)
class Office:
    """LibreOffice, and a Python that has its module `uno`."""

    program: str
    python: str


@cache
def find_office() -> Office | None:
    """LibreOffice of this machine; None where it or its Python is not there."""
    program = shutil.which("soffice")
    # The distribution's own Python has the module, not the environment that the tests run in.
    for python in ("/usr/bin/python3", "/usr/lib/libreoffice/program/python"):
        if program and os.access(python, os.X_OK):
            tried = subprocess.run([python, "-c", "import uno"], capture_output=True, check=False)
            if tried.returncode == 0:
                return Office(program, python)
    return None


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout that the tests belong to."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def chromium() -> Path:
    """The system's Chromium, for Playwright's `executable_path`."""
    found = find_chromium()
    assert found is not None, "mark the test `browser`: it is then skipped where no Chromium is"
    return found


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Host tests need root, browser tests a browser, office tests LibreOffice; a skip names what is missing."""
    if os.geteuid() != 0:
        needs_root = pytest.mark.skip(reason="needs root: it makes loop devices, mounts and starts servers")
        for item in items:
            if item.get_closest_marker("host"):
                item.add_marker(needs_root)
    if find_chromium() is None:
        needs_browser = pytest.mark.skip(reason=f"needs a browser: none of {', '.join(_BROWSERS)} is in PATH")
        for item in items:
            if item.get_closest_marker("browser"):
                item.add_marker(needs_browser)
    office = [item for item in items if item.get_closest_marker("office")]
    if office and find_office() is None:
        needs_office = pytest.mark.skip(reason="needs LibreOffice: soffice in PATH and a Python with its uno")
        for item in office:
            item.add_marker(needs_office)


def pytest_collection_finish() -> None:
    """What is imported and collected by now stays: the collector of garbage need not look through it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)


def pytest_unconfigure() -> None:
    """At the end it goes as everything does: libraries in C would complain of what they find still there."""
    gc.unfreeze()


def pytest_configure() -> None:
    """./check gives a deadline. At its end the session stops as if by hand: fixtures undo their mounts.

    A session that a shell runs in the background was told to ignore ^C. It stops in order too.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    deadline = os.environ.get("BEDPLATE_CHECK_DEADLINE")
    if deadline is None:
        return

    def stop(_signal: int, _frame: FrameType | None) -> None:
        pytest.exit("the time limit of ./check is over (--limit MINUTES raises it)", returncode=1)

    signal.signal(signal.SIGALRM, stop)
    # Zero would switch the timer off; a deadline that is over must still stop the session.
    signal.setitimer(signal.ITIMER_REAL, max(float(deadline) - time.time(), 0.001))
