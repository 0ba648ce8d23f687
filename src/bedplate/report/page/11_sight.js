"use strict";
// Views are drawn when they come near the window, not before: a page of hundreds of cells has much that nobody
// scrolls to. Paper shows everything, so everything is drawn for it.

bedplate.sight = (() => {
  // A window's height ahead, so that what is scrolled to is there already.
  const AHEAD = "100% 0px";
  const views = new Map();

  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const view = views.get(entry.target);
      view.near = entry.isIntersecting;
      if (view.near && view.due) view.now();
    }
  }, { rootMargin: AHEAD });

  // → `ask`: draws the element's view at once where it is near the window, else when it comes there. What `draw`
  // promises is waited for by `settled`. A view whose element the page does not have is never drawn.
  const watch = (element, draw) => {
    if (!element) return () => Promise.resolve();
    const view = { near: false, due: false, drawing: Promise.resolve() };
    view.now = () => {
      view.due = false;
      view.drawing = Promise.resolve(draw());
      return view.drawing;
    };
    views.set(element, view);
    near.observe(element);
    return () => {
      view.due = true;
      return view.near ? view.now() : Promise.resolve();
    };
  };

  // Draws what is due wherever it stands.
  const all = () => Promise.all([...views.values()].map((view) => (view.due ? view.now() : view.drawing)));

  // What stands in the window now is drawn.
  const settled = () => Promise.all([...views].map(([element, view]) => {
    const { top, bottom } = element.getBoundingClientRect();
    if (view.due && bottom >= 0 && top <= window.innerHeight) return view.now();
    return view.drawing;
  }));

  window.addEventListener("beforeprint", all);
  return { all, settled, watch };
})();
