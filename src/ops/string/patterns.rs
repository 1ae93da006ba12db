//! Matching and replacing by regular expressions.
//!
//! Patterns are those of RE2 ([`super::re2`]). A node keeps the last pattern that it compiled.

use super::ELEMENTWISE;
use super::re2::compile;
use ff_op::{Kernel, KernelContext, Op, PrepareContext, Prepared, ShapeContext};
use ff_tensor::{Bool, Result, TString, Tensor, ensure};
use parking_lot::Mutex;
use regex::bytes::{Captures, Regex};
use std::sync::Arc;

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "StaticRegexFullMatch",
        prepare: Some(prepare),
        kernels: &[Kernel::native(|context| full_match(context, true))],
        ..ELEMENTWISE
    },
    &Op {
        name: "RegexFullMatch",
        shape: scalars_after_first,
        prepare: Some(prepare),
        kernels: &[Kernel::native(|context| full_match(context, false))],
        ..ELEMENTWISE
    },
    &Op {
        name: "StaticRegexReplace",
        prepare: Some(prepare),
        kernels: &[Kernel::native(|context| replace(context, true))],
        ..ELEMENTWISE
    },
    &Op {
        name: "RegexReplace",
        shape: scalars_after_first,
        prepare: Some(prepare),
        kernels: &[Kernel::native(|context| replace(context, false))],
        ..ELEMENTWISE
    },
];

fn scalars_after_first(context: &mut ShapeContext) -> Result<()> {
    for index in 1..context.num_inputs() {
        context.input_with_rank(index, 0)?;
    }
    ff_op::shapes::unchanged(context)
}

/// The last pattern that a node compiled.
#[derive(Default)]
struct LastPattern(Mutex<Option<Compiled>>);

/// A pattern and what it was compiled to.
type Compiled = (Vec<u8>, Arc<Regex>);

fn prepare(_: &PrepareContext) -> Result<Prepared> {
    Ok(Arc::new(LastPattern::default()))
}

/// The pattern of the attribute `pattern`, or else of the second input, compiled.
fn pattern(context: &KernelContext, fixed: bool, whole: bool) -> Result<Arc<Regex>> {
    let pattern = text(context, fixed, "pattern", 1)?;
    let mut last = context.prepared::<LastPattern>()?.0.lock();
    if let Some((known, regex)) = &*last
        && known == pattern
    {
        return Ok(regex.clone());
    }
    let regex = Arc::new(compile(pattern, whole)?);
    *last = Some((pattern.to_vec(), regex.clone()));
    Ok(regex)
}

/// The value of an attribute, or else of a scalar input.
fn text<'a>(context: &'a KernelContext, fixed: bool, name: &str, input: usize) -> Result<&'a [u8]> {
    if fixed {
        return context.attrs().bytes(name);
    }
    let strings = context.input(input)?;
    ensure!(
        strings.num_elements() == 1,
        InvalidArgument,
        "{name} must be scalar, but received {}",
        strings.shape()
    );
    Ok(strings.strings()?[0].as_bytes())
}

fn full_match(context: &mut KernelContext, fixed: bool) -> Result<()> {
    let regex = pattern(context, fixed, true)?;
    let input = context.input(0)?;
    let strings = input.strings()?.iter();
    let matches: Vec<Bool> = strings
        .map(|string| regex.is_match(string.as_bytes()).into())
        .collect();
    let output = Tensor::from_slice(input.shape().clone(), &matches)?;
    context.set_output(0, output)
}

fn replace(context: &mut KernelContext, fixed: bool) -> Result<()> {
    let regex = pattern(context, fixed, false)?;
    let rewrite = Rewrite::parse(text(context, fixed, "rewrite", 2)?);
    let global = context.attrs().bool("replace_global")?;
    let input = context.input(0)?;
    let mut made = crate::wide::reserved(input.num_elements())?;
    for string in input.strings()? {
        let replaced = rewrite.apply(context, &regex, string.as_bytes(), global)?;
        made.push(TString::concatenated(&[&replaced])?);
    }
    let output = Tensor::from_strings(input.shape().clone(), made)?;
    context.set_output(0, output)
}

