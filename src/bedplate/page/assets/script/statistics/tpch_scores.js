"use strict";
// TPC-H's scores over a choice of cells, as statistics/tpch_scores.py makes them over all; a test holds the two together.
// Pure: rows as the workload's page packs them in, figures and what was left out of them, out.

bedplate.tpchScores = (() => {
  const { NO_TIME, OVER_LIMIT, PLAN_UNKNOWN, PLANS_IN_A_CELL, PLANS_ACROSS_CELLS } =
    bedplate.document.rules.query_scores;
  const { filled } = bedplate.words;

  const sum = (values) => values.reduce((one, other) => one + other, 0);
  const isNumber = (query) => /^[0-9]+$/.test(query);
  const order = (one, other) => {
    if (isNumber(one) && isNumber(other)) return Number(one) - Number(other);
    if (isNumber(one) !== isNumber(other)) return isNumber(one) ? -1 : 1;
    return one < other ? -1 : one > other ? 1 : 0;
  };

  // The median with timeouts above every time; a timeout where it hangs on one, null without any value.
  const median = (times) => {
    const finished = times.filter((time) => time > 0).sort((one, other) => one - other);
    const limits = times.filter((time) => time < 0).map((time) => -time);
    const count = finished.length + limits.length;
    if (!count) return null;
    const middle = Math.floor(count / 2);
    if (middle >= finished.length) return { seconds: Math.max(...limits), timeout: true };
    return {
      seconds: count % 2 ? finished[middle] : (finished[middle - 1] + finished[middle]) / 2,
      timeout: false,
    };
  };

  // The third of a row: 0 of a valid run, 2 where validity is unknown.
  const SUSPECT = 1;
  // The runs of a cell that count, by query and repetition.
  const cellOf = (cell, rows, queries) => {
    const mine = rows.filter((row) => row[0] === cell);
    const trusted = mine.filter((row) => !row[2]);
    const runs = new Map();
    for (const [, repetition, , times, plans] of trusted.length ? trusted : mine) {
      queries.forEach((query, place) => {
        if (times[place] === null) return;
        if (!runs.has(query)) runs.set(query, new Map());
        runs.get(query).set(repetition, { time: times[place], plan: plans[place] });
      });
    }
    const times = new Map();
    for (const [query, found] of runs) {
      const time = median([...found.values()].map((run) => run.time));
      if (time) times.set(query, time);
    }
    return {
      cell,
      basis: trusted.length ? "trusted" : mine.some((row) => row[2] === SUSPECT) ? "suspect" : "unknown",
      runs,
      times,
    };
  };

  const bestTimes = (cells) => {
    const best = new Map();
    for (const { times } of cells) {
      for (const [query, time] of times) {
        const held = best.get(query);
        if (!held || time.timeout < held.timeout || (time.timeout === held.timeout && time.seconds < held.seconds))
          best.set(query, time);
      }
    }
    return best;
  };

  // Why a query is no part of the m-figures, as cause, words and the cells behind them, as groups of indices.
  const dropReasons = (query, cells) => {
    const reasons = [];
    const byPlan = new Map();
    for (const { cell, runs } of cells) {
      const found = [...(runs.get(query)?.values() ?? [])];
      const timeouts = found.filter((run) => run.time < 0).length;
      const known = new Set(found.map((run) => run.plan).filter((plan) => plan >= 0));
      if (!found.some((run) => run.time !== 0)) {
        reasons.push([NO_TIME, filled("no_time_in", { cells: "" }), [[cell]]]);
        continue;
      }
      if (timeouts)
        reasons.push([OVER_LIMIT, filled("over_limit_in", { timeouts, n: found.length, cells: "" }), [[cell]]]);
      if (found.some((run) => run.time > 0 && run.plan < 0))
        reasons.push([PLAN_UNKNOWN, filled("plan_unknown_in", { cells: "" }), [[cell]]]);
      if (known.size > 1) reasons.push([PLANS_IN_A_CELL, filled("plans_in", { n: known.size, cells: "" }), [[cell]]]);
      for (const plan of known) byPlan.set(plan, [...(byPlan.get(plan) ?? []), cell]);
    }
    if (byPlan.size > 1) {
      const groups = [...byPlan.values()].sort((one, other) => other.length - one.length);
      reasons.push([PLANS_ACROSS_CELLS, filled("plans_across", { n: groups.length, cells: "" }), groups]);
    }
    return reasons;
  };

  const TIME = {
    of: (times) => sum([...times.values()].map((time) => time.seconds)),
    share: (value, best) => sum(best.map((time) => time.seconds)) / value,
    most: () => Infinity,
  };
  const SCORE = {
    of: (times, best) =>
      sum([...times].map(([query, time]) => (time.timeout ? 0 : best.get(query).seconds / time.seconds))),
    share: (value, best) => value / best.length,
    most: (count) => count,
  };

  // The times of every repetition that has all the queries.
  const complete = ({ runs }, queries) => {
    const numbers = new Set([...runs.values()].flatMap((found) => [...found.keys()]));
    return [...numbers]
      .map(
        (number) =>
          new Map(
            queries.flatMap((query) => {
              const run = runs.get(query)?.get(number);
              const time = run ? median([run.time]) : null;
              return time ? [[query, time]] : [];
            }),
          ),
      )
      .filter((times) => times.size === queries.length);
  };

  const interval = (value, repeated, most, factors) => {
    const factor = factors[repeated.length] ?? null;
    if (factor === null || Math.min(...repeated) <= 0 || value <= 0) return [null, null];
    const logarithms = repeated.map(Math.log);
    const mean = sum(logarithms) / logarithms.length;
    const half = factor * Math.sqrt(sum(logarithms.map((one) => (one - mean) ** 2)) / (logarithms.length - 1));
    const high = value * Math.exp(half);
    return Number.isFinite(high) ? [value * Math.exp(-half), Math.min(high, Math.max(most, value))] : [null, null];
  };

  // Value, share of the ideal, ends of the interval, why there is none: as in the document.
  const figure = (cell, queries, best, kind, factors) => {
    if (!queries.length) return [null, null, null, null, [filled("none_kept")]];
    const missing = queries.filter((query) => !cell.times.has(query));
    if (missing.length) return [null, null, null, null, missing.map((query) => filled("without_time", { query }))];
    const value = kind.of(new Map(queries.map((query) => [query, cell.times.get(query)])), best);
    const repeated = complete(cell, queries).map((times) => kind.of(times, best));
    return [
      value,
      kind.share(
        value,
        queries.map((query) => best.get(query)),
      ),
      ...interval(value, repeated, kind.most(queries.length), factors),
      [],
    ];
  };

  const unlike = (cell, kept, trusted) => {
    if (cell.basis === "trusted" || !trusted.length) return [];
    return kept.flatMap((query) => {
      const causes = new Set(dropReasons(query, [trusted[0], cell]).map(([cause]) => cause));
      return causes.size ? [filled("unlike", { query, causes: [...causes].join(", ") })] : [];
    });
  };

  const scores = ({ queries: all, rows }, selected, factors) => {
    const made = selected.map((cell) => cellOf(cell, rows, all));
    const cells = made.filter((cell) => cell.times.size);
    const queries = [...new Set(cells.flatMap((cell) => [...cell.runs.keys()]))].sort(order);
    const trusted = cells.filter((cell) => cell.basis === "trusted");
    const deciding = trusted.length ? trusted : cells;
    const best = new Map([...bestTimes(cells), ...bestTimes(deciding)]);
    const dropped = queries
      .map((query) => [query, dropReasons(query, deciding)])
      .filter(([, reasons]) => reasons.length);
    const kept = queries.filter((query) => !dropped.some(([gone]) => gone === query));
    return {
      queries,
      kept,
      dropped,
      left_out: made.filter((cell) => !cell.times.size).map((cell) => [cell.cell, filled("no_time_here")]),
      only_suspect: cells.filter((cell) => cell.basis !== "trusted").map((cell) => cell.cell),
      cells: cells.map((cell) => {
        const against = unlike(cell, kept, trusted);
        const none = [null, null, null, null, [filled("untrusted"), ...against]];
        const kind = (chosen, how) => figure(cell, chosen, best, how, factors);
        return {
          cell: cell.cell,
          basis: cell.basis,
          n: new Set([...cell.runs.values()].flatMap((found) => [...found.keys()])).size,
          timeouts: queries.filter((query) => cell.times.get(query)?.timeout),
          time: kind(queries, TIME),
          score: kind(queries, SCORE),
          m_time: against.length ? none : kind(kept, TIME),
          m_score: against.length ? none : kind(kept, SCORE),
        };
      }),
    };
  };

  return { scores };
})();
