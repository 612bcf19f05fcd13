"""Peer of `solve --compare`: conjugate gradients of SciPy, alone and with spilu, fp64, b = 1 everywhere, rtol 1e-8.

    python3 scipy_precond.py matrix.mtx ...

A line of JSON for each: seconds of the set-up and of the solve.
"""

import json
import sys
import time

import numpy
import scipy.io
import scipy.sparse.linalg as linalg


def solve(name, what, a, setup):
    start = time.perf_counter()
    try:
        preconditioner = setup()
    except RuntimeError as error:
        print(json.dumps({"peer": "scipy", "matrix": name, "preconditioner": what, "error": str(error)}), flush=True)
        return
    made = time.perf_counter()
    iterations = 0

    def count(_):
        nonlocal iterations
        iterations += 1

    x, info = linalg.cg(a, numpy.ones(a.shape[0]), rtol=1e-8, maxiter=10000, M=preconditioner, callback=count)
    end = time.perf_counter()
    residual = numpy.linalg.norm(1 - a @ x) / numpy.sqrt(a.shape[0])
    line = {"setup": made - start, "solve": end - made, "iterations": iterations, "converged": bool(info == 0 and residual < 1e-6)}
    print(json.dumps({"peer": "scipy", "matrix": name, "preconditioner": what, **line}), flush=True)


for path in sys.argv[1:]:
    matrix = scipy.sparse.csr_matrix(scipy.io.mmread(path))
    diagonal = matrix.diagonal()
    solve(path, "none", matrix, lambda: None)
    jacobi = linalg.LinearOperator(matrix.shape, matvec=lambda x: x / diagonal)
    solve(path, "jacobi", matrix, lambda: jacobi)

    def spilu():
        factors = linalg.spilu(matrix.tocsc())
        return linalg.LinearOperator(matrix.shape, matvec=factors.solve)

    solve(path, "spilu", matrix, spilu)
