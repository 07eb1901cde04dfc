#!/usr/bin/env bash
# Writes the book's page of options from what the commands say about themselves.
# book-options.sh FORETELL > docs/src/options.md
set -euo pipefail
foretell=$1
printf '# Every option\n\nWritten by `scripts/book-options.sh` from `foretell COMMAND --help`. Most can also stand in\n[`foretell.toml`](configuration.md); `foretell config show` lists those. `foretell cc` and `foretell c++` take the options of clang,\nand [`--as-written`](cpp.md).\n'
for command in "" record predict test replay explain fix verify report merge "cargo build" "cargo run" "cargo test" ctest cmake-toolchain "config show" "trace info" "trace cat" \
  "trace convert" "trace validate" doctor completions schema; do
  printf '\n## foretell%s\n\n```text\n' "${command:+ $command}"
  # shellcheck disable=SC2086
  COLUMNS=100 "$foretell" $command --help | sed 's/[[:space:]]*$//'
  printf '```\n'
done
