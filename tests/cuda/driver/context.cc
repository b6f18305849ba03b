// Devices and contexts: a process has one primary context a device, which threads enter.

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "state.h"

namespace driver {

long setting(const char *name, long otherwise) {
  const char *text = getenv(name);
  return text ? atol(text) : otherwise;
}

// Those of a list of numbers, up to the first one that no device has.
static int visible_of(const char *list, int devices) {
  int visible = 0;
  for (char *end = nullptr; visible < devices; list = end + 1) {
    const long number = strtol(list, &end, 10);
    if (end == list || number < 0 || number >= devices) break;
    ++visible;
    if (*end != ',') break;
  }
  return visible;
}

static int count_devices() {
  const long count = setting("STANDIN_DEVICES", 1);
  const int devices = count < 0 ? 0 : count > kMostDevices ? kMostDevices : static_cast<int>(count);
  const char *list = getenv("CUDA_VISIBLE_DEVICES");
  return list ? visible_of(list, devices) : devices;
}

int device_count() {
  static const int count = count_devices();
  return count;
}

int current_ordinal() { return entered.back()->device; }
Device &current() { return state.devices[current_ordinal()]; }

int ready() {
  if (state.owner != getpid()) return kNotInitialized;
  if (entered.empty() || entered.back() == nullptr) return kInvalidContext;
  return current().lost;
}

int refuse(int code) {
  ++state.counts.refused;
  return code;
}

static bool is_context(void *context) {
  return context >= contexts && context < contexts + device_count();
}

static bool is_device(int ordinal) { return ordinal >= 0 && ordinal < device_count(); }

static int started() { return state.owner == getpid() ? kSuccess : kNotInitialized; }

struct Attribute {
  int number, value;
};

// Those of a device of compute capability 9.0.
const Attribute kAttributes[] = {
    {1, 1024},       // threads in a block
    {2, 1024},       // their sizes in x, y, z
    {3, 1024},
    {4, 64},
    {5, 2147483647}, // sizes of a grid in x, y, z
    {6, 65535},
    {7, 65535},
    {8, 49152},      // shared memory of a block
    {9, 65536},      // constant memory
    {10, 32},        // threads in a warp
    {12, 65536},     // registers of a block
    {13, 1980000},   // clock in kHz
    {14, 512},       // alignment of textures
    {15, 1},         // copies overlap with kernels
    {16, 132},       // multiprocessors
    {17, 0},         // no limit of a kernel's time
    {18, 0},         // not integrated
    {19, 1},         // maps memory of the host
    {20, 0},         // default compute mode
    {31, 1},         // concurrent kernels
    {32, 0},         // error correction
    {33, 1},         // bus
    {34, 0},         // device on the bus
    {35, 0},
    {36, 2619000},   // clock of the memory in kHz
    {37, 5120},      // width of its bus in bits
    {38, 52428800},  // second cache
    {39, 2048},      // threads on a multiprocessor
    {40, 3},         // engines for copies
    {41, 1},         // one address space with the host
    {50, 0},         // domain on the bus
    {75, 9},         // compute capability
    {76, 0},
    {78, 1},         // priorities of streams
    {81, 233472},    // shared memory of a multiprocessor
    {82, 65536},     // its registers
    {83, 1},         // managed memory
    {89, 0},         // concurrent managed access
    {90, 0},
    {97, 232448},    // shared memory of a block that asks for it
    {115, 0},        // no pools of memory
};

// Counts of the process and leftovers, printed when it ends.
struct Report {
  ~Report() {
    if (state.owner != getpid()) return;
    const Counts &c = state.counts;
    size_t live = 0;
    for (Device &device : state.devices) live += device.blocks.size();
    printf("STANDIN live=%zu allocations=%ld streams=%ld live_streams=%zu sent=%ld fetched=%ld launches=%ld refused=%ld graphs=%ld replays=%ld peers=%ld\n",
           live, c.allocations, c.streams, state.streams.size(), c.sent, c.fetched, c.launches, c.refused,
           c.graphs, c.replays, c.peers);
    fflush(stdout);
  }
} report;

}  // namespace driver

using namespace driver;

