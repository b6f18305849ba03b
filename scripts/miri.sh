#!/usr/bin/env bash
# Runs the unit tests of opsmith-runtime that Miri can run: those of memory, tensors, calls and gradients. Needs
#   rustup component add --toolchain nightly miri rust-src
#
# It has not been run yet: no machine that the code was written on could install Miri. So expect tests that want an
# exclusion (they are named below by modules), and look into every report of undefined behaviour. Left out by reading:
# `aot` and `backend` load libraries and start compilers and other processes, `graph::file`, `npy` and `replace` write
# files, `infer::symbolic` and `graph` take hours when they are interpreted, and `memory` of the machine is read from files
# (hence no isolation). `allocator::initialize` writes its bytes under Miri, which knows no assembly.
set -euo pipefail
cd "$(dirname "$0")/.."
MIRIFLAGS="${MIRIFLAGS:-} -Zmiri-disable-isolation -Zmiri-ignore-leaks" \
  cargo +nightly miri test -p opsmith-runtime --lib --target-dir target/miri -- \
  allocator scratch storage tensor view layout op:: dispatch::borrows autograd
