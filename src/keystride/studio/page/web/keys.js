// Keyboard shortcuts and their list, keyboard focus, and the work that the browser stores for the session.
const HELP = [
  ["Space", "play or pause"], ["Home", "back to the start"],
  ["← →", "one control step (20 ms) back, forward"], ["Shift ← →", "ten steps"],
  ["Ctrl ← →", "go to the previous, next keyframe"], ["↑ ↓", "select the previous, next keyframe"],
  ["Shift ↑ ↓", "add it to the selection"], ["Ctrl A", "select all"],
  ["K", "add a keyframe at the play head"], [", .", "move selected keyframes 20 ms earlier, later"],
  ["Ctrl C", "copy"], ["Ctrl X", "cut"], ["Ctrl V", "paste at the play head"], ["Ctrl D", "duplicate"],
  ["Del", "delete"], ["Shift Del", "delete and close the gap"],
  ["Ctrl Z", "undo"], ["Ctrl Shift Z", "redo"],
  ["[ ]", "slower, faster"], ["L", "loop"], ["I O", "start, end of the looped range"], ["B", "tap a beat"],
  ["F", "follow the robot with the camera, or not"], ["1 2 3", "side, top, free view"],
  ["P", "shove the robot"], ["Esc", "select none"], ["Ctrl S", "save the script"], ["?", "show this list"],
];
const help = document.createElement("dialog");
help.id = "ks-help";
help.className = "ks-dialog";
help.innerHTML = `<h2>Keyboard shortcuts</h2><div class="cols">${HELP.map(([keys, text]) =>
  `<div><span>${text}</span><span>${keys.split(" ").map((key) => `<kbd>${key}</kbd>`).join(" ")}</span></div>`).join("")}</div>
  <p>Click a ghost or a mark to select it; double-click a ghost to frame it. Drag a mark to change its time. Drag over an empty
  place of the timeline to select several marks, then drag the ends of the band above them to stretch them. Drag a ghost over the
  ground, its ring to turn it, its arrow to change its height and its feet to pose its legs. Scroll or pinch to zoom the timeline.
  The dots below a mark show what it asks for: position, roll, pitch, yaw, posture.</p><div><button autofocus>Close</button></div>`;
document.body.appendChild(help);
help.addEventListener("click", (event) => {
  if (event.target === help || event.target.closest("button")) help.close();
});
function toggleHelp() {
  if (help.open) return help.close();
  help.showModal();
  help.scrollTop = 0; // the focus is on the button at its end
}

const KEYS = {
  " ": "toggle", Home: "restart", Delete: "delete", Backspace: "delete", "shift+Delete": "ripple", k: "add", Insert: "add", l: "loop",
  f: "follow", p: "shove", "1": ["look", "side"], "2": ["look", "top"], "3": ["look", "free"],
  "[": ["faster", -1], "]": ["faster", 1], ",": ["nudge", -1], ".": ["nudge", 1],
  ArrowUp: ["next", -1], ArrowDown: ["next", 1], "shift+ArrowUp": ["extend", -1], "shift+ArrowDown": ["extend", 1],
  "ctrl+z": "undo", "ctrl+shift+z": "redo", "ctrl+y": "redo", "ctrl+d": "duplicate", "ctrl+s": "save", "ctrl+a": "select_all",
  "ctrl+c": "copy", "ctrl+x": "cut", "ctrl+v": "paste", Escape: ["select", []],
  ArrowLeft: ["step", -1], ArrowRight: ["step", 1], "shift+ArrowLeft": ["step", -10], "shift+ArrowRight": ["step", 10],
  "ctrl+ArrowLeft": ["jump", -1], "ctrl+ArrowRight": ["jump", 1],
};
const LOCAL = { "?": toggleHelp, i: () => setRange(now.head, null), o: () => setRange(null, now.head), b: tapBeat };
const ONCE = ["toggle", "add", "duplicate", "delete", "ripple", "shove", "paste", "cut"];

// Keys that are not shortcuts: those typed into a text field or an open list, the arrows of a slider, and the keys of
// a control that was reached with the Tab key. A tick box or button that was clicked does not take keys.
let byTab = false;
window.addEventListener("pointerdown", () => { byTab = false; }, true);
window.addEventListener("pointerup", (event) => { // a click on a slider's track leaves the focus elsewhere
  event.target.closest?.(".mantine-Slider-root")?.querySelector("[role=slider]")?.focus({ preventScroll: true });
}, true);

