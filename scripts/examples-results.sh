#!/usr/bin/env bash
# Tests every program of examples/ and saves the results for the snapshots of the report's tests.
# examples-results.sh FORETELL [FOLDER]       (FOLDER: crates/foretell-report/tests/examples)
# Then: FORETELL_BLESS=1 cargo test -p foretell-report --test examples
set -euo pipefail
foretell=$(realpath "$1")
folder=$(realpath "${2:-$(dirname "$0")/../crates/foretell-report/tests/examples}")
cd "$(dirname "$0")/.."
result=target/examples-result.json
trap 'rm -rf foretell-schedules "$result"' EXIT
python3 -c 'import json
for one in json.load(open("examples/expected.json")):
    print(one["name"], *one.get("options", []), "examples/" + one["name"] + "/" + one["source"],
          *one.get("arguments", []))' |
  while read -r name program; do
    code=0
    # shellcheck disable=SC2086
    "$foretell" test --jobs 1 --json "$result" $program </dev/null >/dev/null || code=$?
    # What a clock measured and where the build took place is no part of a snapshot.
    sed -E -e 's/"(candidate|solve)_seconds": [0-9.e-]+/"\1_seconds": 0.0/' \
      -e 's/"build_id": "[0-9a-f]+"/"build_id": "0"/' "$result" >"$folder/$name.json"
    echo "$name: $code"
  done
