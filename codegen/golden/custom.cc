// A custom kernel that does nothing: that code which refers to it compiles is the test.

#include <cstdint>

extern "C" int Custom(int, void **, int *, int64_t **, const char **, void *, void *) { return 0; }
