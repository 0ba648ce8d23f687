"use strict";
// Tables that stand on the page before any script answer to the choice by hiding rows, each of which names its cell.

(() => {
  const draw = () => {
    const shown = new Set(bedplate.choice.shown().map(String));
    for (const body of document.querySelectorAll("#summary tbody, #durability tbody")) {
      let head = null;
      for (const row of body.rows) {
        if (row.classList.contains("group")) {
          head = row;
          head.hidden = true;
        } else if (row.dataset.cell !== undefined) {
          row.hidden = !shown.has(row.dataset.cell);
          // A heading without a row below it says nothing.
          if (head && !row.hidden) head.hidden = false;
        }
      }
    }
  };

  bedplate.view({ name: "rows", keys: ["shown"], draw });
})();
