"use strict";
// The one choice that a reader makes: every picture answers to it, and the address of the page holds it.
//
// `bedplate.choice.state` is frozen. Its keys, each with a default where nothing was chosen:
//   run, metric, part   indices into the document
//   repetition          the repetition whose courses are drawn
//   filters             {factor: [levels]}: what is ticked; a factor without ticks leaves all its levels
//   cells               the cells that were picked one by one; null for all that the filters leave
//   baseline, contender a cell's index, {factor, level} for all cells of a level, or null
//   courses             the cells whose courses are drawn, all of them shown ones
//   focus               the one of them that is looked at alone; null where there is none
// and what a view declared with `own(name, {usual, values})`: texts such as "raw.logarithmic", of which `values()` are the
// known ones; with `code: cellCode` the index of a cell.
//
// `change({run: 2, cells: null})` chooses, null goes back to the default; `subscribe(keys, act)` calls
// `act(state)` when one of the keys changed ("shown" stands for filters and cells together); `shown()` are the
// indices of the cells that filters and selection leave.

bedplate.choice = (() => {
  const { data } = bedplate;
  const page = bedplate.document;
  const CORE = ["run", "metric", "part", "repetition", "filters", "cells", "baseline", "contender", "courses", "focus"];
  const WRITE_AFTER_MS = 120;
  const owned = new Map();
  const listeners = [];
  let wanted = {};
  let state = null;
  let leave = [];
  let section = "";
  let due = null;

  const every = page.cells.map((_, cell) => cell);
  const repetitions = [...new Set(page.measurements.repetition.filter((_, i) => !page.measurements.canary[i]))].sort(
    (a, b) => a - b,
  );
  const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

  // A number for each factor, by name, and for each level, by its text.
  const factorOf = new Map(page.factors.map((factor, index) => [factor.name, index]));
  const levelOf = (cell, name) =>
    page.factors[factorOf.get(name)].levels[page.cells[cell].levels[factorOf.get(name)]] ?? null;

  // A cell that cannot have a factor passes where what holds for it anyway is ticked: `barrier: yes` keeps XFS.
  const holds = (cell, name, levels) => {
    const own = levelOf(cell, name);
    return (
      levels.includes(own) ||
      (own === null && page.factors[factorOf.get(name)].usual.some((one) => levels.includes(one)))
    );
  };
  const passes = (cell, filters) => Object.entries(filters).every(([name, levels]) => holds(cell, name, levels));
  // Of each factor that is ticked the cells that cannot have it: whether they are kept, and how many there are.
  const lacking = ({ filters, cells }) =>
    Object.entries(filters).flatMap(([name, levels]) => {
      const others = Object.fromEntries(Object.entries(filters).filter(([other]) => other !== name));
      const without = (cells ?? every).filter((cell) => levelOf(cell, name) === null && passes(cell, others));
      return without.length ? [{ name, kept: holds(without[0], name, levels), cells: without }] : [];
    });
  const left = ({ filters, cells }) => (cells ?? every).filter((cell) => passes(cell, filters));

  const firstRun = () => {
    const writing = page.runs.findIndex((run) => run.writes);
    const querying = page.runs.findIndex((run) => run.kind === "power");
    return [writing, querying, 0].find((run) => run >= 0);
  };

  // The leader and the runner-up of one class of durability, in the figure that stands for the run; the first two cells where no
  // figure is known.
  const usualCourses = (run, cells) => {
    const among = new Set(cells);
    const ranked = (page.ranking[run] ?? []).filter((cell) => among.has(cell));
    const own = ranked.filter((cell) => page.cells[cell].durability_class === page.cells[ranked[0]].durability_class);
    const two = [...new Set([...own, ...ranked])].slice(0, 2);
    return two.length ? two : cells.filter((cell) => data.measurements(cell, run).length).slice(0, 2);
  };

  // What is drawn, from what was chosen: a metric, a part or cells that the run has not give way to its own.
  const resolved = (chosen) => {
    const run = chosen.run ?? firstRun();
    const metrics = data.offered(run);
    const metric = metrics.includes(chosen.metric)
      ? chosen.metric
      : metrics.includes(data.first(run))
        ? data.first(run)
        : metrics[0];
    const parts = data.parts(run, metric);
    const part = parts.includes(chosen.part) ? chosen.part : parts[0];
    const filters = Object.fromEntries(Object.entries(chosen.filters ?? {}).filter(([, levels]) => levels.length));
    const cells = chosen.cells ?? null;
    const here = left({ filters, cells });
    const among = new Set(here);
    const picked = chosen.courses?.filter((cell) => among.has(cell));
    const gone = chosen.courses?.length && !picked.some((cell) => data.measurements(cell, run).length);
    const courses = !picked || gone ? usualCourses(run, here) : picked;
    return {
      run,
      metric,
      part,
      filters,
      cells,
      courses,
      repetition: repetitions.includes(chosen.repetition) ? chosen.repetition : (repetitions[0] ?? 1),
      baseline: chosen.baseline ?? null,
      contender: chosen.contender ?? null,
      focus: courses.includes(chosen.focus) ? chosen.focus : (courses[0] ?? null),
      ...Object.fromEntries([...owned].map(([name, { usual }]) => [name, chosen[name] ?? usual])),
    };
  };

  // Texts in the address: readable, with a comma between several and a plus for a blank.
  const written = (text) =>
    encodeURIComponent(text).replace(/%20/g, "+").replace(/%3A/g, ":").replace(/%2F/g, "/").replace(/%40/g, "@");
  const read = (text) => {
    try {
      return decodeURIComponent(text.replace(/\+/g, " "));
    } catch {
      return text;
    }
  };

  // Names that mean one thing each: what two have in common gets a word before it.
  const unique = (names, before) => {
    const count = new Map();
    for (const name of names) count.set(name, (count.get(name) ?? 0) + 1);
    return names.map((name, index) => (count.get(name) > 1 ? `${before(index)}/${name}` : name));
  };
  const names = {
    run: unique(
      page.runs.map((run) => run.run),
      (index) => page.runs[index].dataset,
    ),
    metric: page.metrics.map((metric) => metric.name),
    part: unique(
      page.parts.map(([label]) => label),
      (index) => page.parts[index][1],
    ),
    cell: unique(
      page.cells.map((cell) => cell.id),
      (index) =>
        page.factors.find(({ name }) => name === "study") ? levelOf(index, "study") : page.cells[index].study,
    ),
  };
  const indexOf = Object.fromEntries(
    Object.entries(names).map(([kind, list]) => [kind, new Map(list.map((name, index) => [name, index]))]),
  );

  const isLevel = (side) => side !== null && typeof side === "object";
  const sideText = (side) => (isLevel(side) ? `${side.factor}:${side.level}` : names.cell[side]);
  const sideOf = (text) => {
    if (indexOf.cell.has(text)) return indexOf.cell.get(text);
    const factor = text.slice(0, text.indexOf(":"));
    const level = text.slice(text.indexOf(":") + 1);
    return factorOf.has(factor) && page.factors[factorOf.get(factor)].levels.includes(level)
      ? { factor, level }
      : undefined;
  };

  const one = (kind) => ({
    write: (value) => [names[kind][value]],
    read: ([text]) => indexOf[kind].get(text),
  });
  const several = {
    write: (cells) => cells.map((cell) => names.cell[cell]),
    read: (texts, drop) =>
      texts
        .filter((text) => text)
        .flatMap((text) => {
          if (!indexOf.cell.has(text)) drop(`cell ${text}`);
          return indexOf.cell.has(text) ? [indexOf.cell.get(text)] : [];
        }),
  };
  const side = { write: (value) => [sideText(value)], read: ([text]) => sideOf(text) };
  const CODES = {
    run: one("run"),
    metric: one("metric"),
    part: one("part"),
    focus: one("cell"),
    cells: several,
    courses: several,
    baseline: side,
    contender: side,
    repetition: {
      write: (value) => [String(value)],
      read: ([text]) => (repetitions.includes(Number(text)) ? Number(text) : undefined),
    },
  };
  const plain = (values) => ({
    write: (value) => [value],
    read: ([text]) => (!values || values().includes(text) ? text : undefined),
  });
  const codeOf = (key) => CODES[key] ?? owned.get(key).code;

  // The address's words: the section, then what differs from the default. What cannot be chosen is told to `drop`.
  const link = () => {
    const said = section ? [written(section)] : [];
    for (const key of [...CORE, ...owned.keys()]) {
      const usual = resolved({ ...wanted, [key]: undefined })[key];
      if (key === "filters") {
        for (const [name, levels] of Object.entries(state.filters))
          said.push(`${written(name)}=${levels.map(written).join(",")}`);
      } else if (state[key] !== null && !same(state[key], usual)) {
        said.push(`${written(key)}=${codeOf(key).write(state[key]).map(written).join(",")}`);
      }
    }
    return said.join("&");
  };

  const parsed = (text, drop) => {
    const found = { filters: {} };
    let anchor = "";
    for (const piece of text.split("&").filter((one) => one)) {
      const at = piece.indexOf("=");
      const key = read(at < 0 ? piece : piece.slice(0, at));
      const texts =
        at < 0
          ? []
          : piece
              .slice(at + 1)
              .split(",")
              .map(read);
      if (at < 0 && document.getElementById(key)) anchor = key;
      else if (at >= 0 && factorOf.has(key)) {
        const { levels } = page.factors[factorOf.get(key)];
        texts.filter((level) => !levels.includes(level)).forEach((level) => drop(`${key} ${level}`));
        found.filters[key] = levels.filter((level) => texts.includes(level));
      } else if (at >= 0 && (CODES[key] || owned.has(key))) {
        const value = codeOf(key).read(texts, drop);
        if (value === undefined) drop(`${key} ${texts.join(", ")}`);
        // A selection of which nothing is left is none.
        else if (!(key === "cells" && !value.length)) found[key] = value;
      } else drop(key);
    }
    return { anchor, found };
  };

  const SHOWN_MOST = 60;
  const short = (text) => (text.length > SHOWN_MOST ? `${text.slice(0, SHOWN_MOST)}…` : text);
  const tell = (dropped) => {
    const note = document.getElementById("choice-note");
    note.hidden = !dropped.length;
    note.textContent = dropped.length
      ? `The link names what this page lacks, so it was left out: ` +
        `${dropped.slice(0, 5).map(short).join("; ")}${dropped.length > 5 ? `; and ${dropped.length - 5} more` : ""}.`
      : "";
  };

  const writeLink = () => {
    if (due !== null) {
      clearTimeout(due);
      due = null;
    }
    const text = link();
    if (text !== location.hash.slice(1))
      history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
  };

  const apply = (chosen) => {
    const before = state;
    wanted = chosen;
    state = Object.freeze(resolved(wanted));
    // The same list as long as it holds the same cells.
    const now = left(state);
    if (!before || !same(now, leave)) leave = now;
    if (!before) return;
    const changed = new Set(Object.keys(state).filter((key) => !same(state[key], before[key])));
    if (changed.has("filters") || changed.has("cells")) changed.add("shown");
    // An address may be written a few times a second at most; many changes make one writing.
    if (due === null) due = setTimeout(writeLink, WRITE_AFTER_MS);
    if (changed.size) for (const [keys, act] of listeners) if (keys.some((key) => changed.has(key))) act(state);
  };

  const change = (partial) => {
    const unknown = Object.keys(partial).find((key) => !CORE.includes(key) && !owned.has(key));
    if (unknown) throw new Error(`nothing is chosen by the name ${unknown}; declare it with bedplate.choice.own`);
    tell([]);
    apply({ ...wanted, ...partial });
  };

  const openLink = (text) => {
    const dropped = [];
    const { anchor, found } = parsed(text, (what) => dropped.push(what));
    section = anchor;
    return { found, dropped };
  };

  const scroll = () => {
    if (section) bedplate.place.jump(section);
  };

  // Once, when the data are there: the choice that the address holds.
  const open = () => {
    const { found, dropped } = openLink(location.hash.slice(1));
    apply(found);
    tell(dropped);
    window.addEventListener("hashchange", ({ newURL }) => {
      // Not the address as it is now: a choice that was made just before may have been written into it meanwhile.
      const text = new URL(newURL).hash.slice(1);
      const { found: chosen, dropped: gone } = openLink(text);
      // A link to a section within the page keeps the choice, and takes it into the address.
      if (text && !text.includes("=") && !gone.length) {
        writeLink();
        return;
      }
      apply(chosen);
      tell(gone);
      scroll();
    });
  };

  return {
    open,
    change,
    scroll,
    levelOf,
    get state() {
      return state;
    },
    shown: () => leave,
    // For a view of another run than the chosen one, whose cells may not have it: its leader and its runner-up.
    usual: (run) => usualCourses(run, leave),
    passes,
    lacking,
    subscribe: (keys, act) => listeners.push([keys, act]),
    own: (name, { usual = null, values = null, code = plain(values) } = {}) => {
      owned.set(name, { usual, code });
    },
    cellCode: one("cell"),
  };
})();
