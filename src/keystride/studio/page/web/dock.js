// The dock: the transport bar and the frame of the timeline; dialogs and the stop bar.
const icon = (body) => `<svg class="i" viewBox="0 0 24 24">${body}</svg>`;
const ICONS = {
  play: icon('<path class="f" d="M7 4l14 8-14 8z"/>'),
  pause: icon('<path class="f" d="M6 4h4v16H6zM14 4h4v16h-4z"/>'),
  restart: icon('<path class="f" d="M20 5v14L9 12z"/><path d="M5 5v14"/>'),
  loop: icon('<path d="M17 2l4 4-4 4"/><path d="M3 11v-1a4 4 0 0 1 4-4h14M7 22l-4-4 4-4"/><path d="M21 13v1a4 4 0 0 1-4 4H3"/>'),
  add: icon('<path d="M12 3l9 9-9 9-9-9z"/><path d="M12 9v6M9 12h6"/>'),
  copy: icon('<rect x="9" y="9" width="12" height="12" rx="2"/><path d="M5 15H4a2 2 0 0 1-2-2V4a2 2 0 0 1 2-2h9a2 2 0 0 1 2 2v1"/>'),
  bin: icon('<path d="M3 6h18M8 6V4h8v2M6 6l1 15h10l1-15"/>'),
  undo: icon('<path d="M9 14L4 9l5-5"/><path d="M4 9h11a5 5 0 0 1 0 11h-3"/>'),
  redo: icon('<path d="M15 14l5-5-5-5"/><path d="M20 9H9a5 5 0 0 0 0 11h3"/>'),
  shove: icon('<path d="M3 12h13M11 6l6 6-6 6"/><path d="M21 4v16"/>'),
  snap: icon('<path d="M4 4v16M12 4v16M20 4v16"/><path d="M8 12h8"/>'),
  music: icon('<path d="M9 18V5l12-2v13"/><circle cx="6" cy="18" r="3"/><circle cx="18" cy="16" r="3"/>'),
  help: icon('<circle cx="12" cy="12" r="9"/><path d="M9.5 9a2.5 2.5 0 1 1 3.5 2.3c-.7.3-1 .8-1 1.7M12 17h.01"/>'),
};
const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4];


const dock = document.createElement("div");
dock.id = "ks-dock";
dock.innerHTML = `
  <div class="ks-bar" role="toolbar" aria-label="Playback and editing">
    <button data-do="restart" title="Back to the start (Home)">${ICONS.restart}</button>
    <button data-do="toggle" class="play" title="Play or pause (Space)">${ICONS.play}</button>
    <button data-do="loop" title="Loop (L); Shift-drag on the ruler to loop a range">${ICONS.loop}</button>
    <select data-do="speed" aria-label="Speed" title="Speed ([ and ])">${SPEEDS.map((s) => `<option value="${s}">${s}×</option>`).join("")}</select>
    <span class="ks-clock"><span class="ks-time"><b>0.00</b> <small></small></span><span class="ks-busy" role="status"></span></span>
    <span class="gap"></span>
    <button data-do="add" title="Add a keyframe at the play head (K)">${ICONS.add}<span class="word">Keyframe</span></button>
    <button data-do="duplicate" title="Duplicate (Ctrl D)">${ICONS.copy}</button>
    <button data-do="delete" title="Delete (Del)">${ICONS.bin}</button>
    <span class="gap"></span>
    <button data-do="undo" title="Undo (Ctrl Z)">${ICONS.undo}</button>
    <button data-do="redo" title="Redo (Ctrl Shift Z)">${ICONS.redo}</button>
    <span class="gap"></span>
    <button data-do="shove" title="Shove the robot (P)">${ICONS.shove}<span class="word">Shove</span></button>
    <span class="gap"></span>
    <select data-do="snap" aria-label="Snap to" title="Snap keyframes to (hold Alt to ignore)">
      <option value="0">no snap</option><option value="0.1">0.1 s</option><option value="0.25">0.25 s</option>
      <option value="0.5">0.5 s</option><option value="1">1 s</option><option value="beats">beats</option></select>
    <button data-do="music" title="Load an audio file as the soundtrack">${ICONS.music}<span class="word">Music</span></button>
    <span class="fill"></span>
    <span class="ks-note"></span>
    <button data-do="help" title="Keyboard shortcuts (?)">${ICONS.help}</button>
  </div>
  <div id="ks-tips" role="status"></div>
  <div id="ks-view"></div>`;
