#!/usr/bin/env bash
# Installs other people's validators from PyPI into target/report-check, for the tests that read
# foretell's reports with them: JSON Schema, XML Schema, and Perfetto's own protobuf definitions.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -f target/report-check/complete ] && exit 0
mkdir -p target
rm -rf target/report-check
# Half an environment would look like a whole one to the tests.
if { python3 -m venv target/report-check && timeout 600 target/report-check/bin/pip install --quiet \
  --disable-pip-version-check jsonschema==4.26.0 xmlschema==4.3.2 perfetto==0.59.1 protobuf==7.36.2; }; then
  touch target/report-check/complete
else
  rm -rf target/report-check
  echo "SKIPPED: other validators could not be installed from PyPI" >&2
fi
