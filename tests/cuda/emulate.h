// CUDA's language for the host's compiler: a text of kernels that includes this first is a module of the stand-in.
//
// Blocks run in turn, and a block's threads in turn until they wait for each other (driver/threads.cc). Shared variables are
// static variables of one section. Functions have the meaning that CUDA documents, and the accuracy of the host's library.
// Kernels under `#if` are in the module's table in any case, so there are none.

#pragma once

#include "module.h"

#define OPSMITH_EMULATED 1

#define __global__ __attribute__((used))
#define __device__
#define __host__
#define __constant__
#define __shared__ static __attribute__((section("standin_shared"), aligned(16)))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
#define DYNAMIC_SHARED(T, name) T *name = reinterpret_cast<T *>(standin::builtins.dynamic_shared)

#include "emulate/threads.h"
#include "emulate/numbers.h"
#include "emulate/math.h"
#include "emulate/table.h"
