"use strict";
// A line for each cell: how many bricks were laid in a second.

bedplate.view({
  name: "walls",
  keys: [],
  place: "walls-list",
  draw: () =>
    document
      .getElementById("walls-list")
      .replaceChildren(
        ...bedplate.document.walls.map(([cell, bricks]) =>
          bedplate.element("li", {}, bedplate.words.filled("bricks_in", { bricks, cell })),
        ),
      ),
});
