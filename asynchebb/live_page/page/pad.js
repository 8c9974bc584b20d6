// A pad to draw a stimulus on: with a pointer, by keyboard, or from an image file.

export function pad(canvas, upload, complain) {
  let height = 0, width = 0, channels = 1, levels = [], at = [0, 0], inking = 255;
  const context = canvas.getContext("2d");
  const dark = matchMedia("(prefers-color-scheme: dark)");

  function draw() {
    const image = context.createImageData(width, height);
    levels.forEach((level, k) => {
      const grey = dark.matches ? level : 255 - level;
      image.data.set([grey, grey, grey, 255], 4 * k);
    });
    context.putImageData(image, 0, 0);
    if (document.activeElement === canvas) {  // where the keyboard is
      context.fillStyle = "rgb(217 95 2 / 60%)";
      context.fillRect(at[0], at[1], 1, 1);
    }
  }

  function ink(x, y) {
    if (x < 0 || y < 0 || x >= width || y >= height) return;
    levels[y * width + x] = inking;
    draw();
  }

  function pixel(event) {
    const box = canvas.getBoundingClientRect();
    return [Math.floor((event.clientX - box.left) / box.width * width), Math.floor((event.clientY - box.top) / box.height * height)];
  }

  canvas.onpointerdown = event => {
    canvas.setPointerCapture(event.pointerId);
    const [x, y] = pixel(event);
    inking = levels[y * width + x] ? 0 : 255;  // drawing over ink erases it
    ink(x, y);
  };
  canvas.onpointermove = event => { if (event.buttons) ink(...pixel(event)); };
  canvas.onkeydown = event => {
    const by = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[event.key];
    if (!by && event.key !== " ") return;
    event.preventDefault();
    if (by) at = [Math.min(width - 1, Math.max(0, at[0] + by[0])), Math.min(height - 1, Math.max(0, at[1] + by[1]))];
    else { inking = levels[at[1] * width + at[0]] ? 0 : 255; ink(...at); }
    draw();
  };
  canvas.onfocus = canvas.onblur = draw;
  dark.addEventListener("change", draw);

  // The middle square of the image, in grey, at the stimuli's size.
  upload.onchange = async () => {
    const [file] = upload.files;
    upload.value = "";
    if (!file) return;
    try {
      const bitmap = await createImageBitmap(file);
      const small = Object.assign(document.createElement("canvas"), {width, height}).getContext("2d");
      const scale = Math.max(width / bitmap.width, height / bitmap.height);
      const [w, h] = [bitmap.width * scale, bitmap.height * scale];
      small.imageSmoothingQuality = "high";
      small.fillStyle = "#000";
      small.fillRect(0, 0, width, height);
      small.drawImage(bitmap, (width - w) / 2, (height - h) / 2, w, h);
      const {data} = small.getImageData(0, 0, width, height);
      levels = Array.from({length: width * height}, (_, k) => Math.round(.299 * data[4 * k] + .587 * data[4 * k + 1] + .114 * data[4 * k + 2]));
      draw();
      canvas.dispatchEvent(new Event("loaded"));
    } catch { complain(`${file.name} is not an image that the browser can read.`); }
  };

  return {
    shaped(shape) {
      const [h, w] = shape.slice(-2);
      if (h === height && w === width && shape.length - 1 === channels) return;
      [height, width, channels] = [h, w, shape.length - 1];
      [canvas.width, canvas.height, at] = [w, h, [Math.floor(w / 2), Math.floor(h / 2)]];
      this.clear();
    },
    clear() { levels = new Array(width * height).fill(0); draw(); },
    // With ON and OFF channels, ink is ON.
    image() { return channels === 2 ? [...levels, ...levels.map(() => 0)] : [...levels]; },
  };
}
