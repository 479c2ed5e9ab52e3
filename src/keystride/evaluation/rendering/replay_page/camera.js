// Orbit camera: drag to rotate, right-drag or shift-drag to move, scroll to zoom; two fingers do both.

class Camera {
  constructor(canvas, target) {
    this.canvas = canvas;
    this.target = [target[0], target[1], 0.22];
    this.azimuth = -2.2;
    this.elevation = 0.42;
    this.distance = 2.4;
    this.fingers = new Map();
    canvas.addEventListener("pointerdown", event => this.press(event));
    canvas.addEventListener("pointermove", event => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, event => this.fingers.delete(event.pointerId));
    canvas.addEventListener("wheel", event => { event.preventDefault(); this.zoom(Math.exp(event.deltaY * 0.001)); }, { passive: false });
    canvas.addEventListener("contextmenu", event => event.preventDefault());
  }

  press(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.fingers.set(event.pointerId, [event.clientX, event.clientY]);
  }

  move(event) {
    const before = this.fingers.get(event.pointerId);
    if (!before) return;
    const here = [event.clientX, event.clientY], [dx, dy] = [here[0] - before[0], here[1] - before[1]];
    const other = [...this.fingers].find(([id]) => id !== event.pointerId);
    this.fingers.set(event.pointerId, here);
    if (other) {
      const apart = p => Math.hypot(p[0] - other[1][0], p[1] - other[1][1]);
      this.zoom(apart(before) / Math.max(apart(here), 1));
      this.pan(dx / 2, dy / 2);
    } else if (event.shiftKey || event.buttons & 6) {
      this.pan(dx, dy);
    } else {
      this.azimuth -= dx * 0.006;
      this.elevation = Math.min(Math.max(this.elevation + dy * 0.006, 0.03), 1.55);
    }
  }

  zoom(factor) { this.distance = Math.min(Math.max(this.distance * factor, 0.5), 25); }

  pan(dx, dy) {
    const scale = this.distance / this.canvas.clientHeight, [c, s] = [Math.cos(this.azimuth), Math.sin(this.azimuth)];
    this.target[0] += scale * (s * dx - c * dy);
    this.target[1] += scale * (-c * dx - s * dy);
    this.onpan?.();
  }

  // Follow a point on the ground, with a time constant of 0.25 s.
  glide(point, seconds) {
    const away = Math.hypot(point[0] - this.target[0], point[1] - this.target[1]);
    const share = away < 0.001 ? 0 : 1 - Math.exp(-seconds / 0.25);  // stop within a millimetre
    for (const i of [0, 1]) this.target[i] += share * (point[i] - this.target[i]);
  }

  view() {
    const c = Math.cos(this.elevation), aspect = this.canvas.width / Math.max(this.canvas.height, 1);
    const eye = [
      this.target[0] + this.distance * c * Math.cos(this.azimuth),
      this.target[1] + this.distance * c * Math.sin(this.azimuth),
      this.target[2] + this.distance * Math.sin(this.elevation),
    ];
    return { eye, matrix: matrixProduct(perspective(0.75, aspect, 0.05, 80), looking(eye, this.target)) };
  }
}
