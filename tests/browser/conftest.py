"""One Chromium for all tests, and none of a module's pages open in the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import sync_playwright
from tests.browser.opened_page import ARGUMENTS, close_all

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def started(chromium: Path) -> Iterator[Browser]:
    """It takes two seconds of CPU to start one."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(chromium), args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def browser(started: Browser) -> Iterator[Browser]:
    yield started
    close_all(started)
