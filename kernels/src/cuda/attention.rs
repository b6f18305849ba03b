//! Attention and its gradients: the twin of [`cpu::attention`](crate::cpu::attention).
//!
//! In: operands of any strides. Out: results, with scores in tiles that are never held as a whole. The gradients compute the
//! weights anew. 16-bit floats with at most 128 columns are multiplied by tensor cores, and weights rounded before; all others by
//! `attention.cuh`, in the dtype of sums.

use std::ffi::c_void;

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::backend::{self, Grid, KernelParameter};
use opsmith_runtime::{DType, Device, DeviceView, DeviceViewMut, Dims, Element, Result, Scalar};

use super::launch::{strided, with_float};
use super::scratch::Room;
use crate::cpu::attention::{check_sizes, expect_results};
use crate::cpu::{expect_operand, expect_sizes};
use crate::device::strided::Strided;
use crate::device::{ATTENTION, TENSOR_ATTENTION};

static PROGRAM: DeviceProgram =
    DeviceProgram::new("attention.cuh", ATTENTION, include_str!("../../cuda/attention.cuh"));

static TENSOR_PROGRAM: DeviceProgram = DeviceProgram::new(
    "tensor_attention.cuh",
    TENSOR_ATTENTION,
    include_str!("../../cuda/tensor_attention.cuh"),
);

/// Numbers of operands in `attention.cuh`.
const QUERY: usize = 0;
const KEY: usize = 1;
const VALUE: usize = 2;
const MASK: usize = 3;
const OUT: usize = 4;
const LOGARITHM: usize = 5;
const GRAD_OUT: usize = 6;
const GRAD_LOGARITHM: usize = 7;
/// The gradients of query, key, value and mask come in this order.
const GRADS: usize = 8;
const OPERANDS: usize = 12;

/// Threads of a block along columns and rows, in `attention.cuh`, bytes of an access, and the maximal number of blocks for heads.
const ALONG_X: u64 = 16;
const ALONG_Y: u64 = 8;
const VECTOR_BYTES: u64 = 16;
const MOST_HEADS: u64 = 65535;

/// Rows of a thread, of scores in single precision and of others. Few rows of a result leave more blocks to them.
const EACH: u64 = 8;
const FEW_EACH: u64 = 4;

/// Threads of a block, rows of each of its bands, columns of the widest operands, elements between a tile's rows and columns, in
/// `tensor_attention.cuh`.
const MATRIX_THREADS: u32 = 128;
const BAND_ROWS: u64 = 64;
const WIDEST: u64 = 128;
const TILE_MARGIN: u64 = 8;

/// Field by field as in `attention.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Attention<C> {
    heads: Strided<OPERANDS>,
    steps: [[i64; 2]; OPERANDS],
    queries: u64,
    keys: u64,
    inner: u64,
    width: u64,
    causal: u64,
    products: *mut C,
    scale: C,
}

/// An operand: address and strides; `None` if it is absent.
type Operand<'a> = Option<(*const c_void, &'a [i64])>;

fn operand<'a>(view: &DeviceView<'a>) -> Operand<'a> {
    Some((view.address().cast(), view.strides()))
}

fn operand_mut<'a>(view: &DeviceViewMut<'a>) -> Operand<'a> {
    Some((view.address().cast_const().cast(), view.strides()))
}

