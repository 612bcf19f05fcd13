#!/usr/bin/env bash
# Gets an OpenCL runtime where there is none, then runs every check: format, lints, documentation, tests on the host
# back end and on every OpenCL device, kernels in a simulator that looks for races. What CI runs; works on a fresh
# Debian or Ubuntu with Rust.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\n== %s\n' "$*"; }
failed() { printf 'test.sh: %s\n' "$*" >&2; exit 1; }

root() {
    if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo "$@"; else
        failed "installing packages needs root: run as root once, or install pocl-opencl-icd yourself"; fi
}

# A package manager may be busy with something else (unattended upgrades): wait for it rather than fail.
install() {
    command -v apt-get >/dev/null || failed "no OpenCL platform and no apt-get: install an OpenCL driver, such as PoCL"
    root apt-get -o DPkg::Lock::Timeout=300 update -qq
    root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "$@"
}

say "build"
command -v cc >/dev/null || install gcc libc6-dev
rustup component add rustfmt clippy >/dev/null 2>&1 || true
cargo build --examples --quiet

say "OpenCL"
opencl_devices() { cargo run --quiet --example devices -- --json | grep -o '"index":"[0-9]*:[0-9]*"' | wc -l; }
if [ "$(opencl_devices)" = 0 ]; then
    echo "no OpenCL device: installing PoCL"
    install ocl-icd-libopencl1 pocl-opencl-icd
fi
cargo run --quiet --example devices
devices=$(opencl_devices)
[ "$devices" -ge 1 ] || failed "there is still no OpenCL device"

say "format, lints, documentation"
cargo fmt --check
cargo clippy --all-targets --quiet -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --quiet

say "tests on the host and on $devices OpenCL device(s)"
# Devices that are a last resort are not counted by the tests themselves; at least one real one there must be.
REQUIRE_DEVICES=1 cargo test --quiet

say "kernels under Oclgrind"
icd=$(ls /usr/lib/oclgrind/liboclgrind-rt-icd.so /usr/lib/*/oclgrind/liboclgrind-rt-icd.so 2>/dev/null | head -1 || true)
if [ -z "$icd" ] && command -v apt-get >/dev/null; then
    install oclgrind || echo "oclgrind could not be installed"
    icd=$(ls /usr/lib/oclgrind/liboclgrind-rt-icd.so /usr/lib/*/oclgrind/liboclgrind-rt-icd.so 2>/dev/null | head -1 || true)
fi
if [ -z "$icd" ]; then
    echo "SKIPPED: Oclgrind is not there; races and bounds were not looked for"
else
    log=$(mktemp)
    # Races and uninitialised memory are looked for in separate runs: reports of one kind can hide the other. One test
    # at a time, because the simulator is not safe to call from several threads.
    for check in DATA_RACES UNINITIALIZED; do
        env "OCLGRIND_$check=1" OCLGRIND_LOG="$log" OCL_ICD_VENDORS="$icd" \
            RESIDUUM_TEST_DEVICES=oclgrind REQUIRE_DEVICES=1 \
            cargo test --quiet --test simulator -- --ignored --test-threads=1
        [ -s "$log" ] && { head -50 "$log"; failed "Oclgrind ($check) found something"; }
        echo "Oclgrind $check: nothing found"
    done
    rm -f "$log"
fi

say "all checks passed"
