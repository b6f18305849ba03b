#!/usr/bin/env bash
# Compiles `opsmith` with each feature alone, or with those given: scripts/features.sh [FEATURE…]
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || set -- "" graph aot cuda profile tracing ndarray fft linalg nn random statistics vision
for features in "$@"; do
  cargo check --quiet -p opsmith --no-default-features --features "$features"
done
