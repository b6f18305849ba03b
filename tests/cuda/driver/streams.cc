// Streams and events. Work is done as late as the interface allows: when the host waits for it.

#include <time.h>

#include <algorithm>
#include <cstring>

#include "state.h"

namespace driver {

// The handles of the default stream: none, and CU_STREAM_LEGACY.
static bool is_default(void *handle) { return handle == nullptr || handle == reinterpret_cast<void *>(1); }

bool find_stream(void *handle, std::shared_ptr<Stream> *found) {
  if (is_default(handle)) return true;
  auto known = state.streams.find(static_cast<Stream *>(handle));
  if (known == state.streams.end()) return false;
  *found = known->second;
  return true;
}

int enqueue(const std::shared_ptr<Stream> &stream, Task task) {
  if (is_captured(stream)) {
    record(stream, std::move(task));
    return kSuccess;
  }
  if (stream != nullptr) {
    stream->asked.push_back(std::move(task));
    ++stream->enqueued;
    return kSuccess;
  }
  const int device = current_ordinal();
  if (const int code = default_stream_is_free(device)) return code;
  work_off_all(device, true);
  if (task.control) {
    task.run();
  } else {
    run_protected(device, task);
  }
  return state.devices[device].lost;
}

void work_off(const std::shared_ptr<Stream> &stream, uint64_t position) {
  while (stream->done < position && !stream->asked.empty()) {
    const Task task = std::move(stream->asked.front());
    stream->asked.pop_front();
    ++stream->done;
    if (state.devices[stream->device].lost) continue;
    if (task.control) {
      task.run();
    } else {
      run_protected(stream->device, task);
    }
  }
}

void work_off_all(int device, bool only_blocking) {
  std::vector<std::shared_ptr<Stream>> all;
  for (auto &[_, stream] : state.streams) {
    if (stream->device == device && (stream->waits_for_default || !only_blocking)) all.push_back(stream);
  }
  for (auto &stream : all) work_off(stream, stream->enqueued);
}

bool in_use(uint64_t start, size_t bytes) {
  for (auto &[_, stream] : state.streams) {
    for (const Task &task : stream->asked) {
      for (size_t i = 0; i + 8 <= task.operands.size(); i += 8) {
        uint64_t address;
        memcpy(&address, &task.operands[i], 8);
        if (address >= start && address < start + bytes) return true;
      }
    }
  }
  return false;
}

static double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

static bool passed(const Event &event) {
  return event.stream == nullptr || event.stream->done >= event.position;
}

static int create(void **handle, unsigned flags, int priority) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  if (flags > 1) return refuse(kInvalidValue);
  auto made = std::make_shared<Stream>(Stream{current_ordinal(), flags == 0, priority, {}, 0, 0, nullptr});
  state.streams[made.get()] = made;
  ++state.counts.streams;
  *handle = made.get();
  return kSuccess;
}

static Event *find_event(void *handle) {
  auto known = state.events.find(static_cast<Event *>(handle));
  return known == state.events.end() ? nullptr : known->second.get();
}

}  // namespace driver

using namespace driver;

extern "C" {

int cuStreamCreate(void **stream, unsigned flags) { return create(stream, flags, 0); }

int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority) {
  return create(stream, flags, std::clamp(priority, -5, 0));
}

int cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return kSuccess;
}

int cuStreamDestroy_v2(void *handle) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  auto known = state.streams.find(static_cast<Stream *>(handle));
  if (known == state.streams.end()) return refuse(kInvalidHandle);
  // Work that was asked for is still done.
  const std::shared_ptr<Stream> stream = known->second;
  if (is_captured(stream)) return breaks(stream, kCaptureUnsupported);
  work_off(stream, stream->enqueued);
  state.streams.erase(stream.get());
  ++state.counts.streams_gone;
  return kSuccess;
}

int cuStreamSynchronize(void *handle) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  std::shared_ptr<Stream> stream;
  if (!find_stream(handle, &stream)) return refuse(kInvalidHandle);
  if (is_captured(stream)) return breaks(stream, kCaptureUnsupported);
  if (stream == nullptr) {
    if (const int code = default_stream_is_free(current_ordinal())) return code;
    work_off_all(current_ordinal(), true);
    return current().lost;
  }
  work_off(stream, stream->enqueued);
  return state.devices[stream->device].lost;
}

