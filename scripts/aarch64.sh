#!/usr/bin/env bash
# Tests for 64-bit ARM, emulated: unit tests of core, runtime and kernels, optimised, whose loops are compiled for NEON.
#   scripts/aarch64.sh              all
#   scripts/aarch64.sh math::       with the test programs' own arguments
# Needs a compiler and an emulator: apt-get install g++-aarch64-linux-gnu qemu-user, rustup target add aarch64-unknown-linux-gnu
set -euo pipefail
cd "$(dirname "$0")/.."
target=aarch64-unknown-linux-gnu
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"
export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc CXX_aarch64_unknown_linux_gnu=aarch64-linux-gnu-g++
cargo test --release --target "$target" --target-dir target/aarch64 -p opsmith-core -p opsmith-runtime -p opsmith-kernels --lib -- "$@"
