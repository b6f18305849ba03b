// Convolutions and their gradients as products of matrices whose elements are read where they lie, and columns of windows.
//
// A convolution has two sides: the large one, which the window slides over, and the small one, with a place for each
// position. Weights are (small channels, large channels of a group, window). Beyond the border are zeros, which are multiplied.

namespace opsmith {

template <class T>
struct Convolution {
  using C = Compute<T>;
  ProductShape<C> shape;
  Images<T> large, small, weight;
  const T *bias;
  i64 bias_stride;
  u64 groups, large_channels, small_channels;
  Sliding sliding;
  // Whether the elements of a weight for one small channel lie one after the other.
  u64 dense;

  DEVICE C biased(C sum, u64 channel) const {
    return bias == nullptr ? sum : add(sum, to_compute(bias[static_cast<i64>(channel) * bias_stride]));
  }
};

// From the large side to the small one: small = weight * windows.
template <class T, class Number>
struct ToSmall : Convolution<T> {
  using typename Convolution<T>::C;
  using Row = const T *;
  struct Column {
    const T *planes;
    i64 start[3];
  };

  DEVICE bool left_by_inner() const { return true; }
  DEVICE bool right_by_inner() const { return false; }
  DEVICE Row row(u64 stack, u64 row) const {
    return this->weight.plane(stack % this->groups * this->small_channels + row, 0);
  }
  DEVICE C left(Row row, u64 inner) const {
    if (this->dense != 0) return to_compute(row[inner]);
    const u64 elements = count(this->sliding.kernel);
    i64 element[3];
    split(static_cast<Number>(inner % elements), this->sliding.kernel, element);
    return to_compute(row[static_cast<i64>(inner / elements) * this->weight.strides[1] + this->weight.offset(element)]);
  }
  DEVICE Column column(u64 stack, u64 column) const {
    Column result;
    result.planes = this->large.plane(stack / this->groups, stack % this->groups * this->large_channels);
    i64 position[3];
    split(static_cast<Number>(column), this->sliding.output, position);
    for (int dim = 0; dim < 3; ++dim) {
      result.start[dim] = position[dim] * this->sliding.stride[dim] - this->sliding.padding[dim];
    }
    return result;
  }
  DEVICE C right(const Column &column, u64 inner) const {
    const Number elements = static_cast<Number>(count(this->sliding.kernel)), channel = static_cast<Number>(inner) / elements;
    i64 element[3], place[3];
    split(static_cast<Number>(inner) - channel * elements, this->sliding.kernel, element);
    if (!seen(this->sliding, column.start, element, place)) return zero<C>();
    return to_compute(column.planes[static_cast<i64>(channel) * this->large.strides[1] + this->large.offset(place)]);
  }
  DEVICE void finish(u64 stack, u64 row, u64 column, C sum) const {
    const u64 channel = stack % this->groups * this->small_channels + row;
    i64 position[3];
    split(static_cast<Number>(column), this->sliding.output, position);
    this->small.plane(stack / this->groups, channel)[this->small.offset(position)] =
        from_compute<T>(this->biased(sum, channel));
  }
};

// From the small side to the large one, the transpose.
template <class T, class Number>
struct ToLarge : Convolution<T> {
  using typename Convolution<T>::C;
  using Row = const T *;
  struct Column {
    const T *planes;
    i64 place[3];
  };

  DEVICE bool left_by_inner() const { return true; }
  DEVICE bool right_by_inner() const { return false; }
  DEVICE Row row(u64 stack, u64 row) const {
    return this->weight.plane(stack % this->groups * this->small_channels, row);
  }
  DEVICE C left(Row row, u64 inner) const {
    const Number elements = static_cast<Number>(count(this->sliding.kernel)), channel = static_cast<Number>(inner) / elements;
    i64 element[3];
    split(static_cast<Number>(inner) - channel * elements, this->sliding.kernel, element);
    return to_compute(row[static_cast<i64>(channel) * this->weight.strides[0] + this->weight.offset(element)]);
  }
  DEVICE Column column(u64 stack, u64 column) const {
    Column result;
    result.planes = this->small.plane(stack / this->groups, stack % this->groups * this->small_channels);
    split(static_cast<Number>(column), this->sliding.input, result.place);
    return result;
  }
  DEVICE C right(const Column &column, u64 inner) const {
    const Number elements = static_cast<Number>(count(this->sliding.kernel)), channel = static_cast<Number>(inner) / elements;
    i64 element[3], position[3];
    split(static_cast<Number>(inner) - channel * elements, this->sliding.kernel, element);
    if (!seeing<Number>(this->sliding, column.place, element, position)) return zero<C>();
    return to_compute(column.planes[static_cast<i64>(channel) * this->small.strides[1] + this->small.offset(position)]);
  }
  DEVICE void finish(u64 stack, u64 row, u64 column, C sum) const {
    const u64 channel = stack % this->groups * this->large_channels + row;
    i64 place[3];
    split(static_cast<Number>(column), this->sliding.input, place);
    this->large.plane(stack / this->groups, channel)[this->large.offset(place)] = from_compute<T>(this->biased(sum, channel));
  }
};

// The gradient of the weight: the small side times the windows, over samples and positions.
template <class T, class Number>
struct OfWeight : Convolution<T> {
  using typename Convolution<T>::C;
  using Row = const T *;
  struct Column {
    const T *plane;
    i64 element[3];
  };

