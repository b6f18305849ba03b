//! Tensors as structures that other code owns.
//!
//! In: a tensor. Out: a structure, which keeps the tensor until its receiver calls its deleter.

use opsmith_runtime::Tensor;
use opsmith_runtime::backend::Queue;

use super::structures::{DlDevice, DlTensor, Legacy, Versioned};
use super::{IS_PADDED, VERSION, data_type, device_of, is_padded};

/// A structure with the sizes, strides and tensor that it refers to.
struct Exported<H> {
    head: H,
    _sizes: Vec<i64>,
    _strides: Vec<i64>,
    tensor: Tensor,
    /// The receiver's stream, if the request names none.
    queue: Option<Queue>,
}

impl<H> Drop for Exported<H> {
    fn drop(&mut self) {
        if let (Some(queue), Some(memory)) = (self.queue, self.tensor.storage().device_memory()) {
            // A failure is that of earlier work, and reported where its results are read.
            _ = memory.note_use_in(queue);
        }
    }
}

impl<H> Exported<H> {
    /// The structure at an address of its own, which is also that of its owner.
    fn new(tensor: Tensor, queue: Option<Queue>, head: impl FnOnce(DlTensor) -> H) -> *mut Exported<H> {
        let (kind, number) = device_of(&tensor);
        // The receiver may write. A wait is refused while this thread records work of a device, of which no copy of the host is part.
        _ = tensor.storage().expose();
        let mut described = DlTensor {
            data: tensor.data_ptr().cast(),
            device: DlDevice { kind, number },
            rank: tensor.dim() as i32,
            dtype: data_type(tensor.dtype()),
            sizes: std::ptr::null_mut(),
            strides: std::ptr::null_mut(),
            byte_offset: 0,
        };
        let (mut sizes, mut strides) = (tensor.shape().to_vec(), tensor.strides().to_vec());
        // The addresses of a list's items stay when the list itself moves.
        (described.sizes, described.strides) = (sizes.as_mut_ptr(), strides.as_mut_ptr());
        Box::into_raw(Box::new(Exported {
            head: head(described),
            _sizes: sizes,
            _strides: strides,
            tensor,
            queue,
        }))
    }
}

/// Frees an exported structure and its tensor.
///
/// # Safety
/// `head` is a structure that `export` made; it is not used afterwards.
pub unsafe extern "C" fn delete_legacy(head: *mut Legacy) {
    // SAFETY: the context is the box that `export` made, and receivers call this once.
    unsafe { drop(Box::from_raw((*head).context.cast::<Exported<Legacy>>())) };
}

/// As [`delete_legacy`].
///
/// # Safety
/// As of [`delete_legacy`].
pub unsafe extern "C" fn delete_versioned(head: *mut Versioned) {
    // SAFETY: the context is the box that `export` made, and receivers call this once.
    unsafe { drop(Box::from_raw((*head).context.cast::<Exported<Versioned>>())) };
}

/// The structure of a tensor in the first version, whose receiver calls its deleter once.
pub fn legacy(tensor: Tensor) -> *mut Legacy {
    let head = |tensor| Legacy { tensor, context: std::ptr::null_mut(), deleter: Some(delete_legacy) };
    let exported = Exported::new(tensor, None, head);
    // SAFETY: the box was made just now, and nothing else refers to it.
    unsafe {
        (*exported).head.context = exported.cast();
        &raw mut (*exported).head
    }
}

/// The structure of a tensor, whose receiver calls its deleter once. With a queue, the receiver's work is in it.
pub fn versioned(tensor: Tensor, flags: u64, queue: Option<Queue>) -> *mut Versioned {
    let (major, minor) = VERSION;
    let flags = if is_padded(tensor.dtype()) { flags | IS_PADDED } else { flags };
    let head = |tensor| Versioned {
        major,
        minor,
        context: std::ptr::null_mut(),
        deleter: Some(delete_versioned),
        flags,
        tensor,
    };
    let exported = Exported::new(tensor, queue, head);
    // SAFETY: the box was made just now, and nothing else refers to it.
    unsafe {
        (*exported).head.context = exported.cast();
        &raw mut (*exported).head
    }
}
