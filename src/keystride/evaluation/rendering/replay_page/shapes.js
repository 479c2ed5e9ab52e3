// Triangulate primitive shapes: each vertex is position 3, normal 3, colour 3, glow 1.

const AROUND = 20, ARCS = 6;

// A surface of revolution about z from a profile of [radius, z, normal radius, normal z].
function revolved(profile) {
  const vertices = [], triangles = [];
  for (const [radius, z, nr, nz] of profile) for (let i = 0; i <= AROUND; i++) {
    const a = 2 * Math.PI * i / AROUND, c = Math.cos(a), s = Math.sin(a);
    vertices.push([radius * c, radius * s, z, nr * c, nr * s, nz]);
  }
  for (let row = 0; row + 1 < profile.length; row++) for (let i = 0; i < AROUND; i++) {
    const a = row * (AROUND + 1) + i, b = a + AROUND + 1;
    triangles.push(a, a + 1, b + 1, a, b + 1, b);
  }
  return { vertices, triangles };
}

function arc(radius, from, to, z) {
  return Array.from({ length: ARCS + 1 }, (_, i) => {
    const a = from + (to - from) * i / ARCS;
    return [radius * Math.cos(a), z + radius * Math.sin(a), Math.cos(a), Math.sin(a)];
  });
}

function capsule(radius, half) {
  return revolved([...arc(radius, -Math.PI / 2, 0, -half), ...arc(radius, 0, Math.PI / 2, half)]);
}

function cylinder(radius, half) {
  const rim = Math.min(radius, half) * 0.15, r = radius - rim, h = half - rim;  // a soft edge catches the light
  return revolved([
    [0, -half, 0, -1], [r, -half, 0, -1], [radius, -h, 1, 0], [radius, h, 1, 0], [r, half, 0, 1], [0, half, 0, 1],
  ]);
}

function ellipsoid(x, y, z) {
  const ball = capsule(1, 0), scale = [x, y, z];
  ball.vertices = ball.vertices.map(v => [
    ...scale.map((s, i) => s * v[i]), ...unit(scale.map((s, i) => v[3 + i] / s)),
  ]);
  return ball;
}

function box(x, y, z) {
  const vertices = [], triangles = [], half = [x, y, z];
  for (let axis = 0; axis < 3; axis++) for (const side of [-1, 1]) {
    const [u, v] = [(axis + 1) % 3, (axis + 2) % 3], first = vertices.length;
    for (const [a, b] of [[-1, -1], [1, -1], [1, 1], [-1, 1]]) {
      const corner = [0, 0, 0], normal = [0, 0, 0];
      corner[axis] = side * half[axis]; corner[u] = a * half[u]; corner[v] = b * half[v];
      normal[axis] = side;
      vertices.push([...corner, ...normal]);
    }
    const [p, q, r, s] = [0, 1, 2, 3].map(i => first + i);
    triangles.push(...(side > 0 ? [p, q, r, p, r, s] : [p, r, q, p, s, r]));
  }
  return { vertices, triangles };
}

const BUILDERS = {
  sphere: size => ellipsoid(size[0], size[0], size[0]),
  ellipsoid: size => ellipsoid(...size),
  capsule: size => capsule(size[0], size[1]),
  cylinder: size => cylinder(size[0], size[1]),
  box: size => box(...size),
};

// All shapes of one body as one mesh in the body's frame.
function bodyMesh(shapes) {
  const vertices = [], triangles = [];
  for (const shape of shapes) {
    const mesh = BUILDERS[shape.kind](shape.size), first = vertices.length / 10;
    for (const v of mesh.vertices) {
      const place = turned(shape.rotation, v.slice(0, 3)).map((p, i) => p + shape.position[i]);
      vertices.push(...place, ...turned(shape.rotation, v.slice(3, 6)), ...shape.colour, shape.glow);
    }
    for (const index of mesh.triangles) triangles.push(first + index);
  }
  return { vertices: new Float32Array(vertices), triangles: new Uint32Array(triangles) };
}

// A flat band along points on the ground; each vertex is position 3, share of the whole time 1.
function ribbon(points, width) {
  const out = [];
  points.forEach((p, i) => {
    const a = points[Math.max(i - 2, 0)], b = points[Math.min(i + 2, points.length - 1)];
    const n = Math.hypot(b[0] - a[0], b[1] - a[1]);
    const [x, y] = n > 1e-6 ? [-(b[1] - a[1]) / n, (b[0] - a[0]) / n] : [0, 1];
    for (const side of [-width / 2, width / 2]) {
      out.push(p[0] + side * x, p[1] + side * y, 0.004, i / Math.max(points.length - 1, 1));
    }
  });
  return new Float32Array(out);
}

// A ring on the ground, as a band.
function ring(x, y, inner, outer) {
  const out = [];
  for (let i = 0; i <= 48; i++) {
    const a = 2 * Math.PI * i / 48, c = Math.cos(a), s = Math.sin(a);
    out.push(x + inner * c, y + inner * s, 0.005, 0, x + outer * c, y + outer * s, 0.005, 0);
  }
  return new Float32Array(out);
}
