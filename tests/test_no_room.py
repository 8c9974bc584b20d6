"""Where there is no room: one sentence, nothing lost, and the same command ends as if there had been room."""

import shutil

import pytest
from hostile import call, contents, files_of_at_most, save_all_the_time, sentence, small_disk

COMMANDS = {
    "run": "run --stimulus Crossbars(6) --n 30 --samples 40 --hold 100 --snapshots 3 --out out",
    "learn": "learn Crossbars(6) --n 30 --passes 1 --hold 20 --settle 20 --out out",
    "encode": "encode ../model.nc Crossbars(6) --out out/codes.npy",
    "encode a table": "encode ../model.nc Crossbars(6) --out out/codes.csv",
    "sweep": "sweep run --stimulus Crossbars(6) --n 40 --samples 99 --hold 99 --vary seed=0,1,2 --workers 2 --out out",
    "reproduce": "reproduce fig3 --scale smoke --workers 2 --out out",
}
SECONDS = ("work.json", "claims.json", "measured.md", "index.html")  # files that say how long it took
EIGHTHS = [k / 8 for k in range(8)]


@pytest.fixture(scope="module")
def peace(tmp_path_factory):
    """A function: what a command leaves where there is room; and the folder with the model that `encode` needs."""
    at, left = tmp_path_factory.mktemp("peace"), {}

    def of(name):
        if name not in left:
            needs = of("learn") if name.startswith("encode") else None
            (at / name).mkdir()
            done = call(*COMMANDS[name].split(), folder=at / name)
            assert done.returncode == 0, done.stderr
            left[name] = contents(at / name)
            if name == "learn":
                shutil.copy(at / name / "out" / "model.nc", at / "model.nc")
            assert needs is None or needs
        return left[name]

    return at, of


def attempt(name, folder, wanted, limit=()):
    """Whether the command found room. If not, it says so in a sentence, and what has its final name is whole."""
    done = call(*COMMANDS[name].split(), folder=folder, prepare=((save_all_the_time,), *limit))
    if done.returncode:
        assert "there is no space left" in sentence(done) and "the same command resumes" in sentence(done)
    found = contents(folder)
    temporary = [entry for entry in found if "/." in entry]
    assert not temporary
    for entry, content in found.items():
        final = entry in wanted and not entry.endswith(("course.npz", *SECONDS)) and "/course." not in entry
        assert not final or content == wanted[entry], f"{entry} is not whole"
    return done.returncode == 0


def check(name, folder, wanted):
    """The same command, where there is room now, ends as it would have."""
    assert attempt(name, folder, wanted)
    found = contents(folder)
    assert found.keys() == wanted.keys()
    assert not [entry for entry in found if found[entry] != wanted[entry] and not entry.endswith(SECONDS)]


def files_are_limited(name, shares, peace, tmp_path):
    at, wanted = tmp_path / "limited", peace[1](name)
    shutil.copytree(peace[0], tmp_path, dirs_exist_ok=True, ignore=lambda *_: [*COMMANDS])
    largest = max(len(content) for content in wanted.values() if content)
    for share in shares:
        at.mkdir()
        assert not attempt(name, at, wanted, ((files_of_at_most, int(share * largest)),))
        check(name, at, wanted)
        shutil.rmtree(at)


def the_disk_is_small(name, shares, peace, tmp_path):
    at, wanted = tmp_path / "disk", peace[1](name)
    shutil.copytree(peace[0], tmp_path, dirs_exist_ok=True, ignore=lambda *_: [*COMMANDS])
    total = sum(len(content) for content in wanted.values() if content)
    for share in shares:
        with small_disk(at, max(4096, int(share * total) // 4096 * 4096)) as resize:
            assert not attempt(name, at, wanted)
            resize("100m")
            check(name, at, wanted)


@pytest.mark.parametrize("name", ["run", "learn", "encode"])
@pytest.mark.parametrize("lacking", [files_are_limited, the_disk_is_small])
def test_without_room_nothing_is_lost(lacking, name, peace, tmp_path):
    lacking(name, [0.6], peace, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("lacking", [files_are_limited, the_disk_is_small])
def test_wherever_room_ends_nothing_is_lost(lacking, name, peace, tmp_path):
    lacking(name, EIGHTHS if name not in ("sweep", "reproduce") else [0.1, 0.5, 0.9], peace, tmp_path)
