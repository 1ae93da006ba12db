//! The checksum of all file formats here: crc32c, stored in a masked form.
//!
//! Masking keeps the checksum of data that itself holds checksums from degenerating.

const MASK_DELTA: u32 = 0xa282_ead8;

/// The checksum of these bytes.
pub fn crc32c(bytes: &[u8]) -> u32 {
    ::crc32c::crc32c(bytes)
}

/// The checksum of what `crc` is the checksum of, followed by these bytes.
pub fn extend(crc: u32, bytes: &[u8]) -> u32 {
    ::crc32c::crc32c_append(crc, bytes)
}

/// The stored form of a checksum.
pub fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(MASK_DELTA)
}

/// The checksum of a stored form.
pub fn unmask(masked: u32) -> u32 {
    masked.wrapping_sub(MASK_DELTA).rotate_left(15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_values() {
        // The check value of the CRC catalogue, and vectors of RFC 3720.
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(extend(crc32c(b"1234"), b"56789"), 0xe306_9283);
        assert_eq!(unmask(mask(0xe306_9283)), 0xe306_9283);
        assert_ne!(mask(7), 7);
    }
}
