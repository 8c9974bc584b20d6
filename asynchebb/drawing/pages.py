"""Building blocks of HTML pages: self-contained files that open in a browser offline, in light and dark."""

from __future__ import annotations

import base64
import io
import struct
from collections.abc import Iterable, Mapping
from html import escape
from typing import NamedTuple

import numpy as np


def document(title: str, body: str, style: str = "") -> str:
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>{STYLE}{style}</style>
</head>
<body>
{body}
</body>
</html>
"""


def figure(name: str, png: bytes, below: str) -> str:
    """An embedded image of two pixels per pixel of the page, with a caption in HTML."""
    width, height = struct.unpack(">II", png[16:24])
    return (
        f'<figure id="{name}-picture"><div class="wide"><img alt="{escape(name)}" width="{width // 2}" '
        f'height="{height // 2}" loading="lazy" src="{embedded(png)}"></div>'
        f"<figcaption>{below}</figcaption></figure>"
    )


def listed(facts: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts.items())


def facts(rows: dict[str, str]) -> str:
    """A two-column table."""
    body = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows.items())
    return f'<div class="wide"><table class="facts">{body}</table></div>'


def folded(summary: str, body: str) -> str:
    """A part that opens on a click; both are HTML."""
    return f"<details><summary>{summary}</summary>{body}</details>"


class Tile(NamedTuple):
    """One of the pictures on a sheet, and what it says when the pointer rests on it."""

    number: int
    says: str


def tiles(shown: Iterable[Tile], columns: int, rows: int, shape: tuple[int, int], size: int) -> str:
    """Pictures from the sheet `--sheet`, which has this many columns and rows, about `size` pixels high each.

    They are as sharp as the screen, and change together when the sheet does.
    """
    height, width = shape
    across, down = columns * (width + 2), rows * (height + 2)  # pixels of the sheet
    style = (
        f"--across:{size}px;--ratio:{width / height:.4g};--sized:{100 * across / width:.6g}% {100 * down / height:.6g}%"
    )
    found = []
    for number, says in shown:
        row, column = divmod(number, columns)
        x = 100 * (column * (width + 2) + 1) / (across - width)
        y = 100 * (row * (height + 2) + 1) / (down - height)
        found.append(f'<i style="background-position:{x:.6g}% {y:.6g}%" title="{escape(says)}"></i>')
    return f'<div class="tiles" style="{style}">{"".join(found)}</div>'


def sheet(pictures: np.ndarray, columns: int) -> str:
    """Pictures (k, height, width) in grey, or (k, height, width, 3) in colour, side by side: a CSS image.

    Each has its edge twice, so that where a pixel of the screen lies across it nothing of its neighbour shows.
    """
    pictures = np.pad(pictures, [(0, 0), (1, 1), (1, 1), (0, 0)][: pictures.ndim], "edge")
    missing = -len(pictures) % columns
    pictures = np.concatenate([pictures, np.zeros((missing, *pictures.shape[1:]), pictures.dtype)])
    grid = pictures.reshape(-1, columns, *pictures.shape[1:]).swapaxes(1, 2)
    rows, height, across, width = grid.shape[:4]
    return f"url({image(grid.reshape(rows * height, across * width, *grid.shape[4:]))})"


def image(pixels: np.ndarray) -> str:
    """Pixels from 0 to 255, in grey or colour, as the address of an embedded image."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", optimize=True)
    return embedded(buffer.getvalue())


def embedded(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


STYLE = """
:root { color-scheme: light dark; --text: #1f2328; --soft: #57606a; --line: #d8dee4; --page: #ffffff; --card: #f6f8fa;
  --link: #0b57d0; --yes: #1a7f37; --part: #9a5b00; --no: #c62828; --none: #767d85; --note: #fff3cd; }
@media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --soft: #9aa6b2; --line: #30363d; --page: #0d1117;
  --card: #161b22; --link: #6cb0ff; --yes: #4ac26b; --part: #e3a008; --no: #ff7b72; --none: #7d8590;
  --note: #3b2f0b; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page); max-width: 1080px;
  margin: 0 auto; padding: 0 16px 64px; overflow-wrap: break-word; }
a { color: var(--link); } small { color: var(--soft); }
h1 { font-size: clamp(22px, 4vw, 30px); line-height: 1.2; margin: 28px 0 8px; }
h2 { font-size: 20px; margin: 40px 0 8px; border-bottom: 1px solid var(--line); padding-bottom: 4px; }
.lead { font-size: clamp(17px, 2.4vw, 20px); line-height: 1.45; max-width: 62ch; margin: 8px 0 16px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 14px; } td, th { padding: 4px 12px 4px 0; text-align: left;
  vertical-align: top; border-bottom: 1px solid var(--line); }
.facts { width: 100%; } .facts th { font-weight: 400; color: var(--soft); width: 30%; }
.facts td { overflow-wrap: anywhere; }
figure { margin: 16px 0 28px; } figure img { max-width: 100%; height: auto; display: block; margin: 0 auto;
  background: #ffffff; border-radius: 6px; }
figcaption { font-size: 14px; color: var(--soft); max-width: 75ch; margin: 8px auto 0; }
@media (max-width: 640px) { figure img { max-width: none; } }
summary { cursor: pointer; padding: 8px 0; } summary:hover { background: var(--card); }
summary::marker { color: var(--link); } details > summary { border-top: 1px solid var(--line); }
.tiles { display: grid; gap: 3px; grid-template-columns: repeat(auto-fill, minmax(min(var(--across), 16%), 1fr));
  margin: 8px 0; padding: 3px; background: #808890; border-radius: 6px; }
.tiles i { display: block; aspect-ratio: var(--ratio); background-image: var(--sheet); background-size: var(--sized);
  image-rendering: pixelated; }
.tiles i:hover { outline: 2px solid var(--link); outline-offset: 1px; }
.warning { background: var(--note); border-left: 4px solid #e0a800; padding: 8px 12px; }
"""
