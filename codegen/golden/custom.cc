// Custom kernels: one that does nothing, so that code which refers to it compiles is the test, and one that
// reads lists of lists.

#include <cstdint>
#include <vector>

#include "custom_aot_extra.h"

extern "C" int Custom(int, void **, int *, int64_t **, const char **, void *, void *) { return 0; }

// The number of rows of integers, the last one; the last weight, and the integer before the last.
extern "C" int CustomLists(int, void **params, int *, int64_t **, const char **, void *, void *extra) {
  auto *object = static_cast<AotExtra *>(extra);
  auto pairs = object->Attr<std::vector<std::vector<int64_t>>>("pairs");
  auto weights = object->Attr<std::vector<std::vector<float>>>("weights");
  auto *out = static_cast<float *>(params[1]);
  out[0] = static_cast<float>(pairs.size());
  out[1] = static_cast<float>(pairs.back().back());
  out[2] = weights.back().back();
  out[3] = static_cast<float>(pairs.back().front());
  return 0;
}
