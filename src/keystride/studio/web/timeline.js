// The timeline: marks that can be dragged, a play head, a ruler. Times are seconds, snapped to control steps.
const STEP = 0.02, LEFT = 26, RIGHT = 60, SHORTEST = 4;
const view = document.getElementById("ks-view");
view.innerHTML = `<div id="ks-ruler"></div><div id="ks-after"></div><div id="ks-lane"></div><div id="ks-done"></div>
  <div id="ks-empty">Put the play head where you want it and press <kbd>K</kbd>, or double-click here, to add a keyframe.</div>
  <div id="ks-head"></div><div id="ks-tip"></div>`;
const [ruler, after, done, empty, headLine, tip] = ["ruler", "after", "done", "empty", "head", "tip"].map((id) => document.getElementById(`ks-${id}`));
const marks = new Map();
let script = { marks: [], selected: null }, now = { head: 0, recorded: 0, end: 0 };
let zoom = 1, pan = 0, held = null, scrubbing = false;

const snap = (time) => Math.max(Math.round(time / STEP) * STEP, 0);
const span = () => Math.max(SHORTEST, ...script.marks.map((mark) => mark.time + 1.6)) / zoom;
const width = () => Math.max(view.clientWidth - LEFT - RIGHT, 100);
const toX = (time) => LEFT + ((time - pan) / span()) * width();
const toTime = (x) => pan + ((x - LEFT) / width()) * span();
const xOf = (event) => event.clientX - view.getBoundingClientRect().left;

function drawRuler() {
  const steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300];
  const major = steps.find((step) => (step / span()) * width() > 70) ?? 600, minor = major / 5;
  let ticks = "", rules = "";
  for (let i = Math.max(Math.floor(pan / minor), 0); i * minor <= toTime(view.clientWidth); i++) {
    const time = i * minor, x = toX(time), whole = i % 5 === 0;
    ticks += `<div class="ks-tick${whole ? " major" : ""}" style="left:${x}px">${whole ? `<span>${+time.toFixed(2)} s</span>` : ""}</div>`;
    if (whole) rules += `<div class="ks-rule" style="left:${x}px"></div>`;
  }
  ruler.innerHTML = ticks;
  view.querySelectorAll(".ks-rule").forEach((rule) => rule.remove());
  after.insertAdjacentHTML("beforebegin", rules);
}
function drawMark(mark) {
  let element = marks.get(mark.key);
  if (!element) {
    element = document.createElement("div");
    element.dataset.key = mark.key;
    element.addEventListener("pointerdown", grab);
    view.appendChild(element);
    marks.set(mark.key, element);
  }
  const time = held?.key === mark.key && held.time !== null ? held.time : mark.time;
  element.className = `ks-mark ${mark.state}${mark.key === script.selected ? " selected" : ""}`;
  element.style.cssText = `left:${toX(time)}px;--c:${mark.colour};--o:${mark.oddsColour ?? "#39404c"}`;
  element.title = [`${mark.number}: ${mark.time.toFixed(2)} s, ${mark.state}`, mark.asks, ...mark.warnings].join("\n");
  const odds = mark.odds === null ? '<span class="wait">…</span>' : `<span>${mark.odds} %</span>`;
  const body = `<div class="hit"></div><div class="stem"></div><div class="gem"></div><div class="num">${mark.number}</div>
    <div class="name">${clean(mark.label)}</div><div class="odds">${odds}</div>
    <div class="dots">${mark.parts.map((on) => `<i${on ? ' class="on"' : ""}></i>`).join("")}</div>${mark.warnings.length ? '<div class="warn">!</div>' : ""}`;
  if (element.drawn !== body) element.innerHTML = element.drawn = body;
}
function drawMarks() {
  const keys = new Set(script.marks.map((mark) => mark.key));
  for (const [key, element] of marks) if (!keys.has(key)) { element.remove(); marks.delete(key); }
  script.marks.forEach(drawMark);
  empty.style.display = script.marks.length ? "none" : "block";
}
function drawHead() {
  headLine.style.left = `${toX(now.head)}px`;
  done.style.left = `${toX(0)}px`;
  done.style.width = `${Math.max(toX(now.recorded) - toX(0), 0)}px`;
  after.style.left = `${toX(now.end)}px`;
}
function draw() { drawRuler(); drawMarks(); drawHead(); }

function showTip(x, text) {
  tip.style.display = text ? "block" : "none";
  tip.style.left = `${x}px`;
  tip.textContent = text;
}
function grab(event) {
  if (event.button !== 0) return;
  event.stopPropagation();
  const key = Number(event.currentTarget.dataset.key), mark = script.marks.find((one) => one.key === key);
  held = { key, from: xOf(event), start: mark.time, time: null, sent: 0 };
  view.setPointerCapture(event.pointerId);
  if (key !== script.selected) channel.send("select", key);
}
function dragMark(event) {
  const x = xOf(event);
  if (held.time === null && Math.abs(x - held.from) < 4) return;
  held.time = Math.max(snap(held.start + toTime(x) - toTime(held.from)), STEP);
  showTip(toX(held.time), `${held.time.toFixed(2)} s`);
  drawMarks();
  if (performance.now() - held.sent > 70) {
    held.sent = performance.now();
    channel.send("retime", [held.key, held.time]);
  }
}
function release() {
  if (held && held.time !== null) {
    channel.send("retime", [held.key, held.time]);
    channel.send("done");
    const mark = script.marks.find((one) => one.key === held.key);
    if (mark) mark.time = held.time;
  }
  held = null;
  scrubbing = false;
  showTip(0, "");
}
function scrub(event) {
  now.head = snap(toTime(xOf(event)));
  drawHead();
  showTip(toX(now.head), `${now.head.toFixed(2)} s`);
  channel.send("seek", now.head);
}
view.addEventListener("pointerdown", (event) => {
  if (event.button !== 0) return;
  document.activeElement?.blur();
  scrubbing = true;
  view.setPointerCapture(event.pointerId);
  scrub(event);
});
view.addEventListener("pointermove", (event) => {
  if (held) dragMark(event);
  else if (scrubbing) scrub(event);
});
view.addEventListener("pointerup", release);
view.addEventListener("pointercancel", release);
view.addEventListener("dblclick", (event) => {
  if (!event.target.closest(".ks-mark")) channel.send("add", snap(toTime(xOf(event))));
});
view.addEventListener("wheel", (event) => {
  event.preventDefault();
  const time = toTime(xOf(event));
  if (event.ctrlKey || Math.abs(event.deltaY) > Math.abs(event.deltaX)) {
    zoom = Math.min(Math.max(zoom * Math.exp(-event.deltaY / 500), 1), 60);
    pan = time - ((xOf(event) - LEFT) / width()) * span();
  } else pan += (event.deltaX / width()) * span();
  pan = Math.min(Math.max(pan, 0), span() * zoom - span());
  draw();
}, { passive: false });
new ResizeObserver(draw).observe(view);