// viser gives its sliders and number fields no accessible names; take them from the labels beside them.
function nameControls() {
  for (const control of document.querySelectorAll("#root :is([role=slider], input):is(:not([aria-label]), [aria-label=''])")) {
    if (["hidden", "file"].includes(control.type) || control.labels?.length) continue;
    let row = control.parentElement;
    while (row && !row.querySelector("label")) row = row.parentElement;
    const labels = row?.querySelectorAll("label") ?? [], name = labels[0]?.textContent.trim();
    if (!name || labels.length > 1) continue; // the label belongs to something else
    const parts = [...row.querySelectorAll(control.matches("[role=slider]") ? "[role=slider]" : "input")];
    const names = parts.length === name.split(",").length ? name.replace(/\s*\(.*/, "").split(",") : null;
    control.setAttribute("aria-label", parts.length > 1 && names ? `${names[parts.indexOf(control)].trim()} of ${name}` : name);
  }
}
setInterval(nameControls, 1000);
const TEXT = "input:not([type=checkbox], [type=radio], [type=range], [type=button], [type=file], [readonly]), textarea, [contenteditable]";
const isNumber = (box) => /decimal|numeric/.test(box.inputMode) || box.type === "number";
const NATIVE = { slider: /^(Arrow|Home|End|Page)/, tab: /^( |Enter|Arrow|Home|End)/, button: /^( |Enter)/, checkbox: /^ /, select: /^( |Enter|Arrow|Home|End|.$)/ };
function kindOf(element) {
  if (element.matches("[role=slider], [type=range]")) return "slider";
  if (element.matches("[role=tab]")) return "tab";
  if (element.matches("[type=checkbox], [type=radio], [role=switch]")) return "checkbox";
  if (element.matches("button, [role=button], a, label")) return "button";
  return element.matches("select") ? "select" : null;
}
function keepsKey(element, name, key) {
  if ([...document.querySelectorAll("[role=option]")].some((option) => option.getClientRects().length)) return true; // a list is open
  if (element.matches?.(TEXT)) return !(name === "ctrl+s" || (isNumber(element) && /^ctrl\+(shift\+)?[zy]$/.test(name)));
  const kind = element.matches ? kindOf(element) : null;
  if (!kind || /^ctrl\+/.test(name)) return false;
  return (byTab || (kind === "slider" && key !== " ")) && NATIVE[kind].test(key);
}
function nameOf(event) {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const shift = event.shiftKey && (event.ctrlKey || event.metaKey || key.startsWith("Arrow") || key === "Delete");
  return `${event.ctrlKey || event.metaKey ? "ctrl+" : ""}${shift ? "shift+" : ""}${key}`;
}
window.addEventListener("keydown", (event) => {
  const name = nameOf(event), element = event.target;
  if (event.key === "Tab") { byTab = true; return; }
  if (document.querySelector("dialog[open]")) {
    if (name === "?" && help.open) { help.close(); event.preventDefault(); }
    event.stopImmediatePropagation();
    return;
  }
  if (element.matches?.(TEXT) && ["Enter", "Escape"].includes(event.key) && element.tagName === "INPUT") {
    setTimeout(() => element.blur()); // after the field has stored its value
    return;
  }
  if (element.matches?.(".ks-mark") && event.key === "Enter") channel.send("select", [Number(element.dataset.key)]);
  else if (keepsKey(element, name, event.key)) return;
  else if (name in LOCAL) LOCAL[name]();
  else if (name in KEYS) {
    const [what, value] = Array.isArray(KEYS[name]) ? KEYS[name] : [KEYS[name], null];
    if (!(event.repeat && ONCE.includes(what))) channel.send(what, value);
  } else return;
  event.preventDefault();
  event.stopImmediatePropagation();
}, true);
// A number field of viser that is left empty would stay empty, although its value has not changed. So viser is not told that
// the field is empty, and when the user leaves it, it shows again what viser last put there.
for (const type of ["input", "change", "focusout"]) window.addEventListener(type, (event) => {
  const field = event.target;
  if (field.value !== "" || !field.matches?.(`#root :is(${TEXT})`) || !isNumber(field)) return;
  if (type !== "input") field.value = field.defaultValue;
  if (type !== "focusout") event.stopImmediatePropagation();
}, true);

window.addEventListener("keyup", (event) => { // otherwise releasing Space would press a button that was clicked before
  if (event.key === " " && !byTab && !event.target.matches?.(TEXT) && !document.querySelector("dialog[open]")) event.preventDefault();
}, true);

document.addEventListener("dblclick", (event) => { // the session knows which ghost it was, if any
  if (event.target.matches("#root canvas")) channel.send("frame");
});

// The pose library is part of a viser panel.
document.addEventListener("click", (event) => {
  const element = event.target.closest?.("[data-pose], [data-forget]");
  if (element?.dataset.pose) channel.send("pose", element.dataset.pose);
  else if (element) channel.send("delete_pose", element.dataset.forget);
});

// The browser stores the work of this tab, so a reload, a restart of the server or a crash loses nothing. The session sends
// the draft with its history at every step of the history, before the page shows it, and its latest state with every change.
const STORE = "keystride-draft:", LATEST = "keystride-latest:", KEEP_DAYS = 14;
const tabs = new BroadcastChannel("keystride-tabs");
let tab = sessionStorage.keystride ||= newTab();
function newTab() { return `${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 10)}`; }
tabs.onmessage = ({ data }) => { // a duplicated tab has the same name as the original
  if (data.ask === tab && data.from !== me && !leaving) tabs.postMessage({ taken: tab, not: me });
  if (data.taken === tab && data.not !== me && !greeted) { tab = sessionStorage.keystride = newTab(); }
};
const me = Math.random();
let greeted = false, leaving = false;
window.addEventListener("pagehide", () => { leaving = true; }); // a page that is being unloaded does not answer
window.addEventListener("pageshow", () => { leaving = false; });
tabs.postMessage({ ask: tab, from: me });
function forgetOldDrafts() {
  for (const key of Object.keys(localStorage).filter((key) => key.startsWith(STORE) || key.startsWith(LATEST))) {
    const time = Number(localStorage[key].split("|", 1)[0]);
    if (!(Date.now() - time < KEEP_DAYS * 864e5)) localStorage.removeItem(key);
  }
}
let storing = true; // whether the browser has the latest state of the work
function keep(place, text) { // an old copy must not be taken for the latest, so it goes if there is no space for the new one
  try {
    localStorage[place + tab] = `${Date.now()}|${text}`;
    if (place === LATEST) storing = true;
  } catch {
    localStorage.removeItem(place + tab);
    if (place === LATEST) storing = false;
  }
  tellStored(storing);
}
function kept(place) {
  const text = localStorage[place + tab] ?? "";
  return text.slice(text.indexOf("|") + 1);
}
window.addEventListener("beforeunload", (event) => {
  if (script.unsaved || channel.waiting) event.preventDefault();
});

function drawsInSoftware() {
  const gl = document.createElement("canvas").getContext("webgl");
  const info = gl?.getExtension("WEBGL_debug_renderer_info");
  return !gl || /swiftshader|llvmpipe|software/i.test(info ? gl.getParameter(info.UNMASKED_RENDERER_WEBGL) : "");
}
const software = drawsInSoftware();
let session = null, greeting = 0;
function greet() { // a new session, after loading or reconnecting
  clearTimeout(greeting); // of a session that was lost before the greeting
  greeting = setTimeout(() => {
    const first = !greeted;
    greeted = true;
    channel.hello({ tab, draft: kept(STORE), latest: kept(LATEST), software, narrow: first && innerWidth <= 640, light: matchMedia("(prefers-color-scheme: light)").matches });
  }, greeted ? 0 : 100); // give another tab time to say that the name is taken
}
channel.listen("ks-draft", ({ draft }) => keep(STORE, draft));
channel.listen("ks-script", (news) => { script = news; keep(LATEST, news.latest); showDocument(news); draw(); });
channel.listen("ks-question", showQuestion);
channel.listen("ks-now", (news) => {
  if (news.session !== session) { session = news.session; greet(); }
  if (news.waiting) return;
  const head = scrubbing ? now.head : news.head;
  const moved = news.end !== now.end || String(news.range) !== String(now.range) || String(news.shoves) !== String(now.shoves) || news.fell !== now.fell;
  now = { ...news, head };
  showTransport(now);
  playMusic(now);
  followHead();
  if (moved) draw(); else drawHead();
});
button("snap").value = sessionStorage.keystrideSnap ?? "0";
button("snap").addEventListener("change", (event) => { sessionStorage.keystrideSnap = event.target.value; });
forgetOldDrafts();
channel.poll();
