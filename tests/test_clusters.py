"""Sweeps beyond one machine: a real Dask scheduler with two workers, a real Slurm of one node."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_cli import COMMAND, call
from test_sweeps import LONGER, same_folders, undisturbed, workers  # noqa: F401  a fixture

import asynchebb as ah
from asynchebb.sweeps import executors

QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
BASE = ah.Run(ah.asynchronous(n=20, m=36), ah.Phase(ah.Crossbars(6), samples=30, hold=20, snapshots=1))


def wait_for(condition, what, seconds=30):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"there is no {what} after {seconds} s"
        time.sleep(0.05)
    return found


@pytest.fixture
def dask(tmp_path):
    """The address of a scheduler, its process and those of its two workers."""
    pytest.importorskip("distributed")
    file, started = tmp_path / "scheduler.json", []

    def start(program, *options):
        command = [sys.executable, "-m", f"distributed.cli.dask_{program}", "--scheduler-file", file, "--no-dashboard"]
        started.append(subprocess.Popen([*command, *options], cwd=tmp_path, **QUIET))
        return started[-1]

    scheduler = start("scheduler", "--host", "127.0.0.1", "--port", "0")
    address = wait_for(lambda: file.exists() and file.stat().st_size and json.loads(file.read_text()), "scheduler")
    two = [start("worker", "--nthreads", "1", "--no-nanny") for _ in range(2)]
    yield address["address"], scheduler, two
    for process in started:
        process.kill()
        process.wait()


def start_on_dask(address, out):
    process = subprocess.Popen([COMMAND, "sweep", "run", *LONGER, "--dask", address, "--out", out], **PIPES)
    wait_for(lambda: len([*Path(out).glob("runs/*.json")]) >= 4, "run done")
    return process


@pytest.mark.slow
def test_a_dask_cluster_of_which_a_worker_is_killed_gives_the_same_results(dask, tmp_path, undisturbed):  # noqa: F811
    address, _, two = dask
    sweep = start_on_dask(address, tmp_path / "F")
    busy = wait_for(lambda: workers(tmp_path / "F") & {worker.pid for worker in two}, "worker at work")
    os.kill(busy.pop(), signal.SIGKILL)
    said, errors = sweep.communicate()
    assert sweep.returncode == 0, errors
    assert "40 of 40 runs done, 0 failed" in said
    assert same_folders(tmp_path / "F", undisturbed)


@pytest.mark.slow
def test_a_dask_scheduler_that_is_killed_ends_the_sweep_which_goes_on_elsewhere(dask, tmp_path, undisturbed):  # noqa: F811
    address, scheduler, _ = dask
    sweep = start_on_dask(address, tmp_path / "F")
    scheduler.kill()
    _, said = sweep.communicate(timeout=60)
    assert sweep.returncode == 1 and "Traceback" not in said, said
    assert "the Dask scheduler is gone; finished work is saved" in said
    assert len([*(tmp_path / "F").glob("runs/*.json")]) < 40
    assert call("sweep", "run", *LONGER, "--out", tmp_path / "F").returncode == 0
    assert same_folders(tmp_path / "F", undisturbed)


def test_a_dask_client_is_an_executor(dask, tmp_path):
    from distributed import Client

    with Client(dask[0], set_as_default=False) as client:
        dataset = ah.sweep(BASE, {"seed": range(4)}, tmp_path / "F", executor=client)
    ah.sweep(BASE, {"seed": range(4)}, tmp_path / "G", workers=1)
    assert dataset.error.notnull().all() and same_folders(tmp_path / "F", tmp_path / "G")


CONFIGURATION = """
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={at}/munge.socket
StateSaveLocation={at}/state
SlurmdSpoolDir={at}/spool
SlurmctldPidFile={at}/slurmctld.pid
SlurmdPidFile={at}/slurmd.pid
SlurmctldLogFile={at}/slurmctld.log
SlurmdLogFile={at}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MpiDefault=none
AccountingStorageType=accounting_storage/none
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} State=UNKNOWN
PartitionName=here Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""
DAEMONS = ("munged", "slurmctld", "slurmd")


def free_port():
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return opened.getsockname()[1]


