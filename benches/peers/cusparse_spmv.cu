// Peer of `examples/spmv`: cuSPARSE's two CSR algorithms on Matrix Market files and on Poisson grids, fp64 and fp32.
//   nvcc -O2 -arch=sm_90 cusparse_spmv.cu -o cusparse_spmv -lcusparse
//   ./cusparse_spmv file.mtx ... poisson2d:1024 ...
// Prints: matrix precision rows cols nnz microseconds-alg1 microseconds-alg2, and the copy bandwidth first.
#include <cuda_runtime.h>
#include <cusparse.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#define CHECK(x) do { auto e = (x); if ((int)e) { printf("error %d at line %d\n", (int)e, __LINE__); exit(1); } } while (0)

struct Entry { int row, col; double value; };

static bool read_matrix(const char* name, int& rows, int& cols, std::vector<Entry>& entries)
{
    if (!strncmp(name, "poisson2d:", 10)) {
        const int g = atoi(name + 10);
        rows = cols = g * g;
        for (int i = 0; i < g; i++)
            for (int j = 0; j < g; j++) {
                const int r = i * g + j;
                if (i) entries.push_back({r, r - g, -1});
                if (j) entries.push_back({r, r - 1, -1});
                entries.push_back({r, r, 4});
                if (j < g - 1) entries.push_back({r, r + 1, -1});
                if (i < g - 1) entries.push_back({r, r + g, -1});
            }
        return true;
    }
    const std::string path = name;
    const bool packed = path.size() > 3 && path.substr(path.size() - 3) == ".gz";
    FILE* f = packed ? popen(("gzip -dc '" + path + "'").c_str(), "r") : fopen(name, "r");
    if (!f) return false;
    char line[1024], object[64], form[64], field[64], symmetry[64];
    if (!fgets(line, sizeof line, f)) return false;
    if (sscanf(line, "%%%%MatrixMarket %63s %63s %63s %63s", object, form, field, symmetry) != 4) return false;
    if (strcmp(form, "coordinate")) { printf("%s: not a sparse matrix\n", name); return false; }
    do { if (!fgets(line, sizeof line, f)) return false; } while (line[0] == '%' || line[0] == '\n');
    long count;
    if (sscanf(line, "%d %d %ld", &rows, &cols, &count) != 3) return false;
    for (long k = 0; k < count; k++) {
        int i, j;
        double value = 1;
        if (!fgets(line, sizeof line, f)) return false;
        sscanf(line, "%d %d %lf", &i, &j, &value);
        entries.push_back({i - 1, j - 1, value});
        if (strcmp(symmetry, "general") && i != j)
            entries.push_back({j - 1, i - 1, strcmp(symmetry, "skew-symmetric") ? value : -value});
    }
    packed ? pclose(f) : fclose(f);
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.row != b.row ? a.row < b.row : a.col < b.col; });
    return true;
}

template <class T> static double time_algorithm(int rows, int cols, int nnz, const int* drow, const int* dcol, const T* dval, T* x, T* y, cusparseSpMVAlg_t algorithm)
{
    const cudaDataType type = sizeof(T) == 8 ? CUDA_R_64F : CUDA_R_32F;
    cusparseHandle_t handle;
    CHECK(cusparseCreate(&handle));
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cusparseSetStream(handle, stream));
    cusparseSpMatDescr_t matrix;
    cusparseDnVecDescr_t vx, vy;
    CHECK(cusparseCreateCsr(&matrix, rows, cols, nnz, (void*)drow, (void*)dcol, (void*)dval, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, type));
    CHECK(cusparseCreateDnVec(&vx, cols, x, type));
    CHECK(cusparseCreateDnVec(&vy, rows, y, type));
    const T one = 1, zero = 0;
    size_t size = 0;
    CHECK(cusparseSpMV_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix, vx, &zero, vy, type, algorithm, &size));
    void* buffer;
    CHECK(cudaMalloc(&buffer, size + 16));
    CHECK(cusparseSpMV_preprocess(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix, vx, &zero, vy, type, algorithm, buffer));
    auto product = [&] { CHECK(cusparseSpMV(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix, vx, &zero, vy, type, algorithm, buffer)); };
    cudaEvent_t begin, end;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    float ms = 0;
    for (int i = 0; i < 20; i++) product();
    CHECK(cudaStreamSynchronize(stream));
    cudaEventRecord(begin, stream); product(); cudaEventRecord(end, stream); cudaEventSynchronize(end);
    cudaEventElapsedTime(&ms, begin, end);
    const int count = std::max(20, std::min(1000, (int)(4.0 / (ms + 1e-4))));
    std::vector<double> times;
    for (int round = 0; round < 9; round++) {
        cudaEventRecord(begin, stream);
        for (int i = 0; i < count; i++) product();
        cudaEventRecord(end, stream);
        cudaEventSynchronize(end);
        cudaEventElapsedTime(&ms, begin, end);
        times.push_back(ms * 1e3 / count);
    }
    std::sort(times.begin(), times.end());
    cusparseDestroySpMat(matrix); cusparseDestroyDnVec(vx); cusparseDestroyDnVec(vy); cusparseDestroy(handle);
    cudaFree(buffer); cudaStreamDestroy(stream);
    return times[0]; // the fastest batch, as in src/measure.rs
}

