// A stand-in for the driver of CUDA's devices, for tests where there is none: the functions that the
// runtime calls, over host memory that is kept apart.
//
// Memory of the "device" lies in a range of its own that nobody can read or write but copies and kernels
// while they run, so an address of the wrong kind, or a touch at the wrong time, ends the process. What is
// asked of a stream is done when somebody waits for it, not earlier: whoever does not wait, or frees too
// soon, gets nonsense. Counts are printed when the process ends. The environment makes it fail:
//   STANDIN_INIT=CODE      cuInit returns the code
//   STANDIN_MEMORY=BYTES   what the device has
//   STANDIN_FAIL_COPY=N    the N-th copy is refused
//   STANDIN_FAIL_ALLOC=N   the N-th allocation finds no memory

#include "driver.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

namespace {

enum Code {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kStub = 34,
  kNoDevice = 100,
  kInvalidContext = 201,
  kOperatingSystem = 304,
  kInvalidHandle = 400,
  kIllegalAddress = 700,
};

struct Stream {
  bool waits_for_default;
  std::vector<std::function<void()>> asked;
};

struct Counts {
  long allocations, frees, streams, streams_gone, sent, fetched, launches, refused;
};

struct Device {
  std::recursive_mutex lock;
  pid_t owner = 0;
  char *memory = nullptr;
  std::map<uint64_t, size_t> blocks;
  std::map<Stream *, bool> streams;
  size_t used = 0;
  int lost = kSuccess;
  Counts counts = {};
};

constexpr size_t kRange = size_t{1} << 32;
constexpr size_t kGap = 4096;
Device device;
thread_local std::vector<void *> contexts;
int the_context;

long setting(const char *name, long otherwise) {
  const char *text = getenv(name);
  return text ? atol(text) : otherwise;
}

// What every function but the first ones needs.
int ready() {
  if (device.owner != getpid()) return kNotInitialized;
  if (device.lost) return device.lost;
  return contexts.empty() ? kInvalidContext : kSuccess;
}

int refuse(int code) {
  ++device.counts.refused;
  return code;
}

// Whether a range lies in one block.
bool inside(uint64_t address, size_t bytes) {
  auto next = device.blocks.upper_bound(address);
  if (next == device.blocks.begin()) return false;
  --next;
  return address + bytes <= next->first + next->second;
}

// Opens the memory for what runs on the device.
struct Running {
  Running() { mprotect(device.memory, kRange, PROT_READ | PROT_WRITE); }
  ~Running() { mprotect(device.memory, kRange, PROT_NONE); }
};

void work_off(Stream *stream) {
  std::vector<std::function<void()>> asked;
  asked.swap(stream->asked);
  if (asked.empty()) return;
  Running running;
  for (auto &task : asked) {
    if (!device.lost) task();
  }
}

void work_off_all() {
  for (auto &[stream, _] : device.streams) {
    if (stream->waits_for_default) work_off(stream);
  }
}

struct Report {
  ~Report() {
    if (device.owner != getpid()) return;
    const Counts &c = device.counts;
    printf("STANDIN live=%zu allocations=%ld streams=%ld live_streams=%zu sent=%ld fetched=%ld launches=%ld refused=%ld\n",
           device.blocks.size(), c.allocations, c.streams, device.streams.size(), c.sent, c.fetched, c.launches,
           c.refused);
    fflush(stdout);
  }
} report;

}  // namespace

