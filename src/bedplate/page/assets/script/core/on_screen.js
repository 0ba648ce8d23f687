"use strict";
// On a page of hundreds of cells, what stands in the window is drawn at once, what is near it after the next frame, and the
// others one by one when the browser has nothing else to do: what a reader looks at answers first. A small page is drawn
// whole at once. What is folded is drawn when it is unfolded. Paper shows everything, so everything is unfolded and drawn for it.

bedplate.onScreen = (() => {
  const AT_ONCE_CELLS = 60;
  // Half a window's height ahead, so that what is scrolled to is there already.
  const AHEAD = "50% 0px";
  // Who chooses may choose again at once: what is out of sight waits until nothing was chosen for so long.
  const REST_MS = 600;
  const IDLE_WAIT_MS = 500;
  const small = bedplate.document.cells.length <= AT_ONCE_CELLS;
  const views = [];
  const byElement = new Map();
  let timer = null;
  let looked = null;
  // Where everything stands is known a moment after the page was laid out.
  const ready = small
    ? Promise.resolve()
    : new Promise((resolve) => {
        looked = resolve;
      });

  const isFolded = ({ element }) => Boolean(element?.closest("details:not([open])"));

  const now = (view) => {
    bedplate.place.keep();
    view.due = false;
    view.drawing = Promise.resolve(view.draw());
    return view.drawing;
  };

  // A browser may see no idle moment for minutes, as in a window that is not painted.
  const whenIdle = window.requestIdleCallback
    ? (act) => window.requestIdleCallback(act, { timeout: IDLE_WAIT_MS })
    : setTimeout;
  // What stands in the window is painted first.
  const nextFrame = () => new Promise((resolve) => requestAnimationFrame(() => whenIdle(resolve)));
  let queue = Promise.resolve();
  // One that is slow to be drawn holds no other up.
  const rest = () => {
    const next = views.find((view) => view.due && !isFolded(view));
    if (!next || timer) return;
    whenIdle(rest);
    now(next).catch(window.reportError);
  };
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      timer = null;
      whenIdle(rest);
    }, REST_MS);
  };

  // An error of a view is reported, here and below, and the next view is drawn all the same. One a frame, so that a choice that is made
  // meanwhile waits for one at the most.
  const afterFrame = (view) => {
    view.due = true;
    queue = queue.then(nextFrame);
    view.drawing = queue.then(() => (view.due ? now(view) : view.drawing));
    view.drawing.catch(window.reportError);
    // A frame that does not come, as in a window that nobody sees, leaves no view out.
    later();
    return view.drawing;
  };

  const observing = (key, options) =>
    new IntersectionObserver((entries) => {
      for (const entry of entries) {
        for (const view of byElement.get(entry.target)) {
          view[key] = entry.isIntersecting;
          if (view[key] && view.due) now(view);
        }
      }
      told.add(key);
      if (told.size === observers.length) looked?.();
    }, options);
  // They tell in any order.
  const told = new Set();
  // What the bar hides is not in the window.
  const bar = /** @type {HTMLElement} */ (document.querySelector(".choice"));
  const observers = [
    observing("seen", { rootMargin: `-${bar.offsetHeight}px 0px 0px` }),
    observing("near", { rootMargin: AHEAD }),
  ];

  // → `ask`: draws at once where the element is in the window (or is none), soon where it is near, else some time. Its
  // promise is that of what is drawn at once or soon.
  const watch = (element, draw) => {
    const always = small || !element;
    const view = { draw, element, seen: always, near: always, due: false, asked: false, drawing: Promise.resolve() };
    views.push(view);
    if (!always) {
      byElement.set(element, [...(byElement.get(element) ?? []), view]);
      for (const observer of observers) observer.observe(element);
    }
    return () => {
      view.asked = true;
      if (isFolded(view)) {
        view.due = true;
        return Promise.resolve();
      }
      if (view.seen) return now(view);
      if (view.near) return afterFrame(view);
      view.due = true;
      later();
      return Promise.resolve();
    };
  };

  // A page may be printed before it was drawn at all.
  const isMissing = (view) => (view.due || !view.asked) && !isFolded(view);
  document.addEventListener(
    "toggle",
    ({ target }) => {
      if (target.matches("details.part") && target.open)
        for (const view of views) if (view.due && target.contains(view.element) && !isFolded(view)) now(view);
    },
    true,
  );

  // Draws what is due, wherever it stands, and waits for it.
  const all = async () => {
    for (const part of document.querySelectorAll("details.part")) part.open = true;
    await Promise.all(views.filter(isMissing).map(now));
    return Promise.all(views.map((view) => view.drawing));
  };

  // What is in the window has been drawn; and what is near it, too.
  const answered = () => Promise.all(views.filter((view) => view.seen && !view.due).map((view) => view.drawing));
  const drawn = () => Promise.all(views.filter((view) => view.near && !isFolded(view)).map((view) => view.drawing));

  let folded = [];
  window.addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details.part:not([open])")];
    all();
  });
  window.addEventListener("afterprint", () => {
    for (const part of folded) part.open = false;
  });
  return { all, answered, drawn, ready, watch };
})();
