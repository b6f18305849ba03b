// Kernels with mistakes, one each. In: x of float32. Out: y of the same shape.

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <unistd.h>
#include <vector>

#include "custom_aot_extra.h"

namespace {

int64_t Count(int ndim, const int64_t *shape) {
  int64_t count = 1;
  for (int i = 0; i < ndim; ++i) count *= shape[i];
  return count;
}

void Copy(void **params, int *ndims, int64_t **shapes) {
  std::memcpy(params[1], params[0], Count(ndims[0], shapes[0]) * sizeof(float));
}

}  // namespace

#define KERNEL(name) \
  extern "C" int name(int, void **params, int *ndims, int64_t **shapes, const char **, void *, void *)

// Asks for 20 bytes of workspace and writes 24; a lot more in the second kernel.
extern "C" int OverrunInit(int *, int64_t **, const char **, AotExtra *extra) {
  extra->SetWorkSpace({20});
  return 0;
}
KERNEL(Overrun) {
  std::memset(params[2], 1, 24);
  Copy(params, ndims, shapes);
  return 0;
}
extern "C" int FarOverrunInit(int *, int64_t **, const char **, AotExtra *extra) {
  extra->SetWorkSpace({20});
  return 0;
}
KERNEL(FarOverrun) {
  std::memset(params[2], 1, 20 + 512 + 16);
  Copy(params, ndims, shapes);
  return 0;
}

// Leaves out the last element.
KERNEL(Forget) {
  std::memcpy(params[1], params[0], (Count(ndims[0], shapes[0]) - 1) * sizeof(float));
  return 0;
}

KERNEL(Throw) {
  if (ndims[0] > 0 && shapes[0][0] > 0) throw std::runtime_error("the weather is bad");
  Copy(params, ndims, shapes);
  return 0;
}
KERNEL(ThrowNumber) {
  if (ndims[0] > 0 && shapes[0][0] > 0) throw 42;
  Copy(params, ndims, shapes);
  return 0;
}
KERNEL(ReturnSeven) {
  Copy(params, ndims, shapes);
  return 7;
}
extern "C" int InitFailsInit(int *, int64_t **, const char **, AotExtra *) { return -3; }
KERNEL(InitFails) {
  Copy(params, ndims, shapes);
  return 0;
}
extern "C" int AsksInit(int *, int64_t **, const char **, AotExtra *extra) {
  extra->Attr<int64_t>("nope");
  return 0;
}
KERNEL(Asks) {
  Copy(params, ndims, shapes);
  return 0;
}

KERNEL(Crash) {
  Copy(params, ndims, shapes);
  *reinterpret_cast<volatile int *>(16) = 1;
  return 0;
}
KERNEL(Hang) {
  Copy(params, ndims, shapes);
  for (;;) usleep(1000);
}
KERNEL(Leave) {
  Copy(params, ndims, shapes);
  _exit(3);
}

// Writes into its input.
KERNEL(ChangeInput) {
  Copy(params, ndims, shapes);
  static_cast<float *>(params[0])[2] = -1;
  return 0;
}
// Writes one element too many, and one too early.
KERNEL(PastOutput) {
  std::memcpy(params[1], params[0], (Count(ndims[0], shapes[0])) * sizeof(float));
  static_cast<float *>(params[1])[Count(ndims[0], shapes[0])] = 1;
  return 0;
}
KERNEL(BeforeOutput) {
  Copy(params, ndims, shapes);
  static_cast<float *>(params[1])[-1] = 1;
  return 0;
}
KERNEL(ChangeShape) {
  Copy(params, ndims, shapes);
  shapes[0][0] = 1;
  return 0;
}

// Nothing is wrong with this one.
KERNEL(Good) {
  Copy(params, ndims, shapes);
  return 0;
}
// What the first pattern of poison looks like, everywhere.
KERNEL(LooksPoisoned) {
  std::memset(params[1], 0xA5, Count(ndims[0], shapes[0]) * sizeof(float));
  return 0;
}
extern "C" std::vector<int64_t> InferThrowsInferShape(int *, int64_t **, AotExtra *) {
  throw std::invalid_argument("no shape will do");
}
KERNEL(InferThrows) {
  Copy(params, ndims, shapes);
  return 0;
}
