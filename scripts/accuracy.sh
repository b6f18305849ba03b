#!/usr/bin/env bash
# The error of every vectorised function of math at every number of single precision, in units in the last place: half an
# hour of two processors, in a target folder of its own. `scripts/accuracy.sh 7` takes every seventh number.
set -euo pipefail
cd "$(dirname "$0")/.."
OPSMITH_ULP_STEP=${1:-1} RUSTFLAGS="-C target-cpu=native" cargo test --release --quiet -p opsmith-kernels --lib \
  --target-dir target/accuracy -- --nocapture vectorised::tests::single_precision
