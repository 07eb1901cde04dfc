#!/usr/bin/env bash
# Installs other planners from PyPI into target/planners, for the tests and benchmarks that compare
# with them: up-fast-downward carries the Fast Downward binary, pyperplan is pure Python.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -x target/planners/bin/pyperplan ] && exit 0
mkdir -p target
rm -rf target/planners
# Half an environment would look like a whole one to the tests: without the network there is none,
# and the tests that compare with other planners say that they are skipped.
if ! { python3 -m venv target/planners && timeout 600 target/planners/bin/pip install --quiet \
  --disable-pip-version-check up-fast-downward==1.0.0 pyperplan==2.1; }; then
  rm -rf target/planners
  echo "SKIPPED: other planners could not be installed from PyPI" >&2
fi
