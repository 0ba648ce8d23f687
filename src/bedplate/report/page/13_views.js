"use strict";
// The views of the page: each names the keys of the choice that it answers to, and is drawn again when one changed.
//
// `bedplate.view({name, keys, draw, place})`: `draw(state, isCurrent)` may be asynchronous; after waiting for
// something it goes on only if `isCurrent()`, as the reader may have chosen something else. `place` is the id of the
// element that it draws in; a view without that element on this page is never drawn.

bedplate.views = (() => {
  const views = [];

  const draw = (view) => {
    view.turn += 1;
    const { turn } = view;
    return view.draw(bedplate.choice.state, () => turn === view.turn);
  };

  const add = ({ name, keys, draw: act, place = null }) => {
    if (place && !document.getElementById(place)) return;
    const view = { name, draw: act, turn: 0 };
    views.push(view);
    bedplate.choice.subscribe(keys, () => draw(view));
  };

  const drawAll = () => Promise.all(views.map(draw));

  return { add, drawAll };
})();

bedplate.view = bedplate.views.add;
