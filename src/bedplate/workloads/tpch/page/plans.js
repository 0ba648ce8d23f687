"use strict";
// The plan of a query in two cells as trees, side by side, with the first node at which they part.

(() => {
  const { element: h } = bedplate;
  const page = bedplate.document;
  const byId = (id) => document.getElementById(id);
  const choice = { query: null, left: null, right: null };
  let last = null;
  let kept = null;

  // A side is a cell and a plan of it; the address names the cell, and the plan by the start of its hash.
  const { cellCode } = bedplate.choice;
  const HASH_LETTERS = 8;
  const sideCode = {
    write: (value) => {
      const [cell, hash] = value.split("~");
      return [`${cellCode.write(Number(cell))[0]}~${hash}`];
    },
    read: ([text]) => {
      const at = text.lastIndexOf("~");
      const cell = cellCode.read([at < 0 ? text : text.slice(0, at)]);
      return cell === undefined ? undefined : `${cell}~${at < 0 ? "" : text.slice(at + 1)}`;
    },
  };
  bedplate.choice.own("plans.query");
  for (const name of ["left", "right"]) bedplate.choice.own(`plans.${name}`, { code: sideCode });

  // Rows of one pass, as document.py packs them.
  const rowsOf = (run) =>
    kept.rows
      .filter((row) => row[0] === run)
      .map(([, cell, query, plan, repetitions, settings]) => ({ cell, query, plan, repetitions, settings }));

  const letter = (place) =>
    (place < 26 ? "" : letter(Math.floor(place / 26) - 1)) + String.fromCharCode(65 + (place % 26));

  // A letter for every plan of a query, by the cells that have it: A is the one of the first cell.
  const letters = (rows) => {
    const found = new Map();
    for (const row of [...rows].sort((a, b) => a.cell - b.cell))
      if (!found.has(row.plan)) found.set(row.plan, letter(found.size));
    return found;
  };

  const key = (row) =>
    `${row.cell}~${(kept.plans[row.query][row.plan].hash ?? String(row.plan)).slice(0, HASH_LETTERS)}`;
  const option = (value, text, selected) => h("option", { value, selected }, text);

  const offer = (rows) => {
    const queries = kept.queries.filter((query) => rows.some((row) => row.query === query));
    const plansOf = (query) => new Set(rows.filter((row) => row.query === query).map((row) => row.plan)).size;
    if (!queries.includes(choice.query)) choice.query = queries.find((query) => plansOf(query) > 1) ?? queries[0];
    const mine = rows.filter((row) => row.query === choice.query).sort((a, b) => a.cell - b.cell);
    const known = letters(mine);
    const several = new Set(mine.map((row) => row.cell).filter((cell, place, all) => all.indexOf(cell) !== place));
    const pick = (wanted, other) =>
      mine.find((row) => key(row) === wanted) ??
      mine.find((row) => wanted && row.cell === Number(wanted.split("~")[0])) ??
      other;
    const left = pick(choice.left, mine[0]);
    const right = pick(
      choice.right,
      mine.find((row) => row.plan !== left.plan) ?? mine.find((row) => row.cell !== left.cell) ?? left,
    );
    const text = (row) =>
      `${bedplate.data.cellName(row.cell)} · plan ` +
      `${known.get(row.plan)}${several.has(row.cell) ? ` (repetition ${row.repetitions.join(", ")})` : ""}`;
    byId("choose-query").replaceChildren(
      ...queries.map((query) =>
        option(query, plansOf(query) > 1 ? `${query} (${plansOf(query)} plans)` : query, query === choice.query),
      ),
    );
    byId("choose-left").replaceChildren(...mine.map((row) => option(key(row), text(row), row === left)));
    byId("choose-right").replaceChildren(...mine.map((row) => option(key(row), text(row), row === right)));
    [choice.left, choice.right] = [key(left), key(right)];
    return { left, right, known, several, mine };
  };

  // Where the plans part, with its words turned to the side they stand on.
  const difference = (left, right) => {
    const found = kept.differences[choice.query].find(
      ([one, other]) => (one === left.plan && other === right.plan) || (one === right.plan && other === left.plan),
    );
    if (!found) return null;
    const [one, , line, said] = found;
    const turn = (words) => {
      const [, before, first, second] = /^((?:[A-Z][A-Za-z ]*: )?)(.*) \| (.*)$/s.exec(words) ?? [];
      return first === undefined ? words : `${before}${second} | ${first}`;
    };
    return { line, words: one === left.plan ? said : said.map(turn) };
  };

  const verdict = (left, right, known, parted) => {
    const plans = kept.plans[choice.query];
    const unread = [left, right].map((row) => plans[row.plan].problem).filter((problem) => problem);
    if (unread.length) return `A plan cannot be shown: ${unread[0]}`;
    if (left.plan === right.plan)
      return `Same plan: ${known.get(left.plan)}, with the hash ${plans[left.plan].hash.slice(0, 12)}.`;
    if (!parted)
      return "Different plans by their hashes, and the same by their nodes: they were hashed by another version.";
    return (
      `Different plans, ${known.get(left.plan)} and ${known.get(right.plan)}. Read from the top ` +
      `they part at line ${parted.line + 1}: ${parted.words.join("; ")}.`
    );
  };

  const notes = ({ left, right, known, several, mine }) => {
    const counts = [...known].map(([plan, name]) => {
      const n = mine.filter((row) => row.plan === plan).length;
      return `${name} in ${n} cell${n === 1 ? "" : "s"}`;
    });
    const said = [
      `In all: ${counts.join(", ")}.`,
      ...[...new Set([left, right].map((row) => row.cell))]
        .filter((cell) => several.has(cell))
        .map(
          (cell) =>
            `${page.runs[last.run].kind === "throughput" ? "The streams or repetitions" : "The repetitions"} ` +
            `of ${bedplate.data.cellName(cell)} do not agree on the plan of query ${choice.query}.`,
        ),
    ];
    const [one, other] = [kept.settings[left.settings], kept.settings[right.settings]];
    const differing = [...new Set([...Object.keys(one), ...Object.keys(other)])].filter(
      (name) => one[name] !== other[name],
    );
    if (differing.length)
      said.push(
        `Settings that differ: ${differing.map((name) => `${name} ${one[name] ?? "none"} | ${other[name] ?? "none"}`).join("; ")}.`,
      );
    if (one.server_version !== other.server_version)
      said.push("Two versions of PostgreSQL name the nodes of one plan differently.");
    return said.join(" ");
  };

  const tree = (row, known, line) => {
    const plan = kept.plans[choice.query][row.plan];
    const cell = page.cells[row.cell];
    const marked = (place) => place === line;
    const badge = () => h("span", { class: "mark" }, "first difference");
    const items = plan.lines.map(([depth, words, detail], place) =>
      h(
        "li",
        { depth, class: marked(place) ? "parts" : null },
        h("span", { class: "words" }, words),
        marked(place) ? badge() : null,
        detail ? h("span", { class: "estimates" }, detail) : null,
      ),
    );
    if (line !== null && line >= plan.lines.length)
      items.push(h("li", { depth: 0, class: "parts" }, h("span", { class: "words" }, "ends here"), badge()));
    return h(
      "figure",
      { class: "plan" },
      h(
        "figcaption",
        {},
        `${bedplate.data.cellName(row.cell)} · plan ${known.get(row.plan)}`,
        h(
          "span",
          { class: "small" },
          `${bedplate.words.after_power_cut}: ${cell.durability} · costs and rows as in ${plan.source}`,
        ),
      ),
      h("ol", {}, items),
    );
  };

  const table = (rows) => {
    const queries = kept.queries.filter((query) => rows.some((row) => row.query === query));
    const known = new Map(queries.map((query) => [query, letters(rows.filter((row) => row.query === query))]));
    const cells = [...new Set(rows.map((row) => row.cell))].sort((a, b) => a - b);
    const mine = (cell, query) => rows.filter((row) => row.cell === cell && row.query === query);
    return bedplate.table(
      ["Cell", ...queries],
      cells.map((cell) => [
        bedplate.data.cellName(cell),
        ...queries.map(
          (query) =>
            mine(cell, query)
              .map((row) => known.get(query).get(row.plan))
              .sort()
              .join(" ") || "–",
        ),
      ]),
    );
  };

  // Without a plan there is nothing to choose and nothing to save.
  const hasPlans = (is) => {
    byId("choose-query").closest(".ramp").hidden = !is;
    byId("plans-table").hidden = !is;
    bedplate.save.offer("plans-trees", is);
  };

  const nothing = (why) => {
    byId("plans-verdict").textContent = why;
    byId("plans-note").textContent = "";
    byId("plans-trees").replaceChildren();
    for (const id of ["choose-query", "choose-left", "choose-right"]) byId(id).replaceChildren();
    hasPlans(false);
    bedplate.lazyTable("plans-table", () => h("p", {}, "No plans."));
  };

  const show = () => {
    const rows = kept ? rowsOf(last.run) : [];
    if (!rows.length) {
      nothing(
        `${bedplate.data.runName(last.run)} has kept no query plans; those are of passes over the queries, and of streams of them.`,
      );
      return;
    }
    hasPlans(true);
    const offered = offer(rows);
    const { left, right, known } = offered;
    const parted = left.plan === right.plan ? null : difference(left, right);
    const box = byId("plans-verdict");
    box.textContent = verdict(left, right, known, parted);
    box.className = left.plan === right.plan ? "verdict same" : "verdict";
    byId("plans-note").textContent = notes(offered);
    byId("plans-trees").replaceChildren(...[left, right].map((row) => tree(row, known, parted ? parted.line : null)));
    bedplate.lazyTable("plans-table", () => table(rows));
  };

  // A plan is known by its cell in the address, and there by the plan that the cell has.
  const draw = async (state, isCurrent) => {
    kept = await bedplate.unpack(page.tpch.plans);
    if (!isCurrent()) return;
    last = { run: state.run };
    for (const name of ["query", "left", "right"]) choice[name] = state[`plans.${name}`];
    show();
  };

  if (byId("plans")) {
    for (const name of ["query", "left", "right"]) {
      byId(`choose-${name}`).addEventListener("change", (event) =>
        bedplate.choice.change({ [`plans.${name}`]: event.target.value }),
      );
    }
  }

  bedplate.view({
    name: "plans",
    keys: ["run", "plans.query", "plans.left", "plans.right"],
    place: "plans",
    draw,
  });
})();
