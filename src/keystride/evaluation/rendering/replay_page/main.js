// Keep the time and redraw everything when it changes.

function unpack(text, width) {
  const bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0)), numbers = new DataView(bytes.buffer);
  const at = i => numbers.getFloat32(4 * i, true);
  return Array.from({ length: bytes.length / 4 / width }, (_, row) =>
    Array.from({ length: width }, (_, column) => at(row * width + column)));
}

function start() {
  const data = JSON.parse(byId("data").textContent), poses = unpack(data.poses, data.width);
  const seconds = (poses.length - 1) * data.step, canvas = byId("view");
  const state = { time: 0, playing: false, before: 0 };

  const seek = time => { state.time = Math.min(Math.max(time, 0), seconds); };
  const play = on => {
    if (on && state.time >= seconds) seek(0);
    state.playing = on;
    byId("play").textContent = on ? "❚❚" : "▶";
  };
  const rows = fillPanel(data, seek), tags = makeTags(data);
  fillTicks(data, seconds, seek);
  byId("time").max = seconds;
  byId("time").addEventListener("input", event => { play(false); seek(Number(event.target.value)); });
  byId("play").addEventListener("click", () => play(!state.playing));
  document.addEventListener("keydown", event => {
    const moves = { ArrowLeft: -data.step, ArrowRight: data.step };
    if (event.target.tagName === "SELECT") return;
    if (event.key === " ") { event.preventDefault(); play(!state.playing); }
    if (event.key in moves) { event.preventDefault(); play(false); seek(state.time + moves[event.key] * (event.shiftKey ? 10 : 1)); }
  });

  const gl = canvas.getContext("webgl2", { alpha: false, antialias: true, stencil: true });
  if (!gl) { byId("hint").textContent = "This browser has no WebGL 2: the table holds, the picture does not."; }
  const scene = gl && new Scene(gl, data, poses), camera = new Camera(canvas, poses[0]);
  camera.onpan = () => { byId("follow").checked = false; };

  const poseAt = time => {
    const x = time / data.step, i = Math.min(Math.floor(x), poses.length - 1);
    return blend(poses[i], poses[Math.min(i + 1, poses.length - 1)], x - i);
  };

  const fit = () => {
    const ratio = Math.min(devicePixelRatio, 2), [w, h] = [canvas.clientWidth * ratio, canvas.clientHeight * ratio].map(Math.round);
    if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
  };

  const frame = now => {
    const passed = Math.min((now - state.before) / 1000, 0.1);
    state.before = now;
    if (state.playing) seek(state.time + passed * Number(byId("speed").value));
    if (state.playing && state.time >= seconds) play(false);
    const pose = poseAt(state.time), shown = byId("ghosts").checked;
    fit();
    if (byId("follow").checked) camera.glide(pose, passed);
    const view = camera.view(), sight = [state.time, shown, canvas.width, canvas.height, ...view.matrix].join();
    if (sight !== state.sight) show(view, pose, shown);
    state.sight = sight;  // nothing is redrawn while nothing changes
    requestAnimationFrame(frame);
  };

  const show = (view, pose, shown) => {
    scene?.draw(view, pose, state.time, state.time / seconds, shown);
    if (scene) placeTags(tags, data, view, canvas, shown);
    byId("time").value = state.time;
    byId("clock").textContent = `${state.time.toFixed(2)} s`;
    rows.forEach((row, i) => row.classList.toggle("now", Math.abs(data.keyframes[i].time - state.time) < 0.1));
  };
  play(!location.hash.startsWith("#t="));
  if (location.hash.startsWith("#t=")) seek(Number(location.hash.slice(3)) || 0);
  requestAnimationFrame(frame);
}

start();
