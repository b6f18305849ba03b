// Memory of devices and pinned memory of the host.

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "state.h"

namespace driver {

constexpr unsigned char kGuard = 0xA5;
constexpr unsigned char kFresh = 0xCD;
// A larger block is only filled at its start.
constexpr size_t kMostFilled = size_t{1} << 26;

static size_t up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

Device *device_of(uint64_t address, int *ordinal) {
  for (int i = 0; i < kMostDevices; ++i) {
    Device &device = state.devices[i];
    const auto start = reinterpret_cast<uint64_t>(device.memory);
    if (device.memory == nullptr || address < start || address >= start + kRange) continue;
    if (ordinal != nullptr) *ordinal = i;
    return &device;
  }
  return nullptr;
}

const Block *block_of(uint64_t address, uint64_t *start) {
  Device *device = device_of(address);
  if (device == nullptr) return nullptr;
  auto next = device->blocks.upper_bound(address);
  if (next == device->blocks.begin()) return nullptr;
  --next;
  if (address >= next->first + next->second.bytes) return nullptr;
  if (start != nullptr) *start = next->first;
  return &next->second;
}

bool inside(uint64_t address, size_t bytes) {
  uint64_t start = 0;
  const Block *block = block_of(address, &start);
  return block != nullptr && bytes <= block->bytes - (address - start);
}

static bool lies_in(const std::map<uint64_t, size_t> &ranges, uint64_t address, size_t bytes) {
  auto next = ranges.upper_bound(address);
  if (next == ranges.begin()) return false;
  --next;
  return bytes <= next->second && address - next->first <= next->second - bytes;
}

bool is_pinned(uint64_t address, size_t bytes) { return lies_in(state.pinned, address, bytes); }

bool is_addressable(uint64_t address, size_t bytes) {
  return inside(address, bytes) || is_pinned(address, bytes) || lies_in(state.globals, address, bytes);
}

static bool intact(const char *first, const char *last) {
  for (; first < last; ++first) {
    if (static_cast<unsigned char>(*first) != kGuard) return false;
  }
  return true;
}

std::string damage(uint64_t start, const Block &block) {
  const auto *data = reinterpret_cast<const char *>(start);
  const bool before = !intact(block.pages, data);
  if (!before && intact(data + block.bytes, block.pages + block.mapped)) return {};
  return "wrote " + std::string(before ? "before" : "past") + " a block of " + std::to_string(block.bytes) + " bytes";
}

// The first gap that is large enough; blocks do not touch.
static char *find_gap(Device &device, size_t mapped) {
  char *start = device.memory + kPage;
  for (auto &[_, block] : device.blocks) {
    if (start + mapped + kPage <= block.pages) break;
    start = block.pages + block.mapped + kPage;
  }
  return start + mapped + kPage <= device.memory + kRange ? start : nullptr;
}

static int allocate(uint64_t *address, size_t bytes) {
  Device &device = current();
  ++state.counts.allocations;
  if (state.counts.allocations == setting("STANDIN_FAIL_ALLOC", -1)) return kOutOfMemory;
  const auto limit = static_cast<size_t>(setting("STANDIN_MEMORY", 1L << 32));
  if (bytes > limit || device.used + bytes > limit) return kOutOfMemory;
  const size_t aligned = up(bytes, kAlignment), mapped = up(aligned, kPage);
  char *pages = find_gap(device, mapped);
  if (pages == nullptr) return kOutOfMemory;
  void *made = mmap(pages, mapped, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (made == MAP_FAILED) return kOutOfMemory;
  char *start = pages + mapped - aligned;
  memset(pages, kGuard, static_cast<size_t>(start - pages));
  memset(start, kFresh, bytes < kMostFilled ? bytes : kMostFilled);
  memset(start + bytes, kGuard, aligned - bytes);
  mprotect(pages, mapped, PROT_NONE);
  *address = reinterpret_cast<uint64_t>(start);
  device.blocks[*address] = {bytes, pages, mapped};
  device.used += bytes;
  return kSuccess;
}

}  // namespace driver

using namespace driver;

extern "C" {

int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  if (const int code = allowed_in_capture()) return code;
  if (bytes == 0) return refuse(kInvalidValue);
  return allocate(address, bytes);
}

int cuMemFree_v2(uint64_t address) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  if (const int code = allowed_in_capture()) return code;
  if (address == 0) return kSuccess;
  Device *device = device_of(address);
  auto known = device != nullptr ? device->blocks.find(address) : current().blocks.end();
  if (device == nullptr || known == device->blocks.end()) return refuse(kInvalidValue);
  const Block block = known->second;
  // Memory that a stream will still use: the runtime must not free it.
  if (in_use(address, block.bytes)) ++state.counts.refused;
  mprotect(block.pages, kPage, PROT_READ);
  mprotect(block.pages + block.mapped - kPage, kPage, PROT_READ);
  const std::string text = damage(address, block);
  device->used -= block.bytes;
  device->blocks.erase(known);
  ++state.counts.frees;
  mmap(block.pages, block.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (!text.empty()) {
    ++state.counts.refused;
    fprintf(stderr, "STANDIN memory is freed: a kernel %s\n", text.c_str());
  }
  return kSuccess;
}

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  *total = static_cast<size_t>(setting("STANDIN_MEMORY", 1L << 32));
  *free_bytes = *total - current().used;
  return kSuccess;
}

int cuMemGetAddressRange_v2(uint64_t *start, size_t *bytes, uint64_t address) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  uint64_t found = 0;
  const Block *block = block_of(address, &found);
  if (block == nullptr) return kNotFound;
  if (start != nullptr) *start = found;
  if (bytes != nullptr) *bytes = block->bytes;
  return kSuccess;
}

int cuMemHostAlloc(void **address, size_t bytes, unsigned) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  if (const int code = allowed_in_capture()) return code;
  if (bytes == 0) return refuse(kInvalidValue);
  size_t pinned = bytes;
  for (const auto &known : state.pinned) pinned += known.second;
  if (pinned > static_cast<size_t>(setting("STANDIN_PINNED", 1L << 32))) return kOutOfMemory;
  void *made = mmap(nullptr, up(bytes, kPage), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return kOutOfMemory;
  memset(made, kFresh, bytes);
  state.pinned[reinterpret_cast<uint64_t>(made)] = bytes;
  *address = made;
  return kSuccess;
}
int cuMemAllocHost_v2(void **address, size_t bytes) { return cuMemHostAlloc(address, bytes, 0); }

int cuMemFreeHost(void *address) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  auto known = state.pinned.find(reinterpret_cast<uint64_t>(address));
  if (known == state.pinned.end()) return refuse(kInvalidValue);
  if (in_use(known->first, known->second)) ++state.counts.refused;
  munmap(address, up(known->second, kPage));
  state.pinned.erase(known);
  return kSuccess;
}

int cuMemHostGetDevicePointer_v2(uint64_t *address, void *host, unsigned) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  if (!is_pinned(reinterpret_cast<uint64_t>(host), 1)) return refuse(kInvalidValue);
  *address = reinterpret_cast<uint64_t>(host);
  return kSuccess;
}
}
