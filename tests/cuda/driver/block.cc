// Blocks of a launch, in turn; the threads of a block as fibers.
//
// A fiber takes threads that have not begun, one after another, until one waits; then the scheduler starts another fiber or
// goes on with a thread that waits no more. A block without any wait so runs as a loop on one fiber.

#include "block.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>

#include "state.h"

namespace driver {

using standin::Site;

enum class Phase : unsigned char { kNew, kRunning, kReady, kBarrier, kWarp, kLeft };

struct Thread {
  Phase phase;
  int fiber;
  // A wait at a barrier or with lanes of the warp.
  int kind;
  unsigned mask;
  int source;
  Site site;
  uint64_t value, result;
  uint64_t *all;
};

struct Grid {
  Launch launch;
  Order order;
  std::mt19937_64 random;
  standin::Index block;
  int count, begun, left, at_barrier, in_warps;
  // The kind of barrier that its threads called.
  int barrier_kind;
  Site barrier_site;
  int running;
  std::vector<Thread> threads;
  // The order in which threads begin, and those that may go on.
  std::vector<int> turns;
  std::vector<int> ready;
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<int> idle;
  Fiber scheduler;
  int fiber;
  std::string failure;
  std::vector<char> shared;
};

static Grid grid;

static const char *kBarrierNames[] = {"__syncthreads", "__syncthreads_or", "__syncthreads_and", "__syncthreads_count"};
static const char *kWarpNames[] = {"__syncwarp", "a shuffle", "a vote", "a match", "a reduction of the warp"};

static standin::Index index_of(int thread) {
  const standin::Index &size = grid.launch.block;
  const auto t = static_cast<unsigned>(thread);
  if (t < size.x) return {t, 0, 0};
  return {t % size.x, t / size.x % size.y, t / size.x / size.y};
}

static std::string text(const Site &site) { return std::string(site.file) + ":" + std::to_string(site.line); }

static std::string text(const standin::Index &index) {
  return "(" + std::to_string(index.x) + ", " + std::to_string(index.y) + ", " + std::to_string(index.z) + ")";
}

std::string place_in_grid() {
  if (grid.running < 0) return "block " + text(grid.block);
  return "thread " + text(index_of(grid.running)) + " of block " + text(grid.block);
}

// Brings threads in rising order into that of the launch.
static void order_threads(std::vector<int> &threads) {
  if (grid.order == Order::kReversed) std::reverse(threads.begin(), threads.end());
  if (grid.order == Order::kRandom) std::shuffle(threads.begin(), threads.end(), grid.random);
}

static void enter(int thread) {
  grid.running = thread;
  grid.threads[thread].phase = Phase::kRunning;
  grid.launch.module->builtins->thread = index_of(thread);
}

// Leaves the fiber until its thread may go on.
static void leave_fiber() { Fiber::go(*grid.fibers[grid.fiber], grid.scheduler); }

void fail_here(const std::string &failure) {
  grid.failure = place_in_grid() + ": " + failure;
  leave_fiber();
  // The scheduler ends the launch and never returns here.
  abort();
}

// The lanes of a thread's warp: its first thread, and the number of them.
static int warp_of(int thread, int *lanes) {
  const int first = thread / 32 * 32;
  *lanes = std::min(32, grid.count - first);
  return first;
}

static unsigned lanes_left(int thread) {
  int lanes;
  const int first = warp_of(thread, &lanes);
  unsigned alive = 0;
  for (int i = 0; i < lanes; ++i) {
    if (grid.threads[first + i].phase != Phase::kLeft) alive |= 1u << i;
  }
  return alive;
}

constexpr uint64_t kPoison = ~uint64_t{0};

// Completes the wait of a thread's lanes if all that are in its mask and have not left the kernel have come.
static bool complete_warp(int thread) {
  int lanes;
  const int first = warp_of(thread, &lanes);
  const Thread asked = grid.threads[thread];
  const unsigned needed = asked.mask & lanes_left(thread);
  for (int i = 0; i < lanes; ++i) {
    const Thread &other = grid.threads[first + i];
    if ((needed >> i & 1) == 0) continue;
    if (other.phase != Phase::kWarp || other.mask != asked.mask || other.kind != asked.kind) return false;
  }
  std::vector<int> released;
  for (int i = 0; i < lanes; ++i) {
    if ((needed >> i & 1) == 0) continue;
    Thread &own = grid.threads[first + i];
    if (asked.kind == standin::kShuffle) {
      const bool there = own.source >= 0 && own.source < 32 && (needed >> own.source & 1);
      own.result = there ? grid.threads[first + own.source].value : kPoison;
    } else {
      own.result = needed;
      for (int j = 0; j < 32 && own.all != nullptr; ++j) {
        own.all[j] = j < lanes && (needed >> j & 1) ? grid.threads[first + j].value : kPoison;
      }
    }
    released.push_back(first + i);
  }
  for (int other : released) grid.threads[other].phase = Phase::kReady;
  grid.in_warps -= static_cast<int>(released.size());
  order_threads(released);
  // The last of the list goes on first.
  grid.ready.insert(grid.ready.end(), released.rbegin(), released.rend());
  return true;
}

static void complete_barrier() {
  int sum = 0;
  bool any = false, all = true;
  for (const Thread &thread : grid.threads) {
    sum += thread.value != 0;
    any |= thread.value != 0;
    all &= thread.value != 0;
  }
  std::vector<int> released(grid.turns);
  if (grid.order == Order::kRandom) order_threads(released);
  for (Thread &thread : grid.threads) {
    thread.result = thread.kind == standin::kBarrierOr ? any : thread.kind == standin::kBarrierAnd ? all
                                                                                                 : static_cast<uint64_t>(sum);
    thread.phase = Phase::kReady;
  }
  grid.ready.insert(grid.ready.end(), released.rbegin(), released.rend());
  grid.at_barrier = 0;
}

static void wait_as(Phase phase) {
  Thread &own = grid.threads[grid.running];
  own.phase = phase;
  own.fiber = grid.fiber;
  leave_fiber();
}

static int barrier(standin::Barrier kind, int predicate, Site site) {
  Thread &own = grid.threads[grid.running];
  own.kind = kind;
  own.value = static_cast<uint64_t>(predicate != 0);
  own.site = site;
  if (grid.at_barrier == 0) {
    grid.barrier_kind = kind;
    grid.barrier_site = site;
  }
  const Site &others = grid.barrier_site;
  if (grid.barrier_kind != kind || others.line != site.line || strcmp(others.file, site.file) != 0) {
    fail_here(std::string("waits at ") + kBarrierNames[kind] + " (" + text(site) +
              ") while others of the block wait at " + kBarrierNames[grid.barrier_kind] + " (" + text(others) + ")");
  }
  ++grid.at_barrier;
  const int index = grid.running;
  if (grid.at_barrier == grid.count) {
    own.phase = Phase::kBarrier;
    own.fiber = grid.fiber;
    complete_barrier();
    leave_fiber();
  } else {
    wait_as(Phase::kBarrier);
  }
  return static_cast<int>(grid.threads[index].result);
}

static void collect(unsigned mask, int kind, uint64_t value, int source, uint64_t *all, Site site) {
  const int index = grid.running;
  Thread &own = grid.threads[index];
  if ((mask >> index % 32 & 1) == 0) {
    fail_here(std::string("is not in its own mask at ") + kWarpNames[kind] + " (" + text(site) + ")");
  }
  own.kind = kind;
  own.mask = mask;
  own.value = value;
  own.source = source;
  own.all = all;
  own.site = site;
  own.phase = Phase::kWarp;
  own.fiber = grid.fiber;
  ++grid.in_warps;
  complete_warp(index);
  leave_fiber();
}

static standin::u64 shuffle(unsigned mask, standin::u64 value, int source, Site site) {
  const int index = grid.running;
  collect(mask, standin::kShuffle, value, source, nullptr, site);
  return grid.threads[index].result;
}

static unsigned gather(unsigned mask, standin::Collective kind, standin::u64 value, standin::u64 *all, Site site) {
  const int index = grid.running;
  uint64_t values[32];
  collect(mask, kind, value, 0, all != nullptr ? values : nullptr, site);
  for (int i = 0; i < 32 && all != nullptr; ++i) all[i] = values[i];
  return static_cast<unsigned>(grid.threads[index].result);
}

static unsigned alive() { return lanes_left(grid.running); }
static int lane() { return grid.running % 32; }
static void fail(const char *failure, Site site) { fail_here(std::string(failure) + " (" + text(site) + ")"); }

// The thread that ran has left; lanes that waited for it alone go on.
static void left() {
  const int index = grid.running;
  grid.threads[index].phase = Phase::kLeft;
  ++grid.left;
  if (grid.in_warps == 0) return;
  int lanes;
  const int first = warp_of(index, &lanes);
  for (int i = 0; i < lanes; ++i) {
    if (grid.threads[first + i].phase == Phase::kWarp) complete_warp(first + i);
  }
}

static bool next() {
  if (grid.running >= 0) left();
  grid.running = -1;
  if (!grid.ready.empty() || grid.begun == grid.count) return false;
  enter(grid.turns[grid.begun++]);
  return true;
}

// The life of a fiber: threads of block after block.
static void live() {
  for (;;) {
    grid.running = -1;
    grid.launch.kernel->run(grid.launch.parameters);
    grid.idle.push_back(grid.fiber);
    leave_fiber();
  }
}

static int idle_fiber() {
  if (grid.idle.empty()) {
    grid.idle.push_back(static_cast<int>(grid.fibers.size()));
    grid.fibers.push_back(std::make_unique<Fiber>());
    grid.fibers.back()->prepare(live);
  }
  const int fiber = grid.idle.back();
  grid.idle.pop_back();
  return fiber;
}

// The threads that will never go on.
static std::string describe_stall() {
  std::string stall = "threads of block " + text(grid.block) + " wait forever:";
  int named = 0;
  for (int i = 0; i < grid.count && named < 4; ++i) {
    const Thread &thread = grid.threads[i];
    if (thread.phase != Phase::kBarrier && thread.phase != Phase::kWarp) continue;
    if (i > 0 && grid.threads[i - 1].phase == thread.phase && grid.threads[i - 1].site.line == thread.site.line) continue;
    const char *name = thread.phase == Phase::kBarrier ? kBarrierNames[thread.kind] : kWarpNames[thread.kind];
    stall += named++ == 0 ? " " : ", ";
    stall += "from thread " + std::to_string(i) + " at " + name + " (" + text(thread.site) + ")";
  }
  if (grid.left > 0) stall += "; " + std::to_string(grid.left) + " of " + std::to_string(grid.count) + " have left the kernel";
  return stall;
}

// Bytes past the dynamic shared memory, which no thread may write.
constexpr size_t kZone = 64;
constexpr char kShared = 0x5A;

static void check_shared() {
  const char *zone = grid.shared.data() + grid.launch.dynamic_shared;
  for (size_t i = 0; i < kZone && grid.failure.empty(); ++i) {
    if (zone[i] == kShared) continue;
    grid.failure = "a thread of block " + text(grid.block) + " wrote past its dynamic shared memory of " +
                   std::to_string(grid.launch.dynamic_shared) + " bytes";
  }
}

static void begin_block() {
  const standin::Module &module = *grid.launch.module;
  memset(module.shared_begin, 0xff, static_cast<size_t>(module.shared_end - module.shared_begin));
  memset(grid.shared.data(), 0xff, grid.launch.dynamic_shared);
  memset(grid.shared.data() + grid.launch.dynamic_shared, kShared, kZone);
  module.builtins->block = grid.block;
  grid.begun = grid.left = grid.at_barrier = grid.in_warps = 0;
  for (Thread &thread : grid.threads) thread.phase = Phase::kNew;
  if (grid.order == Order::kRandom) order_threads(grid.turns);
}

static void run_block() {
  begin_block();
  while (grid.failure.empty() && grid.left < grid.count) {
    const bool some_new = grid.begun < grid.count;
    const bool start = some_new && (grid.ready.empty() || (grid.order == Order::kRandom && grid.random() % 2 == 0));
    if (start) {
      grid.fiber = idle_fiber();
      // `next` of this fiber takes a thread whatever is ready.
      std::vector<int> ready;
      ready.swap(grid.ready);
      grid.running = -1;
      Fiber::go(grid.scheduler, *grid.fibers[grid.fiber]);
      grid.ready.insert(grid.ready.begin(), ready.begin(), ready.end());
      continue;
    }
    if (grid.ready.empty()) {
      grid.running = -1;
      grid.failure = describe_stall();
      return;
    }
    const int thread = grid.ready.back();
    grid.ready.pop_back();
    grid.fiber = grid.threads[thread].fiber;
    enter(thread);
    Fiber::go(grid.scheduler, *grid.fibers[grid.fiber]);
  }
}

static void read_order() {
  const char *order = getenv("STANDIN_ORDER");
  grid.order = Order::kForward;
  if (order == nullptr) return;
  if (strcmp(order, "reversed") == 0) grid.order = Order::kReversed;
  if (strncmp(order, "random:", 7) == 0) grid.order = Order::kRandom;
  // One launch after another has its own orders, the same in every process with that seed.
  static std::mt19937_64 seeds(strtoull(order + std::min<size_t>(7, strlen(order)), nullptr, 10));
  if (grid.order == Order::kRandom) grid.random.seed(seeds());
}

void abandon_grid() {
  grid.fibers.clear();
  grid.idle.clear();
  grid.ready.clear();
  grid.running = -1;
}

static const standin::Services kServices = {next, barrier, shuffle, gather, alive, lane, fail, check_access};

bool is_service(const void *address) {
  return address >= &kServices && address < &kServices + 1;
}

const Launch &running_launch() { return grid.launch; }

const char *dynamic_shared(size_t *bytes) {
  *bytes = grid.launch.dynamic_shared;
  return grid.shared.data();
}

bool on_stack(const char *address) {
  const char *stack = grid.fibers[grid.fiber]->stack;
  return address >= stack && address < stack + kStack;
}

std::string run_grid(const Launch &launch) {
  grid.launch = launch;
  grid.count = static_cast<int>(launch.block.x * launch.block.y * launch.block.z);
  grid.running = -1;
  grid.failure.clear();
  grid.threads.resize(static_cast<size_t>(grid.count));
  grid.turns.resize(static_cast<size_t>(grid.count));
  for (int i = 0; i < grid.count; ++i) grid.turns[i] = i;
  read_order();
  if (grid.order == Order::kReversed) order_threads(grid.turns);
  grid.shared.assign(launch.dynamic_shared + kZone, 0);
  *launch.module->services = &kServices;
  standin::Builtins &builtins = *launch.module->builtins;
  builtins.block_size = launch.block;
  builtins.grid_size = launch.grid;
  builtins.dynamic_shared = grid.shared.data();
  const uint64_t blocks = static_cast<uint64_t>(launch.grid.x) * launch.grid.y * launch.grid.z;
  const uint64_t first = grid.order == Order::kRandom ? grid.random() % blocks : 0;
  for (uint64_t i = 0; i < blocks && grid.failure.empty(); ++i) {
    const uint64_t block = grid.order == Order::kReversed ? blocks - 1 - i : (first + i) % blocks;
    grid.block = {static_cast<unsigned>(block % launch.grid.x),
                  static_cast<unsigned>(block / launch.grid.x % launch.grid.y),
                  static_cast<unsigned>(block / launch.grid.x / launch.grid.y)};
    run_block();
    check_shared();
  }
  if (!grid.failure.empty()) abandon_grid();
  return grid.failure;
}

}  // namespace driver
