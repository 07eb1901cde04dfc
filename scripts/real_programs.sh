#!/usr/bin/env bash
# Programs that nobody here wrote, from Debian's sources: built with `foretell cc` or `foretell c++`
# in their own build systems, and used.
#   pbzip2  make (C++, threads): recorded while it compresses; bzip2 unpacks what it packed, and the
#           trace validates
#   zlib    ./configure && make && make test (C, shared library)
#   zstd    CMake (C, threads)
# Usage: real_programs.sh [PROGRAM...]     (default: pbzip2)
#
# FORETELL_BIN is the folder with `foretell` (default: target/debug), FORETELL_LIB_DIR the one with
# plugin and runtime (default: where `cargo test` leaves them). Sources and builds stay in
# target/real-programs. Where sources come from is taken from this machine's own configuration of
# apt, which is not changed; a program that cannot be fetched is skipped, and that is said.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/fetch.sh
bin=$(cd "${FORETELL_BIN:-target/debug}" && pwd)
export FORETELL_LIB_DIR=${FORETELL_LIB_DIR:-$bin/deps}
work=$PWD/target/real-programs
[ $# -gt 0 ] || set -- pbzip2
mkdir -p "$work"
cd "$work"

build_and_use() {
  case $1 in
  pbzip2)
    # Its string literals are older than C++11; that error is clang's.
    make -B -C pbzip2 CXX="$bin/foretell c++ -w -Wno-reserved-user-defined-literal" >make.out 2>&1
    # The limit only keeps a hang from being one for ever.
    "$bin/foretell" record --time-limit 900 -o pbzip2.ftrace -- \
      ./pbzip2/pbzip2 -p4 -b1 -k -c data >data.bz2
    bzip2 -dc data.bz2 | cmp - data
    "$bin/foretell" trace validate pbzip2.ftrace
    ;;
  zlib)
    (cd zlib && CC="$bin/foretell cc" ./configure >configure.out && make >make.out && make test) \
      | grep -c 'test OK' | grep -qx 3
    ;;
  zstd)
    cmake -S zstd/build/cmake -B zstd-build -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS=-O1 \
      -DCMAKE_C_COMPILER="$bin/foretell-cc" -DCMAKE_CXX_COMPILER="$bin/foretell-cxx" >cmake.out
    make -C zstd-build zstd >make.out
    ./zstd-build/programs/zstd -q -T4 -B64K -k -c data >data.zst
    ./zstd-build/programs/zstd -q -d -c data.zst | cmp - data
    ;;
  esac
}

head -c 400000 "$bin/foretell" >data
for program in "$@"; do
  package=$program
  case $program in
  pbzip2 | zlib) ;;
  zstd) package=libzstd ;;
  *)
    echo "real_programs: no such program: $program (pbzip2, zlib, zstd)" >&2
    exit 2
    ;;
  esac
  if [ "$program" = pbzip2 ] && ! { [ -e /usr/include/bzlib.h ] && command -v bzip2 >/dev/null; }; then
    echo "SKIPPED: pbzip2 needs bzip2 and libbz2-dev" >&2
    continue
  fi
  if ! fetch "$work" "$package" "$program"; then
    echo "SKIPPED: the sources of $program could not be fetched: $(tail -n 1 fetch.log 2>/dev/null)" >&2
    continue
  fi
  build_and_use "$program"
  echo "$program: builds and works"
done