/// What to put in the place of a match.
struct Rewrite {
    parts: Vec<Part>,
    /// The text ends in something that is not a part: it stops there, and replaces nothing when only once.
    broken: bool,
}

enum Part {
    Literal(Vec<u8>),
    Group(usize),
}

impl Rewrite {
    /// `\0` to `\9` are groups of the match, `\\` is a backslash.
    fn parse(text: &[u8]) -> Rewrite {
        let mut parts = Vec::new();
        let mut literal = Vec::new();
        let mut broken = false;
        let mut bytes = text.iter();
        while let Some(&byte) = bytes.next() {
            let escaped = if byte == b'\\' { bytes.next() } else { Some(&byte) };
            match (byte, escaped) {
                (b'\\', Some(digit @ b'0'..=b'9')) => {
                    parts.push(Part::Literal(std::mem::take(&mut literal)));
                    parts.push(Part::Group(usize::from(digit - b'0')));
                }
                (b'\\', Some(b'\\')) => literal.push(b'\\'),
                (b'\\', _) => {
                    broken = true;
                    break;
                }
                _ => literal.push(byte),
            }
        }
        parts.push(Part::Literal(literal));
        parts.retain(|part| !matches!(part, Part::Literal(bytes) if bytes.is_empty()));
        Rewrite { parts, broken }
    }

    fn largest_group(&self) -> usize {
        let group = |part: &Part| match part {
            Part::Group(group) => *group,
            Part::Literal(_) => 0,
        };
        self.parts.iter().map(group).max().unwrap_or(0)
    }

    fn write(&self, context: &KernelContext, captures: &Captures, to: &mut Vec<u8>) -> Result<()> {
        let mut written = 0;
        for part in &self.parts {
            if to.len() - written >= 1 << 20 {
                context.host().cancellation().check()?;
                written = to.len();
            }
            match part {
                Part::Literal(bytes) => append(to, bytes)?,
                Part::Group(group) => append(to, captures.get(*group).map_or(&[], |found| found.as_bytes()))?,
            }
        }
        Ok(())
    }

    /// The text with the first match or all of them replaced. An empty match right after another does not count.
    fn apply(&self, context: &KernelContext, regex: &Regex, text: &[u8], global: bool) -> Result<Vec<u8>> {
        let mut written = crate::wide::reserved(text.len())?;
        if self.largest_group() >= regex.captures_len() || (self.broken && !global) {
            append(&mut written, text)?;
            return Ok(written);
        }
        let (mut at, mut last_end) = (0, None);
        let mut matches = 0u64;
        while at <= text.len() {
            matches += 1;
            if matches.is_multiple_of(256) || written.len() >= 1 << 20 {
                context.host().cancellation().check()?;
            }
            let Some(captures) = regex.captures_at(text, at) else {
                break;
            };
            let Some(found) = captures.get(0) else { break };
            append(&mut written, &text[at..found.start()])?;
            at = found.start();
            if found.is_empty() && last_end == Some(at) {
                let next = at + character_length(&text[at..]);
                append(&mut written, &text[at..next.min(text.len())])?;
                at = next;
                continue;
            }
            self.write(context, &captures, &mut written)?;
            at = found.end();
            last_end = Some(at);
            if !global {
                break;
            }
        }
        append(&mut written, &text[at.min(text.len())..])?;
        Ok(written)
    }
}

/// Adds bytes at the end. RESOURCE_EXHAUSTED when memory is out.
fn append(to: &mut Vec<u8>, bytes: &[u8]) -> Result<()> {
    crate::wide::reserve(to, bytes.len())?;
    to.extend_from_slice(bytes);
    Ok(())
}

