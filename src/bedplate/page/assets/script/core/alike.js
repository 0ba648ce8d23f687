"use strict";
// Which rows of a table say the same: near-twins, of which one line is enough.

bedplate.alike = (() => {
  const page = bedplate.document;
  // What a reader asks for by name is never folded into another.
  const APART = new Set(["study", "filesystem.type"]);
  // Beside overlapping intervals: what a run is about may not lie further apart, though too few repetitions tell it.
  const WITHIN = 1.1;

  // A figure's bounds for a set of cells: where all their intervals overlap, and from the least to the greatest mean.
  const boundsOf = ({ entry, isFirst }) => {
    if (!entry || entry.mean === null) return null;
    const { mean, low, high, minimum, maximum } = entry;
    return {
      low: low ?? minimum ?? mean,
      high: high ?? maximum ?? mean,
      least: mean,
      greatest: mean,
      isFirst,
    };
  };

  const together = (one, other) => {
    if (!one || !other) return one === other ? [null] : null;
    const joint = {
      low: Math.max(one.low, other.low),
      high: Math.min(one.high, other.high),
      least: Math.min(one.least, other.least),
      greatest: Math.max(one.greatest, other.greatest),
      isFirst: one.isFirst,
    };
    const isNear = !one.isFirst || joint.greatest <= joint.least * WITHIN;
    return joint.low <= joint.high && isNear ? [joint] : null;
  };

  const joined = (one, other) => {
    const figures = one.figures.map((figure, place) => together(figure, other.figures[place]));
    return figures.every(Boolean) ? figures.map(([joint]) => joint) : null;
  };

  // Groups of rows whose cells are of one class of durability, differ in one factor after the other, and in no figure further than
  // can be told. `entriesOf(cell)` are the summaries that a row shows, each as `entry`, and whether a run `isFirst` about it.
  const byFigures = (rows, entriesOf) => {
    let groups = rows.map((row) => {
      const cell = page.cells[Number(row.dataset.cell)];
      const figures = entriesOf(Number(row.dataset.cell)).map(boundsOf);
      return { rows: [row], levels: [...cell.levels], about: `${cell.study}/${cell.durability}`, figures };
    });
    page.factors.forEach(({ name }, place) => {
      if (APART.has(name)) return;
      const found = new Map();
      for (const group of groups) {
        const key = `${group.about}/${group.levels.map((level, i) => (i === place ? null : level))}`;
        if (!found.has(key)) found.set(key, []);
        const near = found.get(key);
        const twin = near.map((one) => [one, joined(one, group)]).find(([, figures]) => figures);
        if (twin) {
          const [one, figures] = twin;
          one.rows.push(...group.rows);
          Object.assign(one, { figures, merged: true });
        } else near.push(group);
      }
      groups = [...found.values()].flat();
      // What was merged has no level of this factor, and meets only what was merged alike.
      for (const group of groups) {
        if (group.merged) group.levels[place] = -1;
        group.merged = false;
      }
    });
    return groups.map((group) => group.rows);
  };

  // Groups of rows that say the same in every column but the first.
  const byText = (rows) => {
    const found = new Map();
    for (const row of rows) {
      const key = JSON.stringify([...row.cells].slice(1).map((cell) => cell.textContent));
      found.set(key, [...(found.get(key) ?? []), row]);
    }
    return [...found.values()];
  };

  return { byFigures, byText };
})();
