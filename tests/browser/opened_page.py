"""A page of the report in a real Chromium, without a network, and everything that it complains about."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from playwright.sync_api import expect

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
_TIME_LIMIT_MS = 60_000


@dataclass
class Opened:
    """A page and everything it complained about or asked for."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@contextmanager
def opened(browser: Browser, path: Path, *, width: int = 1280, dark: bool = False) -> Iterator[Opened]:
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", offline=True
    )
    found = Opened(context.new_page())
    page = found.page
    page.set_default_timeout(_TIME_LIMIT_MS)
    page.on(
        "console",
        lambda said: found.complaints.append(said.text) if said.type in ("error", "warning") else None,
    )
    page.on("pageerror", lambda error: found.complaints.append(str(error)))
    page.on("request", lambda request: found.requests.append(request.url))
    page.on("dialog", lambda dialog: found.complaints.append(f"dialog: {dialog.message}"))
    page.goto(path.as_uri())
    expect(page.locator("html")).to_have_attribute("data-ready", "yes", timeout=_TIME_LIMIT_MS)
    yield found
    context.close()
