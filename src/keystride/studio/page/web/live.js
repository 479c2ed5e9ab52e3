// The stop bar: there while a deployment runs, whatever tab is open. Its button, Escape and Space are the emergency stop.
const stopBar = document.createElement("div");
stopBar.id = "ks-stop";
stopBar.setAttribute("role", "alert");
stopBar.innerHTML = `<span></span><button title="Damping at once (Esc or Space)">STOP</button>`;
document.body.appendChild(stopBar);
const stopStyle = document.createElement("style");
stopStyle.textContent = `
#ks-stop { position: fixed; left: 50%; top: 10px; transform: translateX(-50%); z-index: 600; display: none; align-items: center; gap: 16px; max-width: 96vw;
  background: #1c1f26; color: #fff; border: 2px solid #d02020; border-radius: 12px; padding: 10px 12px 10px 18px; font: 600 14px/1.3 -apple-system, "Segoe UI", Roboto, Arial, sans-serif; }
#ks-stop.on { display: flex; }
#ks-stop button { background: #d02020; color: #fff; border: 0; border-radius: 8px; font: 800 26px/1 inherit; font-size: 26px; font-weight: 800; letter-spacing: 1px; padding: 16px 30px; cursor: pointer; }
#ks-stop button:hover, #ks-stop button:focus-visible { background: #f03030; outline: 3px solid #fff; }`;
document.head.appendChild(stopStyle);
let live = { running: false };
function emergencyStop() { channel.urgent("emergency"); }
stopBar.querySelector("button").addEventListener("pointerdown", emergencyStop); // not when it is let go
stopBar.querySelector("button").addEventListener("click", emergencyStop);
const upOrDown = (up) => (up === null || up === undefined ? "-" : up ? "up" : "DOWN");
function showLive(news) {
  live = news;
  stopBar.classList.toggle("on", news.running);
  const text = `${news.step}: ${news.state} · link ${upOrDown(news.link)} · poses ${upOrDown(news.pose)} · battery ${news.battery ?? "-"}%`;
  const shown = stopBar.querySelector("span");
  if (shown.textContent !== text) shown.textContent = text;
}
window.addEventListener("keydown", (event) => { // before every other use of these keys
  const typing = event.target.matches?.("input:not([type=checkbox], [type=radio], [type=range]), textarea");
  if (!live.running || !(event.key === "Escape" || (event.key === " " && !typing))) return;
  emergencyStop();
  event.preventDefault();
  event.stopImmediatePropagation();
}, true);
channel.listen("ks-live", showLive);
setInterval(() => { if (live.running) channel.urgent("page_alive"); }, 1000); // a page that cannot stop the robot must not keep it going
