#!/usr/bin/env bash
# Tests of published crates, each as a program of its own under `foretell cargo test`, for a minute each and with
# opt-level 1. Prints a row for each; a confirmed finding (look at it: these tests pass), a fault of foretell's and a
# test that takes three times its minute end it with 1.
# Usage: crate-tests.sh [CRATE...]     (default: all)
#
# FORETELL_BIN is the folder with `foretell` (default: target/debug), FORETELL_LIB_DIR the one with plugin and runtime
# (default: where `cargo test` leaves them), FORETELL_SECONDS the time of a test (default: 60). Sources, builds and
# reports stay in target/crate-tests.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(cd "${FORETELL_BIN:-target/debug}" && pwd)
export FORETELL_LIB_DIR=${FORETELL_LIB_DIR:-$bin/deps}
work=$PWD/target/crate-tests
seconds=${FORETELL_SECONDS:-60}
[ $# -gt 0 ] || set -- parking_lot crossbeam-utils once_cell rayon-core crossbeam-channel

# Version, what cargo is given, and the tests of a crate.
choose() {
  case $1 in
  once_cell)
    version=1.21.4 arguments=(--test it)
    tests=(sync_once_cell::once_cell sync_once_cell::get_does_not_block sync_once_cell::wait
      race::once_non_zero_usize_first_wins race_once_box::once_box_first_wins sync_lazy::static_lazy)
    ;;
  crossbeam-channel)
    version=0.5.15 arguments=(--test array)
    # Not those that fail if a thread sleeps less long than another (recv_timeout, disconnect_wakes_sender).
    tests=(smoke len_empty_full send_after_disconnect recv_after_disconnect disconnect_wakes_receiver)
    ;;
  parking_lot)
    version=0.12.5 arguments=(--lib)
    tests=(condvar::tests::notify_one condvar::tests::wait_for condvar::tests::two_mutexes_disjoint
      mutex::tests::test_mutex_arc_nested mutex::tests::test_mutex_arc_condvar once::tests::smoke_once
      condvar::tests::notify_all)
    ;;
  rayon-core)
    version=1.13.0 arguments=(--lib)
    tests=(spawn::test::spawn_then_join_outside_worker thread_pool::test::self_install
      join::test::join_context_both scope::test::scope_two broadcast::test::broadcast_self)
    ;;
  crossbeam-utils)
    version=0.8.21 arguments=(--tests)
    tests=(park_timeout_unpark_before park_timeout_unpark_called_other_thread wait_and_drop join counter_panic)
    ;;
  *)
    echo "crate-tests: no such crate: $1 (once_cell, crossbeam-channel, parking_lot, rayon-core, crossbeam-utils)" >&2
    exit 2
    ;;
  esac
}

# Unpacks the sources of a crate, unless they are there: cargo fetches them as a dependency of a package of ours.
fetch() {
  [ -d "$1-$2" ] && return 0
  rm -rf fetched
  mkdir -p fetched/src
  touch fetched/src/lib.rs
  printf '[package]\nname = "fetched"\nedition = "2024"\n[dependencies]\n%s = "=%s"\n[workspace]\n' "$1" "$2" \
    >fetched/Cargo.toml
  (cd fetched && cargo vendor --quiet --versioned-dirs) >fetch.log 2>&1 || return 1
  # The compiler is the one that foretell is for, whatever the crate asks for.
  # Only examples need this, and it takes minutes to build.
  [ "$1" != once_cell ] || sed -i '/^\[dev-dependencies.regex/,/^$/d' "fetched/vendor/$1-$2/Cargo.toml"
  rm -f "fetched/vendor/$1-$2"/{rust-toolchain,rust-toolchain.toml,.cargo-checksum.json}
  printf '\n[workspace]\n' >>"fetched/vendor/$1-$2/Cargo.toml"
  mv "fetched/vendor/$1-$2" "$1-$2"
}

mkdir -p "$work"
cd "$work"
wrong=0
echo "| crate | test | events | runs | exit | confirmed | predicted | seconds |"
echo "|---|---|---|---|---|---|---|---|"
for crate in "$@"; do
  choose "$crate"
  if ! fetch "$crate" "$version"; then
    echo "SKIPPED: $crate $version could not be fetched: $(tail -n 1 fetch.log)" >&2
    continue
  fi
  (cd "$crate-$version" && "$bin/foretell" cargo test --list -- "${arguments[@]}") >"$crate.list" 2>"$crate.err" || {
    cat "$crate.err" >&2
    exit 1
  }
  for test in "${tests[@]}"; do
    program=$(sed -n "s/: $test\$//p" "$crate.list" | head -n 1)
    [ -n "$program" ] || { echo "crate-tests: $crate has no test $test" >&2 && exit 2; }
    began=$SECONDS
    found=$(ls -t "$crate-$version"/target/foretell/*/debug/deps/"${program//-/_}"-* | grep -v '\.d$' | head -n 1)
    code=0
    (cd "$crate-$version" && "$bin/foretell" test --time-limit "$seconds" --format json "${found#*/}" \
      --exact "$test" --test-threads=1 --nocapture) >report.json 2>report.err || code=$?
    python3 - "$crate $version" "$test" "$code" $((SECONDS - began)) "$seconds" <<'PYTHON' || wrong=1
import json, sys
crate, test, code, seconds, limit = sys.argv[1:]
try:
    report = json.load(open("report.json"))
except ValueError:
    print(f"| {crate} | `{test}` | - | - | {code} | - | - | {seconds} | {open('report.err').read().strip()}")
    sys.exit(1)
statuses = [finding["status"] for finding in report["findings"]]
confirmed = statuses.count("confirmed")
cells = [crate, f"`{test}`", report["trace"]["events"], report["statistics"]["runs"], code, confirmed,
         statuses.count("predicted"), seconds]
print("|", " | ".join(map(str, cells)), "|", flush=True)
for finding in report["findings"]:
    if finding["status"] == "confirmed":
        print("   ", finding["detail"].splitlines()[0], flush=True)
sys.exit(bool(confirmed or code == "1" or int(seconds) > 3 * int(limit)))
PYTHON
    cp report.json "$crate-$program-${test//:/_}.json"
  done
done
exit $wrong