/// Bytes of the first character; 1 for none or bytes that are not UTF-8.
fn character_length(text: &[u8]) -> usize {
    let length = match text.first() {
        Some(0xc2..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf4) => 4,
        _ => 1,
    };
    match text.get(..length) {
        Some(bytes) if std::str::from_utf8(bytes).is_ok() => length,
        _ => 1,
    }
}

#[cfg(test)]
fn matching(pattern: &str, text: &str, matches: bool) -> crate::testing::Case {
    use crate::testing::{Case, bools, strings};
    Case::op("StaticRegexFullMatch")
        .attr("pattern", pattern)
        .input(strings(&[], &[text]))
        .gives(bools(&[], &[matches]))
}

#[cfg(test)]
fn replacing(pattern: &str, rewrite: &str, text: &str, global: bool, gives: &str) -> crate::testing::Case {
    use crate::testing::{Case, strings};
    Case::op("StaticRegexReplace")
        .attr("pattern", pattern)
        .attr("rewrite", rewrite)
        .attr("replace_global", global)
        .input(strings(&[], &[text]))
        .gives(strings(&[], &[gives]))
}

crate::op_cases! {
    whole: matching("a|ab", "ab", true);
    part_only: matching(r"\bfoo\b", "a foo b", false);
    a_dot_is_a_character: matching(".", "é", true);
    a_dot_is_no_line_end: matching(".*", "a\nb", false);
    digits_are_ascii: matching(r"\d+", "１２", false);
    words_are_ascii: matching(r"\w+", "é", false);
    lone_brace: matching("a{", "a{", true);
    open_repetition: matching("x{,3}", "x{,3}", true);
    bracket_in_class: matching("[[a]", "[", true);
    octal: matching(r"\101", "A", true);
    ampersands_in_class: matching(r"[\w&&]+", "a&", true);
    not_digits: matching(r"[^\d]+", "ab", true);
    quoted: matching(r"\Qa.b\E", "a.b", true);
    angles: matching(r"\<a\>", "<a>", true);
    no_vertical_tab: matching(r"[\s]", "\u{b}", false);
    letters_without_case: matching("(?i)É", "é", true);
    empty: matching("", "", true);
    open_group: Case::op("StaticRegexFullMatch").attr("pattern", "(").input(strings(&[], &["("]))
        .fails(Code::InvalidArgument);
    double_star: Case::op("StaticRegexFullMatch").attr("pattern", "a**").input(strings(&[], &["a"]))
        .fails(Code::InvalidArgument);
    pattern_as_input: Case::op("RegexFullMatch").input(strings(&[2], &["ab", "b"])).input(strings(&[], &["a."]))
        .gives(bools(&[2], &[true, false]));
    replace_all: replacing("a", "b", "banana", true, "bbnbnb");
    replace_first: replacing("a", "b", "banana", false, "bbnana");
    groups: replacing("(a)(n)", r"\2\1", "banana", true, "bnanaa");
    empty_matches: replacing("x*", "-", "éb", true, "-é-b-");
    no_empty_match_after_a_match: replacing("b*", "X", "abb", true, "XaX");
    word_ends: replacing(r"\b", "|", "ab cd", true, "|ab| |cd|");
    missing_group: replacing("a", r"\3", "banana", true, "banana");
    broken_rewrite: replacing("a", r"\q", "banana", true, "bnn");
    broken_rewrite_once: replacing("a", r"\q", "banana", false, "banana");
    backslash: replacing("a", r"[\0]\\", "banana", true, r"b[a]\n[a]\n[a]\");
    dollars_are_themselves: replacing("a", "$0${x}", "a", true, "$0${x}");
    vector_pattern: Case::op("RegexReplace").input(strings(&[], &["a"])).input(strings(&[1], &["a"]))
        .input(strings(&[], &["b"])).fails(Code::InvalidArgument);
    rewrite_as_input: Case::op("RegexReplace").input(strings(&[1], &["a"])).input(strings(&[], &["a"]))
        .input(strings(&[], &["b"])).gives(strings(&[1], &["b"]));
}