// Each answer that work is left does a part of it, so that a loop of questions ends.
int cuStreamQuery(void *handle) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  std::shared_ptr<Stream> stream;
  if (!find_stream(handle, &stream)) return refuse(kInvalidHandle);
  if (is_captured(stream)) return breaks(stream, kCaptureUnsupported);
  if (stream == nullptr || stream->asked.empty()) return kSuccess;
  work_off(stream, stream->done + 1);
  return current().lost ? current().lost : kNotReady;
}

int cuStreamGetCtx(void *handle, void **context) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  std::shared_ptr<Stream> stream;
  if (!find_stream(handle, &stream)) return refuse(kInvalidHandle);
  *context = stream == nullptr ? entered.back() : &contexts[stream->device];
  return kSuccess;
}

int cuStreamGetPriority(void *handle, int *priority) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  std::shared_ptr<Stream> stream;
  if (!find_stream(handle, &stream)) return refuse(kInvalidHandle);
  *priority = stream == nullptr ? 0 : stream->priority;
  return kSuccess;
}

int cuStreamWaitEvent(void *handle, void *event_handle, unsigned) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  std::shared_ptr<Stream> stream;
  Event *event = find_event(event_handle);
  if (!find_stream(handle, &stream) || event == nullptr) return refuse(kInvalidHandle);
  if (event->recording != nullptr || is_captured(stream)) {
    // A point of the same record is before all that comes; others would join two streams.
    if (stream != nullptr && stream->recording == event->recording) return kSuccess;
    breaks(event->stream, kCaptureIsolation);
    return breaks(stream, kCaptureIsolation);
  }
  if (event->stream == nullptr) return kSuccess;
  Task task;
  task.control = true;
  task.run = [other = event->stream, position = event->position] { work_off(other, position); };
  return enqueue(stream, std::move(task));
}

int cuEventCreate(void **handle, unsigned flags) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  auto made = std::make_unique<Event>(Event{current_ordinal(), (flags & 2) == 0, nullptr, 0, nullptr, nullptr});
  *handle = made.get();
  state.events[made.get()] = std::move(made);
  return kSuccess;
}

int cuEventDestroy_v2(void *handle) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  return state.events.erase(static_cast<Event *>(handle)) == 1 ? kSuccess : refuse(kInvalidHandle);
}

int cuEventRecord(void *handle, void *stream_handle) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  std::shared_ptr<Stream> stream;
  Event *event = find_event(handle);
  if (event == nullptr || !find_stream(stream_handle, &stream)) return refuse(kInvalidHandle);
  if (event->device != (stream == nullptr ? current_ordinal() : stream->device)) return refuse(kInvalidHandle);
  event->recording = stream == nullptr ? nullptr : stream->recording;
  if (event->recording != nullptr) {
    event->stream = stream;
    return kSuccess;
  }
  event->passed = std::make_shared<double>(0);
  Task task;
  task.control = true;
  task.run = [time = event->passed] { *time = now(); };
  const int code = enqueue(stream, std::move(task));
  event->stream = stream;
  event->position = stream == nullptr ? 0 : stream->enqueued;
  return code;
}

int cuEventQuery(void *handle) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  const Event *event = find_event(handle);
  if (event == nullptr) return refuse(kInvalidHandle);
  if (const int code = allowed_in_capture()) return code;
  if (event->recording != nullptr) return breaks(event->stream, kCapturedEvent);
  if (passed(*event)) return kSuccess;
  work_off(event->stream, event->stream->done + 1);
  const int lost = state.devices[event->device].lost;
  return lost ? lost : kNotReady;
}

int cuEventSynchronize(void *handle) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  const Event *event = find_event(handle);
  if (event == nullptr) return refuse(kInvalidHandle);
  if (const int code = allowed_in_capture()) return code;
  if (event->recording != nullptr) return breaks(event->stream, kCapturedEvent);
  if (event->stream != nullptr) work_off(event->stream, event->position);
  return state.devices[event->device].lost;
}

int cuEventElapsedTime(float *milliseconds, void *start, void *end) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  const Event *first = find_event(start), *last = find_event(end);
  if (first == nullptr || last == nullptr || !first->timed || !last->timed) return refuse(kInvalidHandle);
  if (first->passed == nullptr || last->passed == nullptr) return refuse(kInvalidHandle);
  if (!passed(*first) || !passed(*last)) return kNotReady;
  *milliseconds = static_cast<float>((*last->passed - *first->passed) * 1e3);
  return kSuccess;
}
int cuEventElapsedTime_v2(float *milliseconds, void *start, void *end) {
  return cuEventElapsedTime(milliseconds, start, end);
}
}
