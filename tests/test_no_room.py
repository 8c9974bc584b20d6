"""Where there is no room: one sentence, nothing lost, and the same command ends as if there had been room."""

import shutil

import pytest
from hostile import call, files_of_at_most, save_all_the_time, sentence, small_disk
from torture.kills import contents, differences

COMMANDS = {
    "run": "run --stimulus Crossbars(6) --n 30 --samples 40 --hold 100 --snapshots 3 --out out",
    "learn": "learn Crossbars(6) --n 30 --passes 1 --hold 20 --settle 20 --out out",
    "encode": "encode {model} Crossbars(6) --out out/codes.npy",
    "encode a table": "encode {model} Crossbars(6) --out out/codes.csv",
    "sweep": "sweep run --stimulus Crossbars(6) --n 40 --samples 99 --hold 99 --vary seed=0,1,2 --workers 2 --out out",
    "reproduce": "reproduce fig3 --scale smoke --workers 2 --out out",
}
EIGHTHS = [k / 8 for k in range(8)]


@pytest.fixture(scope="module")
def peace(tmp_path_factory):
    """A function: the folder in which a command has run where there is room."""
    at = tmp_path_factory.mktemp("peace")

    def of(name):
        folder = at / name.replace(" ", "-")
        if not folder.exists():
            model = of("learn") / "out" / "model.nc" if "{model}" in COMMANDS[name] else None
            folder.mkdir()
            done = call(COMMANDS[name].format(model=model), folder)
            assert done.returncode == 0, done.stderr
        return folder

    return of


def attempt(name, folder, peace, *limit):
    """Run the command; returns whether it found room. If not, it says so, and what has its final name is whole."""
    text = COMMANDS[name].format(model=peace("learn") / "out" / "model.nc")
    done = call(text, folder, (save_all_the_time,), *limit)
    if done.returncode:
        assert "finished work is saved, and the same command resumes" in sentence(done)
        assert "no space left" in sentence(done).lower() or "File too large" in sentence(done)
    found, wanted = contents(folder), contents(peace(name))
    assert not [entry for entry in found if "/." in entry], "temporary files are left"
    unequal = {entry for entry in found.keys() & wanted.keys() if found[entry] != wanted[entry]}
    assert all("/course." in entry for entry in unequal), unequal  # which grows while the model is trained
    return done.returncode == 0


def go_on(name, folder, peace):
    """Run the same command, where there is room now: it ends as it would have."""
    assert attempt(name, folder, peace)
    assert differences(contents(folder), contents(peace(name))) == []


def sizes(folder):
    return [file.stat().st_size for file in folder.rglob("*") if file.is_file()]


def files_are_limited(name, shares, peace, at):
    for share in shares:
        at.mkdir()
        assert not attempt(name, at, peace, (files_of_at_most, int(share * max(sizes(peace(name))))))
        go_on(name, at, peace)
        shutil.rmtree(at)


def the_disk_is_small(name, shares, peace, at):
    for share in shares:
        with small_disk(at, max(4096, int(share * sum(sizes(peace(name)))) // 4096 * 4096)) as resize:
            assert not attempt(name, at, peace)
            resize("100m")
            go_on(name, at, peace)


@pytest.mark.parametrize(
    ("lacking", "name"),
    [
        (files_are_limited, "run"),
        (the_disk_is_small, "run"),
        (the_disk_is_small, "learn"),
        (the_disk_is_small, "encode"),
    ],
)
def test_without_room_nothing_is_lost(lacking, name, peace, tmp_path):
    lacking(name, [0.6], peace, tmp_path / "here")


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("lacking", [files_are_limited, the_disk_is_small])
def test_wherever_room_ends_nothing_is_lost(lacking, name, peace, tmp_path):
    lacking(name, EIGHTHS if name not in ("sweep", "reproduce") else [0.1, 0.5, 0.9], peace, tmp_path / "here")
