"use strict";
// Where the reader is. What is drawn late or anew above that place moves nothing that is looked at, and a link ends at its
// section however much is drawn on the way.
//
// Held is the element under the reader's eye with its distance from the top of the window, until the reader scrolls. Its
// ancestors stand in for it where it was drawn anew or left out. The browser's own anchoring gives up where its
// anchor is made anew, so it is switched off (report.css).

bedplate.place = (() => {
  // The eye is a third down the window, where a paragraph that is read stands.
  const EYE = 1 / 3;
  const main = document.querySelector("main");
  const bar = /** @type {HTMLElement} */ (document.querySelector(".choice"));
  let held = null;
  let at = 0;

  const top = (element) => element.getBoundingClientRect().top;
  const isThere = (element) => element.isConnected && element.getClientRects().length > 0;

  // A row or square of a cell is made anew with the same number, within the next place that has a name.
  const chained = (element) => {
    const chain = [];
    for (let one = element; one && one !== main; one = one.parentElement) {
      const home = one.parentElement?.closest("[id]");
      const cell = one.dataset.cell;
      const again =
        cell === undefined || !home?.id ? null : () => home.querySelector(`${one.localName}[data-cell="${cell}"]`);
      chain.push({ element: one, again, top: top(one) });
    }
    return chain;
  };

  const eye = () => {
    const box = main.getBoundingClientRect();
    const height = Math.max(bar.getBoundingClientRect().bottom + 8, window.innerHeight * EYE);
    const found = document.elementFromPoint(box.left + Math.min(box.width / 2, 300), height);
    return found && main.contains(found) && found !== main && !bar.contains(found) ? chained(found) : null;
  };

  const hold = (chain) => {
    held = chain;
    at = window.scrollY;
  };

  // Before anything is drawn: what is looked at now stays where it is. Once a frame, as to ask where it is lays out the page anew
  // after each of the views that one choice draws; nobody scrolls in between.
  let kept = false;
  const keep = () => {
    if (kept) return;
    kept = true;
    requestAnimationFrame(() => {
      kept = false;
    });
    if (held && Math.abs(window.scrollY - at) > 1) held = null;
    // A page that opens at its top is read from there, whatever is drawn.
    if (!held && (window.scrollY > 0 || document.documentElement.dataset.ready)) hold(eye());
  };

  const stand = () => {
    for (const { element, again, top: wanted } of held) {
      const now = isThere(element) ? element : again?.();
      if (now && isThere(now)) return top(now) - wanted;
    }
    return 0;
  };

  const restore = () => {
    if (!held) return;
    // A page that became shorter was scrolled by the browser; anything else was the reader.
    const end = document.documentElement.scrollHeight - window.innerHeight;
    if (Math.abs(window.scrollY - at) > 1 && window.scrollY < end - 1) {
      held = null;
      return;
    }
    const by = stand();
    if (Math.abs(by) > 0.5) window.scrollBy(0, by);
    at = window.scrollY;
  };

  const unfold = (element) => {
    for (let one = element; one; one = one.parentElement) if (one.localName === "details") one.open = true;
    const own = element.querySelector(":scope > details.part");
    if (own) own.open = true;
  };

  // To a section, or anything else with an id, and what folds it is unfolded; it stays there while the page is drawn.
  const jump = (id) => {
    const found = document.getElementById(id);
    if (!found || !main.contains(found)) return;
    unfold(found);
    // The heading of a part stands before it.
    const target = found.parentElement.matches("details.part") ? found.parentElement : found;
    const wanted = bar.offsetHeight;
    window.scrollBy(0, top(target) - wanted);
    hold([{ element: target, again: null, top: wanted }]);
    jumped = found;
    markSoon();
  };

  // The contents mark where the reader is: what a link led to while it stays where it was put, else the last section that begins
  // above the reader's eye.
  const links = [...document.querySelectorAll(":is(nav.contents, .menu) a")].map((link) => ({
    link,
    section: document.getElementById(link.getAttribute("href").slice(1)),
  }));
  let jumped = null;
  const mark = () => {
    if (Math.abs(window.scrollY - at) > 1) jumped = null;
    const height = bar.offsetHeight + (window.innerHeight - bar.offsetHeight) * EYE;
    // A picture beside the answer begins where the answer does.
    const begun = links.filter(
      ({ section }) => !section.closest(".pictures") && top(section.closest("details.part") ?? section) <= height,
    );
    const last = begun.reduce((one, other) => (one && top(one.section) > top(other.section) ? one : other), null);
    const here = jumped ?? last?.section ?? links[0]?.section;
    for (const { link, section } of links)
      if (section === here) link.setAttribute("aria-current", "location");
      else link.removeAttribute("aria-current");
  };
  let marking = false;
  const markSoon = () => {
    if (marking) return;
    marking = true;
    requestAnimationFrame(() => {
      marking = false;
      mark();
    });
  };
  window.addEventListener("scroll", markSoon, { passive: true });

  const sizes = new ResizeObserver(() => {
    restore();
    markSoon();
  });
  for (const one of [main, ...main.querySelectorAll("section, details.part")]) sizes.observe(one);

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.('a[href^="#"]');
    // After the browser has gone there, and has put it into the address.
    if (link && !event.defaultPrevented) setTimeout(() => jump(link.hash.slice(1)));
  });

  return { jump, keep };
})();
