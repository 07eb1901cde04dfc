#!/usr/bin/env bash
# Installs Debian's Chromium where it is missing, for the test that opens the HTML report. Without it
# that test says that it is skipped.
set -uo pipefail
for name in chromium chromium-browser google-chrome; do
  command -v "$name" >/dev/null 2>&1 && exit 0
done
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
echo "setup: installing chromium"
apt() {
  timeout 600 "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq \
    -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" </dev/null >/dev/null
}
if ! { command -v apt-get >/dev/null 2>&1 && apt update &&
  apt install -y --no-install-recommends chromium; }; then
  echo "SKIPPED: chromium could not be installed; the HTML report is not opened in a browser" >&2
fi
exit 0
