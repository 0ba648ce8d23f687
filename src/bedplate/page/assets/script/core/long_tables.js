"use strict";
// Tables that are sorted by the heads of their columns, and long ones that are searched and folded: to their first rows, and to one
// line for rows that say the same. What is folded is only out of sight: it is saved and printed.
//
// `bedplate.longTables.attach(table, {alike, late})` once for a table; `alike(rows)` are groups of rows that one line is enough for,
// `late` is {count, make} of the rows behind those that it has: they are made when somebody asks for them. A row that is there for
// `later(row, make)` has no cells before.

bedplate.longTables = (() => {
  const { element: h } = bedplate;
  // Longer ones are folded to the first few rows.
  const WHOLE_MOST = 30;
  const FIRST = 15;
  // Of more rows the others are made when they are asked for.
  const MADE_MOST = 200;
  const SORTED_FROM = 3;
  const NUMBER = /^[×>≥<≤~\s]*([-+−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?)/;
  // A table that a choice has replaced is forgotten with its rows.
  const tables = new WeakMap();
  // What is drawn while the page is printed is printed too.
  let isPrinted = false;

  // Rows whose cells are made when somebody sees, sorts or searches them, by what makes them: it is told whether the table is to be
  // whole, as it is saved and printed.
  const bare = new WeakMap();
  const later = (row, make) => bare.set(row, make);
  const fill = (row, isWhole = false) => {
    const make = bare.get(row);
    bare.delete(row);
    make?.(isWhole);
    return row;
  };

  const text = (row, column) => fill(row).cells[column]?.textContent.trim() ?? "";
  const figure = (words) => {
    const found = NUMBER.exec(words);
    return found ? Number(found[1].replace(/,/g, "").replace("−", "-")) : null;
  };

  const collator = new Intl.Collator("en", { numeric: true });
  // Rows in the order of a column; those without a value come last, whichever way it is sorted.
  const sorted = (rows, { column, descending }) => {
    const values = new Map(rows.map((row) => [row, text(row, column)]));
    const figures = new Map(rows.map((row) => [row, figure(values.get(row))]));
    const known = rows.filter((row) => figures.get(row) !== null).length;
    const isFigures =
      known > 0 &&
      rows.every((row) => figures.get(row) !== null || !/\w/.test(values.get(row)) || known > rows.length / 2);
    const missing = (row) => (isFigures ? figures.get(row) === null : values.get(row) === "");
    const order = (one, other) =>
      isFigures ? figures.get(one) - figures.get(other) : collator.compare(values.get(one), values.get(other));
    return [...rows].sort(
      (one, other) =>
        Number(missing(one)) - Number(missing(other)) ||
        (missing(one) ? 0 : descending ? order(other, one) : order(one, other)),
    );
  };

  const matches = (row, words) => {
    if (!words.length) return true;
    const said = fill(row).textContent.toLowerCase();
    return words.every((word) => said.includes(word));
  };

  // With all its rows; `isWhole` where nothing may be left for later, as where it is saved or printed.
  const complete = (table, isWhole = true) => {
    const own = tables.get(table);
    if (isWhole) own?.rows.forEach((row) => fill(row, true));
    if (!own?.late) return;
    const made = own.late.make(isWhole);
    own.late = null;
    own.rows.push(...made);
    own.body.append(...made);
    show(table);
  };

  const show = (table) => {
    const own = tables.get(table);
    const { body, rows, groups, sort, open } = own;
    const words = own.search.toLowerCase().split(/\s+/).filter(Boolean);
    if (own.late && (words.length || sort || own.whole)) {
      complete(table, false);
      return;
    }
    const found = rows.filter((row) => !own.out.has(row) && matches(row, words));
    for (const row of rows) row.hidden = true;
    // One line for each group, unless somebody looks for a row of it.
    const lines = new Map();
    const home = new Map();
    const among = new Set(found);
    for (const group of groups ?? []) {
      const here = group.filter((row) => among.has(row));
      if (here.length < 2 || words.length) continue;
      lines.set(here[0], here.slice(1));
      for (const row of here.slice(1)) home.set(row, here[0]);
    }
    const heads = found.filter((row) => !home.has(row));
    const ordered = (sort ? sorted(heads, sort) : heads).flatMap((row) => [row, ...(lines.get(row) ?? [])]);
    const seen = own.whole || heads.length <= WHOLE_MOST ? heads.length : FIRST;
    const first = new Set((sort ? ordered.filter((row) => !home.has(row)) : heads).slice(0, seen));
    for (const row of ordered) {
      const leader = home.get(row);
      row.hidden = false;
      row.classList.toggle("twin", Boolean(leader));
      const isSeen = leader ? open.has(leader) && first.has(leader) : first.has(row);
      row.classList.toggle("beyond", !isSeen);
      if (isSeen) fill(row);
      if (bare.has(row)) continue;
      row.querySelector(":scope > * > .alike")?.remove();
      if (lines.has(row)) row.cells[0].append(unfolding(table, row, lines.get(row)));
    }
    if (own.moved || sort) body.append(...ordered, ...rows.filter((row) => !among.has(row)));
    own.moved = Boolean(sort);
    const late = own.late?.count ?? 0;
    tell(own, { heads: heads.length + late, seen, found: found.length + late });
  };

  const unfolding = (table, row, rest) => {
    const { open } = tables.get(table);
    return h(
      "button",
      {
        type: "button",
        class: "alike",
        "aria-expanded": String(open.has(row)),
        title: "rows that cannot be distinguished from this one",
        onclick: () => {
          if (!open.delete(row)) open.add(row);
          show(table);
          row.querySelector(".alike")?.focus({ preventScroll: true });
        },
      },
      `${open.has(row) ? "−" : "+"} ${rest.length} alike`,
    );
  };

  const tell = (own, { heads, seen, found }) => {
    if (!own.note) return;
    const { count } = bedplate;
    const rows = `${count(found)} row${found === 1 ? "" : "s"}`;
    const lines = heads < found ? `${rows} in ${count(heads)} lines` : rows;
    own.note.textContent = seen < heads ? `${lines}, the first ${seen} shown` : lines;
    own.more.hidden = heads <= WHOLE_MOST;
    own.more.textContent = own.whole ? `Show the first ${FIRST}` : `Show all ${count(heads)}`;
  };

  const press = (table, column) => {
    const own = tables.get(table);
    const { sort, heads } = own;
    const figures = own.rows.some((row) => figure(text(row, column)) !== null);
    // Figures from the greatest, words from A; then the other way; then as the plan has them.
    if (sort?.column !== column) own.sort = { column, descending: figures, turn: 1 };
    else own.sort = sort.turn === 2 ? null : { column, descending: !sort.descending, turn: 2 };
    heads.forEach((head, i) => {
      if (own.sort?.column === i) head.setAttribute("aria-sort", own.sort.descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    show(table);
  };

  const tools = (table) => {
    const own = tables.get(table);
    own.note = h("span", { class: "note", role: "status" });
    own.more = h("button", {
      type: "button",
      class: "quiet",
      onclick: () => {
        own.whole = !own.whole;
        show(table);
      },
    });
    const search = h("input", {
      type: "search",
      placeholder: "Search rows",
      "aria-label": "Search rows",
      oninput: () => {
        own.search = search.value;
        show(table);
      },
    });
    table.prepend(h("caption", {}, h("div", { class: "tools" }, search, own.more, own.note)));
  };

  const attach = (table, { alike = null, late = null } = {}) => {
    const [body] = table.tBodies;
    const rows = [...(body?.rows ?? [])];
    const heads = [...(table.tHead?.rows[0]?.cells ?? [])];
    if (rows.length < SORTED_FROM || rows.some((row) => !bare.has(row) && row.cells.length !== heads.length))
      return table;
    const isLong = rows.length > WHOLE_MOST || late !== null;
    tables.set(table, {
      body,
      rows,
      heads,
      late,
      groups: isLong ? alike?.(rows) : null,
      out: new Set(),
      open: new Set(),
      search: "",
      sort: null,
      moved: false,
      whole: false,
    });
    heads.forEach((head, column) => {
      if (!head.textContent.trim()) return;
      const button = h("button", { type: "button", class: "sort", onclick: () => press(table, column) });
      button.append(...head.childNodes);
      head.append(button);
    });
    if (isLong) {
      tools(table);
      show(table);
      if (isPrinted) complete(table);
    }
    return table;
  };

  // The rows of a table that stand on the page before any script: those of cells that are not shown are left out.
  const choose = (table, shown) => {
    const own = tables.get(table);
    if (!own) return false;
    own.out = new Set(own.rows.filter((row) => row.dataset.cell !== undefined && !shown.has(row.dataset.cell)));
    show(table);
    return true;
  };

  window.addEventListener("beforeprint", () => {
    isPrinted = true;
    document.querySelectorAll("table").forEach((table) => complete(table));
  });
  window.addEventListener("afterprint", () => {
    isPrinted = false;
  });
  return { FIRST, MADE_MOST, WHOLE_MOST, attach, choose, complete, later };
})();
