// Everything that is drawn. Colours come from the style sheet, so that light and dark need nothing here.

const style = getComputedStyle(document.documentElement);
const colour = name => style.getPropertyValue(name).trim();
export const COLOURS = ["#2f7ed8", "#d95f02", "#2a9d5c", "#b5479d", "#8a7a00", "#7b61c4"];

// 256 colours from paper to ink; of images with two signs, from blue over paper to red.
function palette(signed) {
  const rgb = hex => [1, 3, 5].map(k => parseInt(hex.slice(k, k + 2), 16));
  const full = hex => hex.length === 4 ? "#" + [...hex.slice(1)].map(d => d + d).join("") : hex;
  const [paper, ink] = [rgb(full(colour("--paper"))), rgb(full(colour("--ink")))];
  const ends = signed ? [[40, 90, 200], [200, 50, 40]] : [paper, ink];
  return Uint32Array.from({length: 256}, (_, level) => {
    const t = signed ? Math.abs(level - 128) / 128 : level / 255;
    const [from, to] = signed ? [paper, ends[level > 128 ? 1 : 0]] : ends;
    const [r, g, b] = from.map((start, k) => Math.round(start + Math.min(1, t) * (to[k] - start)));
    return 0xff000000 | b << 16 | g << 8 | r;
  });
}
let palettes = [palette(false), palette(true)];
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { palettes = [palette(false), palette(true)]; });

function pixels(canvas, width, height) {
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  return {context, image, words: new Uint32Array(image.data.buffer)};
}

export function picture(canvas, {data, shape}, signed) {
  const [height, width] = shape.slice(-2);
  const {context, image, words} = pixels(canvas, width, height);
  for (let k = 0; k < words.length; k++) words[k] = palettes[+signed][data[k]];
  context.putImageData(image, 0, 0);
}

export function layout(n, height, width) {
  const columns = Math.ceil(Math.sqrt(n * 1.5 * (height + 1) / (width + 1)));
  return {columns, rows: Math.ceil(n / columns)};
}

const unscaled = document.createElement("canvas");

// All fields side by side in this order, with a line between them.
export function mosaic(canvas, {data, shape}, order, signed, chosen) {
  const [n, height, width] = shape;
  const {columns, rows} = layout(n, height, width);
  const across = columns * (width + 1) + 1, down = rows * (height + 1) + 1;
  const {context: small, image, words} = pixels(unscaled, across, down);
  const lut = palettes[+signed];
  order.forEach((neuron, place) => {
    const left = 1 + (place % columns) * (width + 1), top = 1 + Math.floor(place / columns) * (height + 1);
    let from = neuron * height * width;
    for (let y = 0; y < height; y++) {
      let to = (top + y) * across + left;
      for (let x = 0; x < width; x++) words[to++] = lut[data[from++]];
    }
  });
  small.putImageData(image, 0, 0);
  // Enlarged by a whole number, which the browser then fits smoothly: otherwise some pixels would be wider than others.
  const times = Math.min(4, Math.max(1, Math.ceil(canvas.clientWidth * devicePixelRatio / across)));
  if (canvas.width !== times * across || canvas.height !== times * down) [canvas.width, canvas.height] = [times * across, times * down];
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = false;
  context.drawImage(unscaled, 0, 0, canvas.width, canvas.height);
  const place = order.indexOf(chosen);
  if (place >= 0) {
    context.strokeStyle = COLOURS[1];
    context.lineWidth = times;
    const [x, y] = [(place % columns) * (width + 1) + .5, Math.floor(place / columns) * (height + 1) + .5];
    context.strokeRect(times * x, times * y, times * (width + 1), times * (height + 1));
  }
}

// One square per neuron, in this order: lateral weights.
export function squares(canvas, values, order) {
  const {columns, rows} = layout(order.length, 1, 1);
  const {context, image, words} = pixels(canvas, columns, rows);
  const most = Math.max(...values, 1e-30);
  words.fill(palettes[0][0]);
  order.forEach((neuron, place) => { words[place] = palettes[0][Math.round(255 * values[neuron] / most)]; });
  context.putImageData(image, 0, 0);
}

