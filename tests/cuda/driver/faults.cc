// Tasks under protection: the memory of their device is opened where they access it, and closed after them; any other fault of
// theirs loses the context instead of ending the process.
//
// To open whole blocks would cost time for each of their pages, used or not.

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "block.h"
#include "state.h"

namespace driver {

const int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
static thread_local bool running = false;
static thread_local int running_device = 0;
static int peer_device = -1;
static sigjmp_buf way_back;
static struct sigaction before[4];
static volatile uint64_t fault_address;

// Pages of a block that are open.
struct Opened {
  char *start, *end;
  const Block *block;
  uint64_t block_start;
};
static std::vector<Opened> opened;
constexpr size_t kFirstOpened = 16 * kPage;

// Opens the pages around an address of a block that the task may use; twice as much as before where the task goes on.
static bool open_at(uint64_t address) {
  int device = -1;
  if (device_of(address, &device) == nullptr || (device != running_device && device != peer_device)) return false;
  auto next = state.devices[device].blocks.upper_bound(address | (kPage - 1));
  if (next == state.devices[device].blocks.begin()) return false;
  const Block &block = (--next)->second;
  char *page = reinterpret_cast<char *>(address / kPage * kPage);
  if (page < block.pages || page >= block.pages + block.mapped) return false;
  Opened *before = nullptr;
  for (Opened &other : opened) {
    if (page >= other.start && page < other.end) return false;
    if (page == other.end && other.block == &block) before = &other;
  }
  const size_t bytes = before == nullptr ? kFirstOpened : static_cast<size_t>(before->end - before->start);
  char *end = std::min(page + bytes, block.pages + block.mapped);
  for (const Opened &other : opened) {
    if (other.start > page) end = std::min(end, other.start);
  }
  if (mprotect(page, static_cast<size_t>(end - page), PROT_READ | PROT_WRITE) != 0) return false;
  if (before != nullptr) {
    before->end = end;
  } else {
    opened.push_back({page, end, &block, next->first});
  }
  return true;
}

static void handle(int number, siginfo_t *info, void *) {
  if (!running) {
    // Another thread's fault is handled as without the stand-in: the instruction runs again.
    for (size_t i = 0; i < 4; ++i) {
      if (kSignals[i] == number) sigaction(number, &before[i], nullptr);
    }
    return;
  }
  fault_address = reinterpret_cast<uint64_t>(info->si_addr);
  if (number == SIGSEGV && open_at(fault_address)) return;
  siglongjmp(way_back, number);
}

// Handlers of faults, on a stack of their own: the fault may be that of a full stack.
struct Handlers {
  stack_t other = {};
  bool own_stack = false;
  static char space[1 << 16];

  Handlers() {
    sigaltstack(nullptr, &other);
    if (other.ss_flags & SS_DISABLE) {
      stack_t own = {};
      own.ss_sp = space;
      own.ss_size = sizeof space;
      own_stack = sigaltstack(&own, nullptr) == 0;
    }
    struct sigaction action = {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (size_t i = 0; i < 4; ++i) sigaction(kSignals[i], &action, &before[i]);
  }
  ~Handlers() {
    for (size_t i = 0; i < 4; ++i) sigaction(kSignals[i], &before[i], nullptr);
    if (own_stack) sigaltstack(&other, nullptr);
  }
};
char Handlers::space[1 << 16];

static std::string describe_fault(int number) {
  if (number == SIGFPE) return "divided an integer by zero";
  if (number == SIGILL) return "ran an illegal instruction";
  char text[96];
  const auto address = static_cast<uint64_t>(fault_address);
  int other = -1;
  device_of(address, &other);
  const char *kind = other < 0 ? "" : other == running_device ? ", outside of all blocks of the device" : ", of another device";
  snprintf(text, sizeof text, "accessed %#llx%s", static_cast<unsigned long long>(address), kind);
  return text;
}

void lose(int device, int code, const std::string &text) {
  fprintf(stderr, "STANDIN %s\n", text.c_str());
  state.devices[device].lost = code;
}

// Damage around the blocks that the task accessed.
static std::string find_damage() {
  // The zones may lie in pages that are not open yet.
  for (size_t i = 0; i < opened.size(); ++i) {
    const std::string text = damage(opened[i].block_start, *opened[i].block);
    if (!text.empty()) return text;
  }
  return {};
}

void run_protected(int device, const Task &task) {
  Handlers handlers;
  running_device = device;
  peer_device = task.peer;
  std::string text;
  const int number = sigsetjmp(way_back, 1);
  if (number == 0) {
    running = true;
    task.run();
    text = find_damage();
  }
  running = false;
  if (number != 0) {
    lose(device, number == SIGILL ? kIllegalInstruction : kIllegalAddress,
         task.name + ": " + place_in_grid() + " " + describe_fault(number));
    abandon_grid();
  } else if (!text.empty()) {
    lose(device, kIllegalAddress, task.name + ": " + text);
  }
  for (const Opened &pages : opened) mprotect(pages.start, static_cast<size_t>(pages.end - pages.start), PROT_NONE);
  opened.clear();
}

}  // namespace driver

using namespace driver;

extern "C" void standin_lose(void) { state.devices[running_device].lost = kIllegalAddress; }
extern "C" void standin_lose_device(int device) {
  driver::Guard guard(driver::state.lock);
  driver::state.devices[device].lost = driver::kIllegalAddress;
}
