//! The tensor allocator: 64-byte aligned blocks, with freed blocks kept by size class for the next request.
//!
//! Fresh memory costs page faults that are several times the price of the work on it, so blocks are reused.
//! Every byte handed out is initialised (zero at first, then whatever the last owner left). What is kept is
//! bounded: [`SMALL_KEPT`] blocks per class and thread, [`LARGE_KEPT_BYTES`] in all for large blocks.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::Mutex;

/// Alignment of every block, in bytes.
pub const ALIGNMENT: usize = 64;
/// Blocks up to this size are kept per thread, larger ones for the process.
const SMALL_LIMIT: usize = 4096;
const SMALL_CLASSES: usize = SMALL_LIMIT / ALIGNMENT;
const SMALL_KEPT: usize = 64;
const LARGE_KEPT_BYTES: usize = 256 << 20;
const LARGE_CLASSES: usize = 256;

struct Block(NonNull<u8>);

// SAFETY: a free block has no owner; whoever takes it owns it alone.
unsafe impl Send for Block {}

struct SmallCache([Vec<Block>; SMALL_CLASSES]);

impl Drop for SmallCache {
    fn drop(&mut self) {
        for (class, blocks) in self.0.iter_mut().enumerate() {
            for block in blocks.drain(..) {
                free_block(block.0, (class + 1) * ALIGNMENT);
            }
        }
    }
}

struct LargeCache {
    classes: [Vec<Block>; LARGE_CLASSES],
    bytes: usize,
}

thread_local! {
    static SMALL: RefCell<SmallCache> = const { RefCell::new(SmallCache([const { Vec::new() }; SMALL_CLASSES])) };
}

static LARGE: Mutex<LargeCache> = Mutex::new(LargeCache {
    classes: [const { Vec::new() }; LARGE_CLASSES],
    bytes: 0,
});

/// The class of a large size and the capacity of its blocks: four classes to each doubling.
fn large_class(size: usize) -> Option<(usize, usize)> {
    let power = usize::BITS - 1 - size.leading_zeros();
    let step = 1usize << (power - 2);
    let capacity = size.checked_next_multiple_of(step)?;
    let power = usize::BITS - 1 - capacity.leading_zeros();
    let class = (power as usize) * 4 + (capacity >> (power - 2)) % 4;
    Some((class, capacity))
}

fn layout(capacity: usize) -> Option<Layout> {
    Layout::from_size_align(capacity, ALIGNMENT).ok()
}

fn free_block(pointer: NonNull<u8>, capacity: usize) {
    if let Some(layout) = layout(capacity) {
        // SAFETY: the block was allocated with this layout and nobody owns it any more.
        unsafe { dealloc(pointer.as_ptr(), layout) };
    }
}

/// A block of at least `size` initialised bytes and its capacity, which [`release`] wants back. None when memory is out.
pub fn acquire(size: usize) -> Option<(NonNull<u8>, usize)> {
    if size <= SMALL_LIMIT {
        let class = size.max(1).div_ceil(ALIGNMENT) - 1;
        let kept = SMALL
            .try_with(|cache| cache.borrow_mut().0[class].pop())
            .ok()
            .flatten();
        let capacity = (class + 1) * ALIGNMENT;
        return kept
            .map(|block| block.0)
            .or_else(|| fresh(capacity))
            .map(|pointer| (pointer, capacity));
    }
    let (class, capacity) = large_class(size)?;
    let kept = {
        let mut large = LARGE.lock().unwrap_or_else(|poison| poison.into_inner());
        let block = large.classes.get_mut(class)?.pop();
        if block.is_some() {
            large.bytes -= capacity;
        }
        block
    };
    kept.map(|block| block.0)
        .or_else(|| fresh(capacity))
        .map(|pointer| (pointer, capacity))
}

fn fresh(capacity: usize) -> Option<NonNull<u8>> {
    let layout = layout(capacity)?;
    // SAFETY: the layout has a size above zero.
    NonNull::new(unsafe { alloc_zeroed(layout) })
}

/// Gives a block of [`acquire`] back.
pub fn release(pointer: NonNull<u8>, capacity: usize) {
    if capacity <= SMALL_LIMIT {
        let class = capacity / ALIGNMENT - 1;
        let kept = SMALL.try_with(|cache| {
            let blocks = &mut cache.borrow_mut().0[class];
            let keep = blocks.len() < SMALL_KEPT;
            if keep {
                blocks.push(Block(pointer));
            }
            keep
        });
        if kept != Ok(true) {
            free_block(pointer, capacity);
        }
        return;
    }
    if let Some((class, _)) = large_class(capacity) {
        let mut large = LARGE.lock().unwrap_or_else(|poison| poison.into_inner());
        if large.bytes + capacity <= LARGE_KEPT_BYTES {
            large.bytes += capacity;
            large.classes[class].push(Block(pointer));
            return;
        }
    }
    free_block(pointer, capacity);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_reused_and_refused_when_too_large() {
        for size in [0, 1, 64, 65, 4096, 4097, 5000, 1 << 20, (1 << 20) + 1] {
            let (pointer, capacity) = acquire(size).unwrap();
            assert_eq!(pointer.as_ptr() as usize % ALIGNMENT, 0);
            assert!(capacity >= size);
            release(pointer, capacity);
            let (again, same) = acquire(size).unwrap();
            assert_eq!(same, capacity);
            release(again, same);
        }
        assert!(acquire(usize::MAX / 2).is_none());
        assert!(acquire(usize::MAX - 1).is_none());
    }
}