document.body.appendChild(dock);
document.title = "Keystride Studio";
dock.querySelectorAll("button").forEach((each) => each.setAttribute("aria-label", each.title));

const awayNotice = document.createElement("div");
awayNotice.id = "ks-away";
awayNotice.setAttribute("role", "alert");
document.body.appendChild(awayNotice);
function tellStored(stored) {
  const where = stored ? "Your work is stored in this browser." : "This browser has no space to store your work: what the server has not saved by itself (every two seconds) is only in this page.";
  awayNotice.textContent = `The studio server is not responding. ${where} If the server was restarted, open its new address in ${stored ? "this" : "another"} tab.`;
  dock.classList.toggle("unstored", !stored);
}
tellStored(true);

const button = (name) => dock.querySelector(`[data-do="${name}"]`);
const clean = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

dock.addEventListener("click", (event) => {
  const name = event.target.closest("button")?.dataset.do;
  if (name === "help") toggleHelp();
  else if (name === "music") chooseMusic();
  else if (name) channel.send(name);
});
button("speed").addEventListener("change", (event) => channel.send("speed", Number(event.target.value)));

function showAway() {
  const away = channel.away();
  awayNotice.classList.toggle("on", away);
  dock.toggleAttribute("inert", away || !channel.ready);
}
setInterval(showAway, 200);

function showTransport(now) {
  button("toggle").innerHTML = now.playing ? ICONS.pause : ICONS.play;
  button("loop").classList.toggle("on", now.loop);
  button("loop").setAttribute("aria-pressed", now.loop);
  if (document.activeElement !== button("speed")) button("speed").value = String(now.speed);
  dock.querySelector(".ks-time b").textContent = now.head.toFixed(2);
  dock.querySelector(".ks-time small").textContent = `/ ${now.end.toFixed(2)} s`;
  const busy = now.simulating ? `simulating ${now.recorded.toFixed(1)} s` : "";
  if (dock.querySelector(".ks-busy").textContent !== busy) dock.querySelector(".ks-busy").textContent = busy;
}
function showDocument(script) {
  button("undo").disabled = !script.undo;
  button("redo").disabled = !script.redo;
  button("delete").disabled = button("duplicate").disabled = script.selected === null;
  showTips(script);
  const dirty = script.unsaved ? '<span class="ks-dirty" title="not saved">●</span>' : "";
  const full = '<span class="ks-dirty ks-full" title="The storage of this browser is full: save soon">not stored in this browser</span>';
  const changed = script.changedOnDisk ? ' <span class="ks-dirty">changed on disk</span>' : "";
  const share = script.stale ? "" : ` ${Math.round(100 * script.progress)}%`;
  const words = script.queued ? `<span class="ks-progress" title="The server makes forecasts for a few browser tabs at a time. Yours begins when another one is closed.">forecast waits for another tab to close</span>` : `<span class="ks-progress">forecast${share}…</span>`;
  const forecast = script.marks.length && (script.stale || script.progress < 1) ? ` · ${words}` : "";
  dock.querySelector(".ks-note").title = `${script.name} · ${script.note}`; // it may be too long for the bar
  dock.querySelector(".ks-note").innerHTML = `<b>${clean(script.name)}</b>${dirty}${full}${changed} ${forecast} · ${clean(script.note)}`;
}

