"""`python -m asynchebb` is the command `asynchebb`."""

from asynchebb.cli import main

if __name__ == "__main__":
    main()
