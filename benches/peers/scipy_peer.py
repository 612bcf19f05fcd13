"""Peer of the benchmarks `scan` and `matrices`: SciPy on a matrix file, one thread.

    python3 scipy_peer.py matrix.npz cgls|product [seconds]

cgls: an iteration of conjugate gradients for least squares in the precision of the matrix, with the transposed kept as
compressed rows of its own, as a careful user would have it. product: y = A x. Prints one JSON line with the least time of an
iteration or a product in microseconds; that of several runs in the seconds given.
"""

import json
import sys
import time

import numpy as np
import scipy
import scipy.sparse as sparse

path, work = sys.argv[1:3]
seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 2.0
a = sparse.load_npz(path).tocsr()
random = np.random.default_rng(3)
x = random.random(a.shape[1]).astype(a.dtype)


def cgls(iterations):
    """Seconds per iteration, from x = 0."""
    at, b = cgls.at, cgls.b
    x = np.zeros(a.shape[1], a.dtype)
    begin = time.perf_counter()
    r = b.copy()
    s = at @ r
    d = s.copy()
    ss = s @ s
    for _ in range(iterations):
        q = a @ d
        alpha = ss / (q @ q)
        x += alpha * d
        r -= alpha * q
        s = at @ r
        new = s @ s
        d = s + (new / ss) * d
        ss = new
    return (time.perf_counter() - begin) / iterations


def product(count):
    begin = time.perf_counter()
    for _ in range(count):
        a @ x
    return (time.perf_counter() - begin) / count


if work == "cgls":
    cgls.at, cgls.b = a.T.tocsr(), a @ x
    run = cgls
else:
    run = product
once = run(1)
count = int(max(1, min(1000, 0.1 * seconds / once)))
best, end = np.inf, time.perf_counter() + seconds
while time.perf_counter() < end:
    best = min(best, run(count))
print(json.dumps({"peer": f"SciPy {scipy.__version__}", "work": work, "us": best * 1e6}))
