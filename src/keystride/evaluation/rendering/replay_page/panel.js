// The interface around the scene: the table of errors, the timeline, and labels at the keyframes.

const HEADINGS = ["#", "keyframe", "dist.\nm", "roll\n°", "pitch\n°", "yaw\n°", "post.\n°", "height\nm"];
const DIGITS = [2, 0, 0, 0, 0, 2];

const byId = id => document.getElementById(id);

function make(kind, parent, text = "", className = "") {
  const element = parent.appendChild(document.createElement(kind));
  element.textContent = text;
  element.className = className;
  return element;
}

const outcome = keyframe => (keyframe.met ? "met" : "missed");

function fillPanel(data, seek) {
  document.querySelector("h1").textContent = data.title;
  byId("about").textContent = `policy ${data.policy}`;
  const met = data.keyframes.filter(keyframe => keyframe.met).length;
  const fall = data.fell === null ? "" : `, fell at ${data.fell.toFixed(2)} s`;
  byId("verdict").textContent = `${met} of ${data.keyframes.length} keyframes met${fall}`;
  byId("verdict").classList.toggle("fell", data.fell !== null);
  const [distance, roll, , yaw, posture, height] = data.thresholds;
  byId("limits").textContent = `Met: within ${distance} m, height ${height} m, roll and pitch ${roll}°, yaw ${yaw}°, posture ${posture}° ` +
    "(those that the keyframe asks for), before any fall. What a keyframe leaves open, its target takes from the robot.";
  const head = make("tr", document.querySelector("thead"));
  for (const heading of HEADINGS) make("th", head, heading).style.whiteSpace = "pre-line";
  return data.keyframes.map((keyframe, i) => tableRow(data, keyframe, i, seek));
}

function tableRow(data, keyframe, i, seek) {
  const row = make("tr", document.querySelector("tbody"));
  make("td", row, `${i + 1}`);
  const name = make("td", row);
  make("span", name, "", `dot ${outcome(keyframe)}`);
  name.append(`${keyframe.time.toFixed(2)} s ${keyframe.label}`);
  keyframe.errors.forEach((error, m) => {
    const over = error !== null && error > data.thresholds[m];
    make("td", row, error === null ? "–" : error.toFixed(DIGITS[m]), error === null ? "none" : over ? "over" : "");
  });
  row.addEventListener("click", () => seek(keyframe.time));
  return row;
}

function fillTicks(data, seconds, seek) {
  data.keyframes.forEach((keyframe, i) => {
    const tick = make("span", byId("ticks"), "", `dot ${outcome(keyframe)}`);
    tick.style.left = `${100 * keyframe.time / seconds}%`;
    tick.title = `${i + 1}: ${keyframe.time.toFixed(2)} s ${keyframe.label}`;
    tick.addEventListener("click", () => seek(keyframe.time));
  });
}

function makeTags(data) {
  return data.keyframes.map((keyframe, i) =>
    make("span", byId("tags"), keyframe.label ? `${i + 1} ${keyframe.label}` : `${i + 1}`, `tag ${outcome(keyframe)}`));
}

// Place each label at its keyframe, or hide it when the keyframe is behind the camera.
function placeTags(tags, data, view, canvas, shown) {
  tags.forEach((tag, i) => {
    const [x, y, z] = data.keyframes[i].pose, m = view.matrix, top = z + 0.17;
    const [a, b, , w] = [0, 1, 2, 3].map(r => m[r] * x + m[4 + r] * y + m[8 + r] * top + m[12 + r]);
    tag.style.display = shown && w > 0.1 ? "" : "none";
    const left = (0.5 + a / w / 2) * canvas.clientWidth, up = (0.5 - b / w / 2) * canvas.clientHeight;
    tag.style.transform = `translate(-50%, -100%) translate(${left.toFixed(1)}px, ${up.toFixed(1)}px)`;
  });
}
