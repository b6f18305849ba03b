// Capture of a stream's work, and graphs of it: while a stream is captured, what it is asked for is recorded, and nothing of it
// runs. A call that a capture forbids ends the capture, as on a device: its end is then an error.

#include <pthread.h>

#include <algorithm>

#include "state.h"

namespace driver {

// How calls of other kinds are restricted while a stream is captured.
enum Mode { kGlobal = 0, kThreadLocal = 1, kRelaxed = 2 };

struct Recording {
  int mode;
  pthread_t thread;
  std::vector<Task> tasks;
  bool broken = false;
};

// A graph and an executable graph are both a list of tasks.
struct Graph {
  int device;
  std::vector<Task> tasks;
};

static thread_local int interaction = kGlobal;
static std::map<Graph *, std::unique_ptr<Graph>> graphs, executables;

bool is_captured(const std::shared_ptr<Stream> &stream) { return stream != nullptr && stream->recording != nullptr; }

int breaks(const std::shared_ptr<Stream> &stream, int code) {
  if (is_captured(stream)) stream->recording->broken = true;
  return refuse(code);
}

void record(const std::shared_ptr<Stream> &stream, Task task) { stream->recording->tasks.push_back(std::move(task)); }

int default_stream_is_free(int device) {
  int code = kSuccess;
  for (auto &[_, stream] : state.streams) {
    if (stream->device == device && stream->waits_for_default && is_captured(stream)) code = breaks(stream, kCaptureImplicit);
  }
  return code;
}

int allowed_in_capture() {
  if (interaction == kRelaxed) return kSuccess;
  int code = kSuccess;
  for (auto &[_, stream] : state.streams) {
    if (!is_captured(stream)) continue;
    const Recording &recording = *stream->recording;
    const bool own = pthread_equal(recording.thread, pthread_self()) != 0 && recording.mode != kRelaxed;
    const bool others = interaction == kGlobal && recording.mode == kGlobal;
    if (own || others) code = breaks(stream, kCaptureUnsupported);
  }
  return code;
}

}  // namespace driver

using namespace driver;

extern "C" {

int cuThreadExchangeStreamCaptureMode(int *mode) {
  if (mode == nullptr || *mode < kGlobal || *mode > kRelaxed) return kInvalidValue;
  std::swap(*mode, interaction);
  return kSuccess;
}

int cuStreamBeginCapture_v2(void *handle, int mode) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  std::shared_ptr<Stream> stream;
  if (!find_stream(handle, &stream)) return refuse(kInvalidHandle);
  if (stream == nullptr) return refuse(kCaptureUnsupported);
  if (is_captured(stream) || mode < kGlobal || mode > kRelaxed) return refuse(kInvalidValue);
  stream->recording = std::make_shared<Recording>(Recording{mode, pthread_self(), {}});
  return kSuccess;
}

int cuStreamIsCapturing(void *handle, int *status) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  std::shared_ptr<Stream> stream;
  if (!find_stream(handle, &stream)) return refuse(kInvalidHandle);
  *status = !is_captured(stream) ? 0 : stream->recording->broken ? 2 : 1;
  return kSuccess;
}

int cuStreamEndCapture(void *handle, void **graph) {
  Guard guard(state.lock);
  *graph = nullptr;
  if (const int code = ready()) return code;
  std::shared_ptr<Stream> stream;
  if (!find_stream(handle, &stream)) return refuse(kInvalidHandle);
  if (!is_captured(stream)) return refuse(kIllegalState);
  const std::shared_ptr<Recording> recording = stream->recording;
  if (recording->mode != kRelaxed && pthread_equal(recording->thread, pthread_self()) == 0) return refuse(kCaptureWrongThread);
  stream->recording = nullptr;
  if (recording->broken) return refuse(kCaptureInvalidated);
  auto made = std::make_unique<Graph>(Graph{stream->device, std::move(recording->tasks)});
  *graph = made.get();
  graphs[made.get()] = std::move(made);
  return kSuccess;
}

int cuGraphInstantiateWithFlags(void **executable, void *handle, unsigned long long flags) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  auto known = graphs.find(static_cast<Graph *>(handle));
  if (known == graphs.end()) return refuse(kInvalidHandle);
  if (flags != 0) return refuse(kInvalidValue);
  auto made = std::make_unique<Graph>(*known->second);
  *executable = made.get();
  executables[made.get()] = std::move(made);
  ++state.counts.graphs;
  return kSuccess;
}

int cuGraphLaunch(void *handle, void *stream_handle) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  auto known = executables.find(static_cast<Graph *>(handle));
  std::shared_ptr<Stream> stream;
  if (known == executables.end() || !find_stream(stream_handle, &stream)) return refuse(kInvalidHandle);
  const Graph &graph = *known->second;
  if (graph.device != (stream == nullptr ? current_ordinal() : stream->device)) return refuse(kInvalidValue);
  if (is_captured(stream)) return breaks(stream, kCaptureUnsupported);
  ++state.counts.replays;
  for (const Task &task : graph.tasks) {
    if (const int code = enqueue(stream, task)) return code;
  }
  return kSuccess;
}

int cuGraphExecDestroy(void *handle) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  return executables.erase(static_cast<Graph *>(handle)) == 1 ? kSuccess : refuse(kInvalidHandle);
}

int cuGraphDestroy(void *handle) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  return graphs.erase(static_cast<Graph *>(handle)) == 1 ? kSuccess : refuse(kInvalidHandle);
}
}
