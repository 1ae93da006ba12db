//! Loads a relocatable ELF object of one self-contained module into executable memory.
//!
//! Contract: the object is 64-bit ELF for this processor (on every operating system: the compiler asks LLVM for
//! ELF), its sections are laid out in one block, relocations among them are applied, and the block becomes
//! read-only and executable. A malformed or foreign object is an error, never a crash.
//!
//! What it does not do: it resolves no symbol outside the object (kernels get addresses as arguments), knows no
//! thread-local storage and registers no unwind tables.

mod elf;
mod memory;

use elf::{Object, Section};
use ff_tensor::{Result, bail, ensure, status};
use memory::Memory;
use std::collections::HashMap;

/// An object in executable memory. Dropping it frees the memory.
pub struct LoadedObject {
    memory: Memory,
    symbols: HashMap<String, usize>,
}

impl LoadedObject {
    /// Loads the bytes of a relocatable object.
    pub fn load(bytes: &[u8]) -> Result<LoadedObject> {
        let object = Object::parse(bytes)?;
        let (offsets, total) = lay_out(&object)?;
        let mut memory = Memory::writable(total)?;
        for (section, offset) in object.sections.iter().zip(&offsets) {
            if let Some(offset) = *offset {
                // Memory starts as zeros, which is what a section without bytes holds.
                memory.bytes_mut()[offset..offset + section.data.len()].copy_from_slice(section.data);
            }
        }
        for relocation in &object.relocations {
            let (Some(place), Some(symbol)) = (
                offsets.get(relocation.section).copied().flatten(),
                object.symbols.get(relocation.symbol),
            ) else {
                continue;
            };
            let target = symbol
                .section
                .and_then(|section| offsets.get(section).copied().flatten());
            let Some(target) = target else {
                bail!(
                    Internal,
                    "compiled code refers to {}, which is outside it",
                    symbol.name
                );
            };
            let base = memory.address();
            let target = (base + target).wrapping_add(symbol.value as usize);
            let place = place + relocation.offset;
            apply(&mut memory, place, relocation, target as u64)?;
        }
        let symbols = object
            .symbols
            .iter()
            .filter_map(|symbol| {
                let offset = offsets.get(symbol.section?).copied().flatten()?;
                Some((
                    symbol.name.to_string(),
                    offset.checked_add(symbol.value as usize)?,
                ))
            })
            .filter(|(name, offset)| !name.is_empty() && *offset < total)
            .collect();
        memory.make_executable()?;
        Ok(LoadedObject { memory, symbols })
    }

    /// The address of a symbol of the object, valid while the object lives.
    pub fn symbol(&self, name: &str) -> Option<*const u8> {
        let offset = *self.symbols.get(name)?;
        Some((self.memory.address() + offset) as *const u8)
    }

    /// Bytes of memory held.
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Whether the object is empty.
    pub fn is_empty(&self) -> bool {
        self.memory.len() == 0
    }
}

/// The offset of each section that lives in memory, and the size of all.
fn lay_out(object: &Object) -> Result<(Vec<Option<usize>>, usize)> {
    let mut end = 0usize;
    let too_large = || status!(ResourceExhausted, "a compiled object is too large to load");
    let mut place = |section: &Section| -> Result<Option<usize>> {
        if !section.in_memory {
            return Ok(None);
        }
        let start = end
            .checked_next_multiple_of(section.alignment.max(1))
            .ok_or_else(too_large)?;
        end = start.checked_add(section.size).ok_or_else(too_large)?;
        ensure!(
            end < 1 << 30,
            ResourceExhausted,
            "a compiled object is too large to load"
        );
        Ok(Some(start))
    };
    let offsets = object
        .sections
        .iter()
        .map(&mut place)
        .collect::<Result<Vec<_>>>()?;
    Ok((offsets, end))
}

