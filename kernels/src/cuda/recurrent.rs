//! The steps of recurrent layers, one after the other, and back: the twin of [`cpu::recurrent`](crate::cpu::recurrent).
//!
//! A step is a product of the state and its weights, and a thread for each unit.

use std::ffi::c_void;

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::backend::Elements;
use opsmith_runtime::layout::contiguous_strides;
use opsmith_runtime::{Device, DeviceView, DeviceViewMut, Result, Scalar};

use super::launch::{each, strided};
use super::linalg::{Plane, product};
use super::scratch::{Dense, DenseMut, Room, convert};
use crate::cpu::recurrent::Kind;
use crate::device::EACH;
use crate::device::strided::Strided;

static PROGRAM: DeviceProgram =
    DeviceProgram::new("recurrent.cuh", EACH, include_str!("../../cuda/recurrent.cuh"));

/// Field by field as in `recurrent.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Step {
    places: Strided<1>,
    units: u64,
    input: *const c_void,
    state: *const c_void,
    hidden: *const c_void,
    cell: *const c_void,
    next_hidden: *mut c_void,
    next_cell: *mut c_void,
    saved: *mut c_void,
    kind: i64,
}

/// Field by field as in `recurrent.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
struct StepBack {
    places: Strided<1>,
    units: u64,
    grad_output: *const c_void,
    grad_cells: *const c_void,
    later: *const c_void,
    hidden_before: *const c_void,
    hidden_after: *const c_void,
    cell_before: *const c_void,
    cell_after: *const c_void,
    saved: *const c_void,
    of_cell: *mut c_void,
    of_gates: *mut c_void,
    of_sums: *mut c_void,
    direct: *mut c_void,
    kind: i64,
}

/// Sizes of a layer.
struct Layer {
    kind: Kind,
    number: i64,
    steps: usize,
    batch: usize,
    units: usize,
    reverse: bool,
    device: Device,
}

impl Layer {
    fn of(kind: i64, sequence: &[i64], units: i64, reverse: bool, device: Device) -> Layer {
        let [steps, batch] = [sequence[0] as usize, sequence[1] as usize];
        Layer { kind: Kind::of(kind), number: kind, steps, batch, units: units as usize, reverse, device }
    }

    /// Width of the gates of one sequence.
    fn width(&self) -> usize {
        self.kind.gates() * self.units
    }

    /// Elements of a state.
    fn states(&self) -> usize {
        self.batch * self.units
    }

    /// Elements of a step that are saved.
    fn saved(&self) -> usize {
        self.batch * self.kind.saved() * self.units
    }

    /// The position of a step.
    fn position(&self, step: usize) -> usize {
        if self.reverse { self.steps - 1 - step } else { step }
    }

    /// An index for each unit of each sequence.
    fn places(&self) -> Result<Strided<1>> {
        strided(&[self.batch as i64, self.units as i64], [(std::ptr::null(), &[0, 0])])
    }

    /// A state as a matrix.
    fn plane(&self, start: *const c_void) -> Plane {
        Plane::dense(start, [self.batch as i64, self.units as i64])
    }

    /// Gates as a matrix.
    fn gates(&self, start: *const c_void) -> Plane {
        Plane::dense(start, [self.batch as i64, self.width() as i64])
    }
}

/// The steps of a layer, with the shapes of the host's. Activations are those of the gates, of gated recurrent units those and
/// the sum of the state in the new gate.
///
/// # Errors
/// Errors of the device; shapes were checked before.
#[allow(clippy::too_many_arguments, reason = "they are the operator's")]
pub fn steps(
    gates: DeviceView<'_>,
    hidden: DeviceView<'_>,
    cell: Option<DeviceView<'_>>,
    weight: DeviceView<'_>,
    bias: Option<DeviceView<'_>>,
    kind: i64,
    reverse: bool,
    output: DeviceViewMut<'_>,
    cells: DeviceViewMut<'_>,
    activations: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = gates.dtype();
    let layer = Layer::of(kind, gates.sizes(), hidden.sizes()[1], reverse, output.device());
    let (width, states) = (layer.width(), layer.states());
    let (gates, hidden) = (Dense::of(&gates)?, Dense::of(&hidden)?);
    let cell = dense(cell)?;
    let (output, cells, saved) = (DenseMut::of(output)?, DenseMut::of(cells)?, DenseMut::of(activations)?);
    let sums = Room::of_dtype(layer.device, dtype, (layer.batch * width) as u64)?;
    let turned = Plane {
        start: weight.address(),
        sizes: [weight.sizes()[1], weight.sizes()[0]],
        strides: [weight.strides()[1], weight.strides()[0]],
    };
    let bias = bias.as_ref().map(|bias| Plane {
        start: bias.address(),
        sizes: [layer.batch as i64, width as i64],
        strides: [0, bias.strides()[0]],
    });
    let (mut before, mut cell_before) = (hidden.address, Dense::address_of(&cell));
    for at in (0..layer.steps).map(|step| layer.position(step)) {
        let step = Step {
            places: layer.places()?,
            units: layer.units as u64,
            input: gates.at(at * layer.batch * width),
            state: sums.address(),
            hidden: before,
            cell: cell_before,
            next_hidden: output.at(at * states),
            next_cell: cells.at(at * states),
            saved: saved.at(at * layer.saved()),
            kind: layer.number,
        };
        // SAFETY: shapes were checked before; a step's operands are the parts at its position, and sums memory of this call.
        unsafe {
            product(dtype, layer.device, [layer.plane(before), turned], bias, layer.gates(sums.address()))?;
            each(&PROGRAM, layer.device, (0, "Step"), dtype, &step.places, &step)?;
        }
        (before, cell_before) = (step.next_hidden, step.next_cell);
    }
    output.write()?;
    cells.write()?;
    saved.write()
}

