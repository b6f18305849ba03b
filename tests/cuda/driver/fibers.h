// Stacks on which threads of a block wait for each other: switches within one thread of the system.

#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#if !defined(__x86_64__) || defined(STANDIN_UCONTEXT)
#include <ucontext.h>
#define STANDIN_PORTABLE 1
#endif

namespace driver {

constexpr size_t kStack = size_t{1} << 18;

#ifndef STANDIN_PORTABLE

// Saves the registers that a call keeps and the stack's end in `*save`, and goes on where `next` was saved.
extern "C" void standin_switch(void **save, void *next) __attribute__((visibility("hidden")));
asm(R"(
.text
.globl standin_switch
.hidden standin_switch
.type standin_switch, @function
standin_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size standin_switch, . - standin_switch
)");

struct Fiber {
  void *saved = nullptr;
  char *stack = nullptr;

  // Makes the fiber begin with `entry`, which must not return.
  void prepare(void (*entry)()) {
    allocate();
    auto **top = reinterpret_cast<void **>(stack + kStack);
    *--top = nullptr;
    *--top = reinterpret_cast<void *>(entry);
    for (int i = 0; i < 6; ++i) *--top = nullptr;
    saved = top;
  }
  static void go(Fiber &from, Fiber &to) { standin_switch(&from.saved, to.saved); }

#else

struct Fiber {
  ucontext_t saved = {};
  char *stack = nullptr;

  void prepare(void (*entry)()) {
    allocate();
    getcontext(&saved);
    saved.uc_stack.ss_sp = stack + kGuardPage;
    saved.uc_stack.ss_size = kStack - kGuardPage;
    saved.uc_link = nullptr;
    makecontext(&saved, entry, 0);
  }
  static void go(Fiber &from, Fiber &to) { swapcontext(&from.saved, &to.saved); }

#endif

  Fiber() = default;
  Fiber(const Fiber &) = delete;
  ~Fiber() {
    if (stack != nullptr) munmap(stack, kStack);
  }

  // The lowest page faults.
  static constexpr size_t kGuardPage = 4096;

  void allocate() {
    if (stack != nullptr) return;
    void *made = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) abort();
    stack = static_cast<char *>(made);
    mprotect(stack, kGuardPage, PROT_NONE);
  }
};

}  // namespace driver