  DEVICE bool left_by_inner() const { return true; }
  DEVICE bool right_by_inner() const { return true; }
  DEVICE Row row(u64 stack, u64 row) const { return this->small.plane(0, stack * this->small_channels + row); }
  DEVICE C left(Row row, u64 inner) const {
    const Number positions = static_cast<Number>(count(this->sliding.output)), sample = static_cast<Number>(inner) / positions;
    i64 position[3];
    split(static_cast<Number>(inner) - sample * positions, this->sliding.output, position);
    return to_compute(row[static_cast<i64>(sample) * this->small.strides[0] + this->small.offset(position)]);
  }
  DEVICE Column column(u64 stack, u64 column) const {
    const u64 elements = count(this->sliding.kernel);
    Column result;
    result.plane = this->large.plane(0, stack * this->large_channels + column / elements);
    split(static_cast<Number>(column % elements), this->sliding.kernel, result.element);
    return result;
  }
  DEVICE C right(const Column &column, u64 inner) const {
    const Number positions = static_cast<Number>(count(this->sliding.output)), sample = static_cast<Number>(inner) / positions;
    i64 start[3], place[3];
    split(static_cast<Number>(inner) - sample * positions, this->sliding.output, start);
    for (int dim = 0; dim < 3; ++dim) {
      start[dim] = start[dim] * this->sliding.stride[dim] - this->sliding.padding[dim];
    }
    if (!seen(this->sliding, start, column.element, place)) return zero<C>();
    return to_compute(column.plane[static_cast<i64>(sample) * this->large.strides[0] + this->large.offset(place)]);
  }
  DEVICE void finish(u64 stack, u64 row, u64 column, C sum) const {
    const u64 elements = count(this->sliding.kernel);
    i64 element[3];
    split(static_cast<Number>(column % elements), this->sliding.kernel, element);
    this->weight.plane(stack * this->small_channels + row, column / elements)[this->weight.offset(element)] =
        from_compute<T>(sum);
  }
};

// The sums of channels over samples and places: rows of channels times ones.
template <class T>
struct Channels {
  using C = Compute<T>;
  ProductShape<C> shape;
  Images<T> images;
  u64 places[3];
  T *out;
  i64 out_stride;

  using Row = const T *;
  struct Column {};
  DEVICE Row row(u64, u64 row) const { return images.plane(0, row); }
  DEVICE C left(Row row, u64 inner) const {
    const u64 plane = count(places), sample = inner / plane;
    i64 place[3];
    split(inner - sample * plane, places, place);
    return to_compute(row[static_cast<i64>(sample) * images.strides[0] + images.offset(place)]);
  }
  DEVICE Column column(u64, u64) const { return {}; }
  DEVICE C right(Column, u64) const { return one<C>(); }
  DEVICE void finish(u64, u64 row, u64, C sum) const { out[static_cast<i64>(row) * out_stride] = from_compute<T>(sum); }
};

// Each element of the columns (samples, channels and window, positions) of images.
template <class T>
struct ToColumns {
  Strided<1, u64> places;
  Images<T> images;
  Sliding sliding;

  DEVICE void operator()(const i64 (&offsets)[1], const u64 (&index)[8]) const {
    const u64 elements = count(sliding.kernel);
    i64 element[3], start[3], place[3];
    split(index[1] % elements, sliding.kernel, element);
    split(index[2], sliding.output, start);
    for (int dim = 0; dim < 3; ++dim) start[dim] = start[dim] * sliding.stride[dim] - sliding.padding[dim];
    T *const out = static_cast<T *>(const_cast<void *>(places.pointers[0])) + offsets[0];
    const bool inside = seen(sliding, start, element, place);
    *out = inside ? images.plane(index[0], index[1] / elements)[images.offset(place)] : T{};
  }
};

// Each place of images: the sum of the elements of columns that were taken from it, each sum rounded as an element.
template <class T>
struct FromColumns {
  Strided<1, u64> places;
  const T *columns;
  // Samples, channels and window, positions.
  i64 strides[3];
  Sliding sliding;

  DEVICE void operator()(const i64 (&offsets)[1], const u64 (&index)[8]) const {
    const i64 place[3] = {static_cast<i64>(index[2]), static_cast<i64>(index[3]), static_cast<i64>(index[4])};
    const u64 elements = count(sliding.kernel);
    T sum = T{};
    for (u64 number = 0; number < elements; ++number) {
      i64 element[3], position[3];
      split(number, sliding.kernel, element);
      if (!seeing<u64>(sliding, place, element, position)) continue;
      const u64 at = (static_cast<u64>(position[0]) * sliding.output[1] + static_cast<u64>(position[1])) * sliding.output[2] +
                     static_cast<u64>(position[2]);
      const i64 offset = static_cast<i64>(index[0]) * strides[0] + static_cast<i64>(index[1] * elements + number) * strides[1] +
                         static_cast<i64>(at) * strides[2];
      sum = from_compute<T>(add(to_compute(sum), to_compute(columns[offset])));
    }
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] = sum;
  }
};

}  // namespace opsmith
