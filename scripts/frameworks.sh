#!/usr/bin/env bash
# Builds the wheel of the Python package, installs it beside other frameworks, runs the tests of the bridges to them, and shows one
# operator of a spec in all of them:
#   scripts/frameworks.sh                 PyTorch, JAX, ONNX Runtime, tvm-ffi, MindSpore
#   scripts/frameworks.sh torch jax       some of them: torch, jax, onnxruntime, tvm_ffi, mindspore
#   scripts/frameworks.sh -k compile      with pytest's own arguments
# Needs python3 with venv and pip, and some GB for PyTorch. OPSMITH_WHEEL names a wheel that was built before, and
# FRAMEWORKS_ENVIRONMENT a folder that is kept, so that the next run need not install again. MindSpore needs an older NumPy and Python
# 3.11, which MINDSPORE_PYTHON names (default: python3.11), and so an environment of its own. All but MindSpore run in `.ci/run`.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
environment=${FRAMEWORKS_ENVIRONMENT:-$(mktemp -d)}
[ -n "${FRAMEWORKS_ENVIRONMENT:-}" ] || trap 'rm -rf "$environment"' EXIT

frameworks=(torch jax onnxruntime tvm_ffi mindspore)
chosen=()
while [[ ${1:-} =~ ^(torch|jax|onnxruntime|tvm_ffi|mindspore)$ ]]; do
  chosen+=("$1") && shift
done
[ ${#chosen[@]} -eq 0 ] || frameworks=("${chosen[@]}")

# install ENVIRONMENT PYTHON PACKAGES...
install() {
  local folder=$1 python=$2
  shift 2
  [ -x "$folder/bin/python" ] || "$python" -m venv "$folder"
  "$folder/bin/pip" install --quiet --disable-pip-version-check "$@"
}

wheel=${OPSMITH_WHEEL:-}
if [ -z "$wheel" ]; then
  cargo build --release -p opsmith-python
  scripts/pack.py target/release/lib_opsmith.so target/wheels
  wheel=$(echo "$root"/target/wheels/opsmith-*.whl)
fi

# run ENVIRONMENT TESTS... runs tests away from the checkout, so that the installed package is imported.
run() {
  local folder=$1
  shift
  "$folder/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps "$wheel"
  (cd "$folder" && PATH="$folder/bin:$PATH" bin/python -m pytest -q --no-header -p no:cacheprovider "$@")
}

# show ENVIRONMENT runs, differentiates and shape-infers one operator of a spec in the frameworks of an environment.
show() {
  (cd "$1" && bin/python -m opsmith.frameworks "$root/examples/frameworks/ops.yaml" softclip)
}

packages=(numpy pytest mypy pyright)
shared=("$root/python/tests/test_frameworks.py" "$root/python/tests/test_spec.py" "$root/python/tests/test_interchange.py")
tests=("$root/python/tests/test_custom.py" "${shared[@]}")
main=()
for framework in "${frameworks[@]}"; do
  case $framework in
  mindspore) continue ;;
  tvm_ffi) packages+=(apache-tvm-ffi) ;;
  # JAX writes programs to files with it.
  jax) packages+=(jax flatbuffers) ;;
  onnxruntime) packages+=(onnxruntime onnx) ;;
  *) packages+=("$framework") ;;
  esac
  main+=("$framework")
  tests+=("$root/python/tests/test_$framework"*.py)
done
if [ ${#main[@]} -gt 0 ]; then
  install "$environment/main" python3 "${packages[@]}"
  run "$environment/main" "${tests[@]}" "$@"
  show "$environment/main"
  # The package's modules import all of them.
  if [ ${#main[@]} -eq 4 ]; then
    (cd "$environment/main" && PATH="$environment/main/bin:$PATH" bin/python -m mypy --strict -p opsmith)
    (cd "$environment/main" && bin/python -m pyright --pythonpath bin/python lib/python3*/site-packages/opsmith)
  fi
fi
if [[ " ${frameworks[*]} " == *" mindspore "* ]]; then
  install "$environment/mindspore" "${MINDSPORE_PYTHON:-python3.11}" "numpy<2" pytest "mindspore==2.10.*"
  run "$environment/mindspore" "$root/python/tests/test_mindspore.py" "${shared[@]}" "$@"
  show "$environment/mindspore"
fi
