// Vectors, quaternions (w x y z) and column-major 4 x 4 matrices.

function subtract(a, b) { return [a[0] - b[0], a[1] - b[1], a[2] - b[2]]; }
function dot(a, b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
function cross(a, b) { return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]; }
function unit(a) { const n = Math.hypot(...a) || 1; return a.map(v => v / n); }

function quaternionProduct(a, b) {
  const [aw, ax, ay, az] = a, [bw, bx, by, bz] = b;
  return [
    aw * bw - ax * bx - ay * by - az * bz,
    aw * bx + ax * bw + ay * bz - az * by,
    aw * by - ax * bz + ay * bw + az * bx,
    aw * bz + ax * by - ay * bx + az * bw,
  ];
}

function aboutAxis(axis, angle) {
  const s = Math.sin(angle / 2);
  return [Math.cos(angle / 2), axis[0] * s, axis[1] * s, axis[2] * s];
}

// The columns of the rotation, as nine numbers.
function rotationColumns([w, x, y, z]) {
  return [
    1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y),
    2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x),
    2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y),
  ];
}

function turned(q, v) {
  const r = rotationColumns(q);
  return [0, 1, 2].map(i => r[i] * v[0] + r[3 + i] * v[1] + r[6 + i] * v[2]);
}

function poseMatrix(position, q) {
  const r = rotationColumns(q);
  return new Float32Array([r[0], r[1], r[2], 0, r[3], r[4], r[5], 0, r[6], r[7], r[8], 0, ...position, 1]);
}

function matrixProduct(a, b) {
  const out = new Float32Array(16);
  for (let c = 0; c < 4; c++) for (let r = 0; r < 4; r++) {
    out[4 * c + r] = a[r] * b[4 * c] + a[4 + r] * b[4 * c + 1] + a[8 + r] * b[4 * c + 2] + a[12 + r] * b[4 * c + 3];
  }
  return out;
}

function perspective(angle, aspect, near, far) {
  const f = 1 / Math.tan(angle / 2), d = near - far;
  return new Float32Array([f / aspect, 0, 0, 0, 0, f, 0, 0, 0, 0, (far + near) / d, -1, 0, 0, 2 * far * near / d, 0]);
}

function looking(eye, target) {
  const z = unit(subtract(eye, target)), x = unit(cross([0, 0, 1], z)), y = cross(z, x);
  return new Float32Array([
    x[0], y[0], z[0], 0, x[1], y[1], z[1], 0, x[2], y[2], z[2], 0, -dot(x, eye), -dot(y, eye), -dot(z, eye), 1,
  ]);
}

// Project onto the ground along the light.
function shadowMatrix(light) {
  const [x, y, z] = light;
  return new Float32Array([1, 0, 0, 0, 0, 1, 0, 0, -x / z, -y / z, 0, 0, 0, 0, 0.002, 1]);
}

// Positions of all bodies in one pose: position 3, quaternion 4, joint angles.
function bodyMatrices(bodies, pose) {
  const places = [];
  for (const body of bodies) {
    if (body.parent < 0) {
      places.push([pose.slice(0, 3), pose.slice(3, 7)]);
      continue;
    }
    const [origin, q] = places[body.parent], offset = turned(q, body.position);
    const bend = aboutAxis(body.axis, pose[7 + body.joint]);
    places.push([origin.map((v, i) => v + offset[i]), quaternionProduct(quaternionProduct(q, body.rotation), bend)]);
  }
  return places.map(([position, q]) => poseMatrix(position, q));
}

// Interpolate two poses; normalized linear interpolation of quaternions is accurate enough over 20 ms.
function blend(a, b, share) {
  const near = a[3] * b[3] + a[4] * b[4] + a[5] * b[5] + a[6] * b[6] < 0 ? -1 : 1;
  const out = Array.from(a, (v, i) => v + share * ((i > 2 && i < 7 ? near * b[i] : b[i]) - v));
  const n = Math.hypot(out[3], out[4], out[5], out[6]) || 1;
  for (let i = 3; i < 7; i++) out[i] /= n;
  return out;
}
