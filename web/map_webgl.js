// Draws items and queries with WebGL2: one point each; the vertex shader moves items from before to after.

const PROJECT = `#version 300 es
precision highp float;
uniform vec2 size;      // of the canvas, CSS pixels
uniform vec3 view;      // origin x, origin y, CSS pixels per unit of the layout
uniform float ratio;    // device pixels per CSS pixel
uniform float morph;
vec4 project(vec2 place) {
  vec2 pixel = vec2(view.x + place.x * view.z, view.y - place.y * view.z);
  return vec4(pixel.x / size.x * 2.0 - 1.0, 1.0 - pixel.y / size.y * 2.0, 0.0, 1.0);
}
`;

const ITEM_VERTEX = `${PROJECT}
in vec2 before;
in vec2 after;
in vec2 occurrence;     // N10 before, after
in vec4 colourBefore;
in vec4 colourAfter;
uniform vec3 growth;    // CSS pixels per root of N10, least and largest radius
uniform float fade;
uniform float faint;    // opacity below which an item is excluded by a filter
uniform float rim;      // dots beyond this radius get a rim
flat out vec4 colour;
flat out float radius;  // device pixels
flat out float edge;    // width of the rim, device pixels
void main() {
  colour = mix(colourBefore, colourAfter, morph);
  float wanted = growth.x * sqrt(mix(occurrence.x, occurrence.y, morph));
  if (colour.a < faint) wanted = growth.y;   // a faint dot
  colour.a *= fade;
  float shown = clamp(wanted, growth.y, growth.z);
  edge = shown > rim ? ratio : 0.0;
  radius = shown * ratio + edge;
  gl_PointSize = 2.0 * radius + 1.0;
  gl_Position = project(mix(before, after, morph));
}`;

const ITEM_FRAGMENT = `#version 300 es
precision highp float;
flat in vec4 colour;
flat in float radius;
flat in float edge;
uniform vec3 paper;
out vec4 pixel;
void main() {
  float inside = radius + 0.5 - length(gl_PointCoord - 0.5) * (2.0 * radius + 1.0);
  vec3 ink = mix(paper, colour.rgb, clamp(inside - edge, 0.0, 1.0));   // the rim parts dots that overlap
  pixel = vec4(edge > 0.0 ? ink : colour.rgb, colour.a * clamp(inside, 0.0, 1.0));
}`;

const QUERY_VERTEX = `${PROJECT}
in vec2 before;
uniform float reach;    // half a diamond's width, CSS pixels
void main() {
  gl_PointSize = 2.0 * reach * ratio + 2.0;
  gl_Position = project(before);
}`;

const QUERY_FRAGMENT = `#version 300 es
precision highp float;
uniform vec4 colour;
uniform float reach;
uniform float ratio;
out vec4 pixel;
void main() {
  vec2 off = abs(gl_PointCoord - 0.5) * (2.0 * reach * ratio + 2.0);
  float edge = abs(off.x + off.y - reach * ratio);   // hollow: only the outline of the diamond
  if (edge >= ratio) discard;
  pixel = vec4(colour.rgb, colour.a * (1.0 - edge / ratio));
}`;

const compile = (gl, vertex, fragment) => {
  const program = gl.createProgram();
  for (const [type, source] of [
    [gl.VERTEX_SHADER, vertex],
    [gl.FRAGMENT_SHADER, fragment],
  ]) {
    const shader = gl.createShader(type);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost()) {
    throw new Error(`the map's shader does not link: ${gl.getProgramInfoLog(program)}`);
  }
  const uniforms = {};
  for (let index = 0; index < gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS); index++) {
    const { name } = gl.getActiveUniform(program, index);
    uniforms[name] = gl.getUniformLocation(program, name);
  }
  return { program, uniforms, points: gl.createVertexArray() };
};

/** Binds an array to an attribute of the vertex array that is bound now. */
const attribute = (gl, { program }, name, array, width, type, normalized = false) => {
  const buffer = gl.createBuffer();
  gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
  gl.bufferData(gl.ARRAY_BUFFER, array, gl.STATIC_DRAW);
  const location = gl.getAttribLocation(program, name);
  gl.enableVertexAttribArray(location);
  gl.vertexAttribPointer(location, width, type, normalized, 0, 0);
  return buffer;
};

/** Two columns as pairs: [a0, b0, a1, b1, …]. */
const pairs = (Type, first, second) => {
  const joined = new Type(2 * first.length);
  for (let place = 0; place < first.length; place++) {
    joined[2 * place] = first[place];
    joined[2 * place + 1] = second[place];
  }
  return joined;
};

