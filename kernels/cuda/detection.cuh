// Boxes in images: which of several that overlap are kept, and the contents of each in equal cells.

namespace opsmith {

// Lines of boxes; the first operand is whether each is kept, the second the first number of each line's first box.
struct Boxes {
  Strided<2, u64> lines;
  u64 count;
  // Steps from a box to the next, of both operands, and from a number of a box to the next.
  i64 kept_step, box_step, number_step;
  double threshold;
};

template <class C>
DEVICE C larger(C a, C b) {
  return a > b ? a : b;
}
template <class C>
DEVICE C smaller(C a, C b) {
  return a < b ? a : b;
}

// The part of the area that two boxes cover which both cover.
template <class C>
DEVICE C overlap(const C (&a)[4], const C (&b)[4]) {
  const C width = larger(smaller(a[2], b[2]) - larger(a[0], b[0]), C(0));
  const C height = larger(smaller(a[3], b[3]) - larger(a[1], b[1]), C(0));
  const C both = width * height;
  return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both);
}

// A block has a line: for each box that is kept, its threads leave out those after it that overlap it.
template <class T>
DEVICE void run_kept(const Boxes &boxes) {
  i64 offsets[2] = {};
  u64 rest = blockIdx.x;
  for (int dim = static_cast<int>(boxes.lines.dims) - 1; dim >= 0; --dim) {
    const i64 at = static_cast<i64>(rest % boxes.lines.sizes[dim]);
    rest /= boxes.lines.sizes[dim];
    for (int operand = 0; operand < 2; ++operand) offsets[operand] += at * boxes.lines.strides[operand][dim];
  }
  bool *const kept = static_cast<bool *>(const_cast<void *>(boxes.lines.pointers[0])) + offsets[0];
  const T *const numbers = static_cast<const T *>(boxes.lines.pointers[1]) + offsets[1];
  const auto corners = [&](u64 box, Compute<T>(&corners)[4]) {
    const T *const first = numbers + static_cast<i64>(box) * boxes.box_step;
    for (int number = 0; number < 4; ++number) corners[number] = to_compute(first[number * boxes.number_step]);
  };
  for (u64 box = threadIdx.x; box < boxes.count; box += blockDim.x) kept[static_cast<i64>(box) * boxes.kept_step] = true;
  for (u64 first = 0; first < boxes.count; ++first) {
    __syncthreads();
    if (!kept[static_cast<i64>(first) * boxes.kept_step]) continue;
    Compute<T> earlier[4], later[4];
    corners(first, earlier);
    for (u64 second = first + 1 + threadIdx.x; second < boxes.count; second += blockDim.x) {
      corners(second, later);
      if (static_cast<double>(overlap(earlier, later)) > boxes.threshold) {
        kept[static_cast<i64>(second) * boxes.kept_step] = false;
      }
    }
  }
}

// A dimension of a region: cells of equal size, each with samples.
struct Side {
  double start, cell;
  i64 samples, length;

  DEVICE static double limited(double place, double most) { return place < 0 ? 0 : place > most ? most : place; }

  // The samples of a cell that may lie in the image.
  DEVICE void range(i64 number, i64 &first, i64 &end) const {
    const double base = start + static_cast<double>(number) * cell, step = cell / static_cast<double>(samples);
    first = 0;
    end = samples;
    if (step > 0) {
      const double most = static_cast<double>(samples);
      first = static_cast<i64>(limited(::floor((-1.0 - base) / step - 1.5), most));
      end = static_cast<i64>(limited(::ceil((static_cast<double>(length) - base) / step + 1.5), most));
    }
  }

  // The two elements that a sample reads, with their weights; false if it lies outside.
  DEVICE bool read(i64 number, i64 sample, i64 (&at)[2], double (&weights)[2]) const {
    const double base = start + static_cast<double>(number) * cell;
    double place = base + (static_cast<double>(sample) + 0.5) * cell / static_cast<double>(samples);
    if (!(place >= -1.0 && place <= static_cast<double>(length)) || length == 0) return false;
    place = place < 0 ? 0 : place;
    const i64 low = static_cast<i64>(place);
    if (low >= length - 1) {
      at[0] = at[1] = length - 1;
      weights[0] = 1;
      weights[1] = 0;
    } else {
      at[0] = low;
      at[1] = low + 1;
      weights[1] = place - static_cast<double>(low);
      weights[0] = 1.0 - weights[1];
    }
    return true;
  }
};

// Sizes of images, and the division of their regions.
struct Cells {
  i64 regions, images, height, width, rows, columns, ratio;
  u64 aligned;
  double scale;

