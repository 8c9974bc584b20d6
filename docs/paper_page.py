"""The report of a reproduction at the paper's scale as a page of the documentation, docs/paper_scale.md.

    make paper-page

It shows what `asynchebb reproduce --scale paper` left in the folder paper/: verdicts, figures and measurements.
"""

import json
import re
import sys
from datetime import timedelta
from pathlib import Path

from PIL import Image

from asynchebb.reproduction import report
from asynchebb.reproduction.reproduce import EXPERIMENTS
from asynchebb.reproduction.scale import SCALES

DOCS = Path(__file__).parent
PICTURES = DOCS / "images" / "paper"
COLOURS = 256  # enough for these, at half the size


def title_and_rest(text: str) -> tuple[str, str]:
    title, rest = text.removeprefix("# ").split("\n", 1)
    return title, rest.strip()


def deeper(text: str) -> str:
    """With each heading one level below where it was."""
    return re.sub(r"^#", "##", text, flags=re.MULTILINE)


def how(content: dict) -> str:
    """How it was made, and how long that took."""
    work, machine, failed = content["work"], content["machine"], len(content["failures"])
    where = work.get("gpu") or machine["processor"]
    runs, drawing = (timedelta(seconds=round(work[part])) for part in ("seconds", "drawing"))
    return (
        f"The report of `{report.command(content['scale']['name'], work)}`: {work['runs']} runs with {work['steps']:,} "
        f"Euler steps took {runs} on {where} ({machine['cores']} cores on the host), and "
        f"measuring and drawing another {drawing}. {failed or 'None'} of them failed. [claims.md](claims.md) has these "
        "verdicts next to those of runs a tenth as long. Our own experiments are as long there as here; their figures "
        "are on the pages that discuss them."
    )


def figures(folder: Path) -> list[str]:
    """The paper's figures with their captions, and the pictures themselves next to the others."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    lines = []
    for module in EXPERIMENTS.values():
        for name, caption in module.captions(SCALES["paper"]).items():
            if name.startswith("fig"):
                title = report.heading(name).replace("-notebook", " under the notebook's reading")
                picture = Image.open(folder / f"{name}.png").convert("RGB")
                few = picture.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
                few.save(PICTURES / f"{name}.png", optimize=True)
                lines.append(f"### {title}\n\n![{title}](images/paper/{name}.png)\n\n{caption}\n")
    return lines


def main(folder: Path) -> None:
    content = json.loads((folder / "claims.json").read_text(encoding="utf-8"))
    _, verdicts = title_and_rest(report.markdown(content))
    measured, numbers = title_and_rest(report.measured(content))
    lines = ["# At the paper's scale", "", how(content), "", "## Verdicts", "", deeper(verdicts), ""]
    lines += ["## Figures", "", *figures(folder / "figures"), f"## {measured}", "", deeper(numbers), ""]
    (DOCS / "paper_scale.md").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
