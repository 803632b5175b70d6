"use strict";
{
  const lines = [...document.querySelectorAll(".line[data-from]")];
  const from = (line) => line.dataset.from.split(" ");

  // Marks every line that shares an operation of the source with the clicked one; a second click takes the marks away.
  const mark = (clicked) => {
    const wanted = new Set(clicked.dataset.chosen ? [] : from(clicked));
    for (const line of lines) {
      line.classList.toggle("hit", from(line).some((number) => wanted.has(number)));
      delete line.dataset.chosen;
    }
    if (!wanted.size) return;
    clicked.dataset.chosen = "yes";
    for (const pane of document.querySelectorAll(".levels .ir")) {
      if (pane.contains(clicked)) continue;
      // Not the head of a kernel, which stems from everything in it: the first line that stems from least.
      const hits = [...pane.querySelectorAll(".hit")].sort((a, b) => from(a).length - from(b).length);
      if (hits.length) pane.scrollTop = hits[0].offsetTop - pane.clientHeight / 3;
    }
  };

  document.addEventListener("click", (event) => {
    const long = event.target.closest(".long");
    if (long) return void long.classList.toggle("open");
    const line = event.target.closest(".line[data-from]");
    if (line) mark(line);
  });

  document.getElementById("all-passes")?.addEventListener("change", (event) =>
    document.body.classList.toggle("show-all", event.target.checked));
}
