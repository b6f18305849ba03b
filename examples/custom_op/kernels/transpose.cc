// A kernel in C++. The generated header declares it, so another signature does not compile.

#include <opsmith/kernel.hpp>

#include <vector>

extern "C" int custom_transpose_copy(OpsmithContext* context, const OpsmithTensor* x, OpsmithInts perm,
                                     OpsmithTensor* out) {
  return opsmith::run(context, [&] {
    // The strides of `x` in the order of the output's dimensions.
    std::vector<std::int64_t> strides;
    std::vector<bool> seen(perm.length, false);
    for (const auto dim : opsmith::range(perm)) {
      const auto wrapped = static_cast<std::size_t>(dim < 0 ? dim + x->ndim : dim);
      opsmith::require(!seen[wrapped], "dimension " + std::to_string(dim) + " appears twice in perm");
      seen[wrapped] = true;
      strides.push_back(x->strides[wrapped]);
    }
    opsmith::dispatch(out->dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const opsmith::View<const T> permuted = {static_cast<const T*>(x->data), out->sizes, strides.data(), out->ndim};
      opsmith::map(opsmith::view<T>(out), [](T element) { return element; }, permuted);
    });
  });
}
