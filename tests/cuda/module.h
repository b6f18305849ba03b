// The interface between a compiled text of kernels (emulate.h) and the stand-in for the driver (driver.cc).
//
// A module is a shared object with one symbol, `standin_module`, and the globals of its text. Plain types alone: texts are
// compiled without any other header.

#pragma once

namespace standin {

typedef unsigned long long u64;

struct Index {
  unsigned x, y, z;
};

// State of the thread that runs, set by the driver before it runs.
struct Builtins {
  Index thread, block, block_size, grid_size;
  void *dynamic_shared;
};

// A place in a text, for reports.
struct Site {
  const char *file;
  int line;
};

enum Collective { kSyncWarp, kShuffle, kVote, kMatch, kReduce };
enum Barrier { kBarrier, kBarrierOr, kBarrierAnd, kBarrierCount };

// Functions of the driver that kernels call.
struct Services {
  // Prepares the next thread of the block to run on this stack; false if all have begun.
  bool (*next)();
  // Waits for all threads of the block; returns the predicates' combination.
  int (*barrier)(Barrier kind, int predicate, Site site);
  // Waits for the lanes of the mask; returns the value of the lane `source` of the warp.
  u64 (*shuffle)(unsigned mask, u64 value, int source, Site site);
  // Waits for the lanes of the mask; `all` receives their 32 values. Returns the lanes that took part.
  unsigned (*gather)(unsigned mask, Collective kind, u64 value, u64 *all, Site site);
  // Lanes of the warp that have not left the kernel.
  unsigned (*alive)();
  // Lane number in the warp.
  int (*lane)();
  // Ends the launch as failed.
  void (*fail)(const char *text, Site site);
  // Checks an access to memory (texts compiled with STANDIN_CHECK).
  void (*access)(const void *address, unsigned long size, bool write);
};

struct Parameter {
  unsigned size, alignment;
};

struct Kernel {
  const char *name;
  void (*run)(void *const *parameters);
  const Parameter *parameters;
  int count;
  // The launch bounds.
  int most_threads;
};

// A variable with a zone around it that no access may touch: the compiler's own structure.
struct Variable {
  const char *address;
  unsigned long size, size_with_zone;
  const char *name, *module;
  unsigned long initialised;
  void *location;
  unsigned long indicator;
};

struct Module {
  const Kernel *kernels;
  int count;
  const Services **services;
  Builtins *builtins;
  char *shared_begin, *shared_end;
  const Variable *variables;
  unsigned long variable_count;
};

}  // namespace standin
