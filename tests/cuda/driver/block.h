// The threads of one block: the one that runs, those that wait, and the events that they wait for.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../module.h"
#include "fibers.h"

namespace driver {

enum class Order { kForward, kReversed, kRandom };

struct Launch {
  const standin::Module *module;
  const standin::Kernel *kernel;
  standin::Index grid, block;
  size_t dynamic_shared;
  void *const *parameters;
};

// Runs all blocks of a launch. Returns the failure as text, or nothing.
std::string run_grid(const Launch &launch);

// Forgets the launch that a fault ended.
void abandon_grid();
// The thread and block that ran, for reports.
std::string place_in_grid();
// Ends the launch: the thread that runs did something that it must not.
[[noreturn]] void fail_here(const std::string &failure);
// The dynamic shared memory of the block, and whether an address is on the stack of a thread.
const char *dynamic_shared(size_t *bytes);
bool on_stack(const char *address);
// Whether an address is in the table of functions that kernels call.
bool is_service(const void *address);
// The launch that runs.
const Launch &running_launch();
// Checks an access of a kernel that was compiled with checks.
void check_access(const void *address, unsigned long size, bool write);

}  // namespace driver
