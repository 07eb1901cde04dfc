#!/usr/bin/env bash
# Installs what foretell needs on its machine and lacks. Safe to run again and again. What cannot be
# installed is named; it is an error only where nothing can be built or tested without it.
set -euo pipefail

# command it provides : Debian package
needed=(
  "make:make"
  "cc:gcc"
  "c++:g++"
  "z3:z3"
  "bzip2:bzip2"
  "clang-22:clang-22"
  "llvm-config-22:llvm-22-dev"
  "gdb:gdb"
  "gdb-multiarch:gdb-multiarch"
  "musl-gcc:musl-tools"
  "spin:spin"
  "parallel:parallel"
  "munged:munge"
  "slurmctld:slurmctld"
  "slurmd:slurmd"
  "sbatch:slurm-client"
  "qemu-aarch64:qemu-user"
  "aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu"
  "arm-linux-gnueabihf-gcc:gcc-arm-linux-gnueabihf"
  "pigz:pigz"
  "pbzip2:pbzip2"
  "cmake:cmake"
  "meson:meson"
  "ninja:ninja-build"
  "autoreconf:autoconf"
  "automake:automake"
)

missing=()
for entry in "${needed[@]}"; do
  command -v "${entry%%:*}" >/dev/null 2>&1 || missing+=("${entry#*:}")
done

# Linked with by a test of OpenMP.
[ -e /usr/lib/llvm-22/lib/libomp.so ] || missing+=(libomp-22-dev)

# ThreadSanitizer of clang, beside which recording is measured; the other library of C++.
ls /usr/lib/llvm-22/lib/clang/22/lib/linux/libclang_rt.tsan-*.a >/dev/null 2>&1 || missing+=(libclang-rt-22-dev)
[ -e /usr/lib/llvm-22/include/c++/v1/mutex ] || missing+=(libc++-22-dev libc++abi-22-dev)

# Linked with by the example of a server.
[ -e /usr/include/event2/event.h ] || missing+=(libevent-dev)
# Compiled against by the tests of test frameworks.
[ -e /usr/include/gtest/gtest.h ] || missing+=(libgtest-dev)
[ -e /usr/src/googletest ] || missing+=(googletest)
[ -e /usr/include/catch2/catch.hpp ] || missing+=(catch2)
[ -e /usr/include/doctest/doctest.h ] || missing+=(doctest-dev)

# Compiled against by the real program of the tests.
[ -e /usr/include/bzlib.h ] || missing+=(libbz2-dev)

# Linked with by the tests of binaries.
[ -e /usr/aarch64-linux-gnu/lib/libc.a ] || missing+=(libc6-dev-arm64-cross)
[ -e /usr/arm-linux-gnueabihf/lib/libc.a ] || missing+=(libc6-dev-armhf-cross)

# Debian has the module that makes Python environments in a package of its own.
python3 -c 'import ensurepip, venv' >/dev/null 2>&1 || missing+=(python3 python3-venv)

if [ "${#missing[@]}" -gt 0 ]; then
  if ! command -v apt-get >/dev/null 2>&1; then
    echo "setup: please install: ${missing[*]} (no apt-get here)" >&2
    exit 1
  fi
  echo "setup: installing ${missing[*]}"
  apt() {
    local as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq \
      -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" </dev/null >/dev/null
  }
  # Old lists may still be good enough, and one package that fails must not cost the others.
  apt update || echo "setup: the package lists could not be renewed" >&2
  apt install -y --no-install-recommends "${missing[@]}" ||
    for package in "${missing[@]}"; do
      apt install -y --no-install-recommends "$package" ||
        echo "setup: $package could not be installed; what needs it is skipped" >&2
    done
fi

for tool in make cc c++ z3 clang-22 llvm-config-22; do
  if ! command -v "$tool" >/dev/null 2>&1; then
    echo "setup: nothing can be built or tested without $tool; please install it" >&2
    exit 1
  fi
done

if ! command -v cargo >/dev/null 2>&1; then
  echo "setup: please install Rust 1.95 or later with rustup; Debian's own is too old" >&2
  exit 1
fi
