#!/usr/bin/env bash
# Shows foretell at work on examples/; results go to demo-out/.
set -euo pipefail
cd "$(dirname "$0")/.."
foretell=target/release/foretell
out=demo-out
mkdir -p "$out"

# Runs a command that ends with one of the given exit codes.
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
"$foretell" cc -O1 -g examples/bank/bank.c -o "$out/bank" -pthread
expect 0 "$foretell" record -o "$out/bank.ftrace" -- "$out/bank"
echo
echo "== what could have gone wrong in that run"
expect 11 "$foretell" predict "$out/bank.ftrace" --schedules "$out/recorded-schedules"
echo
echo "== the same bank, written as a text trace: every access is locked, 100 + 10 + 20 = 130"
expect 0 "$foretell" trace validate examples/traces/bank.ft
echo
echo "== what could have gone wrong"
expect 11 "$foretell" predict examples/traces/bank.ft --schedules "$out/schedules"
expect 11 "$foretell" --format json predict examples/traces/bank.ft --schedules "$out/schedules" >"$out/result.json"
echo
echo "== a schedule that makes it happen"
head -n 12 "$(ls "$out"/schedules/*.schedule | head -n 1)"
echo
echo "== why, and what to add"
expect 11 "$foretell" explain examples/traces/bank.ctrc --svg "$out/bank.svg"
echo
echo "demo: $out/result.json, $out/schedules/, $out/bank.svg"
