#!/usr/bin/env bash
# The documentation sites of the stock library and of a user's crate, and the report of a profile that `examples/profile` records, in a browser: generates them, then
# runs scripts/site/check.mjs and report.mjs in headless Chromium: accessibility in light and dark, the search by keyboard, filters
# and sorting, narrow windows, links, sizes, executed examples, sizes of results in symbols, measured speed where it was recorded (bench.jsonl), no request to
# a network.
#
#   scripts/site.sh [FOLDER]    the site and screenshots are left in FOLDER, by default target/opsmith/site
#
# Needs node with npm. Chromium is that of OPSMITH_CHROMIUM or of the path; if there is none, apt-get installs Debian's, as
# root. Ends with status 3, and says why, if one of them cannot be had here.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${1:-target/opsmith/site}
tools=target/opsmith/site-tools
missing() {
  echo "the site was not tested in a browser: $1"
  exit 3
}

command -v node >/dev/null && command -v npm >/dev/null || missing "node and npm are not here"
chromium=${OPSMITH_CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || :)}
if [ -z "$chromium" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get install -y -qq chromium >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } || :
  chromium=$(command -v chromium || :)
fi
[ -n "$chromium" ] || missing "there is no chromium, and apt-get cannot install it"
if [ ! -d "$tools/node_modules/playwright-core" ] || [ ! -d "$tools/node_modules/axe-core" ]; then
  mkdir -p "$tools"
  [ -f "$tools/package.json" ] || echo '{ "private": true }' >"$tools/package.json"
  npm install --silent --no-audit --no-fund --prefix "$tools" playwright-core@1.65 axe-core@4.14 || missing "npm cannot install playwright-core and axe-core"
fi

mkdir -p "$folder"
opsmith() { cargo run --release --quiet --bin opsmith -- "$@"; }
results=(${OPSMITH_RESULTS_FOLDER:+--results "$OPSMITH_RESULTS_FOLDER"})
opsmith docs -o "$folder/site" "${results[@]}"
opsmith docs examples/custom_op/ops.yaml -o "$folder/of-user" "${results[@]}"
cargo run --release --quiet --bin opsmith-example-profile -- "$folder/digits.profile.json" >"$folder/profile.txt"
opsmith profile report "$folder/digits.profile.json" -o "$folder/report.html"
export OPSMITH_CHROMIUM=$chromium OPSMITH_SITE_TOOLS=$tools
timed=
[ ! -f "${OPSMITH_RESULTS_FOLDER:-}/bench.jsonl" ] || timed=1
OPSMITH_SITE_TIMED=$timed node scripts/site/check.mjs "$folder/site" "$folder/screenshots"
node scripts/site/check.mjs "$folder/of-user" "$folder/screenshots/of-user"
node scripts/site/report.mjs "$folder/report.html" "$folder/screenshots"
