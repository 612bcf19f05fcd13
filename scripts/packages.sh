# Read by the other scripts: gets packages of Debian and Ubuntu. What cannot be had is false, with the reason on stderr.

root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        # Nobody answers a question where nobody looks.
        if [ -t 0 ]; then sudo "$@"; else sudo -n "$@"; fi
    else
        echo "installing packages needs root: run as root once, or install them yourself" >&2
        return 1
    fi
}

# A package manager may be busy with something else (unattended upgrades): wait for it rather than fail.
get_packages() {
    if ! command -v apt-get >/dev/null; then
        echo "there is no apt-get: install what stands for $* yourself" >&2
        return 1
    fi
    local log status=0
    log=$(mktemp)
    { root apt-get -o DPkg::Lock::Timeout=300 update -qq &&
        root env DEBIAN_FRONTEND=noninteractive \
            apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "$@"; } >"$log" 2>&1 || status=1
    [ $status = 0 ] || { echo "could not install: $*"; cat "$log"; } >&2
    rm -f "$log"
    return $status
}

# What a build with all features needs beside Rust: the crate `ocl` links the loader, nothing else does.
get_build_tools() {
    command -v cc >/dev/null || get_packages gcc libc6-dev || return 1
    echo 'int main(void) { return 0; }' | cc -x c - -lOpenCL -o /dev/null 2>/dev/null || get_packages ocl-icd-opencl-dev
}
