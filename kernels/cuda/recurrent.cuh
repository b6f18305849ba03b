// One step of a recurrent layer, and back: the twin of `cpu::recurrent`. The products of a step are launches of their own.
//
// In: a `Step` or a `StepBack`, whose operands are those of one step in row-major order. Out: a thread for each unit of each
// sequence writes its states, or the gradients by its gates.

namespace opsmith {

enum : int { kLstm = 0, kGru = 1, kTanh = 2 };

template <class T>
struct Step {
  Strided<1, u64> places;
  u64 units;
  // The sums of the input and, with its bias, of the state, `(batch, gates * units)`.
  const T *input, *state;
  // `(batch, units)`; cells only of long short-term memory.
  const T *hidden, *cell;
  T *next_hidden, *next_cell;
  // `(batch, 4 * units)`: read by backward.
  T *saved;
  i64 kind;

  DEVICE void save(u64 at, T a, T b, T c, T d) const {
    saved[at] = a, saved[at + units] = b, saved[at + 2 * units] = c, saved[at + 3 * units] = d;
  }
  DEVICE void operator()(const i64 (&)[1], const u64 (&index)[8]) const {
    const u64 sequence = index[0], unit = index[1], own = sequence * units + unit;
    const u64 gates = kind == kLstm ? 4 : kind == kGru ? 3 : 1, first = sequence * gates * units + unit;
    const auto sum = [&](u64 gate) { return input[first + gate * units] + state[first + gate * units]; };
    const u64 kept = sequence * 4 * units + unit;
    if (kind == kLstm) {
      const T in = math::sigmoid(sum(0)), forget = math::sigmoid(sum(1));
      const T fresh = math::tanh(sum(2)), out = math::sigmoid(sum(3));
      const T after = forget * cell[own] + in * fresh;
      next_cell[own] = after;
      next_hidden[own] = out * math::tanh(after);
      save(kept, in, forget, fresh, out);
    } else if (kind == kGru) {
      const T reset = math::sigmoid(sum(0)), update = math::sigmoid(sum(1)), of_state = state[first + 2 * units];
      const T fresh = math::tanh(input[first + 2 * units] + reset * of_state);
      next_hidden[own] = fresh + update * (hidden[own] - fresh);
      save(kept, reset, update, fresh, of_state);
    } else {
      const T all = sum(0);
      // NaN stays.
      next_hidden[own] = kind == kTanh ? math::tanh(all) : all < 0 ? T(0) : all;
    }
  }
};

template <class T>
struct StepBack {
  Strided<1, u64> places;
  u64 units;
  // Gradients by the states after the step, `(batch, units)`: of the results, or null, and of the later steps.
  const T *grad_output, *grad_cells, *later;
  // States before and after the step, and saved values.
  const T *hidden_before, *hidden_after, *cell_before, *cell_after, *saved;
  // The gradient by the cell, of this and then of the earlier step.
  T *of_cell;
  // Gradients by the gates and, if they differ, by the sums of the state; the part of that by the state before the step that is
  // no product.
  T *of_gates, *of_sums, *direct;
  i64 kind;

  DEVICE static T slope(T value) { return value * (1 - value); }
  DEVICE static T tanh_slope(T value) { return 1 - value * value; }

  DEVICE void operator()(const i64 (&)[1], const u64 (&index)[8]) const {
    const u64 sequence = index[0], unit = index[1], own = sequence * units + unit;
    const u64 gates = kind == kLstm ? 4 : kind == kGru ? 3 : 1, first = sequence * gates * units + unit;
    const T *const kept = saved + (sequence * 4 * units + unit);
    const T by_later = later[own], dh = grad_output == nullptr ? by_later : by_later + grad_output[own];
    direct[own] = 0;
    if (kind == kLstm) {
      const T in = kept[0], forget = kept[units], fresh = kept[2 * units], out = kept[3 * units];
      const T dc = grad_cells == nullptr ? of_cell[own] : of_cell[own] + grad_cells[own];
      const T bent = math::tanh(cell_after[own]), by_cell = dc + dh * out * tanh_slope(bent);
      of_gates[first] = by_cell * fresh * slope(in);
      of_gates[first + units] = by_cell * cell_before[own] * slope(forget);
      of_gates[first + 2 * units] = by_cell * in * tanh_slope(fresh);
      of_gates[first + 3 * units] = dh * bent * slope(out);
      of_cell[own] = by_cell * forget;
    } else if (kind == kGru) {
      const T reset = kept[0], update = kept[units], fresh = kept[2 * units], state = kept[3 * units];
      const T by_fresh = dh * (1 - update) * tanh_slope(fresh);
      const T by_update = dh * (hidden_before[own] - fresh) * slope(update), by_reset = by_fresh * state * slope(reset);
      of_gates[first] = by_reset, of_gates[first + units] = by_update, of_gates[first + 2 * units] = by_fresh;
      of_sums[first] = by_reset, of_sums[first + units] = by_update, of_sums[first + 2 * units] = by_fresh * reset;
      direct[own] = dh * update;
    } else {
      const T after = hidden_after[own];
      of_gates[first] = dh * (kind == kTanh ? tanh_slope(after) : after > 0 ? T(1) : T(0));
    }
  }
};

}  // namespace opsmith