extern "C" {

int cuInit(unsigned) {
  Guard guard(state.lock);
  if (const long code = setting("STANDIN_INIT", 0)) return static_cast<int>(code);
  if (state.owner == getpid()) return kSuccess;
  if (state.owner != 0) return kNotInitialized;
  if (device_count() == 0) return kNoDevice;
  for (int i = 0; i < device_count(); ++i) {
    void *memory = mmap(nullptr, kRange, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return kOperatingSystem;
    state.devices[i].memory = static_cast<char *>(memory);
    contexts[i].device = i;
  }
  state.owner = getpid();
  return kSuccess;
}

int cuDriverGetVersion(int *version) {
  *version = static_cast<int>(setting("STANDIN_VERSION", 13000));
  return kSuccess;
}

int cuDeviceGetCount(int *count) {
  *count = device_count();
  return started();
}

int cuDeviceGet(int *found, int ordinal) {
  *found = ordinal;
  return is_device(ordinal) ? kSuccess : kInvalidDevice;
}

int cuDeviceGetName(char *name, int bytes, int device) {
  if (const int code = started()) return code;
  if (!is_device(device) || bytes <= 0) return kInvalidDevice;
  snprintf(name, static_cast<size_t>(bytes), "Stand-in %d", device);
  return kSuccess;
}

int cuDeviceGetUuid_v2(char *uuid, int device) {
  if (const int code = started()) return code;
  if (!is_device(device)) return kInvalidDevice;
  memcpy(uuid, "opsmith-stand-in", 16);
  uuid[15] = static_cast<char>(device);
  return kSuccess;
}
int cuDeviceGetUuid(char *uuid, int device) { return cuDeviceGetUuid_v2(uuid, device); }

int cuDeviceTotalMem_v2(size_t *bytes, int device) {
  if (const int code = started()) return code;
  if (!is_device(device)) return kInvalidDevice;
  *bytes = static_cast<size_t>(setting("STANDIN_MEMORY", 1L << 32));
  return kSuccess;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
  if (const int code = started()) return code;
  if (!is_device(device)) return kInvalidDevice;
  for (const Attribute &known : kAttributes) {
    if (known.number == attribute) {
      *value = known.value;
      return kSuccess;
    }
  }
  return refuse(kInvalidValue);
}

// Devices access each other's memory with STANDIN_PEERS=1.
int cuDeviceCanAccessPeer(int *can, int device, int peer) {
  *can = device != peer && setting("STANDIN_PEERS", 0) != 0;
  return is_device(device) && is_device(peer) ? started() : kInvalidDevice;
}

int cuCtxEnablePeerAccess(void *peer, unsigned flags) {
  if (const int code = ready()) return code;
  if (!is_context(peer) || peer == entered.back()) return refuse(kInvalidContext);
  if (flags != 0) return refuse(kInvalidValue);
  static bool open[kMostDevices][kMostDevices];
  bool &access = open[current_ordinal()][static_cast<Context *>(peer)->device];
  if (access) return refuse(kPeerAccessAlreadyEnabled);
  if (setting("STANDIN_PEERS", 0) == 0) return refuse(kPeerAccessUnsupported);
  access = true;
  ++state.counts.peers;
  return kSuccess;
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
  if (const int code = started()) return code;
  if (!is_device(device)) return kInvalidDevice;
  *context = &contexts[device];
  return kSuccess;
}

int cuDevicePrimaryCtxRelease_v2(int device) { return is_device(device) ? started() : kInvalidDevice; }

int cuCtxPushCurrent_v2(void *context) {
  if (const int code = started()) return code;
  if (!is_context(context)) return kInvalidContext;
  entered.push_back(static_cast<Context *>(context));
  return kSuccess;
}

int cuCtxPopCurrent_v2(void **context) {
  if (entered.empty()) return kInvalidContext;
  if (context != nullptr) *context = entered.back();
  entered.pop_back();
  return kSuccess;
}

int cuCtxGetCurrent(void **context) {
  if (const int code = started()) return code;
  *context = entered.empty() ? nullptr : entered.back();
  return kSuccess;
}

int cuCtxSetCurrent(void *context) {
  if (const int code = started()) return code;
  if (context != nullptr && !is_context(context)) return kInvalidContext;
  if (!entered.empty()) entered.pop_back();
  if (context != nullptr) entered.push_back(static_cast<Context *>(context));
  return kSuccess;
}

int cuCtxGetDevice(int *device) {
  if (const int code = started()) return code;
  if (entered.empty()) return kInvalidContext;
  *device = current_ordinal();
  return kSuccess;
}

int cuCtxSynchronize() {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  if (const int code = allowed_in_capture()) return code;
  work_off_all(current_ordinal(), false);
  return current().lost;
}

int standin_is_device(const void *address) {
  return device_of(reinterpret_cast<uint64_t>(address)) != nullptr;
}

void standin_refuse(void) {
  Guard guard(state.lock);
  refuse(0);
}

void standin_expect_context(void) {
  Guard guard(state.lock);
  if (const int code = ready()) refuse(code);
}
}
