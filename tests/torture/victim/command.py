"""`asynchebb`, except that `learn` saves often enough to have something to resume from within seconds."""

from asynchebb import cli
from asynchebb.own_data import learn

if __name__ == "__main__":
    learn.SAVE_EVERY = 0.2
    cli.main()