template <class T> static void run(const char* name, int rows, int cols, const std::vector<Entry>& entries)
{
    const int nnz = entries.size();
    std::vector<int> offsets(rows + 1, 0), columns(nnz);
    std::vector<T> values(nnz), x(cols, 1);
    for (int k = 0; k < nnz; k++) { offsets[entries[k].row + 1]++; columns[k] = entries[k].col; values[k] = entries[k].value; }
    for (int i = 0; i < rows; i++) offsets[i + 1] += offsets[i];
    int *drow, *dcol; T *dval, *dx, *dy;
    CHECK(cudaMalloc(&drow, 4 * (rows + 1l))); CHECK(cudaMalloc(&dcol, 4l * nnz + 4)); CHECK(cudaMalloc(&dval, sizeof(T) * (nnz + 1l)));
    CHECK(cudaMalloc(&dx, sizeof(T) * (long)cols)); CHECK(cudaMalloc(&dy, sizeof(T) * (long)rows));
    CHECK(cudaMemcpy(drow, offsets.data(), 4 * (rows + 1l), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(dcol, columns.data(), 4l * nnz, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(dval, values.data(), sizeof(T) * (long)nnz, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(dx, x.data(), sizeof(T) * (long)cols, cudaMemcpyHostToDevice));
    const double first = time_algorithm<T>(rows, cols, nnz, drow, dcol, dval, dx, dy, CUSPARSE_SPMV_CSR_ALG1);
    const double second = time_algorithm<T>(rows, cols, nnz, drow, dcol, dval, dx, dy, CUSPARSE_SPMV_CSR_ALG2);
    const char* slash = strrchr(name, '/');
    printf("%s fp%d %d %d %d %.2f %.2f\n", slash ? slash + 1 : name, (int)sizeof(T) * 8, rows, cols, nnz, first, second);
    cudaFree(drow); cudaFree(dcol); cudaFree(dval); cudaFree(dx); cudaFree(dy);
}

int main(int argc, char** argv)
{
    void *a, *b;
    const size_t size = 1ull << 30;
    CHECK(cudaMalloc(&a, size)); CHECK(cudaMalloc(&b, size));
    cudaEvent_t begin, end;
    cudaEventCreate(&begin); cudaEventCreate(&end);
    cudaMemcpy(b, a, size, cudaMemcpyDeviceToDevice);
    cudaEventRecord(begin);
    for (int i = 0; i < 10; i++) cudaMemcpyAsync(b, a, size, cudaMemcpyDeviceToDevice);
    cudaEventRecord(end); cudaEventSynchronize(end);
    float ms; cudaEventElapsedTime(&ms, begin, end);
    printf("copy %.0f GB/s\n", 2.0 * size * 10 / ms / 1e6);
    cudaFree(a); cudaFree(b);
    for (int k = 1; k < argc; k++) {
        int rows, cols;
        std::vector<Entry> entries;
        if (!read_matrix(argv[k], rows, cols, entries)) { printf("%s: cannot be read\n", argv[k]); continue; }
        run<double>(argv[k], rows, cols, entries);
        run<float>(argv[k], rows, cols, entries);
    }
}
