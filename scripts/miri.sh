#!/usr/bin/env bash
# Runs the unit tests of opsmith-runtime that Miri can run: those of memory, tensors, calls and gradients. Needs
#   rustup component add --toolchain nightly miri rust-src
#
# 107 tests, which take hours when they are interpreted; name some to run these alone: scripts/miri.sh storage. Left out:
# `aot` and `backend` load libraries and start compilers and other processes, `graph::file`, `npy` and `replace` write
# files, `infer::symbolic` and `graph` are longer than all others, and `memory` of the machine is read from files (hence no
# isolation). `allocator::initialize` writes its bytes under Miri, which knows no assembly; the test over blocks of every size
# writes more bytes than can be interpreted, the one of a
# long wait measures the processor's time, and a graph of a million nodes takes as long as all others.
set -euo pipefail
cd "$(dirname "$0")/.."
tests=("$@")
[ $# -gt 0 ] || tests=(allocator scratch storage tensor view layout op:: dispatch::borrows autograd)
MIRIFLAGS="${MIRIFLAGS:-} -Zmiri-disable-isolation -Zmiri-ignore-leaks" \
  cargo +nightly miri test -p opsmith-runtime --lib --target-dir target/miri -- \
  --skip blocks_of_every_size --skip a_long_wait_costs_no_processor --skip a_graph_of_a_million_nodes "${tests[@]}"
