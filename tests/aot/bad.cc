// Kernels with mistakes, one each. In: x of float32. Out: y of the same shape.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
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

#define KERNEL(name)                                                                                 \
  extern "C" int name(int, void **params, int *ndims, int64_t **shapes, const char **, void *, \
                      [[maybe_unused]] void *extra)

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

// Delete an object of the host's, each in another function.
KERNEL(Deletes) {
  Copy(params, ndims, shapes);
  delete static_cast<AotExtra *>(extra);
  return 0;
}
extern "C" int InitDeletesInit(int *, int64_t **, const char **, AotExtra *extra) {
  extra->SetWorkSpace({16});
  delete extra;
  return 0;
}
KERNEL(InitDeletes) {
  Copy(params, ndims, shapes);
  return 0;
}
extern "C" std::vector<int64_t> InferDeletesInferShape(int *, int64_t **shapes, AotExtra *extra) {
  delete extra;
  return {shapes[0][0]};
}
KERNEL(InferDeletes) {
  Copy(params, ndims, shapes);
  return 0;
}

// Deletes its own object before the kernel is destroyed, which takes another header the function for it. Each destructor
// adds to the file that the attribute names.
namespace {
struct Noted : AotKernelData {
  std::string path;
  ~Noted() override {
    if (std::FILE *file = std::fopen(path.c_str(), "a")) {
      std::fputc('d', file);
      std::fclose(file);
    }
  }
};
}  // namespace
extern "C" int DeletesDataInit(int *, int64_t **, const char **, AotExtra *extra) {
  auto *data = new Noted;
  data->path = extra->Attr<std::string>("diary");
  extra->SetKernelData(data);
  return 0;
}
KERNEL(DeletesData) {
  Copy(params, ndims, shapes);
#ifdef OPSMITH_CUSTOM_AOT_EXTRA_H_
  delete static_cast<AotExtra *>(extra)->KernelData();
#else
  static_cast<AotExtra *>(extra)->DestructKernelData();
#endif
  return 0;
}
// Leaves two objects, one after the other: the first is its own again.
extern "C" int ReplacesDataInit(int *, int64_t **, const char **, AotExtra *extra) {
  auto *first = new Noted;
  first->path = extra->Attr<std::string>("diary");
  extra->SetKernelData(first);
  extra->SetKernelData(new Noted(*first));
  delete first;
  return 0;
}
KERNEL(ReplacesData) {
  Copy(params, ndims, shapes);
  return static_cast<AotExtra *>(extra)->KernelData() == nullptr;
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
// The first pattern of poison, everywhere.
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

// Fills as much of its workspace as the output has elements, and reads as much as the input has.
namespace {
int AskForInput(int *ndims, int64_t **shapes, AotExtra *extra) {
  extra->SetWorkSpace({4, static_cast<size_t>(Count(ndims[0], shapes[0])) * sizeof(float)});
  return 0;
}
}  // namespace
extern "C" int ReadsWorkspaceInit(int *ndims, int64_t **shapes, const char **, AotExtra *extra) {
  return AskForInput(ndims, shapes, extra);
}
KERNEL(ReadsWorkspace) {
  auto *copy = static_cast<float *>(params[3]);
  const int64_t count = Count(ndims[0], shapes[0]);
  for (int64_t i = 0; i < count - 1; ++i) copy[i] = static_cast<float *>(params[0])[i];
  for (int64_t i = 0; i < count; ++i) static_cast<float *>(params[1])[i] = copy[i];
  return 0;
}
// The largest element that it has ever seen: its workspace need not be the largest to be wrong.
extern "C" int LargestInit(int *ndims, int64_t **shapes, const char **, AotExtra *extra) {
  return AskForInput(ndims, shapes, extra);
}
KERNEL(Largest) {
  float largest = *static_cast<float *>(params[2]);
  for (int64_t i = 0; i < Count(ndims[0], shapes[0]); ++i) {
    const float x = static_cast<float *>(params[0])[i];
    static_cast<float *>(params[1])[i] = largest = x > largest ? x : largest;
  }
  return 0;
}
// Adds to its output.
KERNEL(AddsToOutput) {
  for (int64_t i = 0; i < Count(ndims[0], shapes[0]); ++i) {
    static_cast<float *>(params[1])[i] += static_cast<float *>(params[0])[i];
  }
  return 0;
}
// Writes the upper half of each element.
KERNEL(WritesHalves) {
  for (int64_t i = 0; i < Count(ndims[0], shapes[0]); ++i) {
    static_cast<uint16_t *>(params[1])[2 * i + 1] = static_cast<const uint16_t *>(params[0])[2 * i + 1];
  }
  return 0;
}
// Reads one element too many of its input, and one too early.
KERNEL(ReadsPastInput) {
  Copy(params, ndims, shapes);
  static_cast<float *>(params[1])[0] = static_cast<float *>(params[0])[Count(ndims[0], shapes[0])];
  return 0;
}
KERNEL(ReadsBeforeInput) {
  Copy(params, ndims, shapes);
  static_cast<float *>(params[1])[1] = static_cast<float *>(params[0])[-1];
  return 0;
}
// Gives other results each time, which is no mistake.
KERNEL(Random) {
  static float seed = 0;
  Copy(params, ndims, shapes);
  *static_cast<float *>(params[1]) = ++seed;
  return 0;
}
// Writes its workspace before it reads it, and its output too.
extern "C" int WritesFirstInit(int *ndims, int64_t **shapes, const char **, AotExtra *extra) {
  return AskForInput(ndims, shapes, extra);
}
KERNEL(WritesFirst) {
  auto *copy = static_cast<float *>(params[3]);
  const int64_t count = Count(ndims[0], shapes[0]);
  for (int64_t i = 0; i < count; ++i) copy[i] = static_cast<float *>(params[0])[i];
  std::memset(params[1], 0, count * sizeof(float));
  for (int64_t i = 0; i < count; ++i) static_cast<float *>(params[1])[i] += copy[i];
  return 0;
}
