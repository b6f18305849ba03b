#!/usr/bin/env bash
# Custom kernels on a real device: a machine with Rust and nvcc builds, one with a device of NVIDIA runs.
#
#   tests/cuda/on_device.sh build FOLDER   the test program and kernels (nvcc: OPSMITH_NVCC, the path, CUDA_HOME)
#   tests/cuda/on_device.sh run FOLDER     all of the work of tests/tests/aot_device.rs, a line a part
#
# The folder needs neither Rust nor nvcc where it runs, and is small enough to be carried there. Kernels hold
# code for the devices of sm_80 and sm_90, and what the driver compiles for later ones.
set -euo pipefail
cd "$(dirname "$0")/../.."

[ $# -eq 2 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2; }

case $1 in
  build)
    mkdir -p "$2"
    folder=$(cd "$2" && pwd)
    program=$(cargo test -p opsmith-tests --test aot_device --no-run --message-format short 2>&1 |
      sed -n 's/.*Executable.*(\(.*\))$/\1/p')
    cp "$program" "$folder/aot_device"
    strip "$folder/aot_device"
    nvcc=${OPSMITH_NVCC:-$(command -v nvcc || echo "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")}
    libraries=$(dirname "$(dirname "$(readlink -f "$nvcc")")")/lib
    "$nvcc" -std=c++17 --shared -Xcompiler -fPIC -O3 -gencode arch=compute_80,code=sm_80 \
      -gencode arch=compute_90,code=sm_90 -gencode arch=compute_80,code=compute_80 -D_GLIBCXX_USE_CXX11_ABI=0 \
      -L"$libraries" -Ikernels/include -o "$folder/kernels.so" tests/cuda/kernels.cu
    du -ch "$folder/aot_device" "$folder/kernels.so"
    ;;
  run)
    folder=$(cd "$2" && pwd)
    command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
    export OPSMITH_CACHE_DIR=$folder/cache AOT_DEVICE_LIBRARY=$folder/kernels.so
    "$folder/aot_device" --ignored --exact on_a_device --nocapture --test-threads=1
    ;;
  *) echo "there are build and run" && exit 2 ;;
esac