impl<C: Element> Attention<C> {
    /// The parameter for queries, keys and values of these sizes, which belong together.
    fn new(
        [query, key, value]: [&[i64]; 3],
        operands: [Operand<'_>; OPERANDS],
        is_causal: bool,
        scale: Option<f64>,
    ) -> Result<Attention<C>> {
        let leading = query.len() - 2;
        let mut steps = [[0; 2]; OPERANDS];
        let mut outer: [Dims; OPERANDS] = std::array::from_fn(|_| Dims::from_elem(0, leading));
        for ((steps, outer), (_, strides)) in steps
            .iter_mut()
            .zip(&mut outer)
            .zip(operands.iter().map(|operand| operand.unwrap_or((std::ptr::null(), &[]))))
        {
            if let Some((front, rest)) = strides.split_at_checked(leading) {
                outer.copy_from_slice(front);
                steps.iter_mut().zip(rest).for_each(|(step, &stride)| *step = stride);
            }
        }
        let pointers = operands.map(|operand| operand.map_or(std::ptr::null(), |(start, _)| start));
        let places = std::array::from_fn(|number| (pointers[number], &outer[number][..]));
        let inner = query[leading + 1];
        let scale = scale.unwrap_or_else(|| 1.0 / (inner as f64).sqrt());
        Ok(Attention {
            heads: strided(&query[..leading], places)?,
            steps,
            queries: query[leading] as u64,
            keys: key[leading] as u64,
            inner: inner as u64,
            width: value[leading + 1] as u64,
            causal: u64::from(is_causal),
            products: std::ptr::null_mut(),
            scale: C::from_scalar(Scalar::Float(scale)),
        })
    }

    fn has(&self, operand: usize) -> bool {
        !self.heads.pointers[operand].is_null()
    }

    /// The padded number of columns for tensor cores; `None` if they do not compute the operands.
    fn tensor_width(&self, device: Device, dtype: DType) -> Result<Option<u64>> {
        let columns = self.inner.max(self.width);
        let fits = matches!(dtype, DType::F16 | DType::BF16)
            && columns <= WIDEST
            && backend::of(device)?.has_tensor_cores(device.index)?;
        Ok(fits.then_some(if columns <= WIDEST / 2 { WIDEST / 2 } else { WIDEST }))
    }

    /// Launches a function of the program of tensor cores for rows of a result, of which a block has `bands` times 64, and tiles of
    /// `shared` rows.
    ///
    /// # Safety
    /// Operands are on the device, and of the sizes.
    unsafe fn launch_tensor(
        &self,
        (device, dtype, width): (Device, DType, u64),
        (number, function): (u32, String),
        (rows, bands): (u64, u64),
        shared: u64,
    ) -> Result<()> {
        let blocks = [rows.div_ceil(BAND_ROWS * bands), 1, self.heads.count.min(MOST_HEADS)];
        if blocks.contains(&0) {
            return Ok(());
        }
        let name = dtype.ident();
        let instance = || {
            let function = function.replace("{T}", &format!("opsmith::dtype::{name}"));
            format!("OPSMITH_TENSOR_ATTENTION(opsmith_kernel, dtype::{name}, {function})")
        };
        let bytes = shared * (width + TILE_MARGIN) * dtype.size() as u64;
        let threads = [MATRIX_THREADS, 1, 1];
        let grid = Grid { blocks: blocks.map(|count| count as u32), threads, shared: bytes as u32 };
        let parameters = [KernelParameter::of(self)];
        let key = (number << 1 | u32::from(width == WIDEST)) << 8 | dtype as u32;
        // SAFETY: the caller's promise.
        unsafe { TENSOR_PROGRAM.launch(device, key, instance, grid, &parameters) }
    }

    /// Launches a function of the program for rows and columns of a result, whose name has places for the dtype, the rows of a thread
    /// and its groups of columns.
    ///
    /// # Safety
    /// Operands are on the device, and of the sizes.
    unsafe fn launch(
        &self,
        device: Device,
        dtype: DType,
        (number, function): (u32, &str),
        rows: u64,
        columns: u64,
    ) -> Result<()> {
        let vector = VECTOR_BYTES / C::DTYPE.size() as u64;
        let each = if C::DTYPE == DType::F32 && rows > ALONG_Y * FEW_EACH { EACH } else { FEW_EACH };
        let groups = columns.div_ceil(ALONG_X * vector).clamp(1, each / vector);
        let chunks = columns.div_ceil(ALONG_X * vector * groups).max(1);
        let arguments = format!("{each}, {groups}");
        // SAFETY: the caller's promise.
        unsafe {
            self.launch_blocks(
                (device, dtype),
                (number << 8 | (each << 4 | groups) as u32, function, &arguments),
                [rows.div_ceil(ALONG_Y * each), chunks],
            )
        }
    }

    /// Launches a function of the program for blocks of rows and of columns.
    ///
    /// # Safety
    /// Operands are on the device, and of the sizes.
    unsafe fn launch_blocks(
        &self,
        (device, dtype): (Device, DType),
        (number, function, arguments): (u32, &str, &str),
        [rows, columns]: [u64; 2],
    ) -> Result<()> {
        let blocks = [rows, columns, self.heads.count.min(MOST_HEADS)];
        if blocks.contains(&0) {
            return Ok(());
        }
        let name = dtype.ident();
        let instance = || {
            let function = function.replace("{T}", &format!("opsmith::dtype::{name}"));
            let function = function.replace("{E}", arguments);
            format!("OPSMITH_ATTENTION(opsmith_kernel, dtype::{name}, {function})")
        };
        let threads = [(ALONG_X * ALONG_Y) as u32, 1, 1];
        let grid = Grid { blocks: blocks.map(|count| count as u32), threads, shared: 0 };
        let parameters = [KernelParameter::of(self)];
        // SAFETY: the caller's promise.
        unsafe { PROGRAM.launch(device, number << 8 | dtype as u32, instance, grid, &parameters) }
    }
}

/// `softmax(scale * query @ keyᵀ + attn_mask) @ value` for each head, and the logarithm of each row's sum of
/// exponentials. An absent `scale` is 1 / √E. With `is_causal`, query number i has the keys up to number i. The row of a
/// query without keys is 0.
///
/// # Errors
/// If the sizes do not belong together, or errors of the device.
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn attention(
    query: DeviceView<'_>,
    key: DeviceView<'_>,
    value: DeviceView<'_>,
    attn_mask: Option<DeviceView<'_>>,
    is_causal: bool,
    scale: Option<f64>,
    out: DeviceViewMut<'_>,
    logsumexp: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = query.dtype();
    let sizes = [query.sizes(), key.sizes(), value.sizes()];
    check_sizes(sizes, attn_mask.map(|mask| mask.sizes()))?;
    expect_results(query.sizes(), value.sizes(), out.sizes(), logsumexp.sizes())?;
    let mut operands = [None; OPERANDS];
    operands[QUERY] = operand(&query);
    operands[KEY] = operand(&key);
    operands[VALUE] = operand(&value);
    operands[MASK] = attn_mask.as_ref().and_then(operand);
    operands[OUT] = operand_mut(&out);
    operands[LOGARITHM] = operand_mut(&logsumexp);
    with_float!(dtype, C => {
        let parameter = Attention::<C>::new(sizes, operands, is_causal, scale)?;
        let (rows, columns) = (parameter.queries, parameter.width);
        if let Some(width) = parameter.tensor_width(out.device(), dtype)? {
            // Two bands read each key once, one leaves more blocks to few queries.
            let bands = if rows > BAND_ROWS { 2 } else { 1 };
            let keys = if width == WIDEST && bands == 2 { 32 } else { 64 };
            let function = (bands as u32, format!("run_tensor_attention<{{T}}, {width}, {bands}>"));
            let shared = BAND_ROWS * bands + 2 * keys;
            // SAFETY: the sizes were checked, and the views vouch for their elements.
            return unsafe { parameter.launch_tensor((out.device(), dtype, width), function, (rows, bands), shared) };
        }
        // SAFETY: the sizes were checked, and the views vouch for their elements.
        unsafe { parameter.launch(out.device(), dtype, (0, "run_attention<{T}, {E}>"), rows, columns) }
    })
}

/// From the gradients of results and logarithms, those of [`attention`] by `query`, `key`, `value` and `attn_mask`; those that
/// `output_mask` does not ask for are left as they are.
///
/// # Errors
/// As [`attention`].
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn attention_backward(
    grad_out: DeviceView<'_>,
    grad_logsumexp: Option<DeviceView<'_>>,
    query: DeviceView<'_>,
    key: DeviceView<'_>,
    value: DeviceView<'_>,
    attn_mask: Option<DeviceView<'_>>,
    out: DeviceView<'_>,
    logsumexp: DeviceView<'_>,
    is_causal: bool,
    scale: Option<f64>,
    output_mask: &[bool],
    grad_query: DeviceViewMut<'_>,
    grad_key: DeviceViewMut<'_>,
    grad_value: DeviceViewMut<'_>,
    grad_mask: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = grad_out.dtype();
    let sizes = [query.sizes(), key.sizes(), value.sizes()];
    check_sizes(sizes, attn_mask.map(|mask| mask.sizes()))?;
    expect_results(query.sizes(), value.sizes(), out.sizes(), logsumexp.sizes())?;
    expect_operand("grad_out", grad_out.sizes(), out.sizes())?;
    if let Some(grad) = &grad_logsumexp {
        expect_operand("grad_logsumexp", grad.sizes(), logsumexp.sizes())?;
    }
    let mut operands = [None; OPERANDS];
    operands[QUERY] = operand(&query);
    operands[KEY] = operand(&key);
    operands[VALUE] = operand(&value);
    operands[MASK] = attn_mask.as_ref().and_then(operand);
    operands[OUT] = operand(&out);
    operands[LOGARITHM] = operand(&logsumexp);
    operands[GRAD_OUT] = operand(&grad_out);
    operands[GRAD_LOGARITHM] = grad_logsumexp.as_ref().and_then(operand);
    let of =
        [Some(query.sizes()), Some(key.sizes()), Some(value.sizes()), attn_mask.map(|mask| mask.sizes())];
    for (number, (grad, of)) in
        [&grad_query, &grad_key, &grad_value, &grad_mask].into_iter().zip(of).enumerate()
    {
        let of = of.filter(|_| output_mask.get(number).copied().unwrap_or(true));
        expect_sizes(grad.sizes(), of.unwrap_or(&[0]))?;
        operands[GRADS + number] = of.and_then(|_| operand_mut(grad));
    }
    let device = grad_out.device();
    with_float!(dtype, C => {
        let mut parameter = Attention::<C>::new(sizes, operands, is_causal, scale)?;
        let memory = Room::new::<C>(device, parameter.heads.count * parameter.queries)?;
        parameter.products = memory.address();
        // SAFETY: the sizes were checked, and the views vouch for their elements; there is room for each product.
        unsafe { launch_backward(&parameter, device, dtype) }
    })
}

/// # Safety
/// Operands are on the device, and of the sizes.
unsafe fn launch_backward<C: Element>(f: &Attention<C>, device: Device, dtype: DType) -> Result<()> {
    let (queries, keys, inner, width) = (f.queries, f.keys, f.inner, f.width);
    let backward =
        |by_key: bool, of_value: bool| format!("run_attention_backward<{{T}}, {by_key}, {of_value}, {{E}}>");
    // SAFETY: the caller's promise.
    unsafe {
        f.launch_blocks(
            (device, dtype),
            (1 << 8, "run_attention_products", ""),
            [queries.div_ceil(ALONG_Y), 1],
        )?;
        if let Some(columns) = f.tensor_width(device, dtype)? {
            return launch_tensor_backward(f, (device, dtype, columns));
        }
        if f.has(GRADS) || f.has(GRADS + 3) {
            f.launch(device, dtype, (2, &backward(false, false)), queries, inner)?;
        }
        if f.has(GRADS + 1) {
            f.launch(device, dtype, (3, &backward(true, false)), keys, inner)?;
        }
        if f.has(GRADS + 2) {
            f.launch(device, dtype, (4, &backward(true, true)), keys, width)?;
        }
    }
    Ok(())
}

/// # Safety
/// Operands are on the device, and of the sizes.
unsafe fn launch_tensor_backward<C: Element>(
    f: &Attention<C>,
    place @ (_, _, columns): (Device, DType, u64),
) -> Result<()> {
    // Two operands of the block's rows, and two stages of two of the other side.
    let shared = 2 * BAND_ROWS + 4 * if columns == WIDEST { 32 } else { 64 };
    let of = |side: &str| format!("run_tensor_attention_of_{side}<{{T}}, {columns}>");
    // SAFETY: the caller's promise.
    unsafe {
        if f.has(GRADS) || f.has(GRADS + 3) {
            f.launch_tensor(place, (3, of("queries")), (f.queries, 1), shared)?;
        }
        if f.has(GRADS + 1) || f.has(GRADS + 2) {
            f.launch_tensor(place, (4, of("keys")), (f.keys, 1), shared)?;
        }
    }
    Ok(())
}