const loadItems = (gl, program, { items, order }, colours) => {
  gl.bindVertexArray(program.points);
  attribute(gl, program, "before", pairs(Uint16Array, items.x0, items.y0), 2, gl.UNSIGNED_SHORT);
  attribute(gl, program, "after", pairs(Uint16Array, items.x1, items.y1), 2, gl.UNSIGNED_SHORT);
  attribute(gl, program, "occurrence", pairs(Float32Array, items.n0, items.n1), 2, gl.FLOAT);
  const buffers = [
    attribute(gl, program, "colourBefore", colours[0], 4, gl.UNSIGNED_BYTE, true),
    attribute(gl, program, "colourAfter", colours[1], 4, gl.UNSIGNED_BYTE, true),
  ];
  gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
  gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, order, gl.STATIC_DRAW);
  return buffers;
};

/** Is there a graphics card behind WebGL2? Where the processor draws for it, stamping by hand is faster. */
export const hasGraphicsCard = () => {
  const gl = document.createElement("canvas").getContext("webgl2", { failIfMajorPerformanceCaveat: true });
  if (!gl) return false;
  const names = gl.getExtension("WEBGL_debug_renderer_info");
  const card = String(gl.getParameter(names ? names.UNMASKED_RENDERER_WEBGL : gl.RENDERER));
  gl.getExtension("WEBGL_lose_context")?.loseContext(); // browsers allow only some contexts
  return !/swiftshader|llvmpipe|softpipe|software|basic render/i.test(card);
};

/**
 * A canvas above the dots for lines; hidden while there are none.
 * On paper it holds the dots, too: printers get no picture from WebGL.
 */
const createOverlay = (canvas) => {
  const above = document.createElement("canvas");
  above.className = "map-overlay";
  canvas.after(above);
  const context = above.getContext("2d");
  return (over, printing) => {
    above.hidden = !over && !printing;
    if (above.hidden) return;
    above.width = canvas.width; // empties it, too
    above.height = canvas.height;
    if (printing) context.drawImage(canvas, 0, 0);
    over?.(context);
  };
};

const inUnits = (colour) => colour.map((value) => value / 255);

const use = (gl, { program, uniforms, points }, { width, height, ratio, view }) => {
  gl.useProgram(program);
  gl.bindVertexArray(points);
  gl.uniform2f(uniforms.size, width, height);
  gl.uniform3f(uniforms.view, view.originX, view.originY, view.scale);
  gl.uniform1f(uniforms.ratio, ratio);
};

const drawQueries = (gl, query, count, frame) => {
  use(gl, query, frame);
  gl.uniform1f(query.uniforms.reach, frame.reach);
  gl.uniform4f(query.uniforms.colour, ...inUnits(frame.theme.muted), frame.queryOpacity * frame.fade);
  gl.drawArrays(gl.POINTS, 0, count);
};

const drawItems = (gl, item, count, frame) => {
  use(gl, item, frame);
  gl.uniform1f(item.uniforms.morph, frame.morph);
  gl.uniform1f(item.uniforms.fade, frame.fade);
  gl.uniform1f(item.uniforms.faint, frame.faint / 255);
  gl.uniform1f(item.uniforms.rim, frame.rim);
  gl.uniform3f(item.uniforms.paper, ...inUnits(frame.theme.surface));
  gl.uniform3f(item.uniforms.growth, frame.growth, frame.least, frame.most);
  gl.drawElements(gl.POINTS, count, gl.UNSIGNED_INT, 0);
};

/** @returns a renderer as in map_canvas.js, or null where there is no WebGL2 */
export const createWebgl = (canvas, model, colours) => {
  const gl = canvas.getContext("webgl2", { alpha: false, antialias: false, depth: false });
  if (!gl) return null;
  const { queries, count } = model;
  const item = compile(gl, ITEM_VERTEX, ITEM_FRAGMENT);
  const query = compile(gl, QUERY_VERTEX, QUERY_FRAGMENT);
  const buffers = loadItems(gl, item, model, colours);
  gl.bindVertexArray(query.points);
  attribute(gl, query, "before", pairs(Uint16Array, queries.x, queries.y), 2, gl.UNSIGNED_SHORT);
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
  const drawLines = createOverlay(canvas);

  const draw = (frame, over) => {
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(...inUnits(frame.theme.surface), 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
    if (frame.showQueries) drawQueries(gl, query, queries.x.length, frame);
    drawItems(gl, item, count, frame);
    drawLines(over, frame.printing);
  };
  const recolour = () => {
    colours.forEach((array, state) => {
      gl.bindBuffer(gl.ARRAY_BUFFER, buffers[state]);
      gl.bufferData(gl.ARRAY_BUFFER, array, gl.STATIC_DRAW);
    });
  };
  return { name: "webgl", finest: 2, draw, recolour };
};
