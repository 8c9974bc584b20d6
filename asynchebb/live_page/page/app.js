// The page: frames come in over a websocket and are drawn; every control is one small message.

import {COLOURS, curves, layout, mosaic, picture, raster, rate, short, squares} from "./drawing.js";
import {pad} from "./pad.js";

const $ = id => document.getElementById(id);
const token = new URLSearchParams(location.search).get("token") ?? remembered();
const withToken = (path, more = {}) => `${path}?${new URLSearchParams({...(token ? {token} : {}), ...more})}`;
const SPEEDS = [10, 30, 100, 300, 1e3, 3e3, 1e4, 3e4, 1e5, 3e5, null];  // steps per second
const TYPES = {uint8: Uint8Array, uint16: Uint16Array, int16: Int16Array, float32: Float32Array, float64: Float64Array};

const dark = matchMedia("(prefers-color-scheme: dark)");

let socket, header, parts, tours = {}, chosen = null, touring = null, waiting = null, arrived = [], lastFrame = 0;

// The token. It is remembered for this address and port alone, so that a link without one opens in the same browser.
// Inside another page it has to stand in the address: that page could lay its own buttons over these.

function remembered() {
  try { return self === top ? localStorage.getItem("token") : null; }
  catch { return null; }  // the browser forbids it
}

function remember() {
  try { localStorage.setItem("token", token); }
  catch { /* likewise; then links open at the address with the token only */ }
}

// The connection