/// Writes one relocation: numbers are those of the processor's ELF supplement.
fn apply(memory: &mut Memory, place: usize, relocation: &elf::Relocation, target: u64) -> Result<()> {
    let value = target.wrapping_add(relocation.addend as u64);
    let here = (memory.address() + place) as u64;
    let relative = value.wrapping_sub(here) as i64;
    let out_of_range = || {
        status!(
            Internal,
            "a relocation of compiled code does not reach its target"
        )
    };
    let bytes = memory.bytes_mut();
    match (std::env::consts::ARCH, relocation.kind) {
        // Absolute, 64 bits: R_X86_64_64, R_AARCH64_ABS64.
        ("x86_64", 1) | ("aarch64", 257) => put(bytes, place, &value.to_le_bytes()),
        // Relative, 32 bits: R_X86_64_PC32, R_X86_64_PLT32, R_AARCH64_PREL32.
        ("x86_64", 2 | 4) | ("aarch64", 261) => {
            let value = i32::try_from(relative).map_err(|_| out_of_range())?;
            put(bytes, place, &value.to_le_bytes())
        }
        // Relative, 64 bits: R_X86_64_PC64, R_AARCH64_PREL64.
        ("x86_64", 24) | ("aarch64", 260) => put(bytes, place, &relative.to_le_bytes()),
        // A call or jump: 26 bits of words (R_AARCH64_JUMP26, R_AARCH64_CALL26).
        ("aarch64", 282 | 283) => {
            ensure!(
                (-(1 << 27)..1 << 27).contains(&relative),
                Internal,
                "a call of compiled code is too long"
            );
            patch(bytes, place, 0x03ff_ffff, (relative >> 2) as u32)
        }
        // The page of the target, 21 bits split over the word (R_AARCH64_ADR_PREL_PG_HI21).
        ("aarch64", 275) => {
            let pages = ((value & !0xfff).wrapping_sub(here & !0xfff) as i64) >> 12;
            ensure!(
                (-(1 << 20)..1 << 20).contains(&pages),
                Internal,
                "compiled code is too far from its data"
            );
            let pages = pages as u32;
            patch(
                bytes,
                place,
                0x60ff_ffe0,
                ((pages & 3) << 29) | ((pages >> 2 & 0x7_ffff) << 5),
            )
        }
        // The offset in the page, scaled by the size of the access (R_AARCH64_ADD_ABS_LO12_NC, LDST8..LDST128).
        ("aarch64", kind @ (277 | 278 | 284 | 285 | 286 | 299)) => {
            let shift = match kind {
                284 => 1,
                285 => 2,
                286 => 3,
                299 => 4,
                _ => 0,
            };
            patch(
                bytes,
                place,
                0x003f_fc00,
                (((value & 0xfff) >> shift) as u32) << 10,
            )
        }
        (arch, kind) => bail!(
            Internal,
            "relocation {kind} of compiled code is not known on {arch}"
        ),
    }
}

/// Replaces the bits of `mask` in the little-endian word at `place`.
fn patch(bytes: &mut [u8], place: usize, mask: u32, bits: u32) -> Result<()> {
    let mut word = [0; 4];
    word.copy_from_slice(
        bytes
            .get(place..place.saturating_add(4))
            .ok_or_else(|| status!(Internal, "a relocation lies outside its section"))?,
    );
    let word = (u32::from_le_bytes(word) & !mask) | (bits & mask);
    put(bytes, place, &word.to_le_bytes())
}

fn put(bytes: &mut [u8], place: usize, value: &[u8]) -> Result<()> {
    bytes
        .get_mut(place..place.saturating_add(value.len()))
        .ok_or_else(|| status!(Internal, "a relocation lies outside its section"))?
        .copy_from_slice(value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_objects_are_errors() {
        for bytes in [&b""[..], b"\x7fELF", &[0; 64], &[0xff; 4096]] {
            assert!(LoadedObject::load(bytes).is_err());
        }
    }

    #[cfg(feature = "llvm")]
    #[test]
    fn damaged_objects_do_not_crash() {
        let good = crate::kernel::object(&crate::self_test::example_plan()).unwrap();
        for at in (0..good.len()).step_by(3) {
            let mut bytes = good.clone();
            bytes[at] ^= 0xff;
            let _ = LoadedObject::load(&bytes);
            let _ = LoadedObject::load(&good[..at]);
        }
    }
}
