// The timeline: marks that can be selected, dragged and stretched, a play head and a ruler. Times are in seconds and multiples of a control step.
const STEP = 0.02, LEFT = 26, RIGHT = 60, SHORTEST = 4, REACH = 20;
const view = document.getElementById("ks-view");
view.innerHTML = `<div id="ks-ruler"></div><div id="ks-range"></div><div id="ks-after"></div><canvas id="ks-wave"></canvas><div id="ks-lane"></div><div id="ks-done"></div>
  <div id="ks-empty">Double-click here, or move the play head and press <kbd>K</kbd>, to add a keyframe.</div>
  <div id="ks-band"><i data-end="0"></i><i data-end="1"></i></div><div id="ks-box"></div><div id="ks-head"></div><div id="ks-tip"></div>
  <div id="ks-zoom"><button data-zoom="0.5" title="Zoom out" aria-label="Zoom out">−</button><button data-zoom="2" title="Zoom in" aria-label="Zoom in">+</button></div>`;
const [ruler, range, after, wave, done, empty, band, box, headLine, tip] =
  ["ruler", "range", "after", "wave", "done", "empty", "band", "box", "head", "tip"].map((id) => document.getElementById(`ks-${id}`));
const marks = new Map();
let script = { marks: [], selected: null, selection: [] }, now = { head: 0, recorded: 0, end: 0, shoves: [] };
let zoom = 1, pan = 0, held = null, scrubbing = false, following = true;

const whole = (time) => Math.max(Math.round(time / STEP) * STEP, 0);
const span = () => Math.max(SHORTEST, music?.buffer.duration ?? 0, ...script.marks.map((mark) => mark.time + 1.6)) / zoom;
const width = () => Math.max(view.clientWidth - LEFT - RIGHT, 100);
const toX = (time) => LEFT + ((time - pan) / span()) * width();
const toTime = (x) => pan + ((x - LEFT) / width()) * span();
const xOf = (event) => event.clientX - view.getBoundingClientRect().left;
const yOf = (event) => event.clientY - view.getBoundingClientRect().top;
const isSelected = (key) => script.selection.includes(key);

function snap(time, event) { // unless Alt is held
  const grid = button("snap").value;
  if (event?.altKey || grid === "0") return whole(time);
  if (grid !== "beats") return whole(Math.round(time / Number(grid)) * Number(grid));
  const beats = music?.beats ?? [];
  return whole(beats.reduce((best, beat) => (Math.abs(beat - time) < Math.abs(best - time) ? beat : best), beats[0] ?? time));
}

function drawRuler() {
  const steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300];
  const major = steps.find((step) => (step / span()) * width() > 70) ?? 600, minor = major / 5;
  let ticks = "", rules = "";
  for (let i = Math.max(Math.floor(pan / minor), 0); i * minor <= toTime(view.clientWidth); i++) {
    const time = i * minor, x = toX(time), full = i % 5 === 0;
    ticks += `<div class="ks-tick${full ? " major" : ""}" style="left:${x}px">${full ? `<span>${+time.toFixed(2)} s</span>` : ""}</div>`;
    if (full) rules += `<div class="ks-rule" style="left:${x}px"></div>`;
  }
  for (const time of now.shoves ?? []) ticks += `<div class="ks-event" style="left:${toX(time)}px" title="shove at ${time.toFixed(2)} s">➤</div>`;
  if (now.fell != null) ticks += `<div class="ks-event fell" style="left:${toX(now.fell)}px" title="fell at ${now.fell.toFixed(2)} s">▼</div>`;
  ruler.innerHTML = ticks;
  view.querySelectorAll(".ks-rule").forEach((rule) => rule.remove());
  after.insertAdjacentHTML("beforebegin", rules);
}
const shownTime = (mark) => held?.times?.get(mark.key) ?? mark.time;

