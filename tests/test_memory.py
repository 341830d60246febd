"""Peak memory of fit, measured in a process of its own."""

import subprocess
import sys

SCRIPT = """
import numpy as np
from hubless import MoveLabeledClassifier, threads

threads.blas_threads = lambda: 8  # as on a machine of many cores

def peak():  # bytes; not getrusage's, which on Linux begins with what the parent, pytest, had when it forked
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))

rng = np.random.default_rng(0)
small = rng.standard_normal((600, 128), dtype=np.float32)
MoveLabeledClassifier().fit(small, np.arange(600) % 2)  # everything is imported and every thread started
X = rng.standard_normal((200_000, 128), dtype=np.float32)
y = np.maximum(np.arange(200_000) - 150_000, 0) // 5_000  # one class of 150,000 and ten of 5,000
y[150_000:] += 1
model = MoveLabeledClassifier().fit(X, y)
assert np.bincount(y).max() == 150_000
print(peak(), X.nbytes)
"""


def test_fit_with_one_huge_class_needs_little_more_than_its_input():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    peak, data = map(int, done.stdout.split())
    assert peak < 2 * data + 500e6  # of the whole process, interpreter and libraries included
