//! Weights: where they lie, and how instructions name them.
//!
//! A large constant is a custom call of [`WEIGHTS_CALL`] in the text, whose configuration is its place in the weights in
//! bytes. [`place`] makes constants of those again, in the memory of the weights.

use crate::program::{Program, items};
use ff_hlo::{Attributes, Instruction, Module, Opcode};
use ff_tensor::{Buffer, Result, Shape, SharedBuffer, Tensor, ensure, status};

/// The target of custom calls that stand for constants.
pub const WEIGHTS_CALL: &str = "ferroflow.weights";

/// The number by which a file of weights is known to belong to a program.
pub fn hash(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let mut words = bytes.chunks_exact(8);
    let mut hash = mix(0, bytes.len() as u64);
    for word in &mut words {
        hash = mix(hash, u64::from_le_bytes(word.try_into().unwrap_or_default()));
    }
    words
        .remainder()
        .iter()
        .fold(hash, |hash, &byte| mix(hash, u64::from(byte)))
}

/// The weights of a program: its own, or those of a file.
///
/// NOT_FOUND without the file that is needed, DATA_LOSS when it is another one, RESOURCE_EXHAUSTED without memory.
///
/// # Safety
/// The program's table is as its compiler wrote it.
pub(crate) unsafe fn load(program: &Program, file: Option<&str>) -> Result<SharedBuffer> {
    if !program.weights.is_null() || program.weights_size == 0 {
        // SAFETY: passed on to the caller.
        let own = unsafe { items(program.weights, program.weights_size) };
        // SAFETY: constant data of the program.
        return Ok(unsafe { Buffer::shared(own.as_ptr(), own.len(), Box::new(())) });
    }
    let path = file.ok_or_else(|| {
        status!(
            NotFound,
            "The weights of this model are in a file of their own: name it when the model is made"
        )
    })?;
    let bytes = std::fs::read(path).map_err(|error| status!(NotFound, "{path}: {error}"))?;
    ensure!(
        bytes.len() as u64 == program.weights_size && hash(&bytes) == program.weights_hash,
        DataLoss,
        "{path} does not hold the weights of this model"
    );
    let mut tensor = Tensor::allocate(ff_tensor::DataType::UINT8, Shape::vector(bytes.len()))?;
    if let Some(to) = tensor.bytes_mut() {
        to.copy_from_slice(&bytes);
    }
    Ok(tensor.buffer().clone())
}

/// Replaces what stands for constants by constants.
pub(crate) fn place(module: &mut Module, weights: &SharedBuffer) -> Result<()> {
    for computation in &mut module.computations {
        for instruction in &mut computation.instructions {
            let place = match (&instruction.opcode, &instruction.attributes) {
                (Opcode::CustomCall, Attributes::CustomCall { target, config })
                    if &**target == WEIGHTS_CALL =>
                {
                    config.parse::<usize>()
                }
                _ => continue,
            };
            let place = place.map_err(|_| status!(DataLoss, "A constant has no place"))?;
            let value = constant(instruction, weights, place)?;
            instruction.opcode = Opcode::Constant;
            instruction.attributes = Attributes::Constant(value);
        }
    }
    Ok(())
}

fn constant(instruction: &Instruction, weights: &SharedBuffer, place: usize) -> Result<Tensor> {
    let array = instruction.array_shape()?;
    let len = array.byte_size();
    ensure!(
        place.checked_add(len).is_some_and(|end| end <= weights.len()) && place.is_multiple_of(64),
        DataLoss,
        "A constant lies outside of the weights"
    );
    // SAFETY: inside the buffer, which the clone keeps alive and which nobody writes.
    let buffer = unsafe { Buffer::shared(weights.start().add(place), len, Box::new(weights.clone())) };
    Tensor::view_of(array.dtype, Shape::new(&array.dims)?, buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_tell_bytes_apart() {
        let mut bytes: Vec<u8> = (0..100).collect();
        let before = hash(&bytes);
        assert_eq!(before, hash(&bytes.clone()));
        for at in 0..bytes.len() {
            bytes[at] ^= 1;
            assert_ne!(before, hash(&bytes), "{at}");
            bytes[at] ^= 1;
        }
        assert_ne!(before, hash(&bytes[..99]));
    }

    #[test]
    fn constants_outside_of_the_weights_are_refused() {
        for place in ["0", "64", "128", "7", "-1", "x", "18446744073709551552"] {
            let text = format!(
                "HloModule m\nENTRY %e () -> f32[20] {{\n  ROOT %w = f32[20] custom-call(), \
                 custom_call_target=\"{WEIGHTS_CALL}\", backend_config=\"{place}\"\n}}"
            );
            let mut module = ff_hlo::parse(&text).unwrap();
            let tensor = Tensor::zeros(ff_tensor::DataType::UINT8, Shape::vector(150)).unwrap();
            let placed = super::place(&mut module, tensor.buffer());
            assert_eq!(placed.is_ok(), ["0", "64"].contains(&place), "{place}");
        }
    }
}
