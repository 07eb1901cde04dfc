#!/usr/bin/env bash
# Six of the programs in examples/rust as they are under foretell, and rewritten for loom and for shuttle
# (bench/programs/rewritten, built with the real ones from crates.io): lines added or changed, whether the bug was found,
# runs of the program, seconds without building. Prints a table; a bug that foretell does not find ends it with 1.
# Usage: rewritten.sh
#
# FORETELL_BIN is the folder with `foretell` (default: target/debug), FORETELL_LIB_DIR the one with plugin and runtime
# (default: where `cargo test` leaves them). Builds stay in target/rewritten.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(cd "${FORETELL_BIN:-target/debug}" && pwd)
export FORETELL_LIB_DIR=${FORETELL_LIB_DIR:-$bin/deps}
sources=$PWD/bench/programs/rewritten
examples=$PWD/examples/rust
work=$PWD/target/rewritten
rm -rf "$work/loom" "$work/shuttle"
mkdir -p "$work"
cp -r "$sources"/{loom,shuttle} "$work"
cd "$work"

# Every run of the program says so.
sed -i 's/^fn program() {/&\n    std::eprintln!("RUN");/' {loom,shuttle}/src/bin/*.rs
for tool in loom shuttle; do
  if ! (cd "$tool" && CARGO_TARGET_DIR=$work/built cargo build --release --locked) >"$tool.out" 2>&1; then
    echo "SKIPPED: the programs for $tool could not be built: $(tail -n 1 "$tool.out")" >&2
    exit 0
  fi
  mkdir -p "$tool-programs"
  find built/release -maxdepth 1 -type f -executable -exec mv {} "$tool-programs" \;
done

seconds() { python3 -c "import sys; print(f'{float(sys.argv[2]) - float(sys.argv[1]):.1f}')" "$1" "$(date +%s.%N)"; }
missed=0
echo "| program | tool | lines | found | runs | seconds |"
echo "|---|---|---|---|---|---|"
for program in "$sources"/loom/src/bin/*.rs; do
  name=$(basename "$program" .rs)
  began=$(date +%s.%N)
  code=0
  "$bin/foretell" test --format json "$examples/$name.rs" >"$name.json" 2>"$name.err" || code=$?
  took=$(seconds "$began")
  runs=$(python3 -c "import json, sys; print(json.load(open(sys.argv[1]))['statistics']['runs'])" "$name.json")
  case $code in 10) found=yes ;; *) found=no missed=1 ;; esac
  echo "| \`$name\` | foretell | 0 | $found | $runs | $took |"
  for tool in loom shuttle; do
    lines=$(git diff --no-index --ignore-all-space --numstat "$examples/$name.rs" "$sources/$tool/src/bin/$name.rs" |
      cut -f 1 || true)
    began=$(date +%s.%N)
    code=0
    timeout 120 "$tool-programs/$name" >"$tool-$name.out" 2>&1 || code=$?
    took=$(seconds "$began")
    case $code in 0) found=no ;; 124) found="no, in 120 s" ;; *) found=yes ;; esac
    echo "| \`$name\` | $tool | $lines | $found | $(grep -c '^RUN' "$tool-$name.out") | $took |"
  done
done
exit $missed
