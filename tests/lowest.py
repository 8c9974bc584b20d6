"""Install the lowest versions that pyproject.toml allows into an environment of its own, and run the quick tests there.

Run by `make lowest`. A lower bound that is too low shows here, and not on somebody's machine.
"""

import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

HOME = Path(__file__).parent.parent
TESTS = ("test_cli.py", "test_bad_input.py", "test_estimators.py", "test_readout.py", "test_runs.py", "test_sweeps.py")
TESTS += ("test_own_data.py", "test_plot.py", "test_progress.py", "test_search.py", "test_doctor.py")
TESTED_WITH = ("hypothesis", "netCDF4", "polars", "pytest", "sybil")


def lowest(requirement: Requirement) -> str:
    [bound] = [one.version for one in requirement.specifier if one.operator == ">="]
    return f"{requirement.name}=={bound}"


def main(environment: Path) -> int:
    project = tomllib.loads((HOME / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    optional = [text for name, texts in extras.items() if name not in ("docs", "test") for text in texts]
    needed = [Requirement(text) for text in (*project["dependencies"], *optional)]
    tests = [Requirement(text) for text in extras["test"] if text.split(">")[0] in TESTED_WITH]
    others = [f"{one.name}{one.specifier}" for one in tests]
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python = environment / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, *map(lowest, needed), *others], check=True)
    subprocess.run([*install, "--no-deps", "--editable", HOME], check=True)
    subprocess.run([python, "-m", "pip", "list"], check=True)
    tested = [HOME / "tests" / name for name in TESTS]
    return subprocess.run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tested], cwd=HOME).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
