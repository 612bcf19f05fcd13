#!/usr/bin/env bash
# Runs the suite on every OpenCL runtime that can be had here, one after the other, and prints a table: tests passed and
# failed, and what was skipped with the reason.
#
#   scripts/test-runtimes.sh [RUNTIME...] [-- ARGUMENTS OF cargo test]
#
# Runtimes: host pocl intel rusticl oclgrind [all of them]. PoCL, rusticl and Oclgrind come from Debian's packages, Intel's
# runtime for CPUs from PyPI into target/runtimes (800 MB; it has a licence of its own). One that cannot be had is a line
# of the table, not a failure; one that is there and fails is one. Oclgrind, thousands of times slower than the others,
# runs the tests made for it. Each test compares with the host bit for bit, so runtimes that pass agree with one another.
# Logs stay in target/runtimes, and built programs too: a second run starts with them.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh

work=$PWD/target/runtimes
mkdir -p "$work"
runtimes=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do runtimes+=("$1"); shift; done
[ $# -gt 0 ] && shift
[ ${#runtimes[@]} -gt 0 ] || runtimes=(host pocl intel rusticl oclgrind)
for runtime in "${runtimes[@]}"; do
    case $runtime in
        host | pocl | intel | rusticl | oclgrind) ;;
        *) printf 'test-runtimes.sh: there is no runtime %s; there are host pocl intel rusticl oclgrind\n' "$runtime" >&2; exit 2 ;;
    esac
done

# Each gets a runtime and prints what OCL_ICD_VENDORS must name, so that no other driver is found.
get_host() { mkdir -p "$work/none" && echo "$work/none"; }
get_pocl() { from_debian /etc/OpenCL/vendors/pocl.icd pocl-opencl-icd; }
get_rusticl() { from_debian /etc/OpenCL/vendors/rusticl.icd mesa-opencl-icd; }
get_oclgrind() { from_debian /usr/lib/oclgrind/liboclgrind-rt-icd.so oclgrind; }
from_debian() {
    [ -e "$1" ] || get_packages ocl-icd-libopencl1 "$2" || return 1
    echo "$1"
}
get_intel() {
    local folder=$work/intel
    if [ ! -e "$folder/lib/libintelocl.so" ]; then
        python3 -m venv "$folder" >&2 && "$folder/bin/pip" install -q intel-opencl-rt intel-cmplr-lib-rt >&2 || return 1
    fi
    # The package's own file names a place that does not exist.
    [ -e "$folder/lib/libintelocl.so" ] && echo "$folder/lib/libintelocl.so" >"$work/intel.icd" && echo "$work/intel.icd"
}

# Programs that tests run, and all that is compiled before the clock starts.
get_build_tools && cargo build --examples --all-features --quiet && cargo test --all-features --no-run --quiet || exit 1

rows=()
failures=0
for runtime in "${runtimes[@]}"; do
    log=$work/$runtime.log
    printf '== %s (%s)\n' "$runtime" "$log"
    if ! vendors=$("get_$runtime" 2>"$log"); then
        rows+=("$runtime|-|-|-|cannot be had: $(tail -n 1 "$log" | cut -c1-80)")
        continue
    fi
    settings=(OCL_ICD_VENDORS="$vendors" REQUIRE_DEVICES=1 RESIDUUM_TUNE_FILE=off RESIDUUM_CACHE="$work/cache-$runtime")
    arguments=("$@")
    told=(--show-output --skip oclgrind_finds_nothing) # which has a row of its own
    case $runtime in
        host) settings+=(REQUIRE_DEVICES=0) ;;
        # A launch takes 0.3 ms and more there, and tests make very many: one size of groups.
        rusticl) settings+=(RUSTICL_ENABLE=llvmpipe RESIDUUM_TEST_DEVICES=rusticl RESIDUUM_TEST_WORK_GROUPS=64) ;;
        # The test finds its simulator itself, and fails where it is missing.
        oclgrind) settings+=(REQUIRE_DEVICES=0 REQUIRE_OCLGRIND=1); arguments=(--test suite oclgrind::); told=(--show-output) ;;
    esac
    start=$SECONDS
    : >"$log"
    status=0
    run() { env "${settings[@]}" cargo test --all-features --no-fail-fast "$@" -- "${told[@]}" >>"$log" 2>&1 || status=1; }
    if [ ${#arguments[@]} != 0 ]; then
        run "${arguments[@]}"
    else
        run --lib
        run --doc
        run --test architecture
        # Each module in a process of its own: a driver that crashes takes the tests of one module with it.
        for module in $(cd tests/suite && ls ./*.rs | sed 's#^\./##; s#\.rs$##' | grep -vx main); do
            run --test suite "$module::"
        done
    fi
    count() { awk -v at="$1" '/^test result: / { n += $at } END { print n + 0 }' "$log"; }
    reasons=$(sed -n 's/^skipped: //p' "$log" | sort | uniq -c | sort -rn | awk '{ n = $1; $1 = ""; printf "%s%d x%s", (NR > 1 ? "; " : ""), n, $0 }')
    rows+=("$runtime|$(count 4)|$(count 6)|$((SECONDS - start)) s|${reasons:-nothing}")
    if [ "$status" != 0 ] || [ "$(count 4)" = 0 ]; then
        failures=$((failures + 1))
        # A test that takes its process with it has no line of its own.
        sed -n 's/^test \(.*\) \.\.\. FAILED$/  failed: \1/p; s/^ *process didn.t exit successfully: \(.*signal.*\)/  died: \1/p' \
            "$log" | sort -u | head -n 20
    fi
done

printf '\n%-9s %6s %6s %7s  %s\n' runtime passed failed time skipped
for row in "${rows[@]}"; do
    IFS='|' read -r name passed failed time skipped <<<"$row"
    printf '%-9s %6s %6s %7s  %s\n' "$name" "$passed" "$failed" "$time" "$skipped"
done
[ $failures = 0 ] || { printf 'test-runtimes.sh: %s of the runtimes failed\n' "$failures" >&2; exit 1; }
