#!/usr/bin/env bash
# Compiles all C and C++ of Debian source packages with the plugin at -O0 to -O3, symbolic, concrete
# and as written, and has LLVM's verifier look at what the plugin made of them. Files that plain clang
# refuses (other systems, missing headers) are counted and left out. Without a network it is skipped.
#
# usage: scripts/corpus.sh [PACKAGE...]     (default: zlib bzip2 re2)
# FORETELL_BIN: the folder with libforetell_instrument.so (default: target/debug)
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/fetch.sh
packages=("$@")
[ ${#packages[@]} -gt 0 ] || packages=(zlib bzip2 re2)
plugin=$(realpath "${FORETELL_BIN:-target/debug}/libforetell_instrument.so")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for package in "${packages[@]}"; do
  if ! fetch "$work" "$package" "$work/$package"; then
    echo "SKIPPED: the sources of $package could not be fetched: $(tail -n 1 "$work/fetch.log" 2>/dev/null)" >&2
    exit 0
  fi
done

# One file at every level, in both modes. Prints a line for what went wrong.
compile() {
  local file=$1 folder compiler=(clang-22 -std=gnu17) object
  case $file in *.c) ;; *) compiler=(clang++-22 -std=c++17) ;; esac
  folder=$(dirname "$file")
  compiler+=(-g -w -pthread -fno-vectorize -fno-slp-vectorize -I"$folder" -I"$folder/.." -I"$folder/../..")
  object=$(mktemp -p "$WORK")
  if ! timeout 300 "${compiler[@]}" -O0 -c "$file" -o "$object" 2> /dev/null; then
    echo "left out $file"
    return
  fi
  for mode in symbolic concrete as-written; do
    local settings=(FORETELL_INSTRUMENT="$mode" FORETELL_VERIFY_IR=1)
    [ "$mode" != as-written ] || settings=(FORETELL_INSTRUMENT=symbolic FORETELL_AS_WRITTEN=1 FORETELL_VERIFY_IR=1)
    for level in 0 1 2 3; do
      if env "${settings[@]}" timeout 1800 "${compiler[@]}" "-O$level" \
        -fpass-plugin="$PLUGIN" -c "$file" -o "$object" 2> "$object.err"; then
        echo "valid"
      else
        echo "INVALID $file -O$level $mode: $(grep -m1 -v '^ *#' "$object.err" || true)"
      fi
    done
  done
}
export -f compile
export WORK=$work PLUGIN=$plugin
find "$work" \( -name '*.c' -o -name '*.cc' -o -name '*.cpp' -o -name '*.cxx' \) -print0 |
  sort -z | xargs -0 -n1 -P "$(nproc)" bash -c 'compile "$0"' > "$work/results"
count() { grep -c "^$1" "$work/results" || true; }
grep '^INVALID' "$work/results" || true
echo "${packages[*]}: $(count valid) modules valid, $(count INVALID) not, $(count 'left out') files left out"
[ "$(count INVALID)" -eq 0 ] && [ "$(count valid)" -gt 0 ]
