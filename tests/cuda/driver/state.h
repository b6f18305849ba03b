// State of the stand-in: devices, contexts, streams, and the codes that functions return.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <sys/types.h>

namespace driver {

enum Code {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kStub = 34,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinaryForGpu = 209,
  kPeerAccessUnsupported = 217,
  kInvalidPtx = 218,
  kUnsupportedPtxVersion = 222,
  kOperatingSystem = 304,
  kInvalidHandle = 400,
  kIllegalState = 401,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kPeerAccessAlreadyEnabled = 704,
  kPrimaryContextActive = 708,
  kIllegalInstruction = 715,
  kLaunchFailed = 719,
  kNotSupported = 801,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureIsolation = 905,
  kCaptureImplicit = 906,
  kCapturedEvent = 907,
  kCaptureWrongThread = 908,
};

// Memory of a device: whole pages of its own, in which the block ends where a page ends as far as alignment allows.
struct Block {
  size_t bytes;
  char *pages;
  size_t mapped;
};

// Work that a stream was asked to do.
struct Task {
  std::function<void()> run;
  // A kernel's name or the kind of copy, for reports.
  std::string name;
  // Bytes among which addresses of device memory may be, for the check of frees.
  std::vector<char> operands;
  // The second device of a copy between two; else -1.
  int peer = -1;
  // A mark or a wait, which touches no memory.
  bool control = false;
};

struct Recording;

struct Stream {
  int device;
  bool waits_for_default;
  int priority;
  std::deque<Task> asked;
  // Tasks ever asked for, and those done.
  uint64_t enqueued, done;
  // While its work is recorded instead of asked for.
  std::shared_ptr<Recording> recording = nullptr;
};

struct Event {
  int device;
  bool timed;
  std::shared_ptr<Stream> stream;
  // Number of the stream's tasks before the event; 0 before it is first recorded.
  uint64_t position;
  // When it passed, in seconds; a record of its own, which the stream's task shares.
  std::shared_ptr<double> passed;
  // The recording in which it is a point.
  std::shared_ptr<Recording> recording = nullptr;
};

struct Device {
  char *memory = nullptr;
  std::map<uint64_t, Block> blocks;
  size_t used = 0;
  int lost = kSuccess;
};

struct Context {
  int device;
};

struct Counts {
  long allocations, frees, streams, streams_gone, sent, fetched, launches, refused, graphs, replays, peers;
};

constexpr int kMostDevices = 8;
constexpr size_t kRange = size_t{1} << 36;
constexpr size_t kPage = 4096;
constexpr size_t kAlignment = 256;

struct State {
  std::recursive_mutex lock;
  pid_t owner = 0;
  Device devices[kMostDevices];
  std::map<Stream *, std::shared_ptr<Stream>> streams;
  std::map<Event *, std::unique_ptr<Event>> events;
  // Pinned memory of the host, by its address.
  std::map<uint64_t, size_t> pinned;
  // Variables of modules that were asked for.
  std::map<uint64_t, size_t> globals;
  Counts counts = {};
};

State state;
Context contexts[kMostDevices];
thread_local std::vector<Context *> entered;

using Guard = std::lock_guard<std::recursive_mutex>;

long setting(const char *name, long otherwise);
int device_count();
// The current context's device; only after `ready`.
Device &current();
int current_ordinal();
// The condition of every function but the first ones.
int ready();
int refuse(int code);

// The device and block of an address; no block if it is nowhere.
Device *device_of(uint64_t address, int *ordinal = nullptr);
const Block *block_of(uint64_t address, uint64_t *start = nullptr);
bool inside(uint64_t address, size_t bytes);
bool is_pinned(uint64_t address, size_t bytes);
// Whether copies may take a range for one of a device: in a block, a variable of a module, or pinned memory.
bool is_addressable(uint64_t address, size_t bytes);
// The side on which the zone around a block was written, as text; empty if none was. Its first and last page must be open.
std::string damage(uint64_t start, const Block &block);

// The stream of a handle, or null for the default stream; false if there is none.
bool find_stream(void *handle, std::shared_ptr<Stream> *found);
// Queues a task; on the default stream it runs at once, after all that the streams were asked.
int enqueue(const std::shared_ptr<Stream> &stream, Task task);
void work_off(const std::shared_ptr<Stream> &stream, uint64_t position);
void work_off_all(int device, bool only_blocking);
// Whether a stream's work is recorded; puts a task into the record.
bool is_captured(const std::shared_ptr<Stream> &stream);
void record(const std::shared_ptr<Stream> &stream, Task task);
// Ends the usefulness of a stream's record, if it has one, and counts the call as refused.
int breaks(const std::shared_ptr<Stream> &stream, int code);
// The code for work of the default stream, which would wait for recorded work of the others.
int default_stream_is_free(int device);
// The code for calls that this thread may not make while it records.
int allowed_in_capture();
// Whether a queued task has an operand in a range.
bool in_use(uint64_t start, size_t bytes);

// Runs a task that may access the memory of its device; another fault loses the device's context.
void run_protected(int device, const Task &task);
void lose(int device, int code, const std::string &text);

}  // namespace driver
