//! Parses modules, line by line.

use super::literal::parse_literal;
use super::parse_attributes::{Raw, parse_attributes};
use crate::attributes::Attributes;
use crate::module::{Computation, ComputationId, Instruction, InstructionId, Module};
use crate::opcode::Opcode;
use crate::shape::{ArrayShape, Dims, HloShape, type_from_name};
use ff_tensor::{Result, Shape, Status, bail, ensure, status};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// How deep tuples may nest.
const MAX_NESTING: usize = 32;

/// Reads a module from its text and verifies it. INVALID_ARGUMENT, naming the line, when it is malformed.
pub fn parse(text: &str) -> Result<Module> {
    let mut parser = Parser::default();
    for (number, line) in text.lines().enumerate() {
        parser
            .line(line.trim())
            .map_err(|error| error.prefixed(&format!("line {}: ", number + 1)))?;
    }
    let module = parser.finish()?;
    crate::verifier::verify(&module)?;
    Ok(module)
}

#[derive(Default)]
struct Parser {
    name: String,
    computations: Vec<Computation>,
    by_name: FxHashMap<String, ComputationId>,
    entry: Option<ComputationId>,
    open: Option<Open>,
}

/// A computation whose end has not been read.
struct Open {
    name: String,
    is_entry: bool,
    instructions: Vec<Instruction>,
    by_name: FxHashMap<String, InstructionId>,
    parameters: Vec<(usize, InstructionId)>,
    root: Option<InstructionId>,
}

fn malformed(what: &str, text: &str) -> Status {
    let shown: String = text.chars().take(60).collect();
    status!(InvalidArgument, "expected {what} at: {shown}")
}

impl Parser {
    fn line(&mut self, line: &str) -> Result<()> {
        if line.is_empty() || line.starts_with("//") {
            return Ok(());
        }
        if let Some(rest) = line.strip_prefix("HloModule ") {
            let name = rest.split(',').next().unwrap_or(rest).trim();
            self.name = if name.starts_with('"') {
                unquote(name)?
            } else {
                name.to_owned()
            };
            return Ok(());
        }
        if line == "}" {
            return self.close();
        }
        match &mut self.open {
            None => self.header(line),
            Some(open) => open.instruction(line, &self.by_name),
        }
    }

    /// `[ENTRY] %name (...) -> shape {`; what is in parentheses is told by the instructions again.
    fn header(&mut self, line: &str) -> Result<()> {
        ensure!(
            line.ends_with('{'),
            InvalidArgument,
            "expected the start of a computation"
        );
        let (is_entry, rest) = match line.strip_prefix("ENTRY ") {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let end = rest.find([' ', '(', '{']).unwrap_or(rest.len());
        let name = rest[..end].strip_prefix('%').unwrap_or(&rest[..end]);
        ensure!(!name.is_empty(), InvalidArgument, "a computation has no name");
        self.open = Some(Open {
            name: name.to_owned(),
            is_entry,
            instructions: Vec::new(),
            by_name: FxHashMap::default(),
            parameters: Vec::new(),
            root: None,
        });
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        let open = self
            .open
            .take()
            .ok_or_else(|| status!(InvalidArgument, "no computation is open"))?;
        let id = ComputationId(self.computations.len() as u32);
        ensure!(
            !self.by_name.contains_key(&open.name),
            InvalidArgument,
            "computation {} is defined twice",
            open.name
        );
        self.by_name.insert(open.name.clone(), id);
        if open.is_entry {
            self.entry = Some(id);
        }
        self.computations.push(open.finish()?);
        Ok(())
    }

    fn finish(self) -> Result<Module> {
        ensure!(
            self.open.is_none(),
            InvalidArgument,
            "the last computation has no end"
        );
        ensure!(
            !self.computations.is_empty(),
            InvalidArgument,
            "the module has no computation"
        );
        let last = ComputationId(self.computations.len() as u32 - 1);
        let entry = self.entry.unwrap_or(last);
        ensure!(
            entry == last,
            InvalidArgument,
            "the entry computation must be the last one"
        );
        Ok(Module {
            name: self.name,
            computations: self.computations,
            entry,
        })
    }
}

impl Open {
    fn finish(mut self) -> Result<Computation> {
        let last = InstructionId((self.instructions.len() as u32).wrapping_sub(1));
        ensure!(
            !self.instructions.is_empty(),
            InvalidArgument,
            "computation {} is empty",
            self.name
        );
        self.parameters.sort_by_key(|parameter| parameter.0);
        for (number, parameter) in self.parameters.iter().enumerate() {
            ensure!(
                number == parameter.0,
                InvalidArgument,
                "parameters of computation {} are not numbered from 0",
                self.name
            );
        }
        Ok(Computation {
            name: self.name,
            instructions: self.instructions,
            parameters: self.parameters.iter().map(|parameter| parameter.1).collect(),
            root: self.root.unwrap_or(last),
        })
    }

