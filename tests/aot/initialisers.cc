// Libraries that misbehave when they are loaded; LOADED names how.

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace {

[[maybe_unused]] void Hang() {
  for (;;) usleep(1000);
}

// The trace for a test: a line in the file that AOT_DIARY names, from every process that has loaded the library.
void Note() {
  const char *path = std::getenv("AOT_DIARY");
  std::FILE *file = path ? std::fopen(path, "a") : nullptr;
  if (file == nullptr) return;
  std::fprintf(file, "%d\n", static_cast<int>(getpid()));
  std::fclose(file);
}

[[gnu::constructor]] void Initialise() {
  Note();
  LOADED;
}

}  // namespace

extern "C" int F(int, void **params, int *, long **shapes, const char **, void *, void *) {
  for (long i = 0; i < shapes[0][0]; ++i) {
    static_cast<float *>(params[1])[i] = static_cast<const float *>(params[0])[i];
  }
  return 0;
}
extern "C" int FInferType(int *, void *) { return 43; }
