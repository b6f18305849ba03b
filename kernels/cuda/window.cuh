// Windows that slide over the last dimensions of images, and places in them.
//
// In: sizes and the parameters of a window; one dimension or two are filled up with ones in front. Out: places of elements.
// Must not know operators.

namespace opsmith {

// A window over three dimensions: places of the side that it slides over, and its positions.
struct Sliding {
  u64 input[3], output[3], kernel[3];
  i64 stride[3], padding[3], dilation[3];
};

// Samples, channels and three dimensions of places: an address and strides in elements.
template <class T>
struct Images {
  T *start;
  i64 strides[5];

  DEVICE T *plane(u64 sample, u64 channel) const {
    return start + (static_cast<i64>(sample) * strides[0] + static_cast<i64>(channel) * strides[1]);
  }
  DEVICE i64 offset(const i64 (&place)[3]) const {
    return place[0] * strides[2] + place[1] * strides[3] + place[2] * strides[4];
  }
};

// The index along each of three dimensions of a number in row-major order; `Number` is `u32` or `u64`.
template <class Number>
DEVICE void split(Number number, const u64 (&sizes)[3], i64 (&index)[3]) {
  const Number rows = number / static_cast<Number>(sizes[2]);
  index[2] = static_cast<i64>(number - rows * static_cast<Number>(sizes[2]));
  if (sizes[0] == 1) {
    index[0] = 0;
    index[1] = static_cast<i64>(rows);
    return;
  }
  const Number planes = rows / static_cast<Number>(sizes[1]);
  index[1] = static_cast<i64>(rows - planes * static_cast<Number>(sizes[1]));
  index[0] = static_cast<i64>(planes);
}

DEVICE u64 count(const u64 (&sizes)[3]) { return sizes[0] * sizes[1] * sizes[2]; }

// The place that an element of the window sees at a position whose first place is `start`; whether it is inside.
DEVICE bool seen(const Sliding &sliding, const i64 (&start)[3], const i64 (&element)[3], i64 (&place)[3]) {
  bool inside = true;
  for (int dim = 0; dim < 3; ++dim) {
    place[dim] = start[dim] + element[dim] * sliding.dilation[dim];
    inside = inside && place[dim] >= 0 && place[dim] < static_cast<i64>(sliding.input[dim]);
  }
  return inside;
}

// The position at which an element of the window sees a place; whether there is one. `Number` has room for places of the
// border.
template <class Number>
DEVICE bool seeing(const Sliding &sliding, const i64 (&place)[3], const i64 (&element)[3], i64 (&position)[3]) {
  bool exists = true;
  for (int dim = 0; dim < 3; ++dim) {
    const i64 distance = place[dim] + sliding.padding[dim] - element[dim] * sliding.dilation[dim];
    const Number number = static_cast<Number>(distance < 0 ? 0 : distance), step = static_cast<Number>(sliding.stride[dim]);
    const Number quotient = step == 1 ? number : number / step;
    position[dim] = static_cast<i64>(quotient);
    exists = exists && distance >= 0 && quotient * step == number && quotient < static_cast<Number>(sliding.output[dim]);
  }
  return exists;
}

}  // namespace opsmith
