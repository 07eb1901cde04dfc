#!/usr/bin/env bash
# Installs other planners from PyPI into target/planners, for the tests and benchmarks that compare
# with them: up-fast-downward carries the Fast Downward binary, pyperplan is pure Python.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -x target/planners/bin/pyperplan ] && exit 0
mkdir -p target
python3 -m venv target/planners
target/planners/bin/pip install --quiet --disable-pip-version-check \
  up-fast-downward==1.0.0 pyperplan==2.1
