// A program without Python that runs a model with operators of a folder that `opsmith bridge onnxruntime` made:
// program LIBONNXRUNTIME LIBRARY MODEL. The model takes `x`, float32 of (3, 2) with elements from 1 on, and gives `y`, whose elements
// are printed.

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

// Places in ONNX Runtime's table of functions.
enum Place {
  GetErrorMessage = 2,
  CreateEnv = 3,
  CreateSession = 7,
  Run = 9,
  CreateSessionOptions = 10,
  CreateTensorWithDataAsOrtValue = 49,
  GetTensorMutableData = 51,
  GetTensorShapeElementCount = 64,
  GetTensorTypeAndShape = 65,
  CreateCpuMemoryInfo = 69,
  RegisterCustomOpsLibrary_V2 = 228,
};

void *const *table = nullptr;

template <typename... Args>
void call(Place place, Args... args) {
  void *status = reinterpret_cast<void *(*)(Args...)>(table[place])(args...);
  if (status != nullptr) {
    std::fprintf(stderr, "%s\n", reinterpret_cast<const char *(*)(void *)>(table[GetErrorMessage])(status));
    std::exit(1);
  }
}

struct Base {
  void *const *(*get)(uint32_t version);
  const char *(*version)();
};

}  // namespace

int main(int count, char **arguments) {
  if (count != 4) {
    std::fprintf(stderr, "three paths are needed\n");
    return 2;
  }
  void *library = dlopen(arguments[1], RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  table = reinterpret_cast<const Base *(*)()>(dlsym(library, "OrtGetApiBase"))()->get(17);
  void *environment = nullptr, *options = nullptr, *session = nullptr, *memory = nullptr, *input = nullptr, *output = nullptr, *info = nullptr;
  const int warnings = 2, float32 = 1, arena = 1, ordinary = 0;
  call(CreateEnv, warnings, "program", &environment);
  call(CreateSessionOptions, &options);
  call(RegisterCustomOpsLibrary_V2, options, static_cast<const char *>(arguments[2]));
  call(CreateSession, environment, static_cast<const char *>(arguments[3]), options, &session);
  float elements[] = {1, 2, 3, 4, 5, 6};
  const int64_t sizes[] = {3, 2};
  call(CreateCpuMemoryInfo, arena, ordinary, &memory);
  call(CreateTensorWithDataAsOrtValue, memory, elements, sizeof(elements), &sizes[0], size_t{2}, float32, &input);
  const char *inputs[] = {"x"}, *outputs[] = {"y"};
  call(Run, session, static_cast<void *>(nullptr), &inputs[0], &input, size_t{1}, &outputs[0], size_t{1}, &output);
  size_t length = 0;
  float *found = nullptr;
  call(GetTensorTypeAndShape, output, &info);
  call(GetTensorShapeElementCount, info, &length);
  call(GetTensorMutableData, output, &found);
  for (size_t at = 0; at < length; ++at) {
    std::printf("%g\n", found[at]);
  }
  return 0;
}
