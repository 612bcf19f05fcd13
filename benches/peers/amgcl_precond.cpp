// Peer of `solve --compare`: CG of amgcl with its single-level preconditioners, fp64, b = 1 everywhere, rtol 1e-8.
//
//   CPU:  g++ -O3 -march=native -fopenmp -std=c++17 -I FOLDER_OF_AMGCL amgcl_precond.cpp -o amgcl_cpu
//   CUDA: nvcc -O3 -std=c++17 -arch=sm_90 -x cu -DON_CUDA -I FOLDER_OF_AMGCL amgcl_precond.cpp -o amgcl_cuda -lcusparse
//
// Arguments: Matrix Market files, or NxNxN for the Poisson matrix of a cube. A line of JSON for each preconditioner: seconds of the set-up,
// and of the best of two solves.
#define AMGCL_NO_BOOST
#ifdef ON_CUDA
#include <amgcl/backend/cuda.hpp>
#include <amgcl/relaxation/cusparse_ilu0.hpp>
#endif
#include <amgcl/adapter/crs_tuple.hpp>
#include <amgcl/backend/builtin.hpp>
#include <amgcl/io/mm.hpp>
#include <amgcl/make_solver.hpp>
#include <amgcl/relaxation/as_preconditioner.hpp>
#include <amgcl/relaxation/chebyshev.hpp>
#include <amgcl/relaxation/damped_jacobi.hpp>
#include <amgcl/relaxation/gauss_seidel.hpp>
#include <amgcl/relaxation/ilu0.hpp>
#include <amgcl/relaxation/ilut.hpp>
#include <amgcl/relaxation/spai0.hpp>
#include <amgcl/relaxation/spai1.hpp>
#include <amgcl/solver/cg.hpp>

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

struct System {
    std::string name;
    ptrdiff_t n = 0;
    std::vector<ptrdiff_t> ptr, col;
    std::vector<double> val;
};

static double now()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static System cube(ptrdiff_t side)
{
    System s;
    s.name = "poisson3d:" + std::to_string(side);
    s.n = side * side * side;
    s.ptr.push_back(0);
    for (ptrdiff_t row = 0; row < s.n; ++row) {
        const ptrdiff_t at[3] = {row / (side * side), row / side % side, row % side}, step[3] = {side * side, side, 1};
        for (int k = 0; k < 3; ++k)
            if (at[k] > 0) { s.col.push_back(row - step[k]); s.val.push_back(-1); }
        s.col.push_back(row);
        s.val.push_back(6);
        for (int k = 2; k >= 0; --k)
            if (at[k] < side - 1) { s.col.push_back(row + step[k]); s.val.push_back(-1); }
        s.ptr.push_back(s.col.size());
    }
    return s;
}

#ifdef ON_CUDA
typedef amgcl::backend::cuda<double> Backend;
typedef thrust::device_vector<double> Vector;
static void wait() { cudaDeviceSynchronize(); }
#else
typedef amgcl::backend::builtin<double> Backend;
typedef std::vector<double> Vector;
static void wait() {}
#endif

static Backend::params parameters;

template <template <class> class Relaxation> void run(const char* what, const System& s)
{
    typedef amgcl::relaxation::as_preconditioner<Backend, Relaxation> Preconditioner;
    typedef amgcl::make_solver<Preconditioner, amgcl::solver::cg<Backend>> Solver;
    typename Solver::params options;
    options.solver.tol = 1e-8;
    options.solver.maxiter = 10000;
    try {
        double start = now();
        Solver solve(std::tie(s.n, s.ptr, s.col, s.val), options, parameters);
        wait();
        const double setup = now() - start;
        const std::vector<double> ones(s.n, 1.0);
        Vector b(ones.begin(), ones.end()), x(s.n, 0.0);
        size_t iterations = 0;
        double error = 0, best = 1e300;
        for (int k = 0; k < 2; ++k) {
            x = Vector(s.n, 0.0);
            wait();
            start = now();
            std::tie(iterations, error) = solve(b, x);
            wait();
            best = std::min(best, now() - start);
        }
        printf("{\"peer\": \"amgcl\", \"matrix\": \"%s\", \"preconditioner\": \"%s\", \"setup\": %.6f, \"solve\": %.6f, "
               "\"iterations\": %zu, \"converged\": %s}\n",
               s.name.c_str(), what, setup, best, iterations, error <= 1e-8 ? "true" : "false");
    } catch (const std::exception& e) {
        printf("{\"peer\": \"amgcl\", \"matrix\": \"%s\", \"preconditioner\": \"%s\", \"error\": \"%s\"}\n", s.name.c_str(), what,
               e.what());
    }
    fflush(stdout);
}

int main(int count, char** words)
{
#ifdef ON_CUDA
    cusparseCreate(&parameters.cusparse_handle);
#endif
    for (int k = 1; k < count; ++k) {
        System s;
        int side;
        if (sscanf(words[k], "%dx", &side) == 1 && std::string(words[k]).find('.') == std::string::npos) {
            s = cube(side);
        } else {
            s.name = words[k];
            ptrdiff_t rows, cols;
            std::tie(rows, cols) = amgcl::io::mm_reader(words[k])(s.ptr, s.col, s.val);
            s.n = rows;
        }
        run<amgcl::relaxation::damped_jacobi>("damped jacobi", s);
        run<amgcl::relaxation::spai0>("spai0", s);
        run<amgcl::relaxation::chebyshev>("chebyshev", s);
        run<amgcl::relaxation::ilu0>("ilu0", s);
#ifndef ON_CUDA
        run<amgcl::relaxation::gauss_seidel>("gauss-seidel", s);
        run<amgcl::relaxation::ilut>("ilut", s);
        run<amgcl::relaxation::spai1>("spai1", s);
#endif
    }
}
