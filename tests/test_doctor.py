"""`asynchebb doctor` finds what is wrong and says how to fix it."""

import numpy as np
import pytest
from test_cli import call_here

from asynchebb import doctor, engines
from asynchebb.engines import cpu


@pytest.fixture(autouse=True)
def healthy(monkeypatch):
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)


def found(part):
    return [finding for finding in doctor.examine() if finding.part == part]


def test_a_healthy_installation():
    done = call_here("doctor")
    assert done.returncode == 0, done.stdout
    assert "All is well." in done.stdout and "cpu and reference agree" in done.stdout
    for part in doctor.PARTS:
        assert part in done.stdout


def test_what_is_wrong_comes_with_a_fix(monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    done = call_here("doctor")
    assert done.returncode == 1 and "→ unset PYTHONDONTWRITEBYTECODE" in done.stdout and "1 thing to fix" in done.stdout


def test_a_version_below_the_bound(monkeypatch):
    version = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: "0.1" if name == "typer" else version(name))
    [wrong] = [finding for finding in found("packages") if finding.fix]
    assert wrong.says.startswith("typer is 0.1; it must be >=") and wrong.fix.startswith("pip install 'typer>=")


def test_missing_optional_parts_are_no_fault(monkeypatch):
    version = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: "" if name == "distributed" else version(name))
    says = [finding for finding in found("optional") if finding.says.startswith("dask")]
    assert says[0].says == "dask: not installed; pip install 'asynchebb[dask]' adds it" and not says[0].fix


def test_a_cache_that_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ASYNCHEBB_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(cpu, "cache_folder", cpu.cache_folder.__wrapped__)
    [wrong] = found("cache")
    assert "each process compiles anew" in wrong.says and "ASYNCHEBB_CACHE" in wrong.fix


def test_too_many_threads(monkeypatch):
    monkeypatch.setattr(doctor, "_cores", lambda: 0.4)
    assert any("BLAS threads share" in finding.says and finding.fix for finding in found("BLAS"))
    assert any("Numba uses" in finding.says and finding.fix for finding in found("threads"))


def test_engines_that_disagree(monkeypatch):
    advance = engines.advance

    def wrong(network, state, X, hold, engine="cpu", **rest):
        state, traces = advance(network, state, X, hold, engine, **rest)
        return (state._replace(W=state.W + 0.1) if engine == "cpu" else state), traces

    monkeypatch.setattr(engines, "advance", wrong)
    [finding] = found("engines")
    assert "disagree by 1.0e-01" in finding.says and finding.fix


def test_a_check_that_fails_is_a_finding(monkeypatch):
    monkeypatch.setattr(np.random, "default_rng", lambda *seed: 1 / 0)
    [finding] = found("engines")
    assert "cannot be examined (ZeroDivisionError" in finding.says and finding.fix


def test_gpus(monkeypatch, tmp_path):
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'NVIDIA H200, 143771 MiB, 570.1'\n")
    program.chmod(0o755)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: str(program))
    assert found("GPU")[0].says.startswith("NVIDIA H200")
    program.write_text("#!/bin/sh\necho 'no devices were found' >&2; exit 6\n")
    assert "nvidia-smi fails: no devices" in found("GPU")[0].says
