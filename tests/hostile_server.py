"""The process that `hostile` forks its calls from imports this: it has then loaded and drawn once what calls need."""

import tempfile
from pathlib import Path

import asynchebb as ah
from asynchebb import cli, plot
from asynchebb.drawing import figures
from asynchebb.own_data import learn, load
from asynchebb.reproduction import reproduce
from asynchebb.sweeps import work

READY = (cli, reproduce, work)

with tempfile.TemporaryDirectory() as folder:
    run = ah.Run(ah.asynchronous(20, 36), ah.Phase(ah.Crossbars(6), samples=5, hold=100, snapshots=1))
    figures.save(plot.run(ah.record(run, folder)), Path(folder, "run.png"))
    learn.learn(
        ah.AsyncHebbian(20, max_iter=1, hold=20, random_state=0), load.load("Crossbars(6)"), Path(folder, "out")
    )
