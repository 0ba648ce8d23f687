"""A page of the report in a real Chromium, without a network, and everything that it complains about.

To open a page takes longer than most of what is tested on it, and most of that is to compile its script. Chromium keeps
what it compiled for one address, in one tab. So one tab shows all pages, each under the same address. It stays as it is
for the next test that asks for the same page, which then gives back everything that was chosen on it; `fresh=True`
loads it again. All parts of a page are unfolded, unless a test wants it `folded`, as a reader gets it.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from playwright.sync_api import expect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
_TIME_LIMIT_MS = 120_000.0
# Five seconds are too few beside other work, and what is there costs no wait.
expect.set_options(timeout=_TIME_LIMIT_MS)
# Gives back what a test chose, and says what that was not enough for.
_GIVE_BACK = """async () => {
  const { choice, onScreen } = bedplate;
  document.activeElement?.blur();
  document.querySelectorAll("details[open]:not(.part)").forEach((one) => { one.open = false; });
  choice.change(Object.fromEntries(Object.keys(choice.state).map((key) => [key, null])));
  history.replaceState(null, "", location.pathname);
  window.scrollTo(0, 0);
  await onScreen.drawn();
}"""

_UNFOLD = """async () => {
  document.querySelectorAll("details.part").forEach((one) => { one.open = true; });
  // The browser tells of it a moment later.
  const frame = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  await frame();
  await frame();
  await bedplate.onScreen.drawn();
}"""


def unfold(page: Page) -> None:
    """Every part of a page that was opened, or was loaded anew."""
    page.evaluate(_UNFOLD)


@dataclass
class Opened:
    """A page and everything it complained about or asked for."""

    page: Page
    uri: str
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


class _Tab:
    """One page after the other, under one address."""

    def __init__(self, browser: Browser) -> None:
        self._folder = TemporaryDirectory(prefix="bedplate-page-")
        self._file = Path(self._folder.name, "report.html")
        self._shown: tuple[Path, int, bool, bool] | None = None
        self._page = browser.new_context(offline=True).new_page()
        self._opened = Opened(self._page, self._file.as_uri())
        self._page.set_default_timeout(_TIME_LIMIT_MS)
        self._page.on(
            "console", lambda said: self._hear(said.text) if said.type in ("error", "warning") else None
        )
        self._page.on("pageerror", lambda error: self._hear(str(error)))
        self._page.on("request", lambda request: self._opened.requests.append(request.url))
        self._page.on("dialog", lambda dialog: self._hear(f"dialog: {dialog.message}"))

    def show(self, path: Path, *, width: int, dark: bool, fresh: bool, folded: bool) -> Opened:
        asked = (path, width, dark, folded)
        if asked == self._shown and not fresh:
            self._page.mouse.move(0, 0)
            self._page.evaluate(_GIVE_BACK)
            return self._opened
        self._page.set_viewport_size({"width": width, "height": 900})
        self._page.emulate_media(media="null", color_scheme="dark" if dark else "light")
        copyfile(path, self._file)
        # Not before: what the former page says of its new size is none of this one's.
        self._opened = Opened(self._page, self._file.as_uri())
        self._page.goto(self._opened.uri)
        expect(self._page.locator("html")).to_have_attribute("data-ready", "yes")
        if not folded:
            unfold(self._page)
        self._shown = asked
        return self._opened

    def forget(self) -> None:
        """The next test gets its page anew."""
        self._shown = None

    def close(self) -> None:
        self._page.context.close()
        self._folder.cleanup()

    def _hear(self, complaint: str) -> None:
        self._opened.complaints.append(complaint)


# Tabs that no test uses now: one, unless a test had two pages open at once.
_IDLE: WeakKeyDictionary[Browser, list[_Tab]] = WeakKeyDictionary()


@contextmanager
def opened(
    browser: Browser,
    path: Path,
    *,
    width: int = 1280,
    dark: bool = False,
    fresh: bool = False,
    folded: bool = False,
) -> Iterator[Opened]:
    """The page of a file, as it is when it is opened."""
    idle = _IDLE.setdefault(browser, [])
    tab = idle.pop() if idle else _Tab(browser)
    try:
        found = tab.show(path, width=width, dark=dark, fresh=fresh, folded=folded)
        loads = len(found.requests)
        yield found
    except BaseException:
        tab.close()
        raise
    # A page that a test has loaded anew, or that complained, is not shown to the next one.
    if fresh or len(found.requests) > loads or found.complaints:
        tab.forget()
    idle.append(tab)


def close_all(browser: Browser) -> None:
    """Close every tab."""
    for tab in _IDLE.pop(browser, []):
        tab.close()
