// Draw one point in time: the ground, the path, the robot with its shadow, and the keyframes as ghosts.

const SKY = [0.93, 0.95, 0.97], LIGHT = unit([0.35, 0.45, 1.0]);
const MET = [0.10, 0.66, 0.40], MISSED = [0.86, 0.25, 0.21], PATH = [0.15, 0.39, 0.79];
const STILL = new Float32Array([1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]);

class Scene {
  constructor(gl, data, poses) {
    this.gl = gl;
    this.bodies = data.robot.bodies;
    this.programs = { solid: this.program(SOLID), flat: this.program(FLAT), band: this.program(BAND), ground: this.program(GROUND) };
    this.meshes = this.bodies.map((_, i) => this.mesh(bodyMesh(data.robot.shapes.filter(shape => shape.body === i))));
    this.floor = this.buffer(new Float32Array([-1, -1, 1, -1, -1, 1, 1, 1]), [2]);
    this.path = this.buffer(ribbon(poses, 0.016), [3, 1]);
    this.ghosts = data.keyframes.map(keyframe => this.ghost(keyframe));
    this.flatten = shadowMatrix(LIGHT);
    gl.clearColor(...SKY, 1);
    gl.enable(gl.DEPTH_TEST);
    gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
  }

  ghost(keyframe) {
    const [x, y] = keyframe.pose;
    return {
      time: keyframe.time,
      colour: keyframe.met ? MET : MISSED,
      matrices: bodyMatrices(this.bodies, keyframe.pose),
      ring: keyframe.placed ? this.buffer(ring(x, y, 0.045, 0.065), [3, 1]) : null,
    };
  }

  draw(view, pose, time, share, showGhosts) {
    const { gl } = this;
    gl.viewport(0, 0, gl.drawingBufferWidth, gl.drawingBufferHeight);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT | gl.STENCIL_BUFFER_BIT);
    const matrices = bodyMatrices(this.bodies, pose);
    this.drawGround(view);
    gl.enable(gl.BLEND);
    this.drawShadow(view, matrices);
    this.drawBand(view, this.path, [...PATH, 0.9], share);
    if (showGhosts) for (const ghost of this.ghosts) if (ghost.ring) this.drawBand(view, ghost.ring, [...ghost.colour, 0.9], 1);
    gl.disable(gl.BLEND);
    this.drawBodies(view, matrices, [1, 1, 1, 1]);
    if (showGhosts) for (const ghost of this.ghosts) this.drawGhost(view, ghost, time);
  }

  drawGround(view) {
    const { gl } = this, use = this.use("ground", view);
    gl.uniform3fv(use("sky"), SKY);
    gl.depthMask(false);
    this.strip(this.floor);
    gl.depthMask(true);
  }

  // The stencil darkens every pixel once, however many bodies overlap it.
  drawShadow(view, matrices) {
    const { gl } = this, use = this.use("flat", view);
    gl.uniformMatrix4fv(use("flatten"), false, this.flatten);
    gl.uniform4f(use("tint"), 0.12, 0.17, 0.24, 0.26);
    gl.enable(gl.STENCIL_TEST);
    gl.stencilFunc(gl.EQUAL, 0, 255);
    gl.stencilOp(gl.KEEP, gl.KEEP, gl.INCR);
    this.eachBody(use, matrices);
    gl.disable(gl.STENCIL_TEST);
  }

  drawBand(view, band, tint, now) {
    const { gl } = this, use = this.use("band", view);
    gl.uniform4fv(use("tint"), tint);
    gl.uniform1f(use("now"), now);
    this.strip(band);
  }

  // Depth first, then colour on the nearest surface only, so that inner walls do not show through.
  drawGhost(view, ghost, time) {
    const { gl } = this, wait = ghost.time - time;
    const alpha = (wait < 0 ? 0.08 : 0.20) + 0.40 * Math.exp(-((wait / 0.5) ** 2));
    gl.colorMask(false, false, false, false);
    this.drawBodies(view, ghost.matrices, [0, 0, 0, 0.5]);
    gl.colorMask(true, true, true, true);
    gl.enable(gl.BLEND);
    gl.depthFunc(gl.EQUAL);
    this.drawBodies(view, ghost.matrices, [...ghost.colour, alpha]);
    gl.depthFunc(gl.LESS);
    gl.disable(gl.BLEND);
  }

  drawBodies(view, matrices, tint) {
    const { gl } = this, use = this.use("solid", view);
    gl.uniform3fv(use("light"), LIGHT);
    gl.uniform4fv(use("tint"), tint);
    this.eachBody(use, matrices);
  }

  eachBody(use, matrices) {
    const { gl } = this;
    this.meshes.forEach((mesh, i) => {
      gl.uniformMatrix4fv(use("model"), false, matrices[i]);
      gl.bindVertexArray(mesh.array);
      gl.drawElements(gl.TRIANGLES, mesh.count, gl.UNSIGNED_INT, 0);
    });
  }

  strip(band) {
    this.gl.bindVertexArray(band.array);
    this.gl.drawArrays(this.gl.TRIANGLE_STRIP, 0, band.count);
  }

  use(name, view) {
    const { gl } = this, { program, places } = this.programs[name];
    const place = key => places[key] ??= gl.getUniformLocation(program, key);
    gl.useProgram(program);
    gl.uniformMatrix4fv(place("camera"), false, view.matrix);
    gl.uniform3fv(place("eye"), view.eye);
    return place;
  }

  program(source) {
    const { gl } = this, program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, source.vertex], [gl.FRAGMENT_SHADER, source.fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
    return { program, places: {} };
  }

  buffer(values, sizes) {
    const { gl } = this, array = gl.createVertexArray(), width = sizes.reduce((a, b) => a + b);
    gl.bindVertexArray(array);
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
    sizes.reduce((offset, size, i) => {
      gl.enableVertexAttribArray(i);
      gl.vertexAttribPointer(i, size, gl.FLOAT, false, 4 * width, 4 * offset);
      return offset + size;
    }, 0);
    return { array, count: values.length / width };
  }

  mesh({ vertices, triangles }) {
    const { gl } = this, { array } = this.buffer(vertices, [3, 3, 3, 1]);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, triangles, gl.STATIC_DRAW);
    return { array, count: triangles.length };
  }
}
