"use strict";
// What is held against what: a baseline and a contender, each one cell or all cells of a level.

(() => {
  const { element: h, choice } = bedplate;
  const page = bedplate.document;
  const box = document.getElementById("sides");
  const panel = document.getElementById("sides-panel");
  const option = (value, text, selected) => h("option", { value, selected }, text);

  const text = (side) => (side === null ? "" : JSON.stringify(side));

  const select = (key, label, nothing, levels) => {
    const now = text(choice.state[key]);
    const made = (side, words) => option(text(side), words, text(side) === now);
    return h(
      "label",
      {},
      label,
      h(
        "select",
        {
          id: `choose-${key}`,
          onchange: (event) => choice.change({ [key]: event.target.value ? JSON.parse(event.target.value) : null }),
        },
        made(null, nothing),
        levels.map((factor) =>
          h(
            "optgroup",
            { label: `every cell with this ${factor.words}` },
            factor.levels.map((level) => made({ factor: factor.name, level }, `${factor.words}: ${level}`)),
          ),
        ),
        h(
          "optgroup",
          { label: "one cell" },
          page.cells.map((_, cell) => made(cell, bedplate.data.cellName(cell))),
        ),
      ),
    );
  };

  // What is chosen here is answered here, however far the table of its pairs is.
  const tell = async (state, isCurrent) => {
    const { why, verdict } = await bedplate.comparison.judgedOf(state);
    if (!isCurrent()) return;
    document
      .getElementById("sides-verdict")
      ?.replaceChildren(...(why ? [why] : [...verdict(), " ", h("a", { href: "#compare" }, "Each pair")]));
  };

  const fill = (state, isCurrent) => {
    const focused = document.activeElement?.id;
    // A contender of a level is one of the same factor, or of any where the baseline is a cell.
    const { baseline } = state;
    const factors = page.factors.filter(({ name }) => name !== "class");
    const contenders = bedplate.pairs.isLevel(baseline)
      ? factors.filter(({ name }) => name === baseline.factor)
      : baseline === null
        ? factors
        : [];
    panel.replaceChildren(
      h(
        "p",
        { class: "note" },
        "Two cells are compared if they differ in nothing but what is named here. Cells that the " +
          "filters leave out are in no comparison, except one that is named itself.",
      ),
      h(
        "div",
        { class: "sides" },
        select("baseline", "Baseline", "none", factors),
        select("contender", "Contender", "all others", contenders),
        h(
          "button",
          {
            type: "button",
            id: "sides-clear",
            disabled: baseline === null && state.contender === null,
            onclick: () => choice.change({ baseline: null, contender: null }),
          },
          "Compare nothing",
        ),
      ),
      h("p", { class: "verdict", id: "sides-verdict", "aria-live": "polite" }),
    );
    if (state.baseline !== null) tell(state, isCurrent);
    if (focused) panel.querySelector(`#${CSS.escape(focused)}`)?.focus({ preventScroll: true });
  };

  const SHORT = 34;
  const short = (words) => (words.length > SHORT ? `${words.slice(0, SHORT - 1)}…` : words);
  const draw = (state, isCurrent) => {
    const { sideName } = bedplate.pairs;
    const words =
      state.baseline === null
        ? "Compare: nothing"
        : `${state.contender === null ? "All" : short(sideName(state.contender))} against ${short(sideName(state.baseline))}`;
    const summary = box.querySelector("summary");
    summary.textContent = words;
    summary.dataset.short = state.baseline === null ? "Compare" : "Compared";
    summary.dataset.least = "vs";
    if (box.open) fill(state, isCurrent);
  };

  box.addEventListener("toggle", () => {
    if (box.open) fill(choice.state, () => box.open);
  });
  panel.addEventListener("click", ({ target }) => {
    if (target.closest("a")) box.open = false;
  });
  bedplate.view({
    name: "sides",
    keys: ["run", "metric", "part", "shown", "baseline", "contender", "compare.over", "compare.margin"],
    draw,
  });
})();
