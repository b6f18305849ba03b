//! Sums, means and maxima of rows of a table, a *bag* of indices at a time.

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::{DType, DeviceView, DeviceViewMut, Error, Result, Scalar};

use crate::cpu::expect_sizes;
use crate::cpu::index::{check_weights, rows_and_width};
use crate::cuda::launch::{each, strided};
use crate::cuda::moves::{Part, fill};
use crate::device::EACH;
use crate::device::strided::Strided;

static PROGRAM: DeviceProgram = DeviceProgram::new("bags.cuh", EACH, include_str!("../../../cuda/bags.cuh"));

#[derive(Clone, Copy)]
#[repr(C)]
struct Bags {
    indices: *const i64,
    starts: *const i64,
    index_step: i64,
    start_step: i64,
    count: u64,
    bags: u64,
    rows: u64,
    padding: i64,
}

impl Bags {
    /// The bags of rows of a table, of which the row `padding` counts for nothing.
    ///
    /// # Errors
    /// If indices are in no bag.
    fn new(
        indices: &DeviceView<'_>,
        offsets: &DeviceView<'_>,
        include_last_offset: bool,
        (rows, padding): (i64, i64),
    ) -> Result<Bags> {
        let bags = offsets.numel() - usize::from(include_last_offset && offsets.numel() > 0);
        if bags == 0 && indices.numel() > 0 {
            return Err(Error::value(format!("{} indices are in no bag", indices.numel()))
                .with_help("give an offset for each bag, and the end of the last one if it is included"));
        }
        Ok(Bags {
            indices: indices.address().cast(),
            starts: offsets.address().cast(),
            index_step: step(indices.strides()),
            start_step: step(offsets.strides()),
            count: indices.numel() as u64,
            bags: bags as u64,
            rows: rows as u64,
            padding,
        })
    }
}

/// The step along the first dimension.
fn step(strides: &[i64]) -> i64 {
    strides.first().copied().unwrap_or(0)
}

#[derive(Clone, Copy)]
#[repr(C)]
struct BagColumns {
    places: Strided<3>,
    bags: Bags,
    row_step: i64,
    factors: *const u8,
    factor_step: i64,
    mode: u32,
    padding: u32,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct BagSizes {
    places: Strided<1>,
    bags: Bags,
    mode: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct BagOf {
    places: Strided<1>,
    bags: Bags,
}

/// For each bag, the sum (`mode` 0), mean (1) or maximum (2) of the rows of `weight` at its indices;
/// also each index' bag, each bag's number of indices (for means and maxima; else zeros), and for
/// maxima the index each came from (else zeros). Indices equal to `padding_idx` are passed over; sums
/// weigh rows with `per_sample_weights`.
///
/// # Errors
/// If the shapes or the mode do not fit, or errors of the device.
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn embedding_bag(
    weight: DeviceView<'_>,
    indices: DeviceView<'_>,
    offsets: DeviceView<'_>,
    mode: i64,
    per_sample_weights: Option<DeviceView<'_>>,
    include_last_offset: bool,
    padding_idx: i64,
    out: DeviceViewMut<'_>,
    offset2bag: DeviceViewMut<'_>,
    bag_size: DeviceViewMut<'_>,
    max_indices: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = weight.dtype();
    let (rows, width) = rows_and_width(weight.sizes(), mode)?;
    if let Some(factors) = &per_sample_weights {
        check_weights(mode, factors.sizes(), indices.sizes())?;
    }
    let bags = Bags::new(&indices, &offsets, include_last_offset, (rows, padding_idx))?;
    let count = bags.bags;
    expect_sizes(out.sizes(), &[count as i64, width])?;
    expect_sizes(bag_size.sizes(), &[count as i64])?;
    expect_sizes(offset2bag.sizes(), indices.sizes())?;
    let origins: &[i64] = if mode == 2 { max_indices.strides() } else { &[] };
    if mode != 2 && max_indices.numel() > 0 {
        let whole = Part { sizes: max_indices.sizes(), strides: max_indices.strides(), offset: 0 };
        // SAFETY: the whole output.
        unsafe { fill(&max_indices, whole, Scalar::Int(0))? };
    }
    let operands = [
        (out.address().cast_const().cast(), out.strides()),
        (weight.address().cast(), &[0, weight.strides()[1]][..]),
        (max_indices.address().cast_const().cast(), origins),
    ];
    let places = strided(out.sizes(), operands)?;
    let (factors, factor_step) = per_sample_weights
        .map_or((std::ptr::null(), 0), |factors| (factors.address().cast(), step(factors.strides())));
    let columns = BagColumns {
        places,
        bags,
        row_step: weight.strides()[0],
        factors,
        factor_step,
        mode: mode as u32,
        padding: 0,
    };
    let each_bag = strided(bag_size.sizes(), [(bag_size.address().cast_const().cast(), bag_size.strides())])?;
    let each_index =
        strided(offset2bag.sizes(), [(offset2bag.address().cast_const().cast(), offset2bag.strides())])?;
    let (device, sizes) = (out.device(), BagSizes { places: each_bag, bags, mode: mode as u64 });
    // SAFETY: the structs have the fields of `bags.cuh`; rows are checked before they are followed.
    unsafe {
        each(&PROGRAM, device, (1, "BagColumns"), dtype, &places, &columns)?;
        each(&PROGRAM, device, (2, "BagSizes"), DType::I64, &each_bag, &sizes)?;
        each(&PROGRAM, device, (3, "BagOf"), DType::I64, &each_index, &BagOf { places: each_index, bags })
    }
}
