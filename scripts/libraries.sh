#!/usr/bin/env bash
# Libraries that nobody here wrote, from Debian's sources, each with a threaded driver of ours
# (bench/programs/libraries): built with foretell, recorded, explored for two minutes. Prints a row for each; a confirmed
# finding ends it with 1, because none of these drivers is known to have a bug.
# Usage: libraries.sh [LIBRARY...]     (default: leveldb sqlite3 libuv1)
#
# FORETELL_BIN is the folder with `foretell` (default: target/debug), FORETELL_LIB_DIR the one with plugin and runtime
# (default: where `cargo test` leaves them), FORETELL_SECONDS the time of an exploration (default: 120). Sources and builds
# stay in target/libraries.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/fetch.sh
bin=$(cd "${FORETELL_BIN:-target/debug}" && pwd)
export FORETELL_LIB_DIR=${FORETELL_LIB_DIR:-$bin/deps}
drivers=$PWD/bench/programs/libraries
work=$PWD/target/libraries
seconds=${FORETELL_SECONDS:-120}
options=(-O1 -g -pthread)
[ $# -gt 0 ] || set -- leveldb sqlite3 libuv1
mkdir -p "$work"
cd "$work"

# Configures and builds a target of a library that has CMake.
with_cmake() {
  local library=$1 target=$2
  shift 2
  cmake -S "$library" -B "$library-build" -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS="${options[*]}" \
    -DCMAKE_CXX_FLAGS="${options[*]}" -DCMAKE_C_COMPILER="$bin/foretell-cc" \
    -DCMAKE_CXX_COMPILER="$bin/foretell-cxx" "$@" >"$library.out"
  make -C "$library-build" "$target" >>"$library.out"
}

build() {
  case $1 in
  leveldb)
    with_cmake leveldb leveldb -DLEVELDB_BUILD_TESTS=OFF -DLEVELDB_BUILD_BENCHMARKS=OFF -DHAVE_SNAPPY=0 -DHAVE_CRC32C=0
    "$bin/foretell" c++ "${options[@]}" -Ileveldb/include "$drivers/leveldb.cpp" leveldb-build/libleveldb.a \
      -o leveldb-driver
    ;;
  sqlite3)
    mkdir -p sqlite3-build
    (cd sqlite3-build && ../sqlite3/configure --disable-tcl && make sqlite3.c) >sqlite3.out 2>&1
    "$bin/foretell" cc "${options[@]}" -DSQLITE_THREADSAFE=1 -DSQLITE_OMIT_LOAD_EXTENSION -Isqlite3-build \
      "$drivers/sqlite3.c" sqlite3-build/sqlite3.c -o sqlite3-driver -lm
    ;;
  libuv1)
    with_cmake libuv1 uv_a -DBUILD_TESTING=OFF
    "$bin/foretell" cc "${options[@]}" -Ilibuv1/include "$drivers/libuv1.c" libuv1-build/libuv_a.a -o libuv1-driver -ldl
    ;;
  *)
    echo "libraries: no such library: $1 (leveldb, sqlite3, libuv1)" >&2
    exit 2
    ;;
  esac
}

confirmed=0
echo "library  build s  events  classes  open  unseen  predicted  confirmed  exit  test s"
for library in "$@"; do
  if ! fetch "$work" "$library" "$library"; then
    echo "SKIPPED: the sources of $library could not be fetched: $(tail -n 1 fetch.log 2>/dev/null)" >&2
    continue
  fi
  began=$SECONDS
  build "$library"
  built=$SECONDS
  code=0
  UV_THREADPOOL_SIZE=2 "$bin/foretell" test --time-limit "$seconds" --format json "./$library-driver" "$work/$library-data" \
    >"$library.json" 2>"$library.err" || code=$?
  python3 - "$library" $((built - began)) "$code" $((SECONDS - built)) <<'PYTHON'
import json, sys
library, build, code, seconds = sys.argv[1:]
report = json.load(open(library + ".json"))
explored = report["exploration"]
statuses = [finding["status"] for finding in report["findings"]]
print(library, build, report["trace"]["events"], explored["classes"], explored["open"], len(report["unseen"]),
      statuses.count("predicted"), statuses.count("confirmed"), code, seconds, sep="  ")
PYTHON
  case $code in 0 | 11 | 12) ;; *) confirmed=1 ;; esac
done
exit $confirmed
