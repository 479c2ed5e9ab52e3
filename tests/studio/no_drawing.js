// A WebGL context that draws nothing: for tests that do not look at the scene, on machines that draw in software.
(() => {
  const real = HTMLCanvasElement.prototype.getContext, gl = WebGL2RenderingContext.prototype;
  const size = { width: 300, height: 150 };
  const answers = {
    getParameter: (what) => ({
      [gl.VERSION]: "WebGL 2.0", [gl.SHADING_LANGUAGE_VERSION]: "WebGL GLSL ES 3.00", [gl.VENDOR]: "none", [gl.RENDERER]: "none",
      [gl.SCISSOR_BOX]: new Int32Array([0, 0, size.width, size.height]), [gl.VIEWPORT]: new Int32Array([0, 0, size.width, size.height]),
    })[what] ?? 4096,
    getExtension: () => null,
    getSupportedExtensions: () => [],
    getContextAttributes: () => ({ alpha: true, antialias: false }),
    getShaderPrecisionFormat: () => ({ precision: 23, rangeMin: 127, rangeMax: 127 }),
    getProgramParameter: (_, what) => ([gl.ACTIVE_UNIFORMS, gl.ACTIVE_ATTRIBUTES, gl.ACTIVE_UNIFORM_BLOCKS].includes(what) ? 0 : true),
    getShaderParameter: () => true,
    getShaderInfoLog: () => "",
    getProgramInfoLog: () => "",
    getError: () => 0,
    isContextLost: () => false,
    checkFramebufferStatus: () => gl.FRAMEBUFFER_COMPLETE,
    getUniformBlockIndex: () => 0,
    getAttribLocation: () => 0,
    clientWaitSync: () => gl.ALREADY_SIGNALED,
    getSyncParameter: () => gl.SIGNALED,
  };
  HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
    if (!/webgl/.test(kind)) return real.call(this, kind, ...rest);
    const own = { canvas: this, drawingBufferWidth: size.width, drawingBufferHeight: size.height, drawingBufferColorSpace: "srgb", unpackColorSpace: "srgb" };
    this.noDrawing ??= new Proxy(own, {
      get: (target, name) => {
        if (name in target) return target[name];
        if (name in answers) return answers[name];
        if (!(name in gl)) return undefined;
        if (typeof gl[name] === "number") return gl[name];
        return /^create/.test(String(name)) ? () => ({}) : () => undefined;
      },
      set: (target, name, value) => { target[name] = value; return true; },
      getPrototypeOf: () => gl,
    });
    return this.noDrawing;
  };
})();
