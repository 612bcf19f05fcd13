#!/usr/bin/env bash
# Gets an OpenCL runtime where there is none, then runs every check: format, lints, documentation, tests on the host
# back end and on every OpenCL device, kernels in a simulator that looks for races. What CI runs; works on a fresh
# Debian or Ubuntu with Rust.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh

# Everything is built once: what would make a second build quicker costs a fifth of the first.
export CARGO_INCREMENTAL="${CARGO_INCREMENTAL:-0}"

say() { printf '\n== %s (after %d s)\n' "$*" "$SECONDS"; }
failed() { printf 'test.sh: %s\n' "$*" >&2; exit 1; }

say "build"
get_build_tools
command -v rustup >/dev/null || failed "rustup is missing: the oldest Rust that is promised cannot be tried without it"
rustup component add rustfmt clippy >/dev/null 2>&1 || true
cargo build --examples --all-features --quiet

say "OpenCL"
opencl_devices() {
    cargo run --quiet --all-features --example devices -- --json | { grep -o '"index":"[0-9]*:[0-9]*"' || true; } | wc -l
}
if [ "$(opencl_devices)" = 0 ]; then
    echo "no OpenCL device: installing PoCL"
    get_packages ocl-icd-libopencl1 pocl-opencl-icd
fi
cargo run --quiet --all-features --example devices
devices=$(opencl_devices)
[ "$devices" -ge 1 ] || failed "there is still no OpenCL device"

say "format, lints, documentation"
# Every file: cargo fmt does not see modules that a macro declares.
find src tests benches examples -name '*.rs' -print0 | xargs -0 rustfmt --edition 2024 --check
cargo clippy --all-targets --all-features --quiet -- -D warnings
cargo clippy --quiet -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --all-features --quiet

say "the packed crate, with the oldest Rust that Cargo.toml promises"
# All features but those that need a C compiler, OpenCL's headers or a newer Rust (hdf5: 1.95).
features=fem,imaging,simulation,tuner,png,tiff,serde
oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
rustup run "$oldest" rustc --version >/dev/null 2>&1 \
    || rustup toolchain install "$oldest" --profile minimal --no-self-update >/dev/null \
    || failed "Rust $oldest could not be installed"
target="${CARGO_TARGET_DIR:-$PWD/target}"
rm -f "$target"/package/*.crate
# Outside the folder of the project, whose workspace it does not belong to.
packed=$(mktemp -d)
trap 'rm -rf "$packed"' EXIT
cargo package --package residuum --no-verify --allow-dirty --quiet
tar -xzf "$target"/package/residuum-*.crate -C "$packed" --strip-components 1
for link in $(grep -o ']([^):# ]*' "$packed/README.md" | cut -c3- | grep -vE '^https?$'); do
    [ -e "$packed/$link" ] || failed "README.md links $link, which is not packed"
done
# Lints of an older compiler are not ours.
RUSTFLAGS="--cap-lints allow" CARGO_TARGET_DIR="$target/oldest" \
    cargo "+$oldest" check --quiet --manifest-path "$packed/Cargo.toml" --features "$features"

say "Oclgrind, which looks for races in the kernels"
if ! ls /usr/lib/oclgrind/liboclgrind-rt-icd.so >/dev/null 2>&1; then
    get_packages oclgrind
fi

say "a display without a screen, for the windows of the simulations"
for tool in Xvfb xdotool xwd; do
    command -v $tool >/dev/null || { get_packages xvfb xdotool x11-apps; break; }
done

say "tests on the host and on $devices OpenCL device(s)"
# REQUIRE_DEVICES makes too few devices a failure, REQUIRE_OCLGRIND a missing simulator, REQUIRE_WINDOW a missing display: green is
# never empty.
export REQUIRE_DEVICES=1 REQUIRE_OCLGRIND=1 REQUIRE_WINDOW=1 RUST_BACKTRACE=0
cargo test --all-features --no-run --quiet
# As many modules at once as there are cores, each in a process of its own, those that take longest first: PoCL compiles all kernels of a
# process on one core.
logs=$(mktemp -d)
export logs
module() {
    log="$logs/${1// /}"
    cargo test --all-features $1 >"$log" 2>&1
    status=$?
    # One after another, so that no two are mixed.
    flock "$logs" cat "$log"
    return $status
}
export -f module
long="methods oclgrind solvers kernels scaled preconditioners imaging"
others=$(cd tests/suite && ls ./*.rs | sed 's#^\./##; s#\.rs$##' | grep -vxE "main|${long// /|}")
{
    printf -- '--test suite %s::\n' $long
    printf -- '--lib\n'
    printf -- '--test suite %s::\n' $others
    printf -- '--test architecture\n'
    printf -- '--doc\n'
} | xargs -P "$(nproc)" -I{} bash -c 'module "$1"' module {} || failed "some tests failed"
rm -r "$logs"

say "all checks passed"
