// Shortcuts, the panel that lists them, and what the session is told about the browser.
const HELP = [
  ["Space", "play or pause"], ["Home", "back to the start"],
  ["← →", "one control step back, forward"], ["Shift ← →", "ten steps"],
  ["↑ ↓", "select the previous, next keyframe"], [", .", "selected keyframe 20 ms earlier, later"],
  ["K", "add a keyframe at the play head"], ["Ctrl D", "duplicate the selected keyframe"],
  ["Del", "delete the selected keyframe"], ["Esc", "select none"],
  ["Ctrl Z", "undo"], ["Ctrl Shift Z", "redo"],
  ["[ ]", "slower, faster"], ["L", "loop"],
  ["F", "camera follows the robot, or is free"], ["P", "shove the robot"],
  ["Ctrl S", "save the script"], ["?", "this panel"],
];
const help = document.createElement("div");
help.id = "ks-help";
help.innerHTML = `<div><h2>Keyboard shortcuts</h2><div class="cols">${HELP.map(([keys, text]) =>
  `<div><span>${text}</span><span>${keys.split(" ").map((key) => `<kbd>${key}</kbd>`).join(" ")}</span></div>`).join("")}</div>
  <p>Click a ghost or a mark to select it. Drag marks in time, ghosts by their arrows and ring. Scroll to zoom the timeline.
  The dots under a mark tell what it asks for: position, roll, pitch, yaw, posture.</p></div>`;
document.body.appendChild(help);
help.addEventListener("click", () => toggleHelp(false));
function toggleHelp(open) { help.classList.toggle("open", open); }

const KEYS = {
  " ": "toggle", Home: "restart", Delete: "delete", Backspace: "delete", k: "add", Insert: "add", l: "loop", f: "follow", p: "shove",
  "[": ["faster", -1], "]": ["faster", 1], ",": ["nudge", -1], ".": ["nudge", 1], ArrowUp: ["next", -1], ArrowDown: ["next", 1],
  "ctrl+z": "undo", "ctrl+shift+z": "redo", "ctrl+y": "redo", "ctrl+d": "duplicate", "ctrl+s": "save",
  ArrowLeft: ["step", -1], ArrowRight: ["step", 1], "shift+ArrowLeft": ["step", -10], "shift+ArrowRight": ["step", 10],
};
const typing = (target) => target.closest?.("input, textarea, select, [contenteditable]");
function nameOf(event) {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const shift = event.shiftKey && (event.ctrlKey || event.metaKey || key.startsWith("Arrow"));
  return `${event.ctrlKey || event.metaKey ? "ctrl+" : ""}${shift ? "shift+" : ""}${key}`;
}
window.addEventListener("keydown", (event) => {
  const name = nameOf(event);
  if (typing(event.target) && name !== "ctrl+s") return;
  if (name === "?" || name === "Escape") {
    if (name === "Escape" && !help.classList.contains("open")) channel.send("select", null);
    toggleHelp(name === "?" ? undefined : false);
  } else if (name in KEYS) {
    const [what, value] = [KEYS[name]].flat();
    if (!(event.repeat && ["toggle", "add", "duplicate", "delete", "shove"].includes(what))) channel.send(what, value ?? null);
  } else return;
  event.preventDefault();
  event.stopImmediatePropagation();
}, true);

function drawsInSoftware() {
  const gl = document.createElement("canvas").getContext("webgl");
  const info = gl?.getExtension("WEBGL_debug_renderer_info");
  return !gl || /swiftshader|llvmpipe|software/i.test(info ? gl.getParameter(info.UNMASKED_RENDERER_WEBGL) : "");
}
channel.listen("ks-script", (news) => { script = news; showDocument(news); draw(); });
channel.listen("ks-now", (news) => {
  channel.read(news.read);
  if (news.session !== now.session) greet();
  const head = scrubbing ? now.head : news.head;
  const moved = news.end !== now.end;
  now = { ...news, head };
  showTransport(now);
  if (moved) draw(); else drawHead();
});
function greet() { // a new session: after loading, or when the connection was lost and came back
  sessionStorage.keystride ||= `${Date.now()}-${Math.random()}`;
  channel.send("hello", sessionStorage.keystride);
  if (drawsInSoftware()) channel.send("software");
}
channel.poll();
