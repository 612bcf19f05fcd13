// Peer of `solve --compare`: CG of ViennaCL on OpenCL with its preconditioners, fp64, b = 1 everywhere, rtol 1e-8.
//
//   g++ -O2 -DNDEBUG viennacl_precond.cpp -o viennacl_precond -l:libOpenCL.so.1      (Debian: libviennacl-dev)
//
// Arguments: Matrix Market files, or NxNxN for the Poisson matrix of a cube. A line of JSON for each preconditioner: seconds of the set-up,
// and of the best of two solves.
#define VIENNACL_WITH_OPENCL
#include <viennacl/compressed_matrix.hpp>
#include <viennacl/io/matrix_market.hpp>
#include <viennacl/linalg/cg.hpp>
#include <viennacl/linalg/ichol.hpp>
#include <viennacl/linalg/ilu.hpp>
#include <viennacl/linalg/jacobi_precond.hpp>
#include <viennacl/vector.hpp>

#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

typedef viennacl::compressed_matrix<double> Matrix;
typedef viennacl::vector<double> Vector;

static double now()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class Make> void run(const char* what, const char* name, const Matrix& a, Make make)
{
    try {
        const Vector b = viennacl::scalar_vector<double>(a.size1(), 1.0);
        double setup = 0, best = 1e300;
        unsigned iterations = 0;
        double error = 1;
        // Programs are built by the first round.
        for (int k = 0; k < 2; ++k) {
            viennacl::backend::finish();
            double start = now();
            auto preconditioner = make(a);
            viennacl::backend::finish();
            setup = now() - start;
            viennacl::linalg::cg_tag tag(1e-8, 10000);
            start = now();
            Vector x = viennacl::linalg::solve(a, b, tag, preconditioner);
            viennacl::backend::finish();
            best = std::min(best, now() - start);
            iterations = tag.iters();
            Vector r = viennacl::linalg::prod(a, x);
            r = b - r;
            error = viennacl::linalg::norm_2(r) / viennacl::linalg::norm_2(b);
        }
        printf("{\"peer\": \"viennacl\", \"matrix\": \"%s\", \"preconditioner\": \"%s\", \"setup\": %.6f, \"solve\": %.6f, "
               "\"iterations\": %u, \"converged\": %s}\n",
               name, what, setup, best, iterations, error <= 1e-6 ? "true" : "false");
    } catch (const std::exception& e) {
        printf("{\"peer\": \"viennacl\", \"matrix\": \"%s\", \"preconditioner\": \"%s\", \"error\": \"failed\"}\n", name, what);
    }
    fflush(stdout);
}

int main(int count, char** words)
{
    const auto platforms = viennacl::ocl::get_platforms();
    for (size_t k = 0; k < platforms.size(); ++k)
        if (platforms[k].info().find("NVIDIA") != std::string::npos) viennacl::ocl::set_context_platform_index(0, k);
    for (int k = 1; k < count; ++k) {
        std::vector<std::map<unsigned, double>> rows;
        long side;
        if (sscanf(words[k], "%ldx", &side) == 1 && std::string(words[k]).find('.') == std::string::npos) {
            rows.resize(side * side * side);
            const long step[3] = {side * side, side, 1};
            for (long row = 0; row < (long)rows.size(); ++row) {
                const long at[3] = {row / (side * side), row / side % side, row % side};
                rows[row][row] = 6;
                for (int d = 0; d < 3; ++d) {
                    if (at[d] > 0) rows[row][row - step[d]] = -1;
                    if (at[d] < side - 1) rows[row][row + step[d]] = -1;
                }
            }
        } else if (!viennacl::io::read_matrix_market_file(rows, words[k])) {
            continue;
        }
        Matrix a;
        viennacl::copy(rows, a);
        run("none", words[k], a, [](const Matrix&) { return viennacl::linalg::no_precond(); });
        run("jacobi", words[k], a, [](const Matrix& a) {
            return viennacl::linalg::jacobi_precond<Matrix>(a, viennacl::linalg::jacobi_tag());
        });
        run("ichol0", words[k], a, [](const Matrix& a) {
            return viennacl::linalg::ichol0_precond<Matrix>(a, viennacl::linalg::ichol0_tag());
        });
        run("ilu0", words[k], a, [](const Matrix& a) {
            return viennacl::linalg::ilu0_precond<Matrix>(a, viennacl::linalg::ilu0_tag());
        });
        run("chow-patel icc", words[k], a, [](const Matrix& a) {
            return viennacl::linalg::chow_patel_icc_precond<Matrix>(a, viennacl::linalg::chow_patel_tag());
        });
    }
}
