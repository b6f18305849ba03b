#!/usr/bin/env bash
# Builds the wheel of the Python package, installs it in a new environment, and runs its tests from there:
#   scripts/wheel.sh            a wheel for Linux, in target/wheels
#   scripts/wheel.sh --sdist    from the source distribution, as `pip install` of it does where cargo is
# Needs python3 with venv and pip. OPSMITH_IMAGES=FILE adds an archive of kernels for CUDA devices (scripts/cuda-images).
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
environment=$(mktemp -d)
trap 'rm -rf "$environment"' EXIT

python3 -m venv "$environment"
pip() { "$environment/bin/pip" install --quiet --disable-pip-version-check "$@"; }
pip numpy pytest mypy pyright safetensors

if [ "${1:-}" = --sdist ]; then
  pip "maturin>=1.14,<2"
  rm -rf target/sdist
  PATH="$environment/bin:$PATH" maturin sdist --manifest-path python/Cargo.toml --out target/sdist
  pip target/sdist/opsmith-*.tar.gz
else
  cargo build --release -p opsmith-python
  rm -rf target/wheels
  scripts/pack.py "${CARGO_TARGET_DIR:-target}/release/lib_opsmith.so" target/wheels ${OPSMITH_IMAGES:+"$OPSMITH_IMAGES"}
  pip target/wheels/opsmith-*.whl
fi

# The stand-ins for CUDA's driver and compiler, which a test of the workspace has built (`tests/users/tests/cuda.rs`).
if [ -z "${OPSMITH_STAND_IN:-}" ] && [ -e "$root/target/tmp/cuda/libcuda.so.1" ]; then
  export OPSMITH_STAND_IN=$root/target/tmp/cuda
fi

# Away from the checkout, so that the installed package is imported.
cd "$environment"
bin/python -X importtime -c "import opsmith" 2>&1 | tail -n 1
PATH="$environment/bin:$PATH" bin/python -m pytest -q --no-header -p no:cacheprovider "$root/python/tests"
