#!/usr/bin/env bash
# Runs every benchmark and the tables of the papers on one device, and writes all results into one JSON file. A benchmark alone prints
# tables: cargo bench --bench NAME, or cargo run --release --features papers --example papers -- NAME.
#
#   scripts/bench.sh [--device WORDS] [--data FOLDER] [--quick] FILE.json
#
# --device   words that pick the device (default: the best one)
# --data     a folder of Matrix Market files (*.mtx.gz), whose products and preconditioners are timed too
# --quick    fewer sizes
# SciPy's times stand beside ours where python3 has SciPy.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p;}' "$0"; }
bad() { printf 'bench.sh: %s\n' "$*" >&2; exit 2; }

device=() data=() quick=() file=
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --device) [ $# -gt 1 ] || bad "--device needs words"; device=(--device "$2"); shift 2 ;;
        --data) [ -d "${2:-}" ] || bad "--data needs a folder"; data=(--data "$(realpath "$2")"); shift 2 ;;
        --quick) quick=(--quick); shift ;;
        -*) bad "unknown option $1 (see --help)" ;;
        *) [ -z "$file" ] || bad "more than one file: $file and $1"; file=$(realpath -m "$1"); shift ;;
    esac
done
[ -n "$file" ] || bad "name the file to write (see --help)"

lines=$(mktemp -d)
trap 'rm -rf "$lines"' EXIT
cargo bench --quiet --all-features --no-run
names=(elements inverse scan spmv solvers start)
for name in "${names[@]}"; do
    printf '\n== %s\n' "$name" >&2
    options=("${device[@]}")
    case $name in
        inverse) options+=("${data[@]}") ;;
        spmv) options+=("${data[@]}" "${quick[@]}") ;;
        solvers) options+=("${quick[@]}") ;;
    esac
    cargo bench --quiet --all-features --bench "$name" -- --json "${options[@]}" | tee "$lines/$name" >&2
done
papers=(krueger-westermann-2003 michels-2011 oses-2013 stock-koch-2009)
[ ${#data[@]} -eq 0 ] || papers+=(dedecek-2013)
for name in "${papers[@]}"; do
    printf '\n== %s\n' "$name" >&2
    options=("${device[@]}")
    [ "$name" != dedecek-2013 ] || options+=("${data[@]}")
    cargo run --quiet --release --all-features --example papers -- "$name" --json "${options[@]}" | tee "$lines/$name" >&2
done
{
    printf '{"commit": "%s"' "$(git rev-parse --short HEAD 2>/dev/null || echo unknown)"
    for name in "${names[@]}" "${papers[@]}"; do
        printf ',\n"%s": [\n' "$name"
        sed '$!s/$/,/' "$lines/$name"
        printf ']'
    done
    printf '}\n'
} > "$file"
printf '\nwritten: %s\n' "$file" >&2
