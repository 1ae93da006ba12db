//! Small tensors that the program deleted, kept with their memory for the thread's next `TF_AllocateTensor`.
//!
//! A handle, its buffer's record and its block are three allocations; a kept tensor has all of them. At most [`KEPT`]
//! for each size of block and thread. Not kept: tensors whose memory somebody else holds, is large, or is not ours.

use crate::tensor::TF_Tensor;
use ff_tensor::ALIGNMENT;
use std::cell::RefCell;

/// The largest block of a kept tensor, in bytes.
const LIMIT: usize = 1024;
const CLASSES: usize = LIMIT / ALIGNMENT;
const KEPT: usize = 16;

// The boxes are what programs hold, so they are kept as they are.
#[allow(clippy::vec_box)]
type Kept = [Vec<Box<TF_Tensor>>; CLASSES];

thread_local! {
    static CACHE: RefCell<Kept> = const { RefCell::new([const { Vec::new() }; CLASSES]) };
}

/// A kept tensor with a block for `len` bytes, alone in holding it. Its type and shape are those of its last use.
#[inline]
pub fn take(len: usize) -> Option<Box<TF_Tensor>> {
    if len > LIMIT {
        return None;
    }
    let class = len.max(1).div_ceil(ALIGNMENT) - 1;
    CACHE
        .try_with(|cache| cache.borrow_mut()[class].pop())
        .ok()
        .flatten()
}

/// Keeps a tensor, or drops it.
#[inline]
pub fn give(tensor: Box<TF_Tensor>) {
    let dropped = match tensor.reusable_bytes() {
        Some(capacity) if (ALIGNMENT..=LIMIT).contains(&capacity) => {
            let mut tensor = Some(tensor);
            let _ = CACHE.try_with(|cache| {
                let kept = &mut cache.borrow_mut()[capacity / ALIGNMENT - 1];
                if kept.len() < KEPT {
                    kept.extend(tensor.take());
                }
            });
            tensor
        }
        _ => Some(tensor),
    };
    // Outside the borrow: what a tensor holds may be anything.
    drop(dropped);
}
