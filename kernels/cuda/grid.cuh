// Reading images at places that are data, with weights and their derivatives, and the gradients.

namespace opsmith {

enum : u64 { kBilinear = 0, kNearestTap = 1, kBicubic = 2 };
enum : u64 { kZeros = 0, kEdge = 1, kMirror = 2 };

// A real float that is rounded to its element type after every operation.
template <class T>
struct Rounded {
  using C = Compute<T>;
  C value;

  DEVICE static Rounded nearest(C value) { return {to_compute(from_compute<T>(value))}; }
  DEVICE static Rounded of(double value) { return nearest(static_cast<C>(value)); }
  DEVICE static Rounded element(T element) { return {to_compute(element)}; }
  DEVICE Rounded operator+(Rounded other) const { return nearest(value + other.value); }
  DEVICE Rounded operator-(Rounded other) const { return nearest(value - other.value); }
  DEVICE Rounded operator*(Rounded other) const { return nearest(value * other.value); }
  DEVICE Rounded operator/(Rounded other) const { return nearest(value / other.value); }
  DEVICE Rounded operator-() const { return {-value}; }
};

// The elements that one number of the grid reads along a dimension, the weight of each, and the weight's derivatives.
template <class T>
struct Neighbours {
  int count;
  i64 at[4];
  Rounded<T> slopes[4][4];
};

// Height and width of images, rows and columns of the grid, and orders of derivatives by the grid's two numbers.
struct Sampler {
  i64 size[2], grid[2];
  u64 interpolation, outside, aligned;
  i64 across, down;

  DEVICE int neighbours() const { return interpolation == kBicubic ? 4 : interpolation == kBilinear ? 2 : 1; }
  DEVICE int taps() const { return neighbours() * neighbours(); }

  // The nearest integer of a whole number; far outside any image if it is not one of moderate size.
  template <class T>
  DEVICE static i64 whole(Rounded<T> position) {
    const double number = static_cast<double>(position.value);
    return ::fabs(number) < 1e9 ? static_cast<i64>(number) : -1000000000;
  }

  template <class T>
  DEVICE void fold(int dim, Rounded<T> &position, Rounded<T> &slope) const {
    using R = Rounded<T>;
    if (outside == kZeros) return;
    const double length = static_cast<double>(size[dim]);
    if (outside == kMirror) {
      if (aligned != 0) {
        mirror(position, slope, 0.0, 2 * (length - 1));
      } else {
        mirror(position, slope, -1.0, 2 * length - 1);
      }
    }
    const R last = R::of(length - 1), none = R::of(0);
    const bool inside = position.value > 0 && position.value < last.value;
    const R clipped = {math::minimum(math::maximum(position.value, none.value), last.value)};
    // Where the position is clipped, the grid's number changes nothing.
    position = math::is_finite(position.value) ? clipped : none;
    slope = inside ? slope : none;
  }

  // A position mirrored at two edges, given in halves, until it lies between them.
  template <class T>
  DEVICE static void mirror(Rounded<T> &position, Rounded<T> &slope, double low_half, double high_half) {
    using R = Rounded<T>;
    if (low_half == high_half) {
      position = slope = R::of(0);
      return;
    }
    const R low = R::of(low_half / 2), span = R::of((high_half - low_half) / 2);
    R distance = position - low;
    if (distance.value < 0) slope = -slope;
    distance.value = math::abs(distance.value);
    const R rest = R::nearest(math::fmod(distance.value, span.value));
    const R flips = R::nearest(math::floor_div(distance.value, span.value));
    if (R::nearest(math::fmod(flips.value, R::of(2).value)).value == 0) {
      position = rest + low;
    } else {
      position = span - rest + low;
      slope = -slope;
    }
  }

  // Keys' cubic with a = -0.75 and its derivatives, at distances up to 1 and from 1 to 2.
  template <class T>
  DEVICE static void cubic_near(Rounded<T> x, Rounded<T> (&slopes)[4]) {
    using R = Rounded<T>;
    const R a = R::of(-0.75), two = R::of(2), three = R::of(3), six = R::of(6);
    slopes[0] = ((a + two) * x - (a + three)) * x * x + R::of(1);
    slopes[1] = (three * (a + two) * x - two * (a + three)) * x;
    slopes[2] = six * (a + two) * x - two * (a + three);
    slopes[3] = six * (a + two);
  }
  template <class T>
  DEVICE static void cubic_far(Rounded<T> x, Rounded<T> (&slopes)[4]) {
    using R = Rounded<T>;
    const R a = R::of(-0.75), six = R::of(6), ten = R::of(10);
    slopes[0] = ((a * x - R::of(5) * a) * x + R::of(8) * a) * x - R::of(4) * a;
    slopes[1] = (R::of(3) * a * x - ten * a) * x + R::of(8) * a;
    slopes[2] = six * a * x - ten * a;
    slopes[3] = six * a;
  }