@pytest.fixture
def slurm(tmp_path_factory, monkeypatch, record_property):
    """A real Slurm of one node."""
    if not all(map(shutil.which, DAEMONS)) or os.getuid() != 0:
        pytest.skip("Slurm is not installed here, or this is not root")
    at = tmp_path_factory.mktemp("slurm")
    for name in ("state", "spool"):
        (at / name).mkdir()
    (at / "munge.key").write_bytes(os.urandom(64))
    (at / "munge.key").chmod(0o400)
    configuration = {"host": socket.gethostname(), "ports": (free_port(), free_port()), "cores": os.cpu_count()}
    (at / "slurm.conf").write_text(CONFIGURATION.format(at=at, **configuration))
    monkeypatch.setenv("SLURM_CONF", str(at / "slurm.conf"))
    files = {"key-file": "munge.key", "socket": "munge.socket", "pid-file": "munge.pid", "log-file": "munge.log"}
    files |= {"seed-file": "munge.seed"}
    munge = ["munged", "--foreground", "--force", *(f"--{name}={at}/{file}" for name, file in files.items())]
    daemons = [subprocess.Popen(munge, **QUIET)]
    wait_for((at / "munge.socket").exists, "munge")
    daemons += [subprocess.Popen([name, "-D"], **QUIET) for name in DAEMONS[1:]]
    wait_for(lambda: "idle" in subprocess.run(["sinfo", "-h"], capture_output=True, text=True).stdout, "idle node")
    record_property("Slurm", subprocess.run(["sinfo", "--version"], capture_output=True, text=True).stdout.strip())
    yield at
    for daemon in reversed(daemons):
        daemon.terminate()
        daemon.wait()


@pytest.mark.slow
def test_slurm_does_the_work_and_a_job_that_is_cancelled_costs_nothing(slurm, tmp_path, undisturbed):  # noqa: F811
    pytest.importorskip("submitit")
    options = ["--slurm", "partition=here,time=5", "--workers", "2", "--out", tmp_path / "F"]
    sweep = subprocess.Popen([COMMAND, "sweep", "run", *LONGER, *options], **PIPES)
    wait_for(lambda: len([*(tmp_path / "F").glob("runs/*.json")]) >= 4, "run done")
    queue = subprocess.run(["squeue", "-h", "-r", "-o", "%i"], capture_output=True, text=True).stdout.split()
    assert len(queue) == 2
    subprocess.run(["scancel", "--signal=KILL", queue[1]], check=True)
    said, errors = sweep.communicate(timeout=120)
    assert sweep.returncode == 0, errors
    assert "40 of 40 runs done, 0 failed" in said
    shutil.rmtree(tmp_path / "F" / "slurm")  # what its jobs have printed
    assert same_folders(tmp_path / "F", undisturbed)


@pytest.mark.slow
def test_the_slurm_path_works_through_submitits_local_executor(tmp_path):
    submitit = pytest.importorskip("submitit")
    executor = executors.OnSlurm(submitit.LocalExecutor(tmp_path / "jobs"), jobs=2)
    dataset = ah.sweep(BASE, {"seed": range(4)}, tmp_path / "F", executor=executor)
    ah.sweep(BASE, {"seed": range(4)}, tmp_path / "G", workers=1)
    assert dataset.error.notnull().all() and same_folders(tmp_path / "F", tmp_path / "G")


def test_slurm_options_are_slurms_own(monkeypatch, tmp_path):
    submitit = pytest.importorskip("submitit")
    monkeypatch.setattr(submitit.SlurmExecutor, "affinity", classmethod(lambda cls: 1))  # sbatch need not be here
    executor = submitit.SlurmExecutor(tmp_path)
    executors.configure(executor, "partition=short,time=60,mem=2G,nice=100")
    given = executor.parameters
    assert (given["partition"], given["time"], given["mem"]) == ("short", 60, "2G")
    assert given["additional_parameters"] == {"nice": 100} and given["cpus_per_task"] == 1
    with pytest.raises(ah.InputError, match=r"slurm is 'short'; it must be written like partition=short,time=60"):
        executors.configure(executor, "short")


def test_values_of_slurms_options_may_have_commas():
    class Remembers:
        def update_parameters(self, **given):
            self.__dict__.update(given)

    executor = Remembers()
    executors.configure(executor, "nodelist=a1,a2,time=60,exclude=n[1-3,7],comment='x,y=z'")
    assert (executor.nodelist, executor.time, executor.exclude) == ("a1,a2", 60, "n[1-3,7]")
    assert executor.comment == "x,y=z"


def test_a_machine_without_slurm_says_so(monkeypatch, tmp_path):
    pytest.importorskip("submitit")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ah.InputError, match="slurm needs the command sbatch"), executors.slurm("", 1, tmp_path):
        pytest.fail("it was opened")
    assert not any(tmp_path.iterdir())
