#!/usr/bin/env bash
# Installs what foretell needs on its machine and lacks. Safe to run again and again.
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
)

missing=()
for entry in "${needed[@]}"; do
  command -v "${entry%%:*}" >/dev/null 2>&1 || missing+=("${entry#*:}")
done

# Compiled against by the real program of the tests.
[ -e /usr/include/bzlib.h ] || missing+=(libbz2-dev)

# Debian has the module that makes Python environments in a package of its own.
python3 -c 'import ensurepip, venv' >/dev/null 2>&1 || missing+=(python3 python3-venv)

if [ "${#missing[@]}" -gt 0 ]; then
  if ! command -v apt-get >/dev/null 2>&1; then
    echo "setup: please install: ${missing[*]} (no apt-get here)" >&2
    exit 1
  fi
  as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  echo "setup: installing ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

if ! command -v cargo >/dev/null 2>&1; then
  echo "setup: please install Rust 1.95 or later with rustup; Debian's own is too old" >&2
  exit 1
fi
