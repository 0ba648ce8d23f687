"""One Chromium for all tests."""

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
def browser(chromium: Path) -> Iterator[Browser]:
    """It takes two seconds of CPU to start one."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(chromium), args=list(ARGUMENTS))
        yield browser
        close_all(browser)
        browser.close()