  template <class T>
  DEVICE void along(int dim, Rounded<T> number, Neighbours<T> &all) const {
    using R = Rounded<T>;
    const R length = R::of(static_cast<double>(size[dim])), none = R::of(0), unit = R::of(1), two = R::of(2);
    R position, slope;
    if (aligned != 0) {
      position = (number + unit) / two * (length - unit);
      slope = (length - unit) / two;
    } else {
      position = ((number + unit) * length - unit) / two;
      slope = length / two;
    }
    all.count = neighbours();
    if (interpolation == kBilinear) {
      fold(dim, position, slope);
      const R first = R::nearest(math::floor(position.value));
      all.at[0] = whole(first);
      all.at[1] = all.at[0] + 1;
      const R weights[2][4] = {{first + unit - position, -slope, none, none}, {position - first, slope, none, none}};
      for (int tap = 0; tap < 2; ++tap) {
        for (int order = 0; order < 4; ++order) all.slopes[tap][order] = weights[tap][order];
      }
    } else if (interpolation == kNearestTap) {
      fold(dim, position, slope);
      all.at[0] = whole(R::nearest(math::round(position.value)));
      for (int order = 0; order < 4; ++order) all.slopes[0][order] = order == 0 ? unit : none;
    } else {
      const R first = R::nearest(math::floor(position.value)), part = position - first;
      cubic_far(part + unit, all.slopes[0]);
      cubic_near(part, all.slopes[1]);
      cubic_near(unit - part, all.slopes[2]);
      cubic_far(two - part, all.slopes[3]);
      for (int tap = 0; tap < 4; ++tap) {
        // Each of the four elements is looked up outside on its own.
        R at = first + R::of(tap - 1), unused = unit;
        fold(dim, at, unused);
        all.at[tap] = whole(at);
        // The distance to an element grows with the position on its left, and shrinks on its right.
        const R by = tap < 2 ? slope : -slope;
        R(&slopes)[4] = all.slopes[tap];
        slopes[1] = slopes[1] * by;
        slopes[2] = slopes[2] * by * by;
        slopes[3] = slopes[3] * by * by * by;
      }
    }
  }

  DEVICE bool inside(i64 row, i64 column) const { return row >= 0 && row < size[0] && column >= 0 && column < size[1]; }

  template <class T>
  DEVICE static Rounded<T> slope(const Rounded<T> (&slopes)[4], i64 order) {
    return order < 4 ? slopes[order] : Rounded<T>::of(0);
  }
};

// The neighbours of a place of the grid: lines and columns.
template <class T>
DEVICE void neighbours_of(const Sampler &sampler, const Field<T> &grid, const u64 (&index)[3], Neighbours<T> &down,
                          Neighbours<T> &across) {
  const i64 at[3] = {static_cast<i64>(index[0]), static_cast<i64>(index[1]), static_cast<i64>(index[2])};
  sampler.along(0, Rounded<T>::element(grid.at(at[0], at[1], at[2], 1)), down);
  sampler.along(1, Rounded<T>::element(grid.at(at[0], at[1], at[2], 0)), across);
}

// Values at places; bicubic interpolation goes line by line, and then from line to line.
template <class T>
struct Sampled {
  Strided<1, u64> places;
  Field<T> images, grid;
  Sampler sampler;

  DEVICE void operator()(const i64 (&offsets)[1], const u64 (&index)[8]) const {
    using R = Rounded<T>;
    Neighbours<T> down, across;
    neighbours_of<T>(sampler, grid, {index[0], index[2], index[3]}, down, across);
    const bool by_lines = sampler.interpolation == kBicubic;
    R sum = R::of(0);
    for (int i = 0; i < down.count; ++i) {
      R line = R::of(0);
      bool is_seen = false;
      for (int j = 0; j < across.count; ++j) {
        if (!sampler.inside(down.at[i], across.at[j])) continue;
        is_seen = true;
        const R element = R::element(images.at(static_cast<i64>(index[0]), static_cast<i64>(index[1]), down.at[i], across.at[j]));
        const R by_down = Sampler::slope(down.slopes[i], sampler.down), by_across = Sampler::slope(across.slopes[j], sampler.across);
        if (by_lines) {
          line = line + by_across * element;
        } else {
          sum = sum + element * (by_down * by_across);
        }
      }
      if (by_lines && is_seen) sum = sum + Sampler::slope(down.slopes[i], sampler.down) * line;
    }
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] = from_compute<T>(sum.value);
  }
};

