// GLSL shaders.

const SOLID = {
  vertex: `#version 300 es
    layout(location = 0) in vec3 position; layout(location = 1) in vec3 normal;
    layout(location = 2) in vec3 colour; layout(location = 3) in float glow;
    uniform mat4 camera, model;
    out vec3 place, facing, paint; out float shine;
    void main() {
      vec4 p = model * vec4(position, 1.0);
      place = p.xyz; facing = mat3(model) * normal; paint = colour; shine = glow;
      gl_Position = camera * p;
    }`,
  fragment: `#version 300 es
    precision highp float;
    in vec3 place, facing, paint; in float shine;
    uniform vec3 eye, light; uniform vec4 tint;  // alpha below 1: a ghost
    out vec4 result;
    void main() {
      vec3 n = normalize(facing), v = normalize(eye - place);
      float sun = max(dot(n, light), 0.0), sky = 0.5 + 0.5 * n.z;
      vec3 base = pow(paint, vec3(1.6));
      vec3 lit = base * (0.20 + 0.42 * sky + 0.85 * sun) + 0.22 * pow(max(dot(n, normalize(light + v)), 0.0), 36.0);
      lit = pow(mix(lit, base * 1.6, shine), vec3(1.0 / 1.9));
      float rim = pow(1.0 - max(dot(n, v), 0.0), 2.0);
      vec3 ghost = tint.rgb * (0.62 + 0.38 * sun) + 0.35 * rim;
      bool solid = tint.a >= 1.0;
      result = vec4(solid ? lit : ghost, solid ? 1.0 : min(tint.a * (0.75 + 0.9 * rim), 1.0));
    }`,
};

const FLAT = {
  vertex: `#version 300 es
    layout(location = 0) in vec3 position;
    uniform mat4 camera, flatten, model;
    void main() { gl_Position = camera * flatten * model * vec4(position, 1.0); }`,
  fragment: `#version 300 es
    precision mediump float;
    uniform vec4 tint; out vec4 result;
    void main() { result = tint; }`,
};

const BAND = {
  vertex: `#version 300 es
    layout(location = 0) in vec3 position; layout(location = 1) in float share;
    uniform mat4 camera; out float when;
    void main() { when = share; gl_Position = camera * vec4(position, 1.0); }`,
  fragment: `#version 300 es
    precision mediump float;
    in float when; uniform float now; uniform vec4 tint; out vec4 result;
    void main() { result = vec4(tint.rgb, when <= now ? tint.a : 0.3 * tint.a); }`,
};

const GROUND = {
  vertex: `#version 300 es
    layout(location = 0) in vec2 corner;
    uniform mat4 camera; uniform vec3 eye; out vec2 place;
    void main() { place = eye.xy + corner * 40.0; gl_Position = camera * vec4(place, 0.0, 1.0); }`,
  fragment: `#version 300 es
    precision highp float;
    in vec2 place; uniform vec3 eye, sky; out vec4 result;
    float lines(vec2 p, float width) {
      vec2 d = abs(fract(p - 0.5) - 0.5) / (fwidth(p) * width);
      return 1.0 - min(min(d.x, d.y), 1.0);
    }
    void main() {
      float away = length(place - eye.xy);
      vec2 tile = floor(place);
      float chequer = mod(tile.x + tile.y, 2.0);
      vec3 floor_ = mix(vec3(0.905, 0.92, 0.935), vec3(0.885, 0.902, 0.92), chequer);
      floor_ = mix(floor_, vec3(0.80, 0.83, 0.86), 0.45 * lines(place * 4.0, 1.0) * smoothstep(7.0, 2.0, away));
      floor_ = mix(floor_, vec3(0.66, 0.70, 0.75), 0.8 * lines(place, 1.4) * smoothstep(18.0, 6.0, away));
      result = vec4(mix(floor_, sky, smoothstep(6.0, 26.0, away)), 1.0);
    }`,
};
