"""Building blocks of HTML pages: self-contained files that open in a browser offline."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from html import escape


def document(title: str, body: str, style: str = "") -> str:
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{STYLE}{style}</style>
</head>
<body>
{body}
</body>
</html>
"""


def figure(name: str, png: bytes, below: str) -> str:
    """An embedded image with a caption in HTML."""
    content = base64.b64encode(png).decode()
    return (
        f'<figure id="{name}-picture"><img alt="{escape(name)}" src="data:image/png;base64,{content}">'
        f"<figcaption>{below}</figcaption></figure>"
    )


def listed(facts: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts.items())


def facts(rows: dict[str, str]) -> str:
    """A two-column table."""
    body = "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in rows.items())
    return f'<table class="made">{body}</table>'


STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1f2328; max-width: 1180px; margin: 0 auto; padding: 0 16px 64px; }
h1 { font-size: 28px; line-height: 1.2; margin: 32px 0 8px; }
h2 { font-size: 20px; margin: 40px 0 8px; border-bottom: 1px solid #d8dee4; padding-bottom: 4px; }
table { border-collapse: collapse; font-size: 13px; } td, th { padding: 3px 10px; text-align: left;
  vertical-align: top; }
th { border-bottom: 1px solid #d8dee4; } tr:nth-child(even) td { background: #00000006; }
.made td:first-child { white-space: nowrap; }
figure { margin: 16px 0 32px; } figure img { max-width: 100%; display: block; margin: 0 auto; }
figcaption { font-size: 13.5px; color: #3d444d; max-width: 900px; margin: 8px auto 0; }
"""