// Puts each tap of each place of the grid into the list of its element, with its weight.
template <class T>
struct PutTaps {
  // Samples, rows and columns of the grid.
  Strided<1, u64> places;
  Field<T> grid;
  Lists lists;
  Compute<T> *weights;
  Sampler sampler;

  DEVICE void operator()(const i64 (&)[1], const u64 (&index)[8]) const {
    Neighbours<T> down, across;
    neighbours_of<T>(sampler, grid, {index[0], index[1], index[2]}, down, across);
    const u64 place = (index[0] * places.sizes[1] + index[1]) * places.sizes[2] + index[2];
    for (int i = 0; i < down.count; ++i) {
      for (int j = 0; j < across.count; ++j) {
        if (!sampler.inside(down.at[i], across.at[j])) continue;
        const i64 number = static_cast<i64>(place) * sampler.taps() + i * across.count + j;
        weights[number] =
            (Sampler::slope(down.slopes[i], sampler.down) * Sampler::slope(across.slopes[j], sampler.across)).value;
        const u64 element = static_cast<u64>(down.at[i] * sampler.size[1] + across.at[j]);
        put(lists, index[0] * static_cast<u64>(sampler.size[0] * sampler.size[1]) + element, number);
      }
    }
  }
};

// Sorts each list.
template <class T>
struct SortLists {
  Strided<1, u64> places;
  Lists lists;

  DEVICE void operator()(const i64 (&)[1], const u64 (&index)[8]) const { sort(lists, index[0]); }
};

// The gradient of images: for each element the sum over the taps in its list.
template <class T>
struct OfImages {
  Strided<1, u64> places;
  Field<T> grad;
  Lists lists;
  const Compute<T> *weights;
  Sampler sampler;

  DEVICE void operator()(const i64 (&offsets)[1], const u64 (&index)[8]) const {
    using R = Rounded<T>;
    const u64 element = (index[0] * places.sizes[2] + index[2]) * places.sizes[3] + index[3];
    R sum = R::of(0);
    for (i64 number = lists.heads[element]; number >= 0; number = lists.next[number]) {
      const i64 place = number / sampler.taps() % (sampler.grid[0] * sampler.grid[1]);
      const R by = R::element(grad.at(static_cast<i64>(index[0]), static_cast<i64>(index[1]), place / sampler.grid[1],
                                      place % sampler.grid[1]));
      sum = sum + by * R{weights[number]};
    }
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] = from_compute<T>(sum.value);
  }
};

// The gradient of the grid's places.
template <class T>
struct OfPlaces {
  // Samples, rows and columns of the gradient; `stride` leads from the first number of a place to the second.
  Strided<1, u64> places;
  i64 stride, channels;
  Field<T> grad, images, grid;
  Sampler sampler;

  DEVICE void operator()(const i64 (&offsets)[1], const u64 (&index)[8]) const {
    using R = Rounded<T>;
    Neighbours<T> down, across;
    neighbours_of<T>(sampler, grid, {index[0], index[1], index[2]}, down, across);
    const i64 sample = static_cast<i64>(index[0]);
    R by_across = R::of(0), by_down = R::of(0);
    for (i64 channel = 0; channel < channels; ++channel) {
      const R by = R::element(grad.at(sample, channel, static_cast<i64>(index[1]), static_cast<i64>(index[2])));
      for (int i = 0; i < down.count; ++i) {
        for (int j = 0; j < across.count; ++j) {
          if (!sampler.inside(down.at[i], across.at[j])) continue;
          const R product = by * R::element(images.at(sample, channel, down.at[i], across.at[j]));
          by_across = by_across + product * (down.slopes[i][0] * across.slopes[j][1]);
          by_down = by_down + product * (down.slopes[i][1] * across.slopes[j][0]);
        }
      }
    }
    T *const out = static_cast<T *>(const_cast<void *>(places.pointers[0])) + offsets[0];
    out[0] = from_compute<T>(by_across.value);
    out[stride] = from_compute<T>(by_down.value);
  }
};

}  // namespace opsmith
