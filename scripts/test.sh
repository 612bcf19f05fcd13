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
    local log
    log=$(mktemp)
    root apt-get -o DPkg::Lock::Timeout=300 update -qq >"$log" 2>&1 &&
        root env DEBIAN_FRONTEND=noninteractive \
            apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "$@" >>"$log" 2>&1 ||
        { cat "$log"; failed "could not install: $*"; }
    rm -f "$log"
}

say "build"
command -v cc >/dev/null || install gcc libc6-dev
# The crate `ocl` links the loader; nothing else does.
echo 'int main(void) { return 0; }' | cc -x c - -lOpenCL -o /dev/null 2>/dev/null || install ocl-icd-opencl-dev
rustup component add rustfmt clippy >/dev/null 2>&1 || true
cargo build --examples --all-features --quiet

say "OpenCL"
opencl_devices() { cargo run --quiet --all-features --example devices -- --json | grep -o '"index":"[0-9]*:[0-9]*"' | wc -l; }
if [ "$(opencl_devices)" = 0 ]; then
    echo "no OpenCL device: installing PoCL"
    install ocl-icd-libopencl1 pocl-opencl-icd
fi
cargo run --quiet --all-features --example devices
devices=$(opencl_devices)
[ "$devices" -ge 1 ] || failed "there is still no OpenCL device"

say "format, lints, documentation"
cargo fmt --check
cargo clippy --all-targets --all-features --quiet -- -D warnings
cargo clippy --quiet -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --all-features --quiet

say "Oclgrind, which looks for races in the kernels"
if ! ls /usr/lib/oclgrind/liboclgrind-rt-icd.so >/dev/null 2>&1; then
    install oclgrind
fi

say "tests on the host and on $devices OpenCL device(s)"
# REQUIRE_DEVICES makes too few devices a failure, REQUIRE_OCLGRIND a missing simulator: green is never empty.
REQUIRE_DEVICES=1 REQUIRE_OCLGRIND=1 RUST_BACKTRACE=0 cargo test --all-features

say "all checks passed"
