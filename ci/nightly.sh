#!/usr/bin/env bash
# The long tests, each bounded in time or number: fuzzing of every parser, the random tests with
# many cases, and the parts that need heavy dependencies.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh
scripts/planners.sh
fuzz/run.sh "${FUZZ_SECONDS:-60}"
# Known vulnerabilities of dependencies. The database is on the network, and may not be reachable from here.
# (The licences are checked by a test, which needs no network.)
if ! command -v cargo-audit >/dev/null; then
    echo "SKIPPED: cargo-audit is not installed: known vulnerabilities were not looked for"
elif ! said=$(cargo audit 2>&1); then
    case $said in
    *fetch*) echo "SKIPPED: the database of vulnerabilities cannot be reached" ;;
    *) echo "$said" && exit 1 ;;
    esac
fi
# The runtime's logic that makes no system call, under an interpreter that sees undefined behaviour. (`make test` does not
# run these tests: the library's wrappers would be linked into them.)
cargo test --locked -p foretell-runtime --lib
if cargo +nightly miri --version >/dev/null 2>&1; then
    cargo +nightly miri test --locked -p foretell-runtime --lib -- objects:: rust_channel:: summaries::
else
    echo "SKIPPED: Miri is not installed: the runtime's logic was not interpreted"
fi
FORETELL_DIFFERENTIAL="${FORETELL_DIFFERENTIAL:-2000}" \
  FORETELL_PROPTEST_CASES="${FORETELL_PROPTEST_CASES:-20000}" \
  FORETELL_MUTANTS="${FORETELL_MUTANTS:-100000}" \
  FORETELL_BINARY_ALL=1 \
  FORETELL_CPP_ALL=1 \
  FORETELL_BINARY_REPLAYS="${FORETELL_BINARY_REPLAYS:-100}" \
  FORETELL_BINARY_PROGRAMS="${FORETELL_BINARY_PROGRAMS:-100}" \
  FORETELL_REPLAYS="${FORETELL_REPLAYS:-1000}" \
  FORETELL_TRUTH_PROGRAMS="${FORETELL_TRUTH_PROGRAMS:-1000}" \
  FORETELL_KILLS="${FORETELL_KILLS:-100}" \
  FORETELL_POLICIES="${FORETELL_POLICIES:-50}" \
  FORETELL_VERIFY_PROGRAMS="${FORETELL_VERIFY_PROGRAMS:-20000}" \
  cargo test --release --workspace --locked
FORETELL_BIN=target/release scripts/cluster.sh
FORETELL_BIN=target/release scripts/corpus.sh zlib bzip2 re2
FORETELL_BIN=target/release scripts/real_programs.sh pbzip2 zlib zstd
FORETELL_BIN=target/release scripts/libraries.sh
FORETELL_BIN=target/release scripts/crates.sh
cargo test --locked -p foretell-trace --features parquet --test parquet
