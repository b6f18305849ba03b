#!/usr/bin/env bash
# Builds the wheel of the Python package, installs it beside other frameworks, and runs the tests of the bridges to them:
#   scripts/frameworks.sh                 PyTorch and JAX
#   scripts/frameworks.sh torch           one of them: torch or jax
#   scripts/frameworks.sh -k compile      with pytest's own arguments
# Needs python3 with venv and pip, and some GB for PyTorch. FRAMEWORKS_ENVIRONMENT names a folder that is kept, so that the next
# run need not install again.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
environment=${FRAMEWORKS_ENVIRONMENT:-$(mktemp -d)}
[ -n "${FRAMEWORKS_ENVIRONMENT:-}" ] || trap 'rm -rf "$environment"' EXIT

frameworks=(torch jax)
case ${1:-} in
torch | jax) frameworks=("$1") && shift ;;
esac

[ -x "$environment/bin/python" ] || python3 -m venv "$environment"
pip() { "$environment/bin/pip" install --quiet --disable-pip-version-check "$@"; }
pip numpy pytest mypy "${frameworks[@]}"

# shellcheck disable=SC2086
cargo build --release ${OPSMITH_OPTIMISED:--p opsmith-python}
wheels=$(mktemp -d)
scripts/pack.py target/release/lib_opsmith.so "$wheels"
pip --force-reinstall --no-deps "$wheels"/opsmith-*.whl
rm -r "$wheels"

tests=("$root/python/tests/test_custom.py")
for framework in "${frameworks[@]}"; do
  tests+=("$root/python/tests/test_$framework.py")
done
# Away from the checkout, so that the installed package is imported.
cd "$environment"
PATH="$environment/bin:$PATH" bin/python -m pytest -q --no-header -p no:cacheprovider "${tests[@]}" "$@"
PATH="$environment/bin:$PATH" bin/python -m mypy --strict -p opsmith
