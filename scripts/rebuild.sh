#!/usr/bin/env bash
# Compiles the library and then the workspace for development, as a person has them who works on operators: with what incremental
# builds keep. Edits the text of an entry, and prints the time until each is compiled again, and the crates. Fails if one of
# those below the generated library is among them. The entry is restored at the end.
#
#   scripts/rebuild.sh [FILE]    edits the first entry of FILE, by default ops/arithmetic.yaml
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_INCREMENTAL=1

edited=${1:-ops/arithmetic.yaml}
saved=$(mktemp)
cp "$edited" "$saved"
trap 'cp "$saved" "$edited"' EXIT

# Edits the entry, and prints the time of the command.
again() {
  sed -i '0,/^  doc: /s//  doc: Edited. /' "$edited"
  start=$(date +%s%N)
  rebuilt=$(cargo build "$@" 2>&1 | sed -n 's/^ *Compiling \([^ ]*\).*/\1/p' | tr '\n' ' ')
  echo "cargo build $*: $rebuilt in $((($(date +%s%N) - start) / 1000000)) ms"
}

for choice in "-p opsmith" --workspace; do
  cargo build --quiet $choice
  # The first build after one from nothing writes what later ones read.
  again $choice >/dev/null
  again $choice
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
done
