"use strict";
// Plotly in the page's own clothes: its fonts, its colours in both themes, thin lines, no tool bar.

bedplate.charts = (() => {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const series = (index) => colour(`--series-${(index % 8) + 1}`);
  // Plotly reads a small markup in its texts; what came from outside must not speak it.
  const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  const axis = (more = {}) => ({
    gridcolor: colour("--line"),
    zeroline: false,
    linecolor: colour("--line"),
    tickcolor: colour("--line"),
    ticks: "",
    automargin: true,
    fixedrange: false,
    separatethousands: true,
    ...more,
  });

  const layout = (more = {}) => ({
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour("--muted") },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    showlegend: false,
    margin: { l: 52, r: 12, t: 8, b: 38 },
    hovermode: "x unified",
    dragmode: "zoom",
    hoverlabel: {
      bgcolor: colour("--surface"),
      bordercolor: colour("--line"),
      font: { color: colour("--ink"), size: 12 },
    },
    ...more,
  });

  // Plotly stands on the page as text: it takes longer to start than all the rest, and is started for the first
  // picture that is drawn.
  const start = () => {
    if (window.Plotly) return;
    const script = document.createElement("script");
    script.textContent = document.getElementById("plotly").textContent;
    document.head.append(script);
  };

  // A picture is as wide as its place, which also changes when another one beside it comes or goes.
  const fitting = new ResizeObserver((entries) => {
    for (const { target, contentRect } of entries) {
      const drawn = target.querySelector(".main-svg")?.getBoundingClientRect().width;
      if (drawn && contentRect.width > 0 && Math.abs(drawn - contentRect.width) > 1) Plotly.Plots.resize(target);
    }
  });

  const draw = (id, traces, made) => {
    start();
    const node = document.getElementById(id);
    node.style.height = `${made.height ?? 320}px`;
    fitting.observe(node);
    return Plotly.react(node, traces, made, {
      displayModeBar: false,
      responsive: false,
      doubleClick: "reset",
    });
  };

  const clear = (id) => {
    const node = document.getElementById(id);
    window.Plotly?.purge(node);
    node.style.height = "auto";
  };

  // Shades behind a course: warm-up grey, every other phase of a run of several, checkpoints orange.
  /** @param {(string | number)[]} lanes */
  const shades = (measurement, firstSecond, lanes = [""], phases = []) => {
    const m = bedplate.document.measurements;
    const made = [];
    const band = (x0, x1, fill) =>
      lanes.forEach((lane) =>
        made.push({
          type: "rect",
          xref: "x",
          yref: `y${lane} domain`,
          x0,
          x1,
          y0: 0,
          y1: 1,
          fillcolor: fill,
          line: { width: 0 },
          layer: "below",
        }),
      );
    phases.forEach(([, start, end], place) => {
      if (place % 2 === 0) band(start, end, colour("--phase"));
    });
    if (firstSecond < 0) band(firstSecond, 0, colour("--warmup"));
    for (const [, start, end] of m.windows[measurement])
      band(start, end ?? m.duration_s[measurement] ?? start, colour("--checkpoint"));
    return made;
  };

  return { axis, clear, colour, draw, layout, plain, series, shades };
})();
