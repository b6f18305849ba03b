#!/usr/bin/env bash
# Makes the folders of `opsmith bridge` for the example crate with some stock operators, builds them, and tests them in the frameworks:
#   scripts/bridges.sh                    all frameworks that have folders
#   scripts/bridges.sh torch -k compile   one of them, or several, with pytest's own arguments; one that cannot be installed is a failure then
# Needs python3 with venv and pip, a compiler of C++20 and some GB. BRIDGES_ENVIRONMENT names a folder that is kept, so that the next run need
# not install again; CARGO_PROFILE is cargo's profile of the kernels (default: release). MindSpore needs an older NumPy and Python 3.11, which
# MINDSPORE_PYTHON names (default: python3.11), and so an environment of its own, in the folder `mindspore` of the other.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
shared=${BRIDGES_ENVIRONMENT:-$(mktemp -d)}
[ -n "${BRIDGES_ENVIRONMENT:-}" ] || trap 'rm -rf "$shared"' EXIT

frameworks=(torch jax tvm-ffi onnxruntime mindspore)
chosen=()
while [[ ${1:-} =~ ^(torch|jax|tvm-ffi|onnxruntime|mindspore)$ ]]; do
  chosen+=("$1") && shift
done
[ ${#chosen[@]} -eq 0 ] || frameworks=("${chosen[@]}")

if [ -z "${OPSMITH_STAND_IN:-}" ] && [ -e "$root/target/tmp/cuda/libcuda.so.1" ]; then
  export OPSMITH_STAND_IN=$root/target/tmp/cuda
fi

for framework in "${frameworks[@]}"; do
  python=python3 environment=$shared packages=(numpy ninja "${framework/tvm-ffi/apache-tvm-ffi}")
  operators=(transpose_copy laplacian gaussian heat_step add.Tensor gelu softmax.int sort cat _foreach_mul.Scalar)
  more=(mul.Tensor maximum gt.Tensor where.self clamp exp sum.dim_IntList amax mean.dim cumsum mm layer_norm topk max.dim stack constant_pad_nd roll)
  if [ "$framework" = mindspore ]; then
    python=${MINDSPORE_PYTHON:-python3.11} environment=$shared/mindspore packages=("numpy<2" "mindspore==2.10.*")
  elif [ "$framework" = onnxruntime ]; then
    packages+=(onnx)
    operators+=(add_reduce)
  fi
  [ "$framework" = mindspore ] || operators+=("${more[@]}")
  [ -x "$environment/bin/python" ] || "$python" -m venv "$environment"
  if ! "$environment/bin/pip" install --quiet --disable-pip-version-check pytest "setuptools>=70.1" "${packages[@]}"; then
    echo "no folder for $framework: pip cannot install ${packages[*]} here"
    [ ${#chosen[@]} -eq 0 ] || exit 1
    continue
  fi
  folder=$environment/folders/$framework
  rm -rf "$folder"
  cargo run --quiet --profile test --bin opsmith -- bridge "$framework" examples/custom_op/ops.yaml \
    "${operators[@]}" -o "$folder" --opsmith "$root"
  # A user's crate has the feature itself; JAX's handlers for CUDA are tested on stand-ins (OPSMITH_STAND_IN, as in `scripts/wheel.sh`).
  if [ "$framework" = jax ]; then
    cargo add --quiet --manifest-path "$folder/kernels/Cargo.toml" --path "$root/generated" --features cuda opsmith
  fi
  PATH="$environment/bin:$PATH" CARGO_TARGET_DIR="$root/target/bridges" \
    "$environment/bin/pip" install --quiet --disable-pip-version-check --no-build-isolation --no-deps "$folder"
  (cd "$environment" && bin/python -m pytest -q --no-header -p no:cacheprovider "$root/python/tests/test_bridge_${framework//-/_}.py" "$@")
done
