// The negative log likelihood of classes, and its gradient.
//
// In: a `Likelihood`, whose scores are row-major samples of classes of places, with a target for each place of each sample. A
// class that does not exist counts as an ignored one, and is reported.
//
//   OPSMITH_REDUCTION(opsmith_kernel, Loss<float>)             the sum or the mean of the losses, and the total weight
//   OPSMITH_NLL(opsmith_kernel, losses, float)                 a loss for each target
//   OPSMITH_NLL(opsmith_kernel, score_gradients, float)        the gradient of each score
//
// OPSMITH_NLL: a thread for each target or score in a grid of any size.

namespace opsmith {

struct Likelihood {
  const void *scores, *weight, *grad;
  const i64 *targets;
  void *total, *out;
  u64 count, classes, places;
  i64 ignored;
  // 1 for the mean of losses, 2 for their sum.
  u64 reduction;

  // Whether the target counts.
  DEVICE bool counts(i64 target) const {
    if (target == ignored) return false;
    const bool exists = target >= 0 && static_cast<u64>(target) < classes;
    if (!exists) report(kIndexOutOfRange);
    return exists;
  }
  template <class T>
  DEVICE Compute<T> weight_of(i64 target) const {
    return weight == nullptr ? Compute<T>(1) : to_compute(static_cast<const T *>(weight)[target]);
  }
  template <class T>
  DEVICE Compute<T> loss(u64 number, i64 target) const {
    const u64 sample = number / places, place = number - sample * places;
    const u64 at = (sample * classes + static_cast<u64>(target)) * places + place;
    return -(weight_of<T>(target) * to_compute(static_cast<const T *>(scores)[at]));
  }
};

template <class T>
struct Loss : Likelihood {
  using C = Compute<T>;
  using Element = i64;
  struct Partial {
    C loss, weight;
  };
  using Out = T;
  DEVICE Partial start() const { return {0, 0}; }
  DEVICE Partial take(const Partial &sum, i64 target, u64 number) const {
    if (!counts(target)) return sum;
    return {sum.loss + this->template loss<T>(number, target), sum.weight + this->template weight_of<T>(target)};
  }
  DEVICE Partial operator()(const Partial &a, const Partial &b) const { return {a.loss + b.loss, a.weight + b.weight}; }
  DEVICE T finish(const Partial &sum, u64) const {
    *static_cast<T *>(total) = from_compute<T>(sum.weight);
    return from_compute<T>(reduction == 1 ? sum.loss / sum.weight : sum.loss);
  }
};

// With a total, there is one target, whose weight it becomes.
template <class T>
DEVICE void losses(const Likelihood &likelihood, u64 number) {
  using C = Compute<T>;
  const i64 target = likelihood.targets[number];
  const bool counts = likelihood.counts(target);
  static_cast<T *>(likelihood.out)[number] = from_compute<T>(counts ? likelihood.loss<T>(number, target) : C(0));
  if (likelihood.total != nullptr) {
    *static_cast<T *>(likelihood.total) = from_compute<T>(counts ? likelihood.weight_of<T>(target) : C(0));
  }
}

template <class T>
DEVICE void score_gradients(const Likelihood &likelihood, u64 i) {
  using C = Compute<T>;
  const u64 row = i / likelihood.places, sample = row / likelihood.classes, own = row - sample * likelihood.classes;
  const u64 number = sample * likelihood.places + (i - row * likelihood.places);
  const i64 target = likelihood.targets[number];
  C gradient = 0;
  if (likelihood.counts(target) && static_cast<u64>(target) == own) {
    const C grad = to_compute(static_cast<const T *>(likelihood.grad)[likelihood.reduction == 0 ? number : 0]);
    const C share = likelihood.reduction == 1 ? grad / to_compute(*static_cast<const T *>(likelihood.total)) : grad;
    gradient = -(likelihood.weight_of<T>(target) * share);
  }
  static_cast<T *>(likelihood.out)[i] = from_compute<T>(gradient);
}

}  // namespace opsmith

#define OPSMITH_NLL(NAME, FUNCTION, T)                                                                             \
  extern "C" __global__ void __launch_bounds__(opsmith::kTeamThreads) NAME(opsmith::Likelihood likelihood) {       \
    using namespace opsmith;                                                                                       \
    const u64 step = static_cast<u64>(gridDim.x) * blockDim.x;                                                     \
    for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < likelihood.count; i += step) {       \
      FUNCTION<T>(likelihood, i);                                                                                  \
    }                                                                                                              \
  }
