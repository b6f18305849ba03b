#!/usr/bin/env bash
# Compiles everything, edits the text of an entry, and lists the crates that are compiled again, with the time; fails if one
# of those below the generated library is among them. The entry is restored at the end.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --workspace --quiet
out=$(mktemp)
cp ops.yaml "$out"
trap 'cp "$out" ops.yaml' EXIT
sed -i '0,/^  doc: /s//  doc: Edited. /' ops.yaml
start=$(date +%s%N)
rebuilt=$(cargo build --workspace --lib 2>&1 | sed -n 's/^ *Compiling \([^ ]*\).*/\1/p' | tr '\n' ' ')
echo "rebuilt: $rebuilt in $((($(date +%s%N) - start) / 1000000)) ms"
case " $rebuilt" in
  *" opsmith-core "* | *" opsmith-codegen "* | *" opsmith-runtime "* | *" opsmith-kernels "*)
    echo "only the generated library and what depends on it should have been compiled"
    exit 1
    ;;
  *" opsmith "*) ;;
  *)
    echo "the generated library was not compiled again"
    exit 1
    ;;
esac
