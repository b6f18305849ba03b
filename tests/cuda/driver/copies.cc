// Copies and fills.
//
// A copy from pinned memory reads it when the copy is done; one from other memory of the host at once, as the driver stages
// it, unless STANDIN_PAGEABLE is `late`.

#include <cstdlib>
#include <cstring>

#include "state.h"

namespace driver {

static void *pointer(uint64_t address) { return reinterpret_cast<void *>(address); }

static std::vector<char> operands(std::initializer_list<uint64_t> addresses) {
  std::vector<char> bytes(addresses.size() * 8);
  memcpy(bytes.data(), addresses.begin(), bytes.size());
  return bytes;
}

static bool reads_late(const void *from, size_t bytes) {
  const char *pageable = getenv("STANDIN_PAGEABLE");
  return is_pinned(reinterpret_cast<uint64_t>(from), bytes) || (pageable != nullptr && strcmp(pageable, "late") == 0);
}

// Queues a copy or a fill, counted in `count` if there is one.
static int ask(void *handle, long *count, Task task) {
  std::shared_ptr<Stream> stream;
  if (!find_stream(handle, &stream)) return refuse(kInvalidHandle);
  if (count != nullptr) {
    ++*count;
    if (state.counts.sent + state.counts.fetched == setting("STANDIN_FAIL_COPY", -1)) return kOperatingSystem;
  }
  return enqueue(stream, std::move(task));
}

static int send(uint64_t to, const void *from, size_t bytes, void *handle) {
  if (!is_addressable(to, bytes)) return refuse(kInvalidValue);
  std::shared_ptr<Stream> stream;
  if (!find_stream(handle, &stream)) return refuse(kInvalidHandle);
  Task task;
  task.name = "copy to the device";
  // A recorded copy reads the memory at each replay.
  if (reads_late(from, bytes) || is_captured(stream)) {
    task.operands = operands({to, reinterpret_cast<uint64_t>(from)});
    task.run = [=] { memcpy(pointer(to), from, bytes); };
  } else {
    const auto *first = static_cast<const char *>(from);
    auto staged = std::make_shared<std::vector<char>>(first, first + bytes);
    task.operands = operands({to});
    task.run = [=] { memcpy(pointer(to), staged->data(), bytes); };
  }
  return ask(handle, &state.counts.sent, std::move(task));
}

static int fetch(void *to, uint64_t from, size_t bytes, void *handle) {
  if (!is_addressable(from, bytes)) return refuse(kInvalidValue);
  Task task;
  task.name = "copy to the host";
  task.operands = operands({from, reinterpret_cast<uint64_t>(to)});
  task.run = [=] { memcpy(to, pointer(from), bytes); };
  return ask(handle, &state.counts.fetched, std::move(task));
}

static int move(uint64_t to, uint64_t from, size_t bytes, void *handle) {
  if (!is_addressable(to, bytes) || !is_addressable(from, bytes)) return refuse(kInvalidValue);
  if (to < from + bytes && from < to + bytes) return refuse(kInvalidValue);
  std::shared_ptr<Stream> stream;
  if (!find_stream(handle, &stream)) return refuse(kInvalidHandle);
  const int own = stream == nullptr ? current_ordinal() : stream->device;
  int first = own, second = own;
  device_of(to, &first);
  device_of(from, &second);
  Task task;
  task.name = "copy on the device";
  task.peer = first != own ? first : second;
  task.operands = operands({to, from});
  task.run = [=] { memcpy(pointer(to), pointer(from), bytes); };
  return ask(handle, nullptr, std::move(task));
}

// Rows of elements of 1, 2 or 4 bytes.
static int fill(uint64_t to, size_t pitch, unsigned value, size_t unit, size_t width, size_t height, void *handle) {
  if (width == 0 || height == 0) return kSuccess;
  if (to % unit != 0 || (height > 1 && pitch % unit != 0)) return refuse(kInvalidValue);
  if (!is_addressable(to, (height - 1) * pitch + width * unit)) return refuse(kInvalidValue);
  Task task;
  task.name = "fill";
  task.operands = operands({to});
  task.run = [=] {
    for (size_t row = 0; row < height; ++row) {
      for (size_t i = 0; i < width; ++i) memcpy(pointer(to + row * pitch + i * unit), &value, unit);
    }
  };
  return ask(handle, nullptr, std::move(task));
}

// The call's condition, then the call under the lock.
template <class F>
static int locked(F call) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  return call();
}