function connect() {
  socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${withToken("/ws")}`);
  socket.binaryType = "arraybuffer";
  socket.onmessage = ({data}) => typeof data === "string" ? answered(JSON.parse(data)) : received(data);
  socket.onclose = ({code, reason}) => {
    if (code === 1006 && !header) return say("Open the address that asynchebb printed when it started: it ends in a token.", true);
    if (code === 4429) return say(reason, true);
    say("The server has stopped, or cannot be reached.", true);
    setTimeout(connect, 2000);
  };
}

function send(message) { if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message)); }

function answered(message) {
  if (message.tours) { opened(message.tours); return; }
  if (message.error) { say(message.error, true); shown = ""; return; }
  say("");
}

function opened(found) {
  remember();
  tours = found;
  $("tours").replaceChildren(...Object.entries(tours).map(([name, {title}]) => {
    const button = document.createElement("button");
    Object.assign(button, {type: "button", textContent: title});
    button.dataset.tour = name;
    button.onclick = () => { touring = name; send({do: "tour", tour: name}); send({do: "play"}); };
    return button;
  }));
  say("");
  if (chosen !== null) send({do: "select", neuron: chosen});
  if (location.hash.length > 1) {
    try {
      const setting = JSON.parse(decode(location.hash.slice(1)));
      // Any page on the web can open such a link.
      if (confirm("Start what this link describes? The networks that learn here now will be lost.")) send({do: "start", ...setting});
    } catch { say("The link holds no setting that can be read.", true); }
    history.replaceState(null, "", location.pathname + location.search);  // so that a reload does not start again
  }
}

// Only the newest frame is drawn, when the screen is ready; then the next is asked for. A hidden page asks for none.
function received(data) {
  if (waiting === null) requestAnimationFrame(() => { const frame = waiting; waiting = null; show(frame); send({do: "next"}); });
  waiting = data;
}

function show(data) {
  const length = new DataView(data).getUint32(0, true);
  header = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length)));
  parts = {};
  for (const [name, network, type, shape, position] of header.parts) {
    const count = shape.reduce((a, b) => a * b, 1);
    parts[`${name}/${network}`] = {shape, data: new TYPES[type](data, 4 + length + position, count)};
  }
  lastFrame = performance.now();
  arrived = [...arrived.filter(time => time > lastFrame - 1000), lastFrame];
  counts();
  controls(header.setting);
  header.setting.networks.forEach((_, number) => network(number));
  measures();
  neuron();
}

// What is seen

const whole = new Intl.NumberFormat("en", {maximumFractionDigits: 0});

function counts() {
  $("steps").textContent = whole.format(header.step);
  $("steps-per-second").textContent = header.compiling ? "compiling…" : whole.format(header.playing ? header.steps_per_second : 0);
  $("frames-per-second").textContent = arrived.length;
  $("play").textContent = header.playing ? "Pause" : "Play";
  $("trouble").hidden = !header.trouble;
  $("trouble").firstElementChild.textContent = sentence(header.trouble);
  $("warning").hidden = !header.warning;
  $("warning").textContent = sentence(header.warning);
  if (header.compiling) say("Compiling the simulation; the first time this takes up to ten seconds.");
  else if ($("message").textContent.startsWith("Compiling")) say("");
}

const sentence = text => text && `${text[0].toUpperCase()}${text.slice(1)}.`;

function panel(number) {
  while ($("networks").children.length < header.setting.networks.length) {
    const added = $("network").content.cloneNode(true).firstElementChild;
    const own = $("networks").children.length;
    const fields = added.querySelector(".fields");
    fields.onclick = event => choose(neuronAt(fields, own, event));
    fields.onkeydown = event => moved(event, own);
    $("networks").append(added);
  }
  while ($("networks").children.length > header.setting.networks.length) $("networks").lastElementChild.remove();
  return $("networks").children[number];
}

function titled({model, r_b, r_r, eta}) {
  const constants = [["r_b", r_b], ["r_r", r_r], ["η", eta]].filter(([, value]) => value != null);
  return [model || "own model", ...constants.map(([name, value]) => `${name} ${value}`)].join(" · ");
}

function network(number) {
  const at = panel(number), signed = header.setting.shape.length === 3, order = ordered(number);
  const part = name => parts[`${name}/${number}`];
  at.querySelector("h2").textContent = titled(header.setting.networks[number]);
  picture(at.querySelector(".stimulus"), part("stimulus"), signed);
  picture(at.querySelector(".reconstruction"), part("reconstruction"), signed);
  mosaic(at.querySelector(".fields"), part("fields"), order, signed, chosen);
  raster(at.querySelector(".raster"), part("raster"), header.setting.n, order);
  at.querySelector(".window").textContent = header.window;
}

// By activity and by factor, as they were found in the last test: fields change their places about once a second.
function ordered(number) {
  const n = header.setting.n, neurons = Array.from({length: n}, (_, k) => k), by = $("sort").value;
  if (by === "fixed") return neurons;
  const activity = (parts[`activity/${number}`] ?? parts[`rates/${number}`]).data;
  neurons.sort((a, b) => activity[b] - activity[a] || a - b);
  if (by === "activity") return neurons;
  const tuned = parts[`tuned_to/${number}`]?.data ?? new Int16Array(n).fill(-1);
  const rank = neuron => tuned[neuron] >= 0 ? tuned[neuron] : 1e4 - tuned[neuron] % 2;  // factors, pairs, neither
  return neurons.sort((a, b) => rank(a) - rank(b));
}

let measured = "";
function measures() {
  const {networks} = header.setting, steps = parts["curve_step/0"].data;
  const now = [steps.length, steps.at(-1), header.sets, header.changes, networks.length, innerWidth, dark.matches].join();
  if (now === measured) return;  // they change about once a second
  measured = now;
  document.querySelectorAll("[data-curve]").forEach(canvas => {
    const name = canvas.dataset.curve, lines = [], latest = [];
    networks.forEach((_, number) => {
      const {data, shape} = parts[`${name}/${number}`], sets = shape[1] ?? 1;
      for (let k = 0; k < sets; k++) {
        const y = Array.from({length: steps.length}, (_, t) => data[t * sets + k]);
        const tint = name === "error" ? COLOURS[setNumber(header.sets[k]) % COLOURS.length] : COLOURS[number ? 1 : 0];
        lines.push({x: steps, y, colour: tint, dashed: number === 1});
        if (Number.isFinite(y.at(-1)) && (name !== "error" || k === sets - 1)) latest.push(short(y.at(-1)));
      }
    });
    curves(canvas, lines, header.changes, name === "error" || name === "gini" ? 1 : undefined);
    canvas.parentElement.querySelector("output").textContent = latest.join(" | ");
  });
  legend(networks);
}

const seenSets = [];
function setNumber(name) { if (!seenSets.includes(name)) seenSets.push(name); return seenSets.indexOf(name); }

let legendShown = "";
function legend(networks) {
  const entries = header.sets.map(name => [plain(name), COLOURS[setNumber(name) % COLOURS.length], false]);
  if (networks.length > 1) entries.push(["left", "currentColor", false], ["right", "currentColor", true]);
  if (legendShown === (legendShown = JSON.stringify(entries))) return;
  $("legend").replaceChildren(...entries.flatMap(([text, tint, dashed]) => {
    const line = document.createElement("i");
    line.style.borderTopColor = tint;
    line.className = dashed ? "dashed" : "";
    return [line, text];
  }));
}

const plain = name => name.startsWith("FromArray") ? "your own images" : name.replace(/p=/, "");

// One neuron

function neuronAt(canvas, number, event) {
  const box = canvas.getBoundingClientRect(), scale = Math.min(box.width / canvas.width, box.height / canvas.height);
  const [height, width] = header.setting.shape.slice(-2), {columns} = layout(header.setting.n, height, width);
  const times = scale * canvas.width / (columns * (width + 1) + 1);  // of the screen's pixels per pixel of a field
  const column = Math.floor((event.clientX - box.left) / times / (width + 1)), row = Math.floor((event.clientY - box.top) / times / (height + 1));
  return column < columns ? ordered(number)[row * columns + column] ?? null : null;
}

function choose(neuron) {
  chosen = neuron;
  send({do: "select", neuron});
  if (neuron === null) $("neuron").hidden = true;
}

function moved(event, number) {
  const order = ordered(number), [height, width] = header.setting.shape.slice(-2);
  const {columns} = layout(order.length, height, width);
  const by = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns}[event.key];
  if (by === undefined && event.key !== "Enter") return;
  event.preventDefault();
  const place = Math.max(0, order.indexOf(chosen));
  choose(order[Math.min(order.length - 1, Math.max(0, place + (by ?? 0)))]);
}

function neuron() {
  if (chosen === null || !parts[`lateral ${chosen}/0`]) return;
  $("neuron").hidden = false;
  $("neuron-title").textContent = `Neuron ${chosen}`;
  const list = $("neuron").querySelector(".neuron"), count = header.setting.networks.length;
  while (list.children.length < count) list.append($("one-neuron").content.cloneNode(true));
  while (list.children.length > count) list.lastElementChild.remove();
  [...list.children].forEach((at, number) => {
    const fields = parts[`fields/${number}`], [, height, width] = fields.shape, size = height * width;
    const bursts = parts[`bursts ${chosen}/${number}`].data;
    picture(at.querySelector(".field"), {data: fields.data.subarray(chosen * size, (chosen + 1) * size), shape: [height, width]}, header.setting.shape.length === 3);
    squares(at.querySelector(".lateral"), parts[`lateral ${chosen}/${number}`].data, ordered(number));
    rate(at.querySelector(".rate"), parts[`rate ${chosen}/${number}`].data, bursts, header.window, header.setting.networks[number].r_b);
    at.querySelector(".window").textContent = header.window;
    at.querySelector(".bursts").textContent = `${bursts.length} burst${bursts.length === 1 ? "" : "s"}`;
  });
}

// Controls: they show what the server says, so that two pages agree

let shown = "", told = {};  // what the server last said of each control
const UNTIL_RESET = ["n", "seed"];  // what is typed here is not sent before: it stays unless the server says something new
const which = () => header.setting.networks.length > 1 ? +document.querySelector("[name=which]:checked").value : 0;

function controls(setting) {
  const now = JSON.stringify([setting, header.speed, which(), touring]);
  if (now === shown) return;
  shown = now;
  const present = setting.networks[which()];
  const values = {
    model: present.model, r_b: present.r_b, r_r: present.r_r, eta: present.eta, hold: setting.hold, n: setting.n, seed: setting.seed,
    from_rest: String(setting.from_rest), second: setting.networks[1]?.model ?? "",
  };
  options($("stimulus"), setting.stimuli, plain);
  options($("dynamics"), setting.all_dynamics, name => name.split("(")[0]);
  for (const [id, value] of Object.entries({...values, stimulus: setting.stimulus, dynamics: setting.dynamics})) {
    const typed = UNTIL_RESET.includes(id) && told[id] === value;
    if (!typed && (document.activeElement !== $(id) || $(id).tagName === "SELECT")) $(id).value = value ?? "";
    told[id] = value;
  }
  for (const id of ["r_b", "r_r", "eta"]) $(id).disabled = present[id] == null;
  $("plasticity").checked = setting.plasticity;
  $("which").hidden = setting.networks.length < 2;
  $("then").textContent = setting.then.length ? `then ${setting.then.map(plain).join(", then ")}` : "";
  const place = SPEEDS.indexOf(header.speed);
  if (place >= 0) $("speed").value = place;
  $("speed-says").textContent = header.speed === null ? "full" : `${short(header.speed)} steps/s`;
  $("tour-says").hidden = touring === null;
  if (touring) {
    $("tour-says").querySelector("h2").textContent = tours[touring].title;
    $("tour-says").querySelector("p").textContent = tours[touring].says;
  }
  drawingPad.shaped(setting.shape);
  for (const [id, path] of Object.entries({"save-state": "/state.npz", "save-fields": "/fields.png", "save-run": "/run.nc"})) {
    $(id).href = withToken(path, {network: which()});
  }
}

function options(select, names, text) {
  if ([...select.options].map(option => option.value).join() === names.join()) return;
  select.replaceChildren(...names.map(name => new Option(text(name), name)));
}

function say(text, isError = false) {
  $("message").textContent = text;
  $("message").className = isError ? "error" : "";
}

const playOrPause = () => send({do: header.playing ? "pause" : "play"});
const onChange = {
  model: value => ({do: "model", model: value, network: which()}),
  r_b: value => ({do: "constant", name: "r_b", value: number(value), network: which()}),
  r_r: value => ({do: "constant", name: "r_r", value: number(value), network: which()}),
  eta: value => ({do: "constant", name: "eta", value: number(value), network: which()}),
  dynamics: value => ({do: "dynamics", dynamics: value}),
  second: value => ({do: "second", model: value || null}),
  stimulus: value => ({do: "stimulus", stimulus: value}),
  hold: value => ({do: "hold", hold: number(value)}),
  from_rest: value => ({do: "from_rest", from_rest: value === "true"}),
};
const number = value => value === "" ? null : Number(value);
for (const [id, message] of Object.entries(onChange)) {
  $(id).addEventListener("change", () => {
    if (id === "second") touring = null;
    send(message($(id).value));
  });
}
$("plasticity").onchange = () => send({do: "plasticity", on: $("plasticity").checked});
$("speed").oninput = () => send({do: "speed", steps_per_second: SPEEDS[$("speed").value]});
$("play").onclick = playOrPause;
$("step").onclick = () => send({do: "step", of: "step"});
$("next").onclick = () => send({do: "step", of: "stimulus"});
document.querySelectorAll("[name=which]").forEach(radio => { radio.onchange = () => { shown = ""; controls(header.setting); }; });
$("sort").onchange = () => { if (header) header.setting.networks.forEach((_, number) => network(number)); };
$("reset").onclick = $("reset-trouble").onclick = () => {
  send({do: "reset", seed: number($("seed").value), n: number($("n").value)});
  send({do: "play"});
};
$("neuron-close").onclick = () => choose(null);
document.querySelector("form").onsubmit = event => event.preventDefault();

document.addEventListener("keydown", event => {
  if (event.key === "Escape" && chosen !== null) choose(null);
  if (event.target.closest("input, select, textarea, button, a, #pad") || event.ctrlKey || event.metaKey || event.altKey) return;
  const act = {" ": playOrPause, s: () => $("step").click(), n: () => $("next").click()}[event.key];
  if (act) { event.preventDefault(); act(); }
});

// Drawings

const drawingPad = pad($("pad"), $("upload"), problem => say(problem, true));
$("draw-show").onclick = () => send({do: "draw", image: drawingPad.image()});
$("draw-add").onclick = () => send({do: "draw", image: drawingPad.image(), add: true});
$("draw-clear").onclick = () => drawingPad.clear();

// Sharing. The setting stands in the link itself, as base64 of JSON.

const encode = text => btoa(String.fromCharCode(...new TextEncoder().encode(text))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const decode = text => new TextDecoder().decode(Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), c => c.charCodeAt(0)));

async function copy(text, what) {
  Object.assign($("copied"), {hidden: false, value: text});
  $("copied").select();
  try { await navigator.clipboard.writeText(text); say(`${what} copied.`); }
  catch { say(`${what} below; copy it from there.`); }
}
$("copy-link").onclick = async () => {
  const setting = await (await fetch(withToken("/setting.json"))).text();
  copy(`${location.origin}/#${encode(setting)}`, "Link");
};
$("copy-code").onclick = async () => copy(await (await fetch(withToken("/code.py", {network: which()}))).text(), "Python code");

connect();
