#!/bin/sh
# Fuzzes each parser for a bounded time: fuzz/run.sh SECONDS [TARGET...]
#
# Works with the stable toolchain: coverage comes from LLVM's own pass, so neither nightly nor
# cargo-fuzz is needed (`cargo fuzz run text` works too where they are). New inputs go to
# fuzz/findings/TARGET, the committed corpus is only read. Ends with 1 when a target fails; the
# input that did it is then fuzz/artifacts/TARGET-...; repeat it with the printed command.
set -eu

seconds=${1:?usage: fuzz/run.sh SECONDS [TARGET...]}
shift
cd "$(dirname "$0")"
[ $# -gt 0 ] || set -- text ctrc std binary log schedule sexpr \
    cmd goal proof sync_log turns traffic solver planner result suppressions configuration digest ir source store

target=$(rustc -vV | sed -n 's/^host: //p')
RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1" \
    cargo build --quiet --release --target "$target"

failed=
for name in "$@"; do
    mkdir -p "findings/$name" artifacts
    program="target/$target/release/$name"
    echo "fuzzing $name for $seconds s"
    if "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=65536 \
        -print_final_stats=1 -artifact_prefix="artifacts/$name-" \
        "findings/$name" "corpus/$name" >"artifacts/$name.log" 2>&1; then
        sed -n 's/^stat::number_of_executed_units: */  executions: /p; s/^stat::peak_rss_mb: */  peak MB: /p' \
            "artifacts/$name.log"
    else
        failed="$failed $name"
        tail -n 30 "artifacts/$name.log"
        echo "FAILED: $name; repeat with: fuzz/$program fuzz/artifacts/$name-..."
    fi
done
[ -z "$failed" ]
