"""The CGNR of `cargo bench --bench solvers -- --only cgnr` in CuPy: the same size, the same correction, 400 iterations.

Scalars stay on the device, as a careful CuPy user would have it; A and A' are both stored. Prints the best of five.
"""

import time

import cupy as cp
import numpy as np
from cupyx.scipy import sparse

ROWS, COLS, ENTRIES, ITERATIONS = 3_072, 81_545, 854_129, 400

random = np.random.default_rng(2009)
before = ENTRIES * np.arange(ROWS + 1, dtype=np.int64) // ROWS
columns = np.concatenate([np.sort(random.choice(COLS, n, replace=False)) for n in np.diff(before)]).astype(np.int32)
values = random.random(ENTRIES, dtype=np.float32)
a = sparse.csr_matrix((cp.asarray(values), cp.asarray(columns), cp.asarray(before.astype(np.int32))), (ROWS, COLS))
at = a.T.tocsr()
b = cp.asarray(random.random(ROWS, dtype=np.float32) - np.float32(0.8))
weight = np.float32((values.astype(np.float64) ** 2).sum() / COLS)


def correction(x, v):
    """Pulls pixels that are above 0 back: weight (v - 0) where x > 0."""
    return cp.where(x > 0, weight * v, np.float32(0))


def solve():
    x = cp.zeros(COLS, cp.float32)
    r = b.copy()
    s = at @ r
    d = s.copy()
    ss = cp.dot(s, s)
    for _ in range(ITERATIONS):
        q = a @ d
        gd = cp.dot(s, d)
        alpha = gd / (cp.dot(q, q) + cp.dot(d, correction(x, d)))
        x += alpha * d
        r -= alpha * q
        new = at @ r - correction(x, x)
        ss = cp.dot(new, new)
        beta = cp.maximum((ss - cp.dot(new, s)) / gd, 0)
        s = new
        d = s + beta * d
    return x, float(cp.linalg.norm(r) / cp.linalg.norm(b))


solve()
best = np.inf
for _ in range(5):
    cp.cuda.Device().synchronize()
    begin = time.perf_counter()
    _, residual = solve()
    cp.cuda.Device().synchronize()
    best = min(best, time.perf_counter() - begin)
print(f"cupy {cp.__version__}: {best * 1e3:.2f} ms for {ITERATIONS} iterations, relative residual {residual:.6f}")