export function raster(canvas, {data, shape}, n, order) {
  const {context, image, words} = pixels(canvas, 200, Math.min(n, 104));
  const place = new Uint16Array(n), height = canvas.height, ink = palettes[0][255];
  order.forEach((neuron, k) => { place[neuron] = k; });
  words.fill(palettes[0][0]);
  for (let k = 0; k < shape[0]; k++) {
    const y = Math.floor(place[data[2 * k + 1]] * height / n), x = data[2 * k];
    words[y * 200 + x] = ink;
    if (y + 1 < height) words[(y + 1) * 200 + x] = ink;
  }
  context.putImageData(image, 0, 0);
}

function sized(canvas) {
  const ratio = devicePixelRatio || 1, {width, height} = canvas.getBoundingClientRect();
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return {context, width, height};
}

export const short = value => value >= 1e6 ? `${+(value / 1e6).toPrecision(3)} M` : value >= 1e4 ? `${Math.round(value / 1e3)} k`
  : value >= 100 ? Math.round(value).toString() : (+value.toPrecision(3)).toString();

// Lines: {x, y, colour, dashed}; vertical lines at `marks`.
export function curves(canvas, lines, marks, most) {
  const {context, width, height} = sized(canvas);
  const points = lines.flatMap(line => [...line.y].filter(Number.isFinite));
  const end = Math.max(1, ...lines.map(line => line.x.at(-1) ?? 0)), top = most ?? (Math.max(...points, 1e-9) * 1.08);
  const left = 34, bottom = height - 16, X = x => left + x / end * (width - left - 4), Y = y => bottom - y / top * (bottom - 6);
  context.font = "10px system-ui, sans-serif";
  context.fillStyle = context.strokeStyle = colour("--soft");
  context.textAlign = "right";
  context.fillText(short(top), left - 4, 13);
  context.fillText("0", left - 4, bottom);
  context.fillText(`${short(end)} steps`, width - 2, height - 3);
  context.lineWidth = 1;
  context.strokeRect(left + .5, 5.5, width - left - 4, bottom - 5);
  context.setLineDash([2, 3]);
  for (const mark of marks) { context.beginPath(); context.moveTo(X(mark), 6); context.lineTo(X(mark), bottom); context.stroke(); }
  context.lineWidth = 1.8;
  for (const {x, y, colour: drawn, dashed} of lines) {
    context.strokeStyle = drawn;
    context.setLineDash(dashed ? [5, 3] : []);
    context.beginPath();
    let pen = false;
    y.forEach((value, k) => {
      if (!Number.isFinite(value)) { pen = false; return; }
      pen ? context.lineTo(X(x[k]), Y(value)) : context.moveTo(X(x[k]), Y(value));
      pen = true;
    });
    context.stroke();
    if (y.length === 1) { context.fillStyle = drawn; context.fillRect(X(x[0]) - 2, Y(y[0]) - 2, 4, 4); }
  }
  context.setLineDash([]);
}

// A neuron's rate over the last steps, its bursts as ticks, and the threshold.
export function rate(canvas, values, bursts, steps, threshold) {
  const {context, width, height} = sized(canvas);
  const top = Math.max(...values, threshold ?? 0, 1e-9) * 1.1, Y = y => height - 14 - y / top * (height - 24);
  context.strokeStyle = colour("--ink");
  context.beginPath();
  values.forEach((value, k) => context.lineTo(k / Math.max(1, values.length - 1) * width, Y(value)));
  context.stroke();
  context.fillStyle = COLOURS[1];
  for (const step of bursts) context.fillRect(step / Math.max(1, steps) * width, height - 11, 1.5, 10);
  context.fillStyle = colour("--soft");
  context.font = "10px system-ui, sans-serif";
  context.fillText(short(top), 2, 10);
  if (threshold != null) {
    context.strokeStyle = COLOURS[1];
    context.setLineDash([4, 3]);
    context.beginPath(); context.moveTo(0, Y(threshold)); context.lineTo(width, Y(threshold)); context.stroke();
    context.setLineDash([]);
    context.fillText("r_b", width - 18, Y(threshold) - 3);
  }
}
