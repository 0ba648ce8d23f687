"use strict";
// Paper is narrower than most windows: what is drawn already is drawn again in its width, and back again.

(() => {
  // A4 and US Letter between the margins that browsers leave.
  const PAPER_PX = 680;
  const plots = () => [...document.querySelectorAll(".js-plotly-plot")];

  window.addEventListener("beforeprint", () =>
    plots().forEach((node) => {
      if (node.clientWidth > PAPER_PX) Plotly.relayout(node, { width: PAPER_PX });
    }),
  );
  window.addEventListener("afterprint", () =>
    plots().forEach((node) => Plotly.relayout(node, { width: null, autosize: true })),
  );
})();
