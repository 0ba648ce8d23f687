"""A page of the report in a real Chromium, without a network, and everything that it complains about.

To open a page takes longer than most of what is tested on it. So a page stays open for the next test that asks for
the same one, which then gives back everything that was chosen on it; `fresh=True` opens another one.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

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
# Five seconds are too few beside other work, and what is there costs no wait.
expect.set_options(timeout=_TIME_LIMIT_MS)
# Gives back what a test chose, and says what that was not enough for.
_GIVE_BACK = """async () => {
  const { choice, onScreen } = bedplate;
  document.activeElement?.blur();
  document.querySelectorAll("details[open]").forEach((one) => { one.open = false; });
  choice.change(Object.fromEntries(Object.keys(choice.state).map((key) => [key, null])));
  history.replaceState(null, "", location.pathname);
  window.scrollTo({ top: 0, behavior: "instant" });
  await onScreen.drawn();
}"""


@dataclass
class Opened:
    """A page and everything it complained about or asked for."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


# Open pages by what was asked for.
_KEPT: WeakKeyDictionary[Browser, dict[tuple[Path, int, bool], Opened]] = WeakKeyDictionary()


@contextmanager
def opened(
    browser: Browser, path: Path, *, width: int = 1280, dark: bool = False, fresh: bool = False
) -> Iterator[Opened]:
    """The page of a file: one that is open already, or a new one."""
    kept = _KEPT.setdefault(browser, {})
    asked = (path, width, dark)
    known = None if fresh else kept.pop(asked, None)
    if known:
        known.page.mouse.move(0, 0)
        known.page.evaluate(_GIVE_BACK)
    found = known or _open(browser, path, width=width, dark=dark)
    loads = len(found.requests)
    yield found
    # Not reached by a test that failed: its page is left behind. So is one that a test has loaded anew.
    if fresh or len(found.requests) > loads or found.complaints:
        found.page.context.close()
        return
    kept[asked] = found


def close_all(browser: Browser) -> None:
    """Close what is open, kept or left behind by a test that failed."""
    _KEPT.pop(browser, None)
    for context in browser.contexts:
        context.close()


def _open(browser: Browser, path: Path, *, width: int, dark: bool) -> Opened:
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
    expect(page.locator("html")).to_have_attribute("data-ready", "yes")
    return found
