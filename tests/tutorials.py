"""The tutorials' code as files of a user's own, and whether mypy accepts them.

`python tests/tutorials.py [option of mypy …]` checks them.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "docs" / "tutorials"
CELL = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def sources() -> dict[str, str]:
    """The code of each tutorial, by its name."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.md"))}
    code = {name: "\n".join(CELL.findall(text)) for name, text in texts.items()}
    return {name: text for name, text in code.items() if text}


def check(options: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name, code in sources().items():
            files.append(Path(folder, f"{name}.py"))
            files[-1].write_text(code, encoding="utf-8")
        return subprocess.run([sys.executable, "-m", "mypy", *options, *files]).returncode


if __name__ == "__main__":
    sys.exit(check(sys.argv[1:]))
