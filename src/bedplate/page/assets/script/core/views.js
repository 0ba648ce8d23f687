"use strict";
// The views of the page: each names the keys of the choice that it answers to, and is drawn again when one changed.
//
// `bedplate.view({name, keys, draw, place})`: `draw(state, isCurrent)` may be asynchronous; after waiting for
// something it goes on only if `isCurrent()`, as the reader may have chosen something else. `place` is the id of the
// element that it draws in; a view without that element on this page is never drawn, and one whose section is far
// from the window is drawn when there is time (on_screen.js).

bedplate.views = (() => {
  const views = [];

  const draw = (view) => {
    view.turn += 1;
    const { turn } = view;
    return view.draw(bedplate.choice.state, () => turn === view.turn);
  };

  const add = ({ name, keys, draw: act, place = null }) => {
    const element = place && document.getElementById(place);
    if (place && !element) return;
    const view = { name, draw: act, turn: 0 };
    view.ask = bedplate.onScreen.watch(element && element.closest("section"), () => draw(view));
    views.push(view);
    bedplate.choice.subscribe(keys, () => view.ask());
  };

  const drawAll = async () => {
    await bedplate.onScreen.ready;
    return Promise.all(views.map((view) => view.ask()));
  };

  return { add, drawAll };
})();

bedplate.view = bedplate.views.add;
