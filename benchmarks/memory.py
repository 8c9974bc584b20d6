"""Peak memory of a whole recorded run, each in a process of its own.

python benchmarks/memory.py
"""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
MB = 2**20


def peak(n, samples):
    """Run and record a network of n neurons on Crossbars(14); peak resident memory in bytes."""
    code = f"""
import resource, tempfile
import asynchebb as ah
run = ah.Run(ah.asynchronous(n={n}), ah.Phase(ah.Crossbars(14), {samples}, 500, snapshots=3),
             ah.Probe(ah.Crossbars(14), 3, 50))
with tempfile.TemporaryDirectory() as folder:
    ah.record(run, folder).close()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    # A process of the tested kind compiles once before, so that the figure is that of every later run.
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(done.stdout) * (1 if sys.platform == "darwin" else 1024)


def main():
    peak(20, 1)
    results = []
    for n, samples in ((500, 200), (5_000, 9)):
        weights = 4 * n * (n + 196)
        allowed = 500 * MB if n == 500 else 1.3 * weights + 300 * MB
        used = peak(n, samples)
        results.append(
            {"n": n, "W and M, MB": weights // MB, "peak, MB": used // MB, "allowed, MB": int(allowed) // MB}
        )
        print("  ".join(f"{key}: {value:,}" for key, value in results[-1].items()))
    (HERE / "memory.json").write_text(json.dumps(results, indent=2) + "\n")
    return 0 if all(row["peak, MB"] <= row["allowed, MB"] for row in results) else 1


if __name__ == "__main__":
    sys.exit(main())
