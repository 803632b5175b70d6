"use strict";
// Timelines: figures with spans in cycles (pictures/timeline.py), drawn on a canvas. What is narrower than a pixel is
// drawn with its neighbours, so that a frame takes as long as the pixels that it fills, whatever the number of spans.
for (const figure of document.querySelectorAll("figure.timeline")) {
  const [LEFT, TOP, LANE, GAP, AXIS] = [80, 6, 22, 4, 22];
  const data = JSON.parse(figure.querySelector("script").textContent);
  const canvas = figure.querySelector("canvas");
  const said = figure.querySelector("output");
  const pen = canvas.getContext("2d");
  const lanes = data.lanes.map(() => []);
  for (const span of data.spans) lanes[span[0]].push(span);
  for (const lane of lanes) lane.sort((a, b) => a[1] - b[1]);
  const view = { from: 0, to: Math.max(data.cycles, 1) };
  let [chosen, waiting] = [null, false];

  const across = () => canvas.clientWidth - LEFT - 8;
  const x = (cycle) => LEFT + ((cycle - view.from) / (view.to - view.from)) * across();
  const cycle = (pixel) => view.from + ((pixel - LEFT) / across()) * (view.to - view.from);
  // The first span of a lane that ends behind a moment: spans of a lane follow one another.
  const after = (lane, moment) => {
    let [low, high] = [0, lane.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (lane[middle][2] > moment) high = middle; else low = middle + 1;
    }
    return low;
  };
  const fill = (step) => (step.kind === "wait" ? "#8883" : `hsl(${step.hue} 60% ${step.kind === "repeat" ? 85 : 70}%)`);

  const drawLane = (lane, y) => {
    const end = LEFT + across();
    let [start, busy, upto] = [0, 0, -1];  // neighbours narrower than a pixel: where they begin, pixels of work, where they end
    const flush = () => {
      if (upto < 0) return;
      pen.fillStyle = "#888c";
      const share = Math.min(busy / Math.max(upto - start, 1), 1);
      pen.fillRect(start, y + LANE * (1 - share), Math.max(upto - start, 1), LANE * share);
      upto = -1;
    };
    for (let number = after(lane, view.from); number < lane.length && lane[number][1] < view.to; number += 1) {
      const span = lane[number];
      const step = data.steps[span[3]];
      const [low, high] = [Math.max(x(span[1]), LEFT), Math.min(x(span[2]), end)];
      if (high - low < 1) {
        if (upto >= 0 && high - start > 1) flush();
        if (upto < 0) [start, busy] = [low, 0];
        busy += step.kind === "wait" ? 0 : high - low;
        upto = high;
        continue;
      }
      flush();
      pen.fillStyle = fill(step);
      pen.fillRect(low, y, high - low, LANE);
      if (span === chosen) {
        pen.strokeStyle = "#c00";
        pen.strokeRect(low + 0.5, y + 0.5, Math.max(high - low - 1, 1), LANE - 1);
      }
      if (step.kind !== "wait" && high - low > 40) {
        pen.save();
        pen.beginPath();
        pen.rect(low, y, high - low, LANE);
        pen.clip();
        pen.fillStyle = "#000";
        pen.fillText(step.name, low + 3, y + LANE - 7);
        pen.restore();
      }
    }
    flush();
  };

  const draw = () => {
    waiting = false;
    const [width, height, dense] = [canvas.clientWidth, TOP + lanes.length * (LANE + GAP) + AXIS, devicePixelRatio || 1];
    canvas.style.height = `${height}px`;
    [canvas.width, canvas.height] = [width * dense, height * dense];
    pen.scale(dense, dense);
    pen.font = "11px system-ui, sans-serif";
    const ink = getComputedStyle(figure).color;
    lanes.forEach((lane, number) => {
      const y = TOP + number * (LANE + GAP);
      pen.fillStyle = ink;
      pen.textAlign = "right";
      pen.fillText(data.lanes[number], LEFT - 6, y + LANE - 7);
      pen.textAlign = "left";
      drawLane(lane, y);
    });
    pen.fillStyle = ink;
    const rough = (view.to - view.from) / 6;
    const tens = 10 ** Math.floor(Math.log10(rough));
    const tick = Math.max([1, 2, 5, 10].find((factor) => factor * tens >= rough) * tens, 1);
    for (let at = Math.ceil(view.from / tick) * tick; at <= view.to; at += tick) {
      pen.globalAlpha = 0.3;
      pen.fillRect(x(at), TOP, 1, height - TOP - AXIS + 4);
      pen.globalAlpha = 1;
      pen.fillText(`${at}`, x(at) + 3, height - 8);
    }
    [figure.dataset.from, figure.dataset.to] = [view.from, view.to];
  };
  const redraw = () => {
    if (!waiting) requestAnimationFrame(draw);
    waiting = true;
  };

  const show = (from, to) => {
    const length = Math.min(Math.max(to - from, 8), data.cycles);
    view.from = Math.min(Math.max(from, 0), data.cycles - length);
    view.to = view.from + length;
    redraw();
  };
  const zoom = (factor, moment = (view.from + view.to) / 2) =>
    show(moment - (moment - view.from) * factor, moment + (view.to - moment) * factor);
  const pan = (share) => show(view.from + (view.to - view.from) * share, view.to + (view.to - view.from) * share);

  const describe = (span) => {
    const [, start, end, number, bytes, ...counters] = span;
    const step = data.steps[number];
    const at = step.counters.map((name, position) => `${name}=${counters[position]}`).join(", ");
    const time = `${end - start} cycles from ${start} (${(((end - start) / data.clock_hz) * 1e6).toPrecision(3)} µs)`;
    return [step.name, step.place.split("/").pop(), at, time, bytes ? `${bytes} bytes` : ""].filter(Boolean).join(" · ");
  };
  const point = (event) => {
    const lane = lanes[Math.floor((event.offsetY - TOP) / (LANE + GAP))];
    const moment = cycle(event.offsetX);
    const span = lane && event.offsetX >= LEFT ? lane[after(lane, moment)] : undefined;
    const found = span && span[1] <= moment ? span : null;
    if (found === chosen) return;
    chosen = found;
    said.textContent = found ? describe(found) : "";
    redraw();
  };

  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;  // the page scrolls
    event.preventDefault();
    zoom(2 ** (event.deltaY / 200), cycle(event.offsetX));
  }, { passive: false });
  canvas.addEventListener("pointermove", (event) => {
    if (event.buttons & 1) pan(-event.movementX / across()); else point(event);
  });
  canvas.addEventListener("pointerdown", (event) => canvas.setPointerCapture(event.pointerId));
  canvas.addEventListener("dblclick", (event) => zoom(0.25, cycle(event.offsetX)));
  const actions = { "+": () => zoom(0.5), "-": () => zoom(2), 0: () => show(0, data.cycles),
    ArrowLeft: () => pan(-0.25), ArrowRight: () => pan(0.25) };
  canvas.addEventListener("keydown", (event) => {
    if (!Object.hasOwn(actions, event.key)) return;
    event.preventDefault();
    actions[event.key]();
  });
  for (const button of figure.querySelectorAll("button")) {
    button.addEventListener("click", () => actions[button.value]());
  }
  new ResizeObserver(redraw).observe(canvas);
}
