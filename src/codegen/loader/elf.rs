//! Reads the parts of a 64-bit little-endian relocatable ELF file that loading needs.

use ff_tensor::{Result, Status, ensure, status};

/// A section; `data` is empty for one that holds zeros.
pub struct Section<'a> {
    pub in_memory: bool,
    pub alignment: usize,
    pub size: usize,
    pub data: &'a [u8],
}

/// A symbol: its section (none when it is defined elsewhere) and offset there.
pub struct Symbol<'a> {
    pub name: &'a str,
    pub section: Option<usize>,
    pub value: u64,
}

/// A place in a section that depends on the address of a symbol.
pub struct Relocation {
    pub section: usize,
    pub offset: usize,
    pub symbol: usize,
    pub kind: u32,
    pub addend: i64,
}

/// The parts of an object.
pub struct Object<'a> {
    pub sections: Vec<Section<'a>>,
    pub symbols: Vec<Symbol<'a>>,
    pub relocations: Vec<Relocation>,
}

const RELOCATABLE: u16 = 1;
const SECTION_HEADER: usize = 64;
const SYMBOL: usize = 24;
const RELOCATION: usize = 24;
const IN_MEMORY: u64 = 2;
const SYMBOLS: u32 = 2;
const RELOCATIONS: u32 = 4;
const ZEROS: u32 = 8;
/// Section numbers from here on are not sections (absolute, common).
const RESERVED: u16 = 0xff00;

/// One section header, with its bytes.
struct Header<'a> {
    kind: u32,
    flags: u64,
    size: u64,
    link: u32,
    info: u32,
    alignment: u64,
    data: &'a [u8],
}

impl<'a> Object<'a> {
    /// Reads an object. INTERNAL when it is not one for this processor.
    pub fn parse(bytes: &'a [u8]) -> Result<Object<'a>> {
        let machine = match std::env::consts::ARCH {
            "x86_64" => 62,
            "aarch64" => 183,
            _ => 0,
        };
        ensure!(
            bytes.get(..6) == Some(b"\x7fELF\x02\x01")
                && half(bytes, 16)? == RELOCATABLE
                && half(bytes, 18)? == machine,
            Internal,
            "not a relocatable object for this processor"
        );
        let table = long(bytes, 40)? as usize;
        let count = half(bytes, 60)? as usize;
        let headers = (0..count)
            .map(|number| header(bytes, table, number))
            .collect::<Result<Vec<Header>>>()?;
        let mut object = Object {
            sections: headers.iter().map(section).collect(),
            symbols: Vec::new(),
            relocations: Vec::new(),
        };
        for header in &headers {
            match header.kind {
                SYMBOLS => object.read_symbols(header, &headers)?,
                RELOCATIONS => object.read_relocations(header)?,
                _ => {}
            }
        }
        Ok(object)
    }

    fn read_symbols(&mut self, table: &Header<'a>, headers: &[Header<'a>]) -> Result<()> {
        let names = headers
            .get(table.link as usize)
            .map_or(&[][..], |header| header.data);
        for entry in table.data.chunks_exact(SYMBOL) {
            let section = half(entry, 6)?;
            self.symbols.push(Symbol {
                name: text(names, word(entry, 0)? as usize),
                section: (section != 0 && section < RESERVED).then_some(section as usize),
                value: long(entry, 8)?,
            });
        }
        Ok(())
    }

    fn read_relocations(&mut self, table: &Header) -> Result<()> {
        let section = table.info as usize;
        let size = self.sections.get(section).map_or(0, |section| section.size);
        for entry in table.data.chunks_exact(RELOCATION) {
            let offset = long(entry, 0)? as usize;
            ensure!(offset <= size, Internal, "a relocation lies outside its section");
            let info = long(entry, 8)?;
            self.relocations.push(Relocation {
                section,
                offset,
                symbol: (info >> 32) as usize,
                kind: info as u32,
                addend: long(entry, 16)? as i64,
            });
        }
        Ok(())
    }
}

fn header(bytes: &[u8], table: usize, number: usize) -> Result<Header<'_>> {
    let start = table.checked_add(number * SECTION_HEADER).ok_or_else(cut_short)?;
    let entry = bytes
        .get(start..start.saturating_add(SECTION_HEADER))
        .ok_or_else(cut_short)?;
    let kind = word(entry, 4)?;
    let (offset, size) = (long(entry, 24)? as usize, long(entry, 32)?);
    let data = if kind == ZEROS || kind == 0 {
        &[][..]
    } else {
        let end = offset.checked_add(size as usize).ok_or_else(cut_short)?;
        bytes.get(offset..end).ok_or_else(cut_short)?
    };
    Ok(Header {
        kind,
        flags: long(entry, 8)?,
        size,
        link: word(entry, 40)?,
        info: word(entry, 44)?,
        alignment: long(entry, 48)?,
        data,
    })
}

fn section<'a>(header: &Header<'a>) -> Section<'a> {
    Section {
        in_memory: header.flags & IN_MEMORY != 0,
        alignment: header.alignment.min(1 << 20) as usize,
        size: header.size as usize,
        data: header.data,
    }
}

/// The zero-terminated name at `offset`, empty when there is none.
fn text(names: &[u8], offset: usize) -> &str {
    let rest = names.get(offset..).unwrap_or_default();
    let end = rest.iter().position(|&byte| byte == 0).unwrap_or(0);
    std::str::from_utf8(&rest[..end]).unwrap_or_default()
}

fn cut_short() -> Status {
    status!(Internal, "an object is cut short")
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N]> {
    let mut value = [0; N];
    value.copy_from_slice(bytes.get(at..at.saturating_add(N)).ok_or_else(cut_short)?);
    Ok(value)
}

fn half(bytes: &[u8], at: usize) -> Result<u16> {
    Ok(u16::from_le_bytes(number(bytes, at)?))
}

fn word(bytes: &[u8], at: usize) -> Result<u32> {
    Ok(u32::from_le_bytes(number(bytes, at)?))
}

fn long(bytes: &[u8], at: usize) -> Result<u64> {
    Ok(u64::from_le_bytes(number(bytes, at)?))
}
