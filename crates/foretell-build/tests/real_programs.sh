#!/bin/sh
# Builds programs that nobody here wrote with the driver and uses them:
#   zlib    ./configure && make && make test   (C, shared library)
#   pbzip2  make                               (C++, threads)
#   zstd    CMake                              (C, threads)
# Usage: real_programs.sh BIN [WORK [PROGRAM...]]
#   BIN   directory with foretell-cc, foretell-cxx, plugin and runtime (target/release)
#   WORK  where sources and builds go (default: a directory in /tmp, kept for the next run)
# The sources are Debian's; where they come from is taken from this machine's own configuration of
# apt, which is not changed.
set -eu
bin=$(cd "${1:?directory of foretell-cc}" && pwd)
work=${2:-/tmp/foretell-real-programs}
if [ $# -ge 2 ]; then shift 2; else shift; fi
[ $# -gt 0 ] || set -- zlib pbzip2 zstd
mkdir -p "$work/lists/partial"
cd "$work"

fetch() { # package, directory
  [ -d "$2" ] && return
  for list in /etc/apt/sources.list.d/debian.sources; do
    [ -r "$list" ] || { echo "no $list: cannot fetch $1" >&2; exit 1; }
    sed 's/^Types: .*/Types: deb-src/' "$list" > "$work/src.sources"
  done
  options="-o Dir::Etc::sourcelist=$work/src.sources -o Dir::Etc::sourceparts=- \
    -o Dir::State::lists=$work/lists -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -qq"
  # shellcheck disable=SC2086  # the options are words
  { [ -e "$work/updated" ] || apt-get $options update; touch "$work/updated"; } \
    && apt-get $options source --download-only "$1"
  mkdir "$2.new"
  for archive in "$1"_*.orig.tar.gz "$1"_*.orig.tar.bz2 "$1"_*.orig.tar.xz; do
    [ ! -f "$archive" ] || tar xf "$archive" -C "$2.new" --strip-components=1
  done
  mv "$2.new" "$2"
}

head -c 400000 "$bin/foretell-cc" > data

for program in "$@"; do
  case $program in
  zlib)
    fetch zlib zlib
    (cd zlib && CC="$bin/foretell-cc" ./configure > configure.out && make > make.out && make test) \
      | grep -c 'test OK' | grep -qx 3
    ;;
  pbzip2)
    fetch pbzip2 pbzip2
    # Its string literals are older than C++11; that error is clang's.
    (cd pbzip2 && make CXX="$bin/foretell-cxx -w -Wno-reserved-user-defined-literal" > make.out)
    ./pbzip2/pbzip2 -p4 -b1 -k -c data > data.bz2
    bzip2 -dc data.bz2 | cmp - data
    ;;
  zstd)
    fetch libzstd zstd
    cmake -S zstd/build/cmake -B zstd-build -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS=-O1 \
      -DCMAKE_C_COMPILER="$bin/foretell-cc" -DCMAKE_CXX_COMPILER="$bin/foretell-cxx" > cmake.out
    make -C zstd-build zstd > make.out
    ./zstd-build/programs/zstd -q -T4 -B64K -k -c data > data.zst
    ./zstd-build/programs/zstd -q -d -c data.zst | cmp - data
    ;;
  *)
    echo "no such program: $program" >&2
    exit 2
    ;;
  esac
  echo "$program: builds and works"
done
