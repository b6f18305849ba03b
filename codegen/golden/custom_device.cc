// A custom kernel for a device, for the stand-in of the driver (`tests/cuda/driver.cc`), which it finds where
// the process has loaded it.

#include <dlfcn.h>

#include <cstdint>

#include "custom_aot_extra.h"

namespace {

struct Scaling {
  const float *x;
  float *out;
  int64_t count;
  float scale;
};

void scale(void *raw) {
  auto *scaling = static_cast<Scaling *>(raw);
  for (int64_t i = 0; i < scaling->count; ++i) scaling->out[i] = scaling->x[i] * scaling->scale;
}

using Launch = int (*)(void *stream, void (*kernel)(void *), const void *arguments, size_t bytes);

}  // namespace

extern "C" int CustomDevice(int nparam, void **params, int *ndims, int64_t **shapes, const char **, void *stream,
                            void *extra) {
  if (nparam != 2) return 1;
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return 2;
  auto launch = reinterpret_cast<Launch>(dlsym(driver, "standin_launch"));
  if (launch == nullptr) return 3;
  Scaling scaling{static_cast<float *>(params[0]), static_cast<float *>(params[1]), 1,
                  static_cast<AotExtra *>(extra)->Attr<float>("scale")};
  for (int i = 0; i < ndims[0]; ++i) scaling.count *= shapes[0][i];
  return launch(stream, scale, &scaling, sizeof scaling);
}
