"""Is this a release that one could publish? Build it, look into it, and try it where none of its sources are.

Run by `make release-check`. For every Python from 3.11 on that this machine has, the sdist and the wheel are installed
into environments of their own, once with the lowest versions of all dependencies that have a wheel for that Python and
once with the newest, and are tried from an empty folder.
"""

import itertools
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from pathlib import Path

HOME = Path(__file__).parents[1]
OLDEST = (3, 11)
LARGEST = 1_000_000  # bytes of a wheel, which is code alone
VERSIONS = {"lowest": ["--resolution", "lowest-direct"], "newest": ["--resolution", "highest"]}
PICTURES_AND_DATA = {".gif", ".ipynb", ".jpg", ".nc", ".npy", ".npz", ".pdf", ".png", ".svg"}

# What a user does first. The folder that it runs in is empty.
SMOKE = """
import importlib.metadata, pathlib, sys
import numpy as np
import asynchebb as ah

assert "site-packages" in ah.__file__, ah.__file__
assert ah.__version__ == importlib.metadata.version("asynchebb") == sys.argv[1]
assert (pathlib.Path(ah.__file__).parent / "py.typed").exists()
bars = ah.Crossbars(6)
network = ah.asynchronous(n=60, m=36)
state = network.init(np.random.default_rng(0))
trained, _ = ah.advance(network, state, bars.sample(np.random.default_rng(1), 300), hold=200, from_rest=True)
before, after = (ah.reconstruction_error(network, one, bars.factors(), from_rest=True).last for one in (state, trained))
assert after < before, (before, after)
dataset = ah.record(ah.Run(network, ah.Phase(bars, samples=20, hold=50, snapshots=2)), "runs")
ah.plot.run(dataset).savefig("run.png")
X = bars.sample(np.random.default_rng(2), 50)
assert ah.AsyncHebbian(20, max_iter=1, hold=50, random_state=0).fit_transform(X).shape == (50, 20)
"""
COMMANDS = [
    ["--version"],
    ["list"],
    ["run", "--stimulus", "Crossbars(6)", "--n", "20", "--samples", "10", "--hold", "50", "--out", "run.nc"],
    ["show", "run.nc"],
]


def project() -> dict:
    return tomllib.loads((HOME / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def disagreements() -> list[str]:
    """Where the version is told differently."""
    version = project()["version"]
    cited = re.findall(r"^version: (.*)$", (HOME / "CITATION.cff").read_text(encoding="utf-8"), re.M)
    changed = re.findall(r"^## (\S+)", (HOME / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    found = [] if cited == [version] else [f"CITATION.cff has version {cited}, pyproject.toml {version}"]
    return found if changed[:1] == [version] else [*found, f"CHANGELOG.md begins with {changed[:1]}, not {version}"]


def bloat(wheel: Path) -> list[str]:
    """What a wheel should not hold: tests, pictures, data, anything outside the package; or too much of all."""
    with zipfile.ZipFile(wheel) as archive:
        names = [Path(name) for name in archive.namelist()]
    found = [
        str(name)
        for name in names
        if not name.parts[0].startswith("asynchebb")
        or name.name.startswith("test_")
        or name.suffix in PICTURES_AND_DATA
    ]
    size = wheel.stat().st_size
    return found + ([f"{size:,} bytes; {LARGEST:,} are allowed"] if size > LARGEST else [])


def missing_from(sdist: Path) -> list[str]:
    """Files that a source distribution must have, to be built from and tested."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "asynchebb/py.typed")
    return [name for name in (*wanted, "tests/test_model.py", "docs/index.md") if name not in names]


def pythons() -> dict[str, Path]:
    """One of each minor version from 3.11 on: this one, those on the path, those built by pyenv."""
    candidates = [shutil.which(f"python3.{minor}") for minor in range(OLDEST[1], 40)]
    candidates += sorted(map(str, Path.home().glob(".pyenv/versions/3.*/bin/python3")), reverse=True)
    found: dict[tuple[int, ...], Path] = {}
    for candidate in filter(None, [sys.executable, *candidates]):
        told = subprocess.run(
            [candidate, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True
        )
        version = tuple(map(int, told.stdout.split()))
        if told.returncode == 0 and version >= OLDEST:
            found.setdefault(version, Path(candidate))
    return {".".join(map(str, version)): found[version] for version in sorted(found)}


def install(package: Path, python: Path, options: list[str], environment: Path) -> Path:
    """Only the package itself may be built from its sources, never what it depends on."""
    tool = [sys.executable, "-m", "uv", "--quiet"]
    subprocess.run([*tool, "venv", "--python", python, environment], check=True)
    inside = environment / "bin" / "python"
    with_wheels = [*tool, "pip", "install", "--python", inside, "--no-build", *options]
    if package.suffix == ".whl":
        subprocess.run([*with_wheels, package], check=True)
    else:
        subprocess.run([*with_wheels, "-r", HOME / "pyproject.toml"], check=True)
        subprocess.run([*tool, "pip", "install", "--python", inside, "--no-deps", package], check=True)
    subprocess.run([*tool, "pip", "check", "--python", inside], check=True)
    return inside


def use(python: Path, folder: Path) -> None:
    """The smoke test and the command line, away from the sources."""
    subprocess.run([python, "-c", SMOKE, project()["version"]], cwd=folder, check=True, capture_output=True)
    for command in COMMANDS:
        subprocess.run([python.parent / "asynchebb", *command], cwd=folder, check=True, capture_output=True)


def check_types(python: Path) -> None:
    """mypy, as a user would run it on the tutorials: without any configuration."""
    subprocess.run([sys.executable, "-m", "uv", "--quiet", "pip", "install", "--python", python, "mypy"], check=True)
    options = ["--ignore-missing-imports", "--config-file="]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, HOME / "tests" / "tutorials.py", *options], cwd=folder, check=True)


def main() -> int:
    wrong = disagreements()
    shutil.rmtree(HOME / "dist", ignore_errors=True)
    subprocess.run([sys.executable, "-m", "build", HOME], check=True, stdout=subprocess.DEVNULL)
    [wheel], [sdist] = ((HOME / "dist").glob(pattern) for pattern in ("*.whl", "*.tar.gz"))
    for built in (wheel, sdist):
        print(f"{built.name}: {built.stat().st_size:,} bytes")
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", wheel, sdist], check=True)
    wrong += [f"{wheel.name} holds {name}" for name in bloat(wheel)]
    wrong += [f"{sdist.name} lacks {name}" for name in missing_from(sdist)]
    found = pythons()
    for version, package, (name, options) in itertools.product(found, (sdist, wheel), VERSIONS.items()):
        started = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            where = f"{package.name}, Python {version}, {name} versions"
            try:
                inside = install(package, found[version], options, Path(folder, "environment"))
                use(inside, Path(folder))
                if (version, package, name) == (next(iter(found)), wheel, "newest"):
                    check_types(inside)
                print(f"{where}: works ({time.perf_counter() - started:.0f} s)", flush=True)
            except subprocess.CalledProcessError as error:
                wrong.append(f"{where}: {error}\n{(error.stderr or b'').decode()}")
    print("\n".join(wrong) or f"asynchebb {project()['version']} could be published")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
