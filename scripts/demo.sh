#!/usr/bin/env bash
# Shows foretell at work on examples/bank; results go to demo-out/.
set -euo pipefail
cd "$(dirname "$0")/.."
foretell=$PWD/target/release/foretell
out=demo-out
rm -rf "$out"
mkdir -p "$out"

# Runs a command that ends with the given exit code.
expect() {
  local wanted=$1 code=0
  shift
  "$@" || code=$?
  if [ "$code" -ne "$wanted" ]; then
    echo "demo: expected exit code $wanted, got $code: $*" >&2
    exit 1
  fi
}

echo "== a real program: every access is locked, and it ends well"
cp examples/bank/bank.c "$out/bank.c"
cd "$out"
expect 0 "$foretell" cc -O1 -g bank.c -o bank -pthread
expect 0 ./bank
echo
echo "== one run is recorded; what it predicts is forced on the program, explained and repaired"
expect 10 "$foretell" test --json result.json --html report.html --sarif result.sarif ./bank
echo
echo "== the same again, from the schedule file"
schedule=$(ls foretell-schedules/*.schedule | head -n 1)
head -n 12 "$schedule"
expect 10 "$foretell" replay "$schedule" -- ./bank
echo
echo "== the fix as a patch; with it nothing is found any more"
expect 0 "$foretell" record -o bank.ftrace -- ./bank
expect 11 "$foretell" fix bank.ftrace --apply
expect 0 "$foretell" test bank.c
echo
echo "demo: $out/report.html (open it in a browser), $out/result.json, $out/foretell-schedules/"
