#!/usr/bin/env bash
# Compiles the Python package for a free-threaded interpreter, Python 3.14t, which need not be here: PyO3 reads a description of it. Nothing
# is linked or run. Needs some minutes, since all crates are checked for it in a folder of their own.
set -euo pipefail
cd "$(dirname "$0")/.."
description=$(mktemp)
trap 'rm -f "$description"' EXIT
cat >"$description" <<'END'
implementation=CPython
version=3.14
shared=true
pointer_width=64
build_flags=Py_GIL_DISABLED
suppress_build_script_link_lines=true
END
PYO3_CONFIG_FILE=$description cargo clippy -p opsmith-python --no-default-features --target-dir target/free-threaded -- -D warnings
