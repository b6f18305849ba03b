// The end of a compiled text: how the stand-in for the driver knows one of that for NVRTC, whole and for its device.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace standin {

struct Trailer {
  char mark[8];
  uint64_t hash;
  int32_t architecture;
  int32_t checked;

  bool is_valid() const { return memcmp(mark, "STANDIN1", 8) == 0; }
};

// The beginning of the line of PTX with an object and its trailer, in hexadecimal digits.
inline const char *const kDigits = "\n// STANDIN object ";

inline uint64_t hash(const void *bytes, size_t size) {
  uint64_t value = 0xcbf29ce484222325;
  for (size_t i = 0; i < size; ++i) value = (value ^ static_cast<const unsigned char *>(bytes)[i]) * 0x100000001b3;
  return value;
}

}  // namespace standin