extern "C" {

int cuInit(unsigned) {
  std::lock_guard guard(device.lock);
  if (const long code = setting("STANDIN_INIT", 0)) return static_cast<int>(code);
  if (device.owner == getpid()) return kSuccess;
  if (device.owner != 0) return kNotInitialized;
  void *memory = mmap(nullptr, kRange, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return kOperatingSystem;
  device.memory = static_cast<char *>(memory);
  device.owner = getpid();
  return kSuccess;
}

int cuDeviceGetCount(int *count) {
  *count = 1;
  return device.owner == getpid() ? kSuccess : kNotInitialized;
}

int cuDeviceGet(int *found, int ordinal) {
  *found = 0;
  return ordinal == 0 ? kSuccess : kInvalidValue;
}

int cuDevicePrimaryCtxRetain(void **context, int) {
  *context = &the_context;
  return device.owner == getpid() ? kSuccess : kNotInitialized;
}

int cuCtxPushCurrent_v2(void *context) {
  if (device.owner != getpid()) return kNotInitialized;
  if (context != &the_context) return kInvalidContext;
  contexts.push_back(context);
  return kSuccess;
}

int cuCtxPopCurrent_v2(void **context) {
  if (contexts.empty()) return kInvalidContext;
  *context = contexts.back();
  contexts.pop_back();
  return kSuccess;
}

int cuStreamCreate(void **stream, unsigned flags) {
  std::lock_guard guard(device.lock);
  if (const int code = ready()) return code;
  auto *made = new Stream{flags == 0, {}};
  device.streams[made] = true;
  ++device.counts.streams;
  *stream = made;
  return kSuccess;
}

int cuStreamDestroy_v2(void *stream) {
  std::lock_guard guard(device.lock);
  if (const int code = ready()) return code;
  auto *known = static_cast<Stream *>(stream);
  if (device.streams.erase(known) == 0) return refuse(kInvalidHandle);
  delete known;
  return kSuccess;
}

int cuStreamSynchronize(void *stream) {
  std::lock_guard guard(device.lock);
  if (const int code = ready()) return code;
  auto *known = static_cast<Stream *>(stream);
  if (device.streams.count(known) == 0) return refuse(kInvalidHandle);
  work_off(known);
  return device.lost;
}

int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  std::lock_guard guard(device.lock);
  if (const int code = ready()) return code;
  if (bytes == 0) return refuse(kInvalidValue);
  ++device.counts.allocations;
  if (device.counts.allocations == setting("STANDIN_FAIL_ALLOC", -1)) return kOutOfMemory;
  const auto limit = static_cast<size_t>(setting("STANDIN_MEMORY", static_cast<long>(kRange)));
  if (device.used + bytes > limit) return kOutOfMemory;
  // The first gap that is large enough; blocks do not touch.
  auto start = reinterpret_cast<uint64_t>(device.memory) + kGap;
  for (auto &[known, size] : device.blocks) {
    if (start + bytes + kGap <= known) break;
    start = (known + size + kGap + 255) / 256 * 256;
  }
  if (start + bytes + kGap > reinterpret_cast<uint64_t>(device.memory) + kRange) return kOutOfMemory;
  device.blocks[start] = bytes;
  device.used += bytes;
  Running running;
  memset(reinterpret_cast<void *>(start), 0xCD, bytes);
  *address = start;
  return kSuccess;
}

int cuMemFree_v2(uint64_t address) {
  std::lock_guard guard(device.lock);
  if (const int code = ready()) return code;
  auto known = device.blocks.find(address);
  if (known == device.blocks.end()) return refuse(kInvalidValue);
  for (auto &[stream, _] : device.streams) {
    // Memory that a stream may still use: the runtime must not free it.
    if (!stream->asked.empty()) ++device.counts.refused;
  }
  device.used -= known->second;
  device.blocks.erase(known);
  ++device.counts.frees;
  return kSuccess;
}

static int copy(long &count, uint64_t address, size_t bytes, void *stream, std::function<void()> task) {
  std::lock_guard guard(device.lock);
  if (const int code = ready()) return code;
  auto *known = static_cast<Stream *>(stream);
  if (device.streams.count(known) == 0) return refuse(kInvalidHandle);
  if (!inside(address, bytes)) return refuse(kInvalidValue);
  ++count;
  if (device.counts.sent + device.counts.fetched == setting("STANDIN_FAIL_COPY", -1)) return kOperatingSystem;
  known->asked.push_back(std::move(task));
  return kSuccess;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
  auto task = [=] { memcpy(reinterpret_cast<void *>(to), from, bytes); };
  return copy(device.counts.sent, to, bytes, stream, task);
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
  auto task = [=] { memcpy(to, reinterpret_cast<void *>(from), bytes); };
  return copy(device.counts.fetched, from, bytes, stream, task);
}

int cuGetErrorName(int code, const char **name) {
  switch (code) {
    case kInvalidValue: *name = "CUDA_ERROR_INVALID_VALUE"; break;
    case kOutOfMemory: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case kNotInitialized: *name = "CUDA_ERROR_NOT_INITIALIZED"; break;
    case kStub: *name = "CUDA_ERROR_STUB_LIBRARY"; break;
    case kNoDevice: *name = "CUDA_ERROR_NO_DEVICE"; break;
    case kInvalidContext: *name = "CUDA_ERROR_INVALID_CONTEXT"; break;
    case kOperatingSystem: *name = "CUDA_ERROR_OPERATING_SYSTEM"; break;
    case kInvalidHandle: *name = "CUDA_ERROR_INVALID_HANDLE"; break;
    case kIllegalAddress: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; break;
    default: *name = "CUDA_ERROR_UNKNOWN"; break;
  }
  return kSuccess;
}

int cuGetErrorString(int code, const char **text) {
  *text = code == kIllegalAddress ? "an illegal memory access was encountered" : "a stand-in's text";
  return kSuccess;
}

int standin_launch(void *stream, void (*kernel)(void *), const void *arguments, size_t bytes) {
  std::lock_guard guard(device.lock);
  if (const int code = ready()) return code;
  auto *known = static_cast<Stream *>(stream);
  if (known != nullptr && device.streams.count(known) == 0) return refuse(kInvalidHandle);
  ++device.counts.launches;
  const auto *first = static_cast<const char *>(arguments);
  std::vector<char> kept(first, first + bytes);
  auto task = [kernel, kept]() mutable { kernel(kept.data()); };
  if (known != nullptr) {
    known->asked.push_back(task);
    return kSuccess;
  }
  // The default stream: what other streams were asked before comes first.
  work_off_all();
  Running running;
  task();
  return device.lost;
}

int standin_is_device(const void *address) {
  const auto *byte = static_cast<const char *>(address);
  return device.memory != nullptr && byte >= device.memory && byte < device.memory + kRange;
}

void standin_expect_context(void) {
  std::lock_guard guard(device.lock);
  if (const int code = ready()) refuse(code);
}

void standin_lose(void) { device.lost = kIllegalAddress; }
}