// Neighbouring marks share the space between them, so hit areas do not overlap, and the gems are as small as they must be
// to stay within. Labels that would overlap are placed by priority: the selected mark, missed marks with the worst first,
// the rest. Odds have a second row; labels that do not fit are hidden.
const WIDTHS = { name: () => 74, odds: (mark) => 28 + 8 * String(mark.odds ?? "").length, dots: () => 44 }; // px
const ROWS = { name: 1, odds: 2, dots: 1 }, NAME_WIDTH = 120;
const GEM = 21, NUMBERED = 13; // px: side of a gem, and of the smallest one with a number
const isMissed = (mark) => mark.state === "missed" || (mark.misses ?? []).length > 0 || (mark.odds ?? 100) < 50;
const rank = (mark) => (mark.key === script.selected ? -1 : isMissed(mark) ? (mark.odds ?? 0) / 100 : 2);
function layOut() {
  const places = script.marks.map((mark) => ({ mark, x: toX(shownTime(mark)), rows: {} })).sort((a, b) => a.x - b.x);
  places.forEach((place, i) => {
    place.left = Math.min(REACH, i ? (place.x - places[i - 1].x) / 2 : REACH);
    place.right = Math.min(REACH, i + 1 < places.length ? (places[i + 1].x - place.x) / 2 : REACH);
  });
  const byRank = [...places].sort((a, b) => rank(a.mark) - rank(b.mark)); // stable, so equal ranks stay in the order of time
  for (const part of Object.keys(WIDTHS)) {
    const rows = Array.from({ length: ROWS[part] }, () => []);
    for (const place of byRank) {
      if (part === "name" && !place.mark.label) continue;
      const half = WIDTHS[part](place.mark) / 2;
      place.rows[part] = rows.findIndex((row) => row.every((other) => Math.abs(other.x - place.x) >= other.half + half));
      rows[place.rows[part]]?.push({ x: place.x, half });
    }
    if (part === "name") places.forEach((place) => {
      place.nameWidth = Math.min(NAME_WIDTH, ...rows[0].map(({ x }) => Math.abs(x - place.x) || NAME_WIDTH));
    });
  }
  for (const place of places) {
    place.hides = Object.keys(WIDTHS).filter((part) => place.rows[part] === -1);
    place.gem = Math.min(GEM, Math.max(Math.SQRT2 * Math.min(place.left, place.right), 2)); // it stands on its corner
    if (place.gem < NUMBERED) place.hides.push("num");
  }
  return places;
}
function drawMark({ mark, x, left, right, gem, hides, rows, nameWidth }) {
  let element = marks.get(mark.key);
  if (!element) {
    element = document.createElement("div");
    element.dataset.key = mark.key;
    element.tabIndex = 0;
    element.setAttribute("role", "button");
    element.addEventListener("pointerdown", grab);
    element.addEventListener("focus", () => { if (byTab && !isSelected(mark.key)) channel.send("select", [mark.key]); });
    view.appendChild(element);
    marks.set(mark.key, element);
  }
  element.className = `ks-mark ${mark.state}${isSelected(mark.key) ? " selected" : ""}${mark.key === script.selected ? " primary" : ""}${script.stale ? " stale" : ""}${rows.odds > 0 ? " low-odds" : ""} ${hides.map((part) => `no-${part}`).join(" ")}`;
  element.style.cssText = `left:${x}px;--c:${mark.colour};--o:${mark.oddsColour ?? "transparent"};--l:${left}px;--w:${left + right}px;--n:${nameWidth}px;--g:${gem}px`;
  const words = [`Keyframe ${mark.number} at ${mark.time.toFixed(2)} s`, mark.label, mark.state, mark.odds === null ? "" : `met in ${mark.odds}% of trials`, ...(mark.misses ?? []), mark.asks, ...mark.warnings].filter(Boolean);
  if (element.title !== words.join("\n")) { element.title = words.join("\n"); element.setAttribute("aria-label", words.join(", ")); }
  element.setAttribute("aria-pressed", isSelected(mark.key));
  const odds = mark.odds === null ? '<span class="wait">…</span>' : `<span>${mark.odds}%</span>`;
  const body = `<div class="hit"></div><div class="stem"></div><div class="gem"></div><div class="num">${mark.number}</div>
    <div class="name">${clean(mark.label)}</div><div class="odds">${odds}</div>
    <div class="dots">${mark.parts.map((on, i) => `<i class="${on ? "on" : ""}${mark.over?.[i] ? " over" : ""}"></i>`).join("")}</div>${mark.warnings.length ? '<div class="warn">!</div>' : ""}`;
  if (element.drawn !== body) element.innerHTML = element.drawn = body;
}
function drawMarks() {
  const keys = new Set(script.marks.map((mark) => mark.key));
  for (const [key, element] of marks) if (!keys.has(key)) { element.remove(); marks.delete(key); }
  layOut().forEach(drawMark);
  empty.style.display = script.marks.length ? "none" : "block";
  const ends = selectedEnds();
  band.style.display = ends ? "block" : "none";
  if (ends) band.style.cssText += `;left:${toX(ends[0])}px;width:${toX(ends[1]) - toX(ends[0])}px`;
}
function selectedEnds() {
  const times = script.marks.filter((mark) => isSelected(mark.key)).map(shownTime);
  return times.length > 1 ? [Math.min(...times), Math.max(...times)] : null;
}
function drawHead() {
  headLine.style.left = `${toX(now.head)}px`;
  done.style.left = `${toX(0)}px`;
  done.style.width = `${Math.max(toX(now.recorded) - toX(0), 0)}px`;
  done.classList.toggle("busy", !!now.simulating);
  after.style.left = `${toX(now.end)}px`;
  range.style.display = now.range ? "block" : "none";
  if (now.range) range.style.cssText = `left:${toX(now.range[0])}px;width:${toX(now.range[1]) - toX(now.range[0])}px`;
}
function draw() { drawRuler(); drawMarks(); drawHead(); drawWave(); }
function followHead() {
  if (!now.playing || !following || zoom <= 1) return;
  if (now.head < pan || now.head > pan + 0.92 * span()) { pan = Math.max(now.head - 0.08 * span(), 0); draw(); }
}

