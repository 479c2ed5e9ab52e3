// The soundtrack: an audio file from the user's computer, its waveform, its beats and playback in time with the robot.
let music = null, sound = null, audio = null;
const musicFile = document.createElement("input");
musicFile.type = "file";
musicFile.id = "ks-music-file";
musicFile.accept = "audio/*";
musicFile.hidden = true;
document.body.appendChild(musicFile);

function chooseMusic() {
  if (music && !confirm("Remove the music? Choose Cancel to load another file instead.")) return musicFile.click();
  if (music) return setMusic(null);
  musicFile.click();
}
musicFile.addEventListener("change", async () => {
  const file = musicFile.files[0];
  musicFile.value = "";
  if (file) await loadMusic(file.name, await file.arrayBuffer(), null);
});
async function loadMusic(name, bytes, beats) {
  audio ??= new AudioContext();
  const kept = bytes.slice(0);
  try {
    const buffer = await audio.decodeAudioData(bytes);
    setMusic({ name, bytes: kept, buffer, beats: beats ?? findBeats(buffer) });
  } catch { alert(`${name} is not an audio file that this browser can play.`); }
}
function setMusic(next) {
  stopSound();
  music = next;
  document.documentElement.style.setProperty("--ks-music", music ? "46px" : "0px");
  dock.dataset.beats = music ? music.beats.length : "";
  button("music").classList.toggle("on", !!music);
  if (music) music.peaks = peaksOf(music.buffer);
  keepMusic();
  draw();
}
function peaksOf(buffer) { // the loudest sample of every 10 ms
  const samples = buffer.getChannelData(0), size = Math.round(buffer.sampleRate / 100);
  return Float32Array.from({ length: Math.ceil(samples.length / size) }, (_, i) => {
    let most = 0;
    for (let k = i * size; k < Math.min((i + 1) * size, samples.length); k++) most = Math.max(most, Math.abs(samples[k]));
    return most;
  });
}

// Find beats: the period between 60 and 180 per minute at which rises in loudness repeat best, then the strongest rise near
// each multiple of it.
function findBeats(buffer) {
  const samples = buffer.getChannelData(0), size = Math.round(buffer.sampleRate / 100), count = Math.floor(samples.length / size);
  const level = new Float32Array(count);
  for (let i = 0; i < count; i++) {
    let energy = 0;
    for (let k = i * size; k < (i + 1) * size; k++) energy += samples[k] * samples[k];
    level[i] = Math.log(1e-6 + energy / size);
  }
  const rise = level.map((value, i) => (i ? Math.max(value - level[i - 1], 0) : 0));
  if (count < 200 || !rise.some((value) => value > 0.1)) return [];
  const score = (lag) => { let sum = 0; for (let i = lag; i < count; i++) sum += rise[i] * rise[i - lag]; return sum / (count - lag); };
  let period = 0, best = 0;
  for (let lag = 33; lag <= 100; lag++) {
    const value = score(lag) + 0.5 * score(2 * lag);
    if (value > best * 1.02) [best, period] = [value, lag];
  }
  if (!period) return [];
  const strength = (phase) => { let sum = 0; for (let i = phase; i < count; i += period) sum += rise[i]; return sum; };
  let phase = 0;
  for (let p = 1; p < period; p++) if (strength(p) > strength(phase)) phase = p;
  const beats = [];
  for (let at = phase; at < count; at += period) {
    let peak = at;
    for (let i = Math.max(at - 6, 0); i <= Math.min(at + 6, count - 1); i++) if (rise[i] > rise[peak]) peak = i;
    if (rise[peak] > 0.05) at = peak; // follow changes of tempo
    beats.push(peak / 100);
  }
  return beats;
}
function tapBeat() {
  if (!music) return;
  if (!music.tapped) music.beats = [];
  music.tapped = true;
  music.beats = [...music.beats.filter((beat) => Math.abs(beat - now.head) > 0.1), now.head].sort((a, b) => a - b);
  dock.dataset.beats = music.beats.length;
  keepMusic();
  drawWave();
}
function drawWave() {
  if (!music) { wave.width = 0; return; }
  const ratio = window.devicePixelRatio, box = wave.getBoundingClientRect();
  wave.width = Math.max(box.width * ratio, 1);
  wave.height = Math.max(box.height * ratio, 1);
  const pen = wave.getContext("2d"), middle = wave.height / 2, style = getComputedStyle(dock);
  pen.fillStyle = style.getPropertyValue("--ks-wave");
  for (let x = 0; x < wave.width; x++) {
    const [a, b] = [toTime(x / ratio), toTime((x + 1) / ratio)].map((time) => Math.floor(time * 100));
    let most = 0;
    for (let i = Math.max(a, 0); i <= Math.min(b, music.peaks.length - 1); i++) most = Math.max(most, music.peaks[i]);
    if (b >= 0 && a < music.peaks.length) pen.fillRect(x, middle - Math.max(most, 0.01) * middle, 1, 2 * Math.max(most, 0.01) * middle);
  }
  pen.fillStyle = style.getPropertyValue("--ks-head");
  for (const beat of music.beats) pen.fillRect(toX(beat) * ratio, 0, Math.max(ratio, 1), wave.height);
}

function stopSound() {
  sound?.source.stop();
  sound = null;
  dock.dataset.sound = "";
}
function playMusic(now) { // the sound follows the play head
  if (!music || !now.playing || now.head >= music.buffer.duration) { if (sound) stopSound(); return; }
  const at = sound && sound.head + (audio.currentTime - sound.began) * sound.speed;
  if (sound && sound.speed === now.speed && Math.abs(at - now.head) < 0.15) return;
  stopSound();
  const source = audio.createBufferSource();
  source.buffer = music.buffer;
  source.playbackRate.value = now.speed;
  source.connect(audio.destination);
  audio.resume();
  source.start(0, now.head);
  sound = { source, head: now.head, began: audio.currentTime, speed: now.speed };
  dock.dataset.sound = "playing";
}

// The browser stores the file, so that it survives a reload.
const store = () => new Promise((resolve, reject) => {
  const request = indexedDB.open("keystride", 1);
  request.onupgradeneeded = () => request.result.createObjectStore("music");
  request.onsuccess = () => resolve(request.result.transaction("music", "readwrite").objectStore("music"));
  request.onerror = reject;
});
async function keepMusic() {
  try {
    const box = await store();
    if (music) box.put({ name: music.name, bytes: music.bytes, beats: music.beats, tapped: music.tapped }, sessionStorage.keystride);
    else box.delete(sessionStorage.keystride);
  } catch { /* no storage in a private window */ }
}
async function restoreMusic() {
  try {
    const request = (await store()).get(sessionStorage.keystride);
    request.onsuccess = async () => {
      if (!request.result) return;
      await loadMusic(request.result.name, request.result.bytes, request.result.beats);
      if (music) music.tapped = request.result.tapped;
    };
  } catch { /* no storage in a private window */ }
}
restoreMusic();