  DEVICE Side side(double from, double to, i64 cells, i64 length) const {
    const double shift = aligned != 0 ? 0.5 : 0.0;
    Side side;
    side.start = from * scale - shift;
    double extent = to * scale - shift - side.start;
    if (aligned == 0 && extent < 1.0) extent = 1.0;
    side.cell = extent / static_cast<double>(cells);
    side.length = length;
    side.samples = ratio;
    if (ratio <= 0) {
      const double samples = ::ceil(side.cell);
      side.samples = side.cell > 0 ? static_cast<i64>(samples < 2147483648.0 ? samples : 2147483648.0) : 0;
    }
    return side;
  }
};

struct Region {
  // -1 if it is of a sample that is not there.
  i64 image;
  Side down, across;

  DEVICE double samples() const {
    const double count = static_cast<double>(down.samples) * static_cast<double>(across.samples);
    return count < 1.0 ? 1.0 : count;
  }
};

template <class T>
DEVICE Region region_of(const Cells &cells, const Field<const T> &rois, i64 number) {
  double part[5];
  for (int i = 0; i < 5; ++i) part[i] = static_cast<double>(to_compute(rois.at(number, i, 0, 0)));
  const bool exists = part[0] >= 0 && part[0] < static_cast<double>(cells.images);
  return {exists ? static_cast<i64>(part[0]) : -1, cells.side(part[2], part[4], cells.rows, cells.height),
          cells.side(part[1], part[3], cells.columns, cells.width)};
}

// A cell of a channel of a region: the mean of its samples, or their largest weighted element.
template <class T>
struct ReadCells {
  Strided<1, u64> places;
  Field<const T> images, rois;
  Cells cells;
  u64 largest;

  DEVICE void operator()(const i64 (&offsets)[1], const u64 (&index)[8]) const {
    using C = Compute<T>;
    const Region region = region_of<T>(cells, rois, static_cast<i64>(index[0]));
    const i64 row = static_cast<i64>(index[2]), column = static_cast<i64>(index[3]);
    C sum = C(0), best = C(0);
    bool has_best = false;
    i64 first_down, end_down, first_across, end_across;
    region.down.range(row, first_down, end_down);
    region.across.range(column, first_across, end_across);
    i64 y[2], x[2];
    double by_y[2], by_x[2];
    for (i64 i = first_down; region.image >= 0 && i < end_down; ++i) {
      if (!region.down.read(row, i, y, by_y)) continue;
      for (int below = 0; below < 2; ++below) {
        for (i64 j = first_across; j < end_across; ++j) {
          if (!region.across.read(column, j, x, by_x)) continue;
          for (int beside = 0; beside < 2; ++beside) {
            const C element = to_compute(images.at(region.image, static_cast<i64>(index[1]), y[below], x[beside]));
            const C part = static_cast<C>(by_y[below]) * static_cast<C>(by_x[beside]) * element;
            sum = sum + part;
            best = !has_best || part > best ? part : best;
            has_best = true;
          }
        }
      }
    }
    const C result = largest != 0 ? best : sum / static_cast<C>(region.samples());
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] = from_compute<T>(result);
  }
};

// The gradient of images, of means: for each element the sum over the samples that read it.
template <class T>
struct ReadCellsBackward {
  Strided<1, u64> places;
  Field<const T> grads, rois;
  Cells cells;

  // The weight of an element in a cell along a dimension at a time, for samples in order.
  template <class Visit>
  DEVICE static void readers(const Side &side, i64 number, i64 element, const Visit &visit) {
    i64 first, end, at[2];
    double weights[2];
    side.range(number, first, end);
    for (i64 sample = first; sample < end; ++sample) {
      if (!side.read(number, sample, at, weights)) continue;
      for (int i = 0; i < 2; ++i) {
        if (at[i] == element) visit(weights[i]);
      }
    }
  }

  DEVICE void operator()(const i64 (&offsets)[1], const u64 (&index)[8]) const {
    using C = Compute<T>;
    C sum = C(0);
    for (i64 number = 0; number < cells.regions; ++number) {
      const Region region = region_of<T>(cells, rois, number);
      if (region.image != static_cast<i64>(index[0])) continue;
      const C count = static_cast<C>(region.samples());
      for (i64 row = 0; row < cells.rows; ++row) {
        for (i64 column = 0; column < cells.columns; ++column) {
          const C grad = to_compute(grads.at(number, static_cast<i64>(index[1]), row, column)) / count;
          readers(region.down, row, static_cast<i64>(index[2]), [&](double by_y) {
            readers(region.across, column, static_cast<i64>(index[3]), [&](double by_x) {
              sum = sum + static_cast<C>(by_y) * static_cast<C>(by_x) * grad;
            });
          });
        }
      }
    }
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] = from_compute<T>(sum);
  }
};

}  // namespace opsmith

#define OPSMITH_KEPT_BOXES(NAME, T)                                                              \
  extern "C" __global__ void __launch_bounds__(opsmith::kLoopThreads) NAME(opsmith::Boxes boxes) { \
    opsmith::run_kept<T>(boxes);                                                                 \
  }
