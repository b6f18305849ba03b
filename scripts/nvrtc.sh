#!/usr/bin/env bash
# Kernels for CUDA devices by the real compiler: the texts that the tests on the stand-ins run are compiled by NVRTC.
#   scripts/nvrtc.sh           all of them
#   scripts/nvrtc.sh EVERY     the first and each EVERY-th of each source
# Needs python3 with venv and pip. OPSMITH_TEXTS=DIR names a folder with texts that a test run has kept
# (OPSMITH_CUDA_KEEP_TEXT); without it, the tests run here.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check nvidia-cuda-nvrtc==13.0.88
texts=${OPSMITH_TEXTS:-}
if [ -z "$texts" ]; then
  texts=$folder/texts
  OPSMITH_CUDA_KEEP_TEXT=$texts cargo test --quiet --workspace --test cuda every_form
fi
"$folder/venv/bin/python" scripts/nvrtc.py "$texts" "${1:-1}"
