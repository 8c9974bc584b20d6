"""Runs: as values, simulated, tested, recorded and read again."""
