"use strict";
// Which cells: factors as chips to tick, and any cells one by one.

(() => {
  const { element: h, choice } = bedplate;
  const page = bedplate.document;
  const box = document.getElementById("filters");
  const panel = document.getElementById("filters-panel");

  // Popovers close as menus do: with the Escape key, and when something else is pressed.
  for (const popover of document.querySelectorAll(".choice > details")) {
    const close = (event) => {
      if (!popover.open || (event.type === "pointerdown" && popover.contains(event.target))) return;
      if (event.type === "keydown" && event.key !== "Escape") return;
      popover.open = false;
      if (event.type === "keydown" && popover.contains(document.activeElement))
        popover.querySelector("summary").focus();
    };
    document.addEventListener("keydown", close);
    document.addEventListener("pointerdown", close);
  }

  const every = page.cells.map((_, cell) => cell);

  const toggle = (name, level, ticked) => {
    const { filters } = choice.state;
    const { levels } = page.factors.find((factor) => factor.name === name);
    const kept = levels.filter((one) => (one === level ? ticked : (filters[name] ?? []).includes(one)));
    choice.change({ filters: { ...filters, [name]: kept } });
  };

  // How many cells would be shown with this level alone of its factor, all other ticks as they are.
  const count = (state, name, level) =>
    (state.cells ?? every).filter((cell) => choice.passes(cell, { ...state.filters, [name]: [level] })).length;

  const chips = (state) =>
    page.factors.map((factor) =>
      h(
        "fieldset",
        { class: "chips" },
        h("legend", {}, factor.words),
        factor.levels.map((level) => {
          const n = count(state, factor.name, level);
          return h(
            "label",
            { class: "chip" },
            h("input", {
              type: "checkbox",
              "data-factor": factor.name,
              value: level,
              checked: (state.filters[factor.name] ?? []).includes(level),
              onchange: (event) => toggle(factor.name, level, event.target.checked),
            }),
            h("span", {}, level),
            h("span", { class: "count", "aria-label": `${n} cell${n === 1 ? "" : "s"}` }, String(n)),
          );
        }),
      ),
    );

  const pick = (cell, ticked) => {
    const { state } = choice;
    const kept = new Set(state.cells ?? every.filter((one) => choice.passes(one, state.filters)));
    if (ticked) kept.add(cell);
    else kept.delete(cell);
    choice.change({ cells: every.filter((one) => kept.has(one)) });
  };

  // Every cell that passes the filters; ticked is what is shown.
  const list = (state) => {
    const shown = new Set(choice.shown());
    return h(
      "fieldset",
      { class: "cell-choice" },
      h("legend", { class: "note" }, "Cells one by one"),
      every
        .filter((cell) => choice.passes(cell, state.filters))
        .map((cell) =>
          h(
            "label",
            {},
            h("input", {
              type: "checkbox",
              "data-picked": cell,
              checked: shown.has(cell),
              onchange: (event) => pick(cell, event.target.checked),
            }),
            h("span", {}, bedplate.data.cellName(cell)),
          ),
        ),
    );
  };

  const listBox = h(
    "details",
    {
      id: "picked",
      ontoggle: (event) => {
        if (event.target.open) fillList(choice.state);
      },
    },
    h("summary", {}, "Cells one by one"),
  );
  const fillList = (state) => {
    listBox.querySelector(".cell-choice")?.remove();
    listBox.append(list(state));
  };

  const fill = (state) => {
    const focused = document.activeElement?.closest?.("#filters-panel input");
    const again = focused
      ? focused.dataset.factor
        ? `[data-factor="${CSS.escape(focused.dataset.factor)}"][value="${CSS.escape(focused.value)}"]`
        : `[data-picked="${focused.dataset.picked}"]`
      : null;
    const narrowed = Object.keys(state.filters).length || state.cells;
    panel.replaceChildren(
      h(
        "div",
        { class: "popover-head" },
        h(
          "p",
          { class: "note" },
          "Nothing ticked in a row leaves all of it. Every picture and table below follows; what is " +
            "said under Answer, Effects and Claims is over all cells.",
        ),
        h(
          "button",
          {
            type: "button",
            id: "filters-clear",
            disabled: !narrowed,
            onclick: () => choice.change({ filters: null, cells: null }),
          },
          "Show all cells",
        ),
      ),
      ...choice.lacking(state).map((one) => h("p", { class: "note" }, lackingWords(one))),
      ...chips(state),
      listBox,
    );
    if (listBox.open) fillList(state);
    // What was just pressed was made anew, and stays under the finger.
    if (again) panel.querySelector(`input${again}`)?.focus({ preventScroll: true });
  };

  // What became of the cells that cannot have a factor that is ticked.
  const lackingWords = ({ name, kept, cells }) => {
    const types = [...new Set(cells.map((cell) => choice.levelOf(cell, "filesystem.type") ?? page.cells[cell].panel))];
    const said = bedplate.words.filled(kept ? "kept_without" : "passed_over", {
      factor: page.factors.find((factor) => factor.name === name).words,
      n: cells.length,
      types: types.sort().join(", "),
    });
    return `${bedplate.words.capital(said)}.`;
  };

  const words = (state) => {
    const n = choice.shown().length;
    if (n === page.cells.length) return `All ${n} cells`;
    const said = Object.entries(state.filters).map(
      ([name, levels]) => `${page.factors.find((factor) => factor.name === name).words} ${levels.join(" or ")}`,
    );
    const text = said.join(", ");
    const over = choice.lacking(state).filter(({ kept }) => !kept);
    const passed = over.map(({ name, cells }) => {
      const factor = page.factors.find((one) => one.name === name).words;
      return `; ${cells.length} without ${factor} passed over`;
    });
    return `${n} of ${page.cells.length} cells${text && text.length < 60 ? `: ${text}` : ""}${passed.join("")}`;
  };

  const draw = (state) => {
    const n = choice.shown().length;
    const summary = box.querySelector("summary");
    summary.textContent = words(state);
    summary.dataset.short = n === page.cells.length ? `${n} cells` : `${n} of ${page.cells.length}`;
    summary.dataset.least = `${n}/${page.cells.length}`;
    if (box.open) fill(state);
  };

  box.addEventListener("toggle", () => {
    if (box.open) fill(choice.state);
  });
  bedplate.view({ name: "filters", keys: ["shown"], draw });
})();
