// More or fewer places for the same contents, by the nearest element or interpolation along each dimension, and the gradient.

namespace opsmith {

enum : u64 { kBelow = 0, kNearestElement = 1, kLinear = 2, kCubic = 3 };

// Elements that a place along one dimension is made of, and their weights.
struct Taps {
  i64 from[4];
  double weights[4];
};

// The dimensions of planes. Places and weights are computed in single precision unless elements are double.
struct Resizing {
  u64 input[3], output[3];
  // Elements from one place to the next.
  double scale[3];
  u64 mode, aligned, is_double;

  DEVICE double held(double value) const { return is_double != 0 ? value : static_cast<double>(static_cast<float>(value)); }

  DEVICE int taps() const { return mode == kCubic ? 4 : mode == kLinear ? 2 : 1; }

  // Whether the dimension is there; one that is not has a single element of weight 1.
  DEVICE int taps(int dim) const { return scale[dim] < 0 ? 1 : taps(); }

  DEVICE double position(int dim, u64 number, bool aligned_there) const {
    const double place = held(static_cast<double>(number));
    if (aligned_there) return held(scale[dim] * place);
    return held(::fma(scale[dim], held(place + 0.5), -0.5));
  }

  DEVICE static double near(double x) { return ((-0.75 + 2) * x - (-0.75 + 3)) * x * x + 1; }
  DEVICE static double far(double x) { return ((-0.75 * x - 5 * -0.75) * x + 8 * -0.75) * x - 4 * -0.75; }

  DEVICE static i64 limited(i64 at, i64 last) { return at < 0 ? 0 : at > last ? last : at; }

  DEVICE void at(int dim, u64 place, Taps &taps) const {
    const i64 last = static_cast<i64>(input[dim]) - 1;
    taps.weights[0] = 1;
    if (scale[dim] < 0) {
      taps.from[0] = 0;
    } else if (mode == kBelow) {
      taps.from[0] = limited(truncated<i64>(::floor(position(dim, place, true))), last);
    } else if (mode == kNearestElement) {
      taps.from[0] = limited(truncated<i64>(::floor(held(position(dim, place, false) + 0.5))), last);
    } else if (mode == kLinear) {
      if (input[dim] == output[dim]) {
        taps.from[0] = taps.from[1] = limited(static_cast<i64>(place), last);
        taps.weights[1] = 0;
        return;
      }
      double at = position(dim, place, aligned != 0);
      at = at > 0 ? at : 0;
      const i64 first = limited(truncated<i64>(::floor(at)), last);
      double part = held(at - static_cast<double>(first));
      part = part < 0 ? 0 : part > 1 ? 1 : part;
      taps.from[0] = first;
      taps.from[1] = limited(first + 1, last);
      taps.weights[0] = held(1 - part);
      taps.weights[1] = part;
    } else {
      const double at = position(dim, place, aligned != 0);
      const i64 floor = truncated<i64>(::floor(at)), first = floor > last ? last : floor;
      double part = held(at - static_cast<double>(first));
      part = part < 0 ? 0 : part > 1 ? 1 : part;
      const double weights[4] = {far(part + 1), near(part), near(1 - part), far(2 - part)};
      for (int tap = 0; tap < 4; ++tap) {
        taps.from[tap] = limited(first < -2 ? 0 : first + tap - 1, last);
        taps.weights[tap] = weights[tap];
      }
    }
  }

  // The first place made of elements from `element` on.
  DEVICE u64 first_place(int dim, i64 element) const {
    u64 low = 0, high = output[dim];
    while (low < high) {
      const u64 middle = low + (high - low) / 2;
      Taps all;
      at(dim, middle, all);
      if (all.from[taps(dim) - 1] >= element) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }
};

// A weight as an element holds it: 16-bit floats have few of them.
template <class T>
DEVICE Compute<T> weight_of(double weight) {
  return to_compute(convert<T>(weight));
}

template <class T>
struct Resized {
  Strided<1, u64> places;
  Images<T> input;
  Resizing resizing;

  DEVICE void operator()(const i64 (&offsets)[1], const u64 (&index)[8]) const {
    using C = Compute<T>;
    Taps taps[3];
    for (int dim = 0; dim < 3; ++dim) resizing.at(dim, index[dim + 2], taps[dim]);
    const T *const plane = input.plane(index[0], index[1]);
    const int deep = resizing.taps(0), high = resizing.taps(1), wide = resizing.taps(2);
    C sum = zero<C>();
    for (int a = 0; a < deep; ++a) {
      C part = zero<C>();
      for (int b = 0; b < high; ++b) {
        C line = zero<C>();
        for (int c = 0; c < wide; ++c) {
          const C element = to_compute(plane[input.offset({taps[0].from[a], taps[1].from[b], taps[2].from[c]})]);
          line = weighted(line, element, taps[2], c, wide);
        }
        part = weighted(part, line, taps[1], b, high);
      }
      sum = weighted(sum, part, taps[0], a, deep);
    }
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] = from_compute<T>(sum);
  }

  // The sum with one more number; the only one has no weight.
  DEVICE static Compute<T> weighted(Compute<T> sum, Compute<T> value, const Taps &taps, int tap, int count) {
    if (count == 1) return value;
    const Compute<T> product = mul(value, weight_of<T>(taps.weights[tap]));
    return tap == 0 ? product : add(sum, product);
  }
};

// Each element of the input: the sum over the places that are made of it.
template <class T>
struct ResizedBackward {
  Strided<1, u64> places;
  Images<T> grad;
  Resizing resizing;

  DEVICE void operator()(const i64 (&offsets)[1], const u64 (&index)[8]) const {
    using C = Compute<T>;
    const i64 at[3] = {static_cast<i64>(index[2]), static_cast<i64>(index[3]), static_cast<i64>(index[4])};
    u64 first[3];
    for (int dim = 0; dim < 3; ++dim) first[dim] = resizing.first_place(dim, at[dim]);
    const T *const plane = grad.plane(index[0], index[1]);
    const int deep = resizing.taps(0), high = resizing.taps(1), wide = resizing.taps(2);
    C sum = zero<C>();
    Taps taps[3];
    for (u64 a = first[0]; a < resizing.output[0]; ++a) {
      resizing.at(0, a, taps[0]);
      if (taps[0].from[0] > at[0]) break;
      for (u64 b = first[1]; b < resizing.output[1]; ++b) {
        resizing.at(1, b, taps[1]);
        if (taps[1].from[0] > at[1]) break;
        C line = zero<C>();
        for (u64 c = first[2]; c < resizing.output[2]; ++c) {
          resizing.at(2, c, taps[2]);
          if (taps[2].from[0] > at[2]) break;
          const C element = to_compute(plane[grad.offset({static_cast<i64>(a), static_cast<i64>(b), static_cast<i64>(c)})]);
          for (int tap = 0; tap < wide; ++tap) {
            if (taps[2].from[tap] == at[2]) line = add(line, mul(element, weight_of<T>(taps[2].weights[tap])));
          }
        }
        for (int i = 0; i < deep; ++i) {
          for (int j = 0; j < high; ++j) {
            if (taps[0].from[i] != at[0] || taps[1].from[j] != at[1]) continue;
            const C weight = mul(weight_of<T>(taps[0].weights[i]), weight_of<T>(taps[1].weights[j]));
            sum = add(sum, mul(line, weight));
          }
        }
      }
    }
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] = from_compute<T>(sum);
  }
};

}  // namespace opsmith