    /// `[ROOT] %name = shape opcode(operands), key=value, ...`.
    fn instruction(&mut self, line: &str, computations: &FxHashMap<String, ComputationId>) -> Result<()> {
        let (is_root, rest) = match line.strip_prefix("ROOT ") {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let (name, rest) = rest
            .split_once(" = ")
            .ok_or_else(|| malformed("name = ...", rest))?;
        let name = name.trim().strip_prefix('%').unwrap_or(name.trim());
        let (shape, rest) = parse_shape(rest.trim_start(), 0)?;
        let rest = rest.trim_start();
        let end = rest.find('(').ok_or_else(|| malformed("an opcode", rest))?;
        let opcode = Opcode::from_name(rest[..end].trim())
            .ok_or_else(|| status!(InvalidArgument, "unknown opcode {}", &rest[..end]))?;
        let (inside, after) = balanced(&rest[end..])?;
        let raw = Raw::parse(after, computations)?;
        let mut operands = SmallVec::new();
        let attributes = match opcode {
            Opcode::Parameter => {
                let number: usize = inside
                    .trim()
                    .parse()
                    .map_err(|_| malformed("a parameter number", inside))?;
                self.parameters
                    .push((number, InstructionId(self.instructions.len() as u32)));
                Attributes::Parameter(number)
            }
            Opcode::Constant => {
                let array = shape.as_array()?;
                array.validate()?;
                Attributes::Constant(parse_literal(inside, array.dtype, Shape::new(&array.dims)?)?)
            }
            _ => {
                operands = self.operands(inside)?;
                parse_attributes(opcode, &raw)?
            }
        };
        let id = InstructionId(self.instructions.len() as u32);
        ensure!(
            self.by_name.insert(name.to_owned(), id).is_none(),
            InvalidArgument,
            "instruction {name} is defined twice"
        );
        if is_root {
            self.root = Some(id);
        }
        let base = name.strip_suffix(&format!(".{}", id.0)).unwrap_or(name);
        self.instructions.push(Instruction {
            opcode,
            shape,
            operands,
            attributes,
            name: if base == opcode.name() {
                None
            } else {
                Some(base.into())
            },
            node: raw.node()?,
        });
        Ok(())
    }

    fn operands(&self, inside: &str) -> Result<SmallVec<[InstructionId; 2]>> {
        let mut operands = SmallVec::new();
        for part in split_commas(inside) {
            // A shape before the name says nothing new.
            let name = part.rsplit(' ').next().unwrap_or(part);
            let name = name.strip_prefix('%').unwrap_or(name);
            let id = self.by_name.get(name);
            operands.push(*id.ok_or_else(|| status!(InvalidArgument, "unknown operand {part}"))?);
        }
        Ok(operands)
    }
}

/// What is in the parentheses (or braces) at the start of `text`, and what comes after them.
pub(super) fn balanced(text: &str) -> Result<(&str, &str)> {
    let (mut depth, mut in_string, mut escaped) = (0, false, false);
    if !text.starts_with(['(', '{', '[']) {
        return Err(malformed("an opening parenthesis", text));
    }
    for (at, c) in text.char_indices() {
        if in_string {
            in_string = c != '"' || escaped;
            escaped = c == '\\' && !escaped;
            continue;
        }
        match c {
            '"' => (in_string, escaped) = (true, false),
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => {
                depth -= 1;
                if depth == 0 {
                    return Ok((&text[1..at], &text[at + 1..]));
                }
            }
            _ => {}
        }
    }
    Err(malformed("a closing parenthesis", text))
}

/// The parts between commas that are in no brackets or strings; none for blank text.
pub(super) fn split_commas(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut in_string, mut escaped) = (Vec::new(), 0, 0, false, false);
    for (at, c) in text.char_indices() {
        if in_string {
            in_string = c != '"' || escaped;
            escaped = c == '\\' && !escaped;
            continue;
        }
        match c {
            '"' => (in_string, escaped) = (true, false),
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    if parts == [""] { Vec::new() } else { parts }
}

/// A string without its quotes and escapes.
pub(super) fn unquote(text: &str) -> Result<String> {
    let inside = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let inside = inside.ok_or_else(|| malformed("a string", text))?;
    let mut out = String::with_capacity(inside.len());
    let mut chars = inside.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some(other) => out.push(other),
            None => bail!(InvalidArgument, "a string ends in an escape"),
        }
    }
    Ok(out)
}

/// A shape at the start of `text`, and what comes after it.
fn parse_shape(text: &str, nesting: usize) -> Result<(HloShape, &str)> {
    ensure!(
        nesting < MAX_NESTING,
        InvalidArgument,
        "tuples are nested deeper than {MAX_NESTING}"
    );
    if let Some(mut rest) = text.strip_prefix('(') {
        let mut elements = Vec::new();
        loop {
            rest = rest.trim_start();
            if let Some(after) = rest.strip_prefix(')') {
                return Ok((HloShape::Tuple(elements), after));
            }
            let (element, after) = parse_shape(rest, nesting + 1)?;
            elements.push(element);
            rest = after.trim_start();
            rest = match rest.strip_prefix(',') {
                Some(after) => after,
                None if rest.starts_with(')') => rest,
                None => return Err(malformed("a comma or the end of a tuple", rest)),
            };
        }
    }
    let end = text.find('[').ok_or_else(|| malformed("a shape", text))?;
    let dtype = type_from_name(text[..end].trim())?;
    let (inside, mut rest) = balanced(&text[end..])?;
    let mut dims = Dims::new();
    for part in split_commas(inside) {
        dims.push(part.parse().map_err(|_| malformed("an extent", part))?);
    }
    if rest.starts_with('{') {
        let (layout, after) = balanced(rest)?;
        let expected: Vec<String> = (0..dims.len()).rev().map(|axis| axis.to_string()).collect();
        let row_major = split_commas(layout).iter().eq(expected.iter());
        ensure!(row_major, InvalidArgument, "layout {{{layout}}} is not row-major");
        rest = after;
    }
    Ok((HloShape::Array(ArrayShape { dtype, dims }), rest))
}
