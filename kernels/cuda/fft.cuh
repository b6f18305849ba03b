// Discrete Fourier transforms of lines: the twin of `cpu::fft`. Everything is computed in double precision and rounded once.
//
// In: a `Transform`. Out: the transform of each line of complex numbers, real ones, or the first half of a Hermitian line.
//
//   OPSMITH_FFT_LINES(opsmith_kernel, From, To)           lines of kLongest numbers at most, some of them in a block
//   OPSMITH_FFT_EACH(opsmith_kernel, function, count)     a thread a number: a step of longer lines in working memory, and tables
//
// Passes are those of Stockham's algorithm, whose order needs no reversal of bits, of the radices 2, 3, 4, 5 and 7. Lengths with
// another factor are convolutions with a chirp (Bluestein 1970), transforms of a power of two. An inverse transform is one with
// real and imaginary parts exchanged before and after.
//
// Source: D. H. Bailey, "A high-performance FFT algorithm for vector supercomputers" (1988); indices of a pass as N. Govindaraju
// et al. (2008) have them.

namespace opsmith {

enum : int { kLongest = 1024, kMostPasses = 10 };

struct Transform {
  // Lines, their numbers, and those of the transform that is computed: more for a convolution.
  u64 lines, size, length;
  // Numbers of a target line.
  u64 kept;
  u64 dims;
  u64 sizes[8];
  i64 from_steps[8], to_steps[8];
  i64 from_step, to_step;
  const void *from;
  void *to;
  // `length` roots of unity; a chirp of `size` numbers and the transform of `length` numbers of its conjugate, or null.
  c64 *roots, *chirp, *filter;
  // Working memory of long lines.
  c64 *work, *spare;
  double scale;
  u32 is_inverse;
  // Whether a source line has the first half of the frequencies, and the others are their conjugates.
  u32 is_half;
  // Lines of a block, and whether neighbouring threads take numbers of one line.
  u32 together, along_line;
  // The product of the radices of earlier passes, of the only pass of a launch.
  u64 before;
  u32 passes;
  u32 radices[kMostPasses];
  u32 padding;
};

DEVICE c64 exchanged(c64 z) { return {z.im, z.re}; }

struct Offsets {
  i64 from, to;
};

// The places of a line's first numbers.
DEVICE Offsets offsets_of(const Transform &transform, u64 line) {
  Offsets offsets = {0, 0};
  ROLLED
  for (int dim = static_cast<int>(transform.dims) - 1; dim >= 0; --dim) {
    const u64 next = line / transform.sizes[dim];
    const i64 at = static_cast<i64>(line - next * transform.sizes[dim]);
    offsets.from += at * transform.from_steps[dim], offsets.to += at * transform.to_steps[dim];
    line = next;
  }
  return offsets;
}

// A number of a line as the transform reads it.
template <class From>
DEVICE c64 loaded(const Transform &transform, i64 offset, u64 at) {
  if (at >= transform.size) return {0, 0};
  const bool is_mirrored = transform.is_half != 0 && at > transform.size / 2;
  const i64 place = static_cast<i64>(is_mirrored ? transform.size - at : at);
  const From element = static_cast<const From *>(transform.from)[offset + place * transform.from_step];
  c64 value = convert<c64>(element);
  if (is_mirrored) value.im = -value.im;
  if (transform.is_inverse != 0) value = exchanged(value);
  return transform.chirp == nullptr ? value : mul(value, transform.chirp[at]);
}

// Writes a number of the computed transform.
template <class To>
DEVICE void stored(const Transform &transform, i64 offset, u64 at, c64 value) {
  if (transform.chirp != nullptr) {
    value = mul(c64{value.re, -value.im}, transform.chirp[at]);
    const double length = static_cast<double>(transform.length);
    value = {value.re / length, value.im / length};
  }
  if (transform.is_inverse != 0) value = exchanged(value);
  value = {value.re * transform.scale, value.im * transform.scale};
  static_cast<To *>(transform.to)[offset + static_cast<i64>(at) * transform.to_step] = convert<To>(value);
}

// The transform of 2 to 7 numbers.
template <int radix>
DEVICE void transform_few(c64 (&v)[radix]) {
  if constexpr (radix == 2) {
    const c64 other = v[1];
    v[1] = sub(v[0], other), v[0] = add(v[0], other);
  } else if constexpr (radix == 4) {
    const c64 even = add(v[0], v[2]), odd = add(v[1], v[3]), less = sub(v[0], v[2]), turned = sub(v[1], v[3]);
    v[0] = add(even, odd), v[2] = sub(even, odd);
    v[1] = {less.re + turned.im, less.im - turned.re}, v[3] = {less.re - turned.im, less.im + turned.re};
  } else {
    constexpr int half = radix / 2;
    // The cosines and sines of the first roots of unity.
    const double cosines[3] = {
        radix == 3 ? -0.5 : radix == 5 ? 0.30901699437494745 : 0.6234898018587336,
        radix == 5 ? -0.8090169943749475 : -0.2225209339563144, -0.9009688679024191};
    const double sines[3] = {
        radix == 3 ? 0.8660254037844386 : radix == 5 ? 0.9510565162951535 : 0.7818314824680298,
        radix == 5 ? 0.5877852522924731 : 0.9749279121818236, 0.4338837391175581};
    c64 sums[half], differences[half], all = v[0];
    UNROLL
    for (int k = 0; k < half; ++k) {
      sums[k] = add(v[k + 1], v[radix - 1 - k]), differences[k] = sub(v[k + 1], v[radix - 1 - k]);
      all = add(all, sums[k]);
    }
    UNROLL
    for (int m = 1; m <= half; ++m) {
      c64 even = v[0], odd = {0, 0};
      UNROLL
      for (int k = 1; k <= half; ++k) {
        const int turn = m * k % radix, mirrored = turn > half ? radix - turn : turn;
        const double cosine = cosines[mirrored - 1], sine = turn > half ? -sines[mirrored - 1] : sines[mirrored - 1];
        even.re += cosine * sums[k - 1].re, even.im += cosine * sums[k - 1].im;
        odd.re += sine * differences[k - 1].re, odd.im += sine * differences[k - 1].im;
      }
      v[m] = {even.re + odd.im, even.im - odd.re};
      v[radix - m] = {even.re - odd.im, even.im + odd.re};
    }
    v[0] = all;
  }
}

// Numbers `at`, `at + length / radix`, … of a line in a pass; `before` is the product of the earlier radices.
template <int radix>
DEVICE void transform_part(const c64 *from, c64 *to, const c64 *roots, u64 length, u64 before, u64 at) {
  const u64 part = length / radix, block = at / before, place = at - block * before;
  c64 v[radix];
  UNROLL
  for (int q = 0; q < radix; ++q) {
    v[q] = from[at + static_cast<u64>(q) * part];
    if (q > 0 && before > 1) v[q] = mul(v[q], roots[place * static_cast<u64>(q) * (part / before)]);
  }
  transform_few(v);
  UNROLL
  for (int q = 0; q < radix; ++q) to[block * before * radix + place + static_cast<u64>(q) * before] = v[q];
}

template <int radix>
DEVICE void pass_of_block(const Transform &transform, const c64 *from, c64 *to, u32 before) {
  const u32 length = static_cast<u32>(transform.length), part = length / radix;
  for (u32 i = threadIdx.x; i < transform.together * part; i += blockDim.x) {
    const u32 line = i / part;
    transform_part<radix>(from + line * length, to + line * length, transform.roots, length, before, i - line * part);
  }
  __syncthreads();
}

// All passes over the lines in shared memory; their results are in the buffer that is returned.
DEVICE c64 *passes_of_block(const Transform &transform, c64 *from, c64 *to) {
  u32 before = 1;
  ROLLED
  for (u32 pass = 0; pass < transform.passes; ++pass) {
    const u32 radix = transform.radices[pass];
    switch (radix) {
      case 2: pass_of_block<2>(transform, from, to, before); break;
      case 3: pass_of_block<3>(transform, from, to, before); break;
      case 4: pass_of_block<4>(transform, from, to, before); break;
      case 5: pass_of_block<5>(transform, from, to, before); break;
      default: pass_of_block<7>(transform, from, to, before); break;
    }
    c64 *const read = from;
    from = to, to = read;
    before *= radix;
  }
  return from;
}

DEVICE c64 filtered(c64 value, c64 filter) {
  const c64 product = mul(value, filter);
  return {product.re, -product.im};
}

template <class From, class To>
DEVICE void transform_lines(const Transform &transform) {
  __shared__ c64 values[2][kLongest];
  const u32 length = static_cast<u32>(transform.length), together = transform.together;
  const u64 first = static_cast<u64>(blockIdx.x) * together;
  for (u32 i = threadIdx.x; i < together * length; i += blockDim.x) {
    const u32 line = transform.along_line != 0 ? i / length : i % together;
    const u32 at = transform.along_line != 0 ? i % length : i / together;
    c64 value = {0, 0};
    if (first + line < transform.lines) {
      value = loaded<From>(transform, offsets_of(transform, first + line).from, at);
    }
    values[0][line * length + at] = value;
  }
  __syncthreads();
  c64 *found = passes_of_block(transform, values[0], values[1]);
  if (transform.filter != nullptr) {
    // The inverse transform, as the conjugate of the transform of the conjugate.
    for (u32 i = threadIdx.x; i < together * length; i += blockDim.x) {
      found[i] = filtered(found[i], transform.filter[i % length]);
    }
    __syncthreads();
    found = passes_of_block(transform, found, found == values[0] ? values[1] : values[0]);
  }
  const u32 kept = static_cast<u32>(transform.kept);
  for (u32 i = threadIdx.x; i < together * kept; i += blockDim.x) {
    const u32 line = transform.along_line != 0 ? i / kept : i % together;
    const u32 at = transform.along_line != 0 ? i % kept : i / together;
    if (first + line >= transform.lines) continue;
    stored<To>(transform, offsets_of(transform, first + line).to, at, found[line * length + at]);
  }
}

template <class From>
DEVICE void load_number(const Transform &transform, u64 i) {
  const u64 line = i / transform.length, at = i - line * transform.length;
  transform.work[i] = loaded<From>(transform, offsets_of(transform, line).from, at);
}

template <int radix>
DEVICE void pass_number(const Transform &transform, u64 i) {
  const u64 part = transform.length / radix, line = i / part, start = line * transform.length;
  transform_part<radix>(
      transform.work + start, transform.spare + start, transform.roots, transform.length, transform.before,
      i - line * part);
}

template <class To>
DEVICE void store_number(const Transform &transform, u64 i) {
  const u64 line = i / transform.kept, at = i - line * transform.kept;
  stored<To>(transform, offsets_of(transform, line).to, at, transform.work[line * transform.length + at]);
}

// A number of a result in row-major order, times the factor.
template <class To>
DEVICE void scale_number(const Transform &transform, u64 i) {
  To &number = static_cast<To *>(transform.to)[i];
  const c64 value = convert<c64>(number);
  number = convert<To>(c64{value.re * transform.scale, value.im * transform.scale});
}

DEVICE void filter_number(const Transform &transform, u64 i) {
  transform.work[i] = filtered(transform.work[i], transform.filter[i % transform.length]);
}

// The root of unity number `i` of `length`.
DEVICE void root_number(const Transform &transform, u64 i) {
  double sine, cosine;
  ::sincospi(2.0 * static_cast<double>(i) / static_cast<double>(transform.length), &sine, &cosine);
  transform.roots[i] = {cosine, -sine};
}

// e^(-πi k² / n); k² modulo 2n keeps the angle exact for large k.
DEVICE c64 chirp_of(u64 k, u64 size) {
  double sine, cosine;
  ::sincospi(static_cast<double>(k * k % (2 * size)) / static_cast<double>(size), &sine, &cosine);
  return {cosine, -sine};
}

DEVICE void chirp_number(const Transform &transform, u64 i) { transform.chirp[i] = chirp_of(i, transform.size); }

// The conjugate of the chirp, mirrored about 0 in a circle of `length`.
DEVICE void mirror_number(const Transform &transform, u64 i) {
  const u64 back = transform.length - i, k = i < transform.size ? i : back;
  const c64 value = k < transform.size ? chirp_of(k, transform.size) : c64{0, 0};
  transform.filter[i] = {value.re, -value.im};
}

}  // namespace opsmith

#define OPSMITH_FFT_LINES(NAME, FROM, TO)                                                        \
  extern "C" __global__ void __launch_bounds__(256) NAME(opsmith::Transform transform) {         \
    opsmith::transform_lines<FROM, TO>(transform);                                               \
  }
// A kernel with a thread for each of COUNT numbers.
#define OPSMITH_FFT_EACH(NAME, FUNCTION, COUNT)                                                                \
  extern "C" __global__ void __launch_bounds__(256) NAME(opsmith::Transform transform) {                       \
    using namespace opsmith;                                                                                   \
    const u64 step = static_cast<u64>(gridDim.x) * blockDim.x, count = COUNT;                                  \
    for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {              \
      FUNCTION(transform, i);                                                                                  \
    }                                                                                                          \
  }
