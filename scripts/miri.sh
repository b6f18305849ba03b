#!/usr/bin/env bash
# Runs the unit tests of opsmith-core and opsmith-runtime with Miri: memory, tensors, calls and gradients. Needs
#   rustup component add --toolchain nightly miri rust-src
# All of them take most of an hour; names choose some: scripts/miri.sh storage. A test that cannot be interpreted says so itself
# (`cfg_attr(miri, ignore)`), and long loops are short ones under Miri. Functions of floats give the same
# bits twice, as checkpoints rely on, and isolation is off, since the machine's memory is read from files.
set -euo pipefail
cd "$(dirname "$0")/.."
MIRIFLAGS="${MIRIFLAGS:-} -Zmiri-disable-isolation -Zmiri-ignore-leaks -Zmiri-deterministic-floats" \
  cargo +nightly miri test -p opsmith-core -p opsmith-runtime --lib --target-dir target/miri -- "$@"
