#!/usr/bin/env bash
# Runs the models of what threads share (runtime/src/tests/loom.rs, and the
# pool of threads, runtime/src/parallel/pool/model.rs) with loom, in a target folder of their own:
#   scripts/loom.sh          every order of steps with up to three preemptions; seconds, once it is built
#   scripts/loom.sh 5        with up to five
set -euo pipefail
cd "$(dirname "$0")/.."
LOOM_MAX_PREEMPTIONS=${1:-3} RUSTFLAGS="--cfg loom" CARGO_PROFILE_DEV_DEBUG=0 \
  cargo test --quiet -p opsmith-runtime -p opsmith-graph --lib --target-dir target/loom -- tests::loom pool::model
