#!/usr/bin/env bash
# Runs unit tests of opsmith-core and opsmith-runtime with AddressSanitizer, which LeakSanitizer is part of, in a target
# folder of their own. Needs the nightly toolchain and nothing else.
#
# It covers Rust code of the two crates and of their dependencies: uses after free and outside of what was allocated, and
# leaks. It does not see a use of a block that the allocator's cache has kept, nor one outside of a tensor and inside of
# its block. ThreadSanitizer needs a standard library built with it (-Zbuild-std, component rust-src), and reports false
# races without; scripts/loom.sh looks at what threads share instead.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(rustc -vV | sed -n 's/^host: //p')
ASAN_OPTIONS=detect_leaks=1 RUSTFLAGS="-Zsanitizer=address" CARGO_PROFILE_DEV_DEBUG=0 \
  cargo +nightly test --quiet -p opsmith-core -p opsmith-runtime --lib --target "$target" --target-dir target/sanitizers
