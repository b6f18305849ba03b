// The module's table: kernels with the sizes of their parameters, and the driver's way in.
//
// A text ends with STANDIN_TABLE(STANDIN_KERNEL(name, "name", bounds) …).

#pragma once

#define STANDIN_UNCHECKED __attribute__((no_sanitize("kernel-address")))

namespace standin {

template <unsigned... I>
struct Indices {};

#if defined(__clang__)
template <class T, T... I>
struct Sequence {
  using type = Indices<I...>;
};
template <unsigned N>
using IndicesTo = typename __make_integer_seq<Sequence, unsigned, N>::type;
#else
template <unsigned N>
using IndicesTo = Indices<__integer_pack(N)...>;
#endif

template <class F, F *function>
struct Launcher;

template <class... A, void (*function)(A...)>
struct Launcher<void(A...), function> {
  static constexpr int count = sizeof...(A);
  static constexpr Parameter parameters[] = {{sizeof(A), alignof(A)}..., {0, 0}};

  template <unsigned... I>
  STANDIN_UNCHECKED static void all(void *const *values, Indices<I...>) {
    (void)values;
    while (services->next()) function(*static_cast<A *>(values[I])...);
  }
  static void run(void *const *values) { all(values, IndicesTo<sizeof...(A)>{}); }
};

static const Variable *variables;
static unsigned long variable_count;

}  // namespace standin

// Borders of the section of shared variables, made by the linker; none if there are no such variables.
extern "C" {
extern char __start_standin_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_standin_shared[] __attribute__((weak, visibility("hidden")));
}

#define STANDIN_KERNEL(name, text, bounds)                                               \
  {text, standin::Launcher<decltype(name), name>::run,                                  \
   standin::Launcher<decltype(name), name>::parameters, standin::Launcher<decltype(name), name>::count, \
   static_cast<int>(bounds)},

#define STANDIN_TABLE(...)                                                               \
  static const standin::Kernel standin_kernels[] = {__VA_ARGS__{nullptr, nullptr, nullptr, 0, 0}}; \
  extern "C" __attribute__((used)) STANDIN_UNCHECKED void standin_module(standin::Module *module) {        \
    *module = {standin_kernels, sizeof standin_kernels / sizeof standin_kernels[0] - 1,  \
               &standin::services, &standin::builtins,                                   \
               __start_standin_shared, __stop_standin_shared,                            \
               standin::variables, standin::variable_count};                             \
  }

#ifdef STANDIN_CHECK

// The compiler calls these for each access and each variable (-fsanitize=kernel-address).
#define STANDIN_ACCESS(size)                                                                         \
  inline __attribute__((used)) STANDIN_UNCHECKED void __asan_load##size##_noabort(void *address) {  \
    standin::services->access(address, size, false);                                                 \
  }                                                                                                  \
  inline __attribute__((used)) STANDIN_UNCHECKED void __asan_store##size##_noabort(void *address) { \
    standin::services->access(address, size, true);                                                  \
  }
extern "C" {
STANDIN_ACCESS(1)
STANDIN_ACCESS(2)
STANDIN_ACCESS(4)
STANDIN_ACCESS(8)
STANDIN_ACCESS(16)
inline __attribute__((used)) STANDIN_UNCHECKED void __asan_loadN_noabort(void *address, unsigned long size) {
  standin::services->access(address, size, false);
}
inline __attribute__((used)) STANDIN_UNCHECKED void __asan_storeN_noabort(void *address, unsigned long size) {
  standin::services->access(address, size, true);
}
inline __attribute__((used)) void __asan_handle_no_return() {}
inline __attribute__((used)) STANDIN_UNCHECKED void __asan_register_globals(const standin::Variable *variables,
                                                                           unsigned long count) {
  standin::variables = variables;
  standin::variable_count = count;
}
inline __attribute__((used)) void __asan_unregister_globals(const standin::Variable *, unsigned long) {}
}
#undef STANDIN_ACCESS

#endif