// Suggestions of the forecast for the selected keyframe, or else for the first one that is missed; a click applies one.
const TIP_BUTTONS = { retime: "Retime", shorten: "Shorten", loosen: "Loosen" };
const tipsBar = document.getElementById("ks-tips");
function showTips({ tips }) {
  const html = tips ? `Keyframe ${tips.number}: ` + tips.tips.map((tip) =>
    `<span>${clean(tip.text)} <button data-tip="${tip.kind}" data-key="${tips.key}">${TIP_BUTTONS[tip.kind]}</button></span>`).join(" · ") : "";
  if (tipsBar.drawn !== html) tipsBar.innerHTML = tipsBar.drawn = html;
}
tipsBar.addEventListener("click", (event) => {
  const { tip, key } = event.target.dataset;
  if (tip) channel.send("follow_tip", [Number(key), tip]);
});

// A question from the session, as a modal dialog. Escape presses its last button.
const question = document.createElement("dialog");
question.id = "ks-question";
question.className = "ks-dialog";
document.body.appendChild(question);
question.addEventListener("click", (event) => {
  const choice = event.target.closest("button")?.textContent;
  if (choice && !stopBar.contains(event.target)) { question.close(); channel.send("answer", choice); }
});
const lastButton = () => question.querySelector(":scope > div:last-child button:last-of-type");
question.addEventListener("cancel", (event) => {
  event.preventDefault();
  lastButton().click();
});
function showQuestion(asked) {
  if (!asked.text) return question.close();
  question.innerHTML = `<p>${clean(asked.text)}</p><div>${asked.buttons.map((text) => `<button>${clean(text)}</button>`).join("")}</div>`;
  if (!question.open) question.showModal();
  lastButton().focus();
}

// The stop bar is shown while a deployment runs, whichever tab is open. Its button, Escape and Space are the emergency stop.
const stopBar = document.createElement("div");
stopBar.id = "ks-stop";
stopBar.setAttribute("role", "alert");
stopBar.innerHTML = `<span></span><button class="stop" title="Damping at once (Esc or Space)">STOP</button><div class="ks-unknown"></div>`;
document.body.appendChild(stopBar);
let live = { running: false };
function emergencyStop() { channel.urgent("emergency"); }
stopBar.querySelector(".stop").addEventListener("pointerdown", emergencyStop); // on press, not on release
stopBar.querySelector(".stop").addEventListener("click", emergencyStop);
const unknown = stopBar.querySelector(".ks-unknown");
unknown.addEventListener("click", (event) => { if (event.target.closest("button")) channel.send("live_give_up"); });
const upOrDown = (up) => (up === null || up === undefined ? "-" : up ? "up" : "DOWN");
function showLive(news) {
  live = news;
  stopBar.classList.toggle("on", news.running || !!news.unknown);
  stopBar.classList.toggle("over", !news.running);
  const alarm = news.unknown ? `<p>The robot's state is unknown: ${clean(news.unknown)}. ${clean(news.brakes)}</p>
    <button>The power is off${news.running ? ": stop braking" : ""}</button>` : "";
  if (unknown.drawn !== alarm) unknown.innerHTML = unknown.drawn = alarm;
  const text = `${news.step}: ${news.state} · link ${upOrDown(news.link)} · poses ${upOrDown(news.pose)} · battery ${news.battery == null ? "-" : `${news.battery}%`}`;
  const shown = stopBar.querySelector("span");
  if (shown.textContent !== text) shown.textContent = text;
}
setInterval(() => { // a modal dialog blocks everything outside of it, but not the stop bar
  const place = [...document.querySelectorAll("dialog[open]")].pop() ?? document.body;
  if (stopBar.parentElement !== place) place.prepend(stopBar);
}, 100);
window.addEventListener("keydown", (event) => { // takes precedence over every other use of these keys
  const typing = event.target.matches?.("input:not([type=checkbox], [type=radio], [type=range]), textarea");
  if (!live.running || !(event.key === "Escape" || (event.key === " " && !typing))) return;
  emergencyStop();
  event.preventDefault();
  event.stopImmediatePropagation();
}, true);
channel.listen("ks-live", showLive);
setInterval(() => { if (live.running) channel.urgent("page_alive"); }, 1000); // the robot is stopped if the page falls silent