/// The gradients of [`steps`] by the gates before their activations, `(steps, batch, width)`, of gated recurrent units also by
/// the sums of the state, and by the first hidden and cell state.
///
/// # Errors
/// Errors of the device; shapes were checked before.
#[allow(clippy::too_many_arguments, reason = "they are the operator's")]
pub fn steps_backward(
    grad_output: Option<DeviceView<'_>>,
    grad_cells: Option<DeviceView<'_>>,
    hidden: DeviceView<'_>,
    cell: Option<DeviceView<'_>>,
    weight: DeviceView<'_>,
    output: DeviceView<'_>,
    cells: DeviceView<'_>,
    activations: DeviceView<'_>,
    kind: i64,
    reverse: bool,
    of_gates: DeviceViewMut<'_>,
    of_sums: DeviceViewMut<'_>,
    of_hidden: DeviceViewMut<'_>,
    of_cell: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = hidden.dtype();
    let layer = Layer::of(kind, output.sizes(), hidden.sizes()[1], reverse, of_hidden.device());
    let (states, of_step) = (layer.states(), layer.batch * layer.width());
    let (grad_output, grad_cells) = (dense(grad_output)?, dense(grad_cells)?);
    let cell = dense(cell)?;
    let (hidden, output) = (Dense::of(&hidden)?, Dense::of(&output)?);
    let (cells, saved) = (Dense::of(&cells)?, Dense::of(&activations)?);
    let weight =
        Plane { start: weight.address(), sizes: pair(weight.sizes()), strides: pair(weight.strides()) };
    let (gates, sums) = (DenseMut::of(of_gates)?, DenseMut::of(of_sums)?);
    let direct = Room::of_dtype(layer.device, dtype, states as u64)?;
    let later = Room::filled(layer.device, dtype, states as u64, Scalar::Int(0))?;
    let by_cell = Room::filled(layer.device, dtype, states as u64, Scalar::Int(0))?;
    let part = |dense: &Option<Dense<'_>>, at: usize| {
        dense.as_ref().map_or(std::ptr::null(), |dense| dense.at(at * states))
    };
    for step in (0..layer.steps).rev() {
        let at = layer.position(step);
        let (hidden_before, cell_before) = match step.checked_sub(1).map(|step| layer.position(step)) {
            Some(at) => (output.at(at * states), cells.at(at * states)),
            None => (hidden.address, Dense::address_of(&cell)),
        };
        let back = StepBack {
            places: layer.places()?,
            units: layer.units as u64,
            grad_output: part(&grad_output, at),
            grad_cells: part(&grad_cells, at),
            later: later.address(),
            hidden_before,
            hidden_after: output.at(at * states),
            cell_before,
            cell_after: cells.at(at * states),
            saved: saved.at(at * layer.saved()),
            of_cell: by_cell.address(),
            of_gates: gates.at(at * of_step),
            of_sums: sums.at(at * of_step),
            direct: direct.address(),
            kind: layer.number,
        };
        let of_state = if layer.kind == Kind::Gru { back.of_sums } else { back.of_gates };
        // SAFETY: shapes were checked before; a step's operands are the parts at its position, the others memory of this call.
        unsafe {
            each(&PROGRAM, layer.device, (1, "StepBack"), dtype, &back.places, &back)?;
            let (added, to) = (layer.plane(back.direct), layer.plane(back.later));
            product(dtype, layer.device, [layer.gates(of_state), weight], Some(added), to)?;
        }
    }
    gates.write()?;
    sums.write()?;
    write(&later, &of_hidden)?;
    write(&by_cell, &of_cell)
}

/// An optional operand in row-major order.
fn dense(view: Option<DeviceView<'_>>) -> Result<Option<Dense<'_>>> {
    view.as_ref().map(Dense::of).transpose()
}

/// Two numbers of a list.
fn pair(list: &[i64]) -> [i64; 2] {
    [list[0], list[1]]
}

/// Copies elements in row-major order to where an output has them.
fn write(from: &Room, to: &DeviceViewMut<'_>) -> Result<()> {
    let dtype = to.dtype();
    if to.numel() == 0 {
        return Ok(());
    }
    let own = contiguous_strides(to.sizes());
    let from = Elements { start: from.address(), dtype, sizes: to.sizes(), strides: &own };
    let start = to.address().cast();
    let target = Elements { start, dtype, sizes: to.sizes(), strides: to.strides() };
    // SAFETY: all elements of the output, and as much memory of this call's own.
    unsafe { convert(to.device(), target, from) }
}