// A copy's direction by its addresses.
static int any(uint64_t to, uint64_t from, size_t bytes, void *handle) {
  const bool to_device = device_of(to) != nullptr, from_device = device_of(from) != nullptr;
  if (to_device && from_device) return move(to, from, bytes, handle);
  if (to_device) return send(to, pointer(from), bytes, handle);
  if (from_device) return fetch(pointer(to), from, bytes, handle);
  Task task;
  task.name = "copy on the host";
  task.run = [=] { memcpy(pointer(to), pointer(from), bytes); };
  return ask(handle, nullptr, std::move(task));
}

// The same, waited for.
static int finished(int code) {
  if (code) return code;
  if (const int refused = default_stream_is_free(current_ordinal())) return refused;
  work_off_all(current_ordinal(), true);
  return current().lost;
}

}  // namespace driver

using namespace driver;

extern "C" {

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
  return locked([=] { return send(to, from, bytes, stream); });
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
  return locked([=] { return fetch(to, from, bytes, stream); });
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream) {
  return locked([=] { return move(to, from, bytes, stream); });
}
int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, void *stream) {
  return locked([=] { return any(to, from, bytes, stream); });
}
int cuMemcpyPeerAsync(uint64_t to, void *to_context, uint64_t from, void *from_context, size_t bytes, void *stream) {
  return locked([=] {
    int first = -1, second = -1;
    if (device_of(to, &first) == nullptr || device_of(from, &second) == nullptr) return refuse(kInvalidValue);
    if (to_context != &contexts[first] || from_context != &contexts[second]) return refuse(kInvalidValue);
    return move(to, from, bytes, stream);
  });
}
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
  return locked([=] { return finished(send(to, from, bytes, nullptr)); });
}
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
  return locked([=] { return finished(fetch(to, from, bytes, nullptr)); });
}
int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t bytes) {
  return locked([=] { return finished(move(to, from, bytes, nullptr)); });
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t count, void *stream) {
  return locked([=] { return fill(to, 0, value, 1, count, 1, stream); });
}
int cuMemsetD16Async(uint64_t to, unsigned short value, size_t count, void *stream) {
  return locked([=] { return fill(to, 0, value, 2, count, 1, stream); });
}
int cuMemsetD32Async(uint64_t to, unsigned value, size_t count, void *stream) {
  return locked([=] { return fill(to, 0, value, 4, count, 1, stream); });
}
int cuMemsetD2D8Async(uint64_t to, size_t pitch, unsigned char value, size_t width, size_t height, void *stream) {
  return locked([=] { return fill(to, pitch, value, 1, width, height, stream); });
}
int cuMemsetD2D16Async(uint64_t to, size_t pitch, unsigned short value, size_t width, size_t height, void *stream) {
  return locked([=] { return fill(to, pitch, value, 2, width, height, stream); });
}
int cuMemsetD2D32Async(uint64_t to, size_t pitch, unsigned value, size_t width, size_t height, void *stream) {
  return locked([=] { return fill(to, pitch, value, 4, width, height, stream); });
}
int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t count) {
  return locked([=] { return finished(fill(to, 0, value, 1, count, 1, nullptr)); });
}
int cuMemsetD32_v2(uint64_t to, unsigned value, size_t count) {
  return locked([=] { return finished(fill(to, 0, value, 4, count, 1, nullptr)); });
}
}
