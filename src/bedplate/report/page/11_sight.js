"use strict";
// On a page of hundreds of cells, views are drawn when they come near the window, and the others one by one when the
// browser has nothing else to do: what a reader looks at answers first. A small page is drawn whole at once. Paper
// shows everything, so everything is drawn for it.

bedplate.sight = (() => {
  const AT_ONCE_CELLS = 60;
  // Half a window's height ahead, so that what is scrolled to is there already.
  const AHEAD = "50% 0px";
  // Who chooses may choose again at once: what is out of sight waits until nothing was chosen for so long.
  const REST_MS = 600;
  const small = bedplate.document.cells.length <= AT_ONCE_CELLS;
  const views = [];
  const byElement = new Map();
  let timer = null;
  let looked = null;
  // Where everything stands is known a moment after the page was laid out.
  const ready = small ? Promise.resolve() : new Promise((resolve) => { looked = resolve; });

  const now = (view) => {
    view.due = false;
    view.drawing = Promise.resolve(view.draw());
    return view.drawing;
  };

  const whenIdle = window.requestIdleCallback ?? setTimeout;
  const rest = async () => {
    const next = views.find((view) => view.due);
    if (!next || timer) return;
    await now(next);
    whenIdle(rest);
  };
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(() => { timer = null; whenIdle(rest); }, REST_MS);
  };

  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      for (const view of byElement.get(entry.target)) {
        view.near = entry.isIntersecting;
        if (view.near && view.due) now(view);
      }
    }
    looked?.();
  }, { rootMargin: AHEAD });

  // → `ask`: draws at once where the element is near the window (or is none), else soon. Its promise is that of what
  // is drawn at once.
  const watch = (element, draw) => {
    const view = { draw, near: small || !element, due: false, drawing: Promise.resolve() };
    views.push(view);
    if (!view.near) {
      byElement.set(element, [...(byElement.get(element) ?? []), view]);
      observer.observe(element);
    }
    return () => {
      if (view.near) return now(view);
      view.due = true;
      later();
      return Promise.resolve();
    };
  };

  // Draws what is due, wherever it stands, and waits for it.
  const all = () => Promise.all(views.map((view) => (view.due ? now(view) : view.drawing)));

  // What is near the window has been drawn.
  const drawn = () => Promise.all(views.filter((view) => view.near).map((view) => view.drawing));

  window.addEventListener("beforeprint", all);
  return { all, drawn, ready, watch };
})();
