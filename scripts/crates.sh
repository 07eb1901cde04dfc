#!/usr/bin/env bash
# Published crates with a known bug, from crates.io, each with a driver of ours (bench/programs/crates): built with
# foretell at the version with the bug and at the one in which it is mended (buggy.lock, fixed.lock), and explored.
# Prints a row for each; a bug that is not confirmed and a confirmed finding at a mended version end it with 1.
# Usage: crates.sh [DRIVER...]     (default: all)
#
# FORETELL_BIN is the folder with `foretell` (default: target/debug), FORETELL_LIB_DIR the one with plugin and runtime
# (default: where `cargo test` leaves them), FORETELL_SECONDS the time of an exploration (default: 120). Builds and
# reports stay in target/crates.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(cd "${FORETELL_BIN:-target/debug}" && pwd)
export FORETELL_LIB_DIR=${FORETELL_LIB_DIR:-$bin/deps}
drivers=$PWD/bench/programs/crates
work=$PWD/target/crates
seconds=${FORETELL_SECONDS:-120}
[ $# -gt 0 ] || set -- $(cd "$drivers" && ls -d -- */ | tr -d /)
mkdir -p "$work"
cd "$work"

wrong=0
echo "driver  versions  build s  exit  runs  predicted  confirmed  test s  first confirmed finding"
for driver in "$@"; do
  for kind in buggy fixed; do
    name=$driver-$kind
    mkdir -p "$name"
    cp "$drivers/$driver/Cargo.toml" "$drivers/$driver/main.rs" "$name"
    cp "$drivers/$driver/$kind.lock" "$name/Cargo.lock"
    began=$SECONDS
    if ! (cd "$name" && cargo fetch --locked) >"$name.out" 2>&1; then
      echo "SKIPPED: the crates of $driver could not be fetched: $(tail -n 1 "$name.out")" >&2
      continue
    fi
    (cd "$name" && CARGO_TARGET_DIR=$work/built "$bin/foretell" cargo build --locked --offline) >>"$name.out" 2>&1 || {
      cat "$name.out" >&2
      exit 1
    }
    cp built/foretell/*/debug/"$driver" "$name/program"
    built=$SECONDS
    code=0
    "$bin/foretell" test --time-limit "$seconds" --format json "$name/program" >"$name.json" 2>"$name.err" || code=$?
    python3 - "$drivers/$driver" "$name" $((built - began)) "$code" $((SECONDS - built)) "$kind" <<'PYTHON' || wrong=1
import json, pathlib, sys, tomllib
folder, name, build, code, seconds, kind = sys.argv[1:]
folder = pathlib.Path(folder)
crates = tomllib.loads((folder / "Cargo.toml").read_text())["dependencies"]
locked = tomllib.loads((folder / f"{kind}.lock").read_text())["package"]
versions = ", ".join(f"{crate['name']} {crate['version']}" for crate in locked if crate["name"] in crates)
try:
    report = json.load(open(name + ".json"))
except ValueError:
    print(folder.name, versions, build, code, "-", "-", "-", seconds, open(name + ".err").read().strip(), sep="  ")
    sys.exit(1)
findings = report["findings"]
confirmed = [finding for finding in findings if finding["status"] == "confirmed"]
predicted = sum(finding["status"] == "predicted" for finding in findings)
print(folder.name, versions, build, code, report["statistics"]["runs"], predicted, len(confirmed), seconds,
      confirmed[0]["detail"].splitlines()[0] if confirmed else "-", sep="  ")
sys.exit(bool(confirmed) != (kind == "buggy"))
PYTHON
  done
done
exit $wrong
