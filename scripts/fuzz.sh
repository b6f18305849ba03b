#!/usr/bin/env bash
# Mutated specs, graphs and programs, odd calls and odd names, each for SECONDS (600) from seeds of their own, which
# are printed: `scripts/fuzz.sh [SECONDS]`. `.ci/run` goes through the first half minute of one seed.
set -euo pipefail
cd "$(dirname "$0")/.."

export OPSMITH_FUZZ_SECONDS=${1:-600}
unset OPSMITH_FUZZ_SEED

cargo test --release --quiet --workspace --test fuzz -- --ignored --nocapture
for program in graph_fuzz programs_fuzz odd_calls; do
  cargo test --quiet --workspace --test "$program" -- --ignored --nocapture
done
cargo run --release --quiet --bin fuzz-calls -- --seconds "$OPSMITH_FUZZ_SECONDS"
OPSMITH_NAMES=$((OPSMITH_FUZZ_SECONDS * 10)) cargo test --workspace --test names -- --ignored --nocapture
