#!/usr/bin/env bash
# A trace of the profiler's, checked by Perfetto's own schema, which its Python package has.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check perfetto protobuf
OPSMITH_TRACE="$folder/test.pftrace" cargo test --quiet --workspace --test profile_rates \
  perfetto_traces_have_every_event_once_in_its_time
"$folder/venv/bin/python" scripts/perfetto_schema.py "$folder/test.pftrace"