function showTip(x, text) {
  tip.style.display = text ? "block" : "none";
  tip.style.left = `${x}px`;
  tip.textContent = text;
}
function hold(event, what) {
  held = { from: xOf(event), top: yOf(event), times: null, sent: 0, ...what };
  view.setPointerCapture(event.pointerId);
}
const startTimes = () => new Map(script.marks.filter((mark) => isSelected(mark.key)).map((mark) => [mark.key, mark.time]));
function grab(event) {
  if (event.button !== 0) return;
  event.stopPropagation();
  const key = Number(event.currentTarget.dataset.key), mark = script.marks.find((one) => one.key === key);
  if (event.shiftKey || event.ctrlKey || event.metaKey) { channel.send("toggle_selected", key); return; }
  hold(event, { kind: "mark", key, start: isSelected(key) ? startTimes() : new Map([[key, mark.time]]) });
  if (!isSelected(key)) channel.send("select", [key]);
}
band.addEventListener("pointerdown", (event) => {
  if (event.button !== 0 || event.target === band) return;
  event.stopPropagation();
  const ends = selectedEnds(), last = event.target.dataset.end === "1";
  hold(event, { kind: "scale", start: startTimes(), edge: ends[last ? 1 : 0], pivot: ends[last ? 0 : 1] });
});
function dragMarks(event) {
  const x = xOf(event);
  if (held.times === null && Math.abs(x - held.from) < 4) return;
  const grabbed = held.start.get(held.key), first = Math.min(...held.start.values());
  const delta = Math.max(snap(grabbed + toTime(x) - toTime(held.from), event) - grabbed, STEP - first);
  held.times = new Map([...held.start].map(([key, time]) => [key, time + delta]));
  held.message = ["retime", [held.key, held.times.get(held.key)]];
  showTip(toX(held.times.get(held.key)), `${held.times.get(held.key).toFixed(2)} s`);
}
function stretch(event) {
  const edge = snap(held.edge + toTime(xOf(event)) - toTime(held.from), event);
  const factor = Math.max((edge - held.pivot) / (held.edge - held.pivot), 0.05);
  held.times = new Map([...held.start].map(([key, time]) => [key, held.pivot + (time - held.pivot) * factor]));
  held.message = ["scale", [held.pivot, factor, Object.fromEntries(held.start)]];
  showTip(xOf(event), `× ${factor.toFixed(2)}`);
}
function selectBox(event) {
  const [a, b] = [held.from, xOf(event)].sort((p, q) => p - q);
  if (held.kind === "lane" && b - a < 5) return;
  held.kind = "box";
  box.style.cssText = `display:block;left:${a}px;width:${b - a}px`;
  held.keys = script.marks.filter((mark) => toX(mark.time) >= a && toX(mark.time) <= b).map((mark) => mark.key);
}
function setRange(start, end) {
  const [a, b] = now.range ?? [0, now.end];
  channel.send("range", [start ?? a, end ?? b]);
}
function move(event) {
  if (held?.kind === "mark") dragMarks(event);
  else if (held?.kind === "scale") stretch(event);
  else if (held?.kind === "lane" || held?.kind === "box") return selectBox(event);
  else if (held?.kind === "range") return channel.send("range", [held.time, whole(toTime(xOf(event)))]);
  else if (scrubbing) return scrub(event);
  if (!held?.message) return;
  drawMarks();
  if (performance.now() - held.sent > 70) {
    held.sent = performance.now();
    channel.send(...held.message);
  }
}
function release(event) {
  if (held?.message) {
    channel.send(...held.message);
    channel.send("done");
    script.marks.forEach((mark) => { mark.time = held.times.get(mark.key) ?? mark.time; });
  } else if (held?.kind === "mark") channel.send("select", [held.key]); // a click on one of several selects it alone
  if (held?.kind === "box") channel.send("select", event.shiftKey ? [...script.selection, ...held.keys] : held.keys);
  if (held?.kind === "lane") scrub(event);
  held = null;
  scrubbing = false;
  box.style.display = "none";
  showTip(0, "");
  drawMarks();
}
function scrub(event) {
  now.head = whole(toTime(xOf(event)));
  drawHead();
  showTip(toX(now.head), `${now.head.toFixed(2)} s`);
  channel.send("seek", now.head);
}
view.addEventListener("pointerdown", (event) => {
  if (event.button !== 0) return;
  document.activeElement?.blur();
  if (yOf(event) > ruler.offsetHeight) return hold(event, { kind: "lane" });
  if (event.shiftKey) { channel.send("range", null); return hold(event, { kind: "range", time: whole(toTime(xOf(event))) }); }
  scrubbing = true;
  view.setPointerCapture(event.pointerId);
  scrub(event);
});
view.addEventListener("pointermove", move);
view.addEventListener("pointerup", release);
view.addEventListener("pointercancel", () => { held = null; scrubbing = false; box.style.display = "none"; showTip(0, ""); });
view.addEventListener("dblclick", (event) => {
  if (!event.target.closest(".ks-mark")) channel.send("add", snap(toTime(xOf(event)), event));
});
function zoomBy(factor, x, time = toTime(x)) { // keep a time at a place
  zoom = Math.min(Math.max(zoom * factor, 1), 60);
  pan = time - ((x - LEFT) / width()) * span();
  panBy(0);
}
function panBy(seconds) {
  pan = Math.min(Math.max(pan + seconds, 0), span() * zoom - span());
  draw();
}
view.addEventListener("wheel", (event) => {
  event.preventDefault();
  if (event.ctrlKey || Math.abs(event.deltaY) > Math.abs(event.deltaX)) zoomBy(Math.exp(-event.deltaY / 500), xOf(event));
  else panBy((event.deltaX / width()) * span());
}, { passive: false });
document.getElementById("ks-zoom").addEventListener("click", (event) => {
  const factor = Number(event.target.dataset.zoom), x = toX(now.head);
  if (factor) zoomBy(factor, x >= LEFT && x <= LEFT + width() ? x : LEFT + width() / 2); // about the play head if it is in view
});
for (const type of ["pointerdown", "dblclick"]) document.getElementById("ks-zoom").addEventListener(type, (event) => event.stopPropagation());

// Two fingers zoom and pan. They take over from what the first one began.
const fingers = new Map();
const spread = () => { const [a, b] = fingers.values(); return { x: (a + b) / 2, width: Math.max(Math.abs(a - b), 20) }; };
view.addEventListener("pointerdown", (event) => {
  if (event.pointerType !== "touch") return;
  fingers.set(event.pointerId, xOf(event));
  if (fingers.size === 2) { held = null; scrubbing = false; box.style.display = "none"; showTip(0, ""); channel.send("done"); event.stopImmediatePropagation(); }
}, true);
view.addEventListener("pointermove", (event) => {
  if (!fingers.has(event.pointerId)) return;
  const before = fingers.size === 2 ? spread() : null;
  fingers.set(event.pointerId, xOf(event));
  if (!before) return;
  const after = spread();
  zoomBy(after.width / before.width, after.x, toTime(before.x));
  event.stopImmediatePropagation();
}, true);
for (const type of ["pointerup", "pointercancel"]) window.addEventListener(type, (event) => fingers.delete(event.pointerId), true);
new ResizeObserver(() => draw()).observe(view);
