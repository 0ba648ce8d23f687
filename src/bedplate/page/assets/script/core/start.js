"use strict";
// The start: the data, the choice that the address holds, then every view once.

(async () => {
  bedplate.data.open();
  bedplate.choice.open();
  // Plotly's colours are drawn in, not styled: another theme, or paper, needs another drawing.
  for (const query of ["(prefers-color-scheme: dark)", "print"])
    window.matchMedia(query).addEventListener("change", async () => {
      await bedplate.views.drawAll();
      if (query === "print") await bedplate.onScreen.all();
    });
  await bedplate.views.drawAll();
  bedplate.choice.scroll();
  // When all is loaded the browser goes to the address's section by itself, and leaves its heading above the window.
  if (document.readyState !== "complete") window.addEventListener("load", () => setTimeout(bedplate.choice.scroll));
  document.documentElement.dataset.ready = "yes";
})();
