//! Regular expressions, in RE2's syntax: matching whole strings and replacing.

use super::map;
use ff_op::{Attrs, Gradient, Kernel, KernelContext, Op, PrepareContext, Prepared, shapes};
use ff_tensor::{Bool, Result, Tensor, ensure, status};
use regex::bytes::{Captures, Regex};
use std::sync::Arc;

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "StaticRegexFullMatch",
        prepare: Some(prepare_match),
        kernels: &[Kernel::native(static_match)],
        ..PATTERN
    },
    &Op {
        name: "RegexFullMatch",
        kernels: &[Kernel::native(dynamic_match)],
        ..PATTERN
    },
    &Op {
        name: "StaticRegexReplace",
        prepare: Some(prepare_replacement),
        kernels: &[Kernel::native(|context| {
            let pattern = context.prepared::<Regex>()?;
            let rewrite = context.attrs().bytes("rewrite")?;
            replace(context, pattern, rewrite)
        })],
        ..PATTERN
    },
    &Op {
        name: "RegexReplace",
        kernels: &[Kernel::native(|context| {
            let pattern = compile(&text(context, 1, "Pattern")?, false)?;
            let rewrite = text(context, 2, "Rewrite")?;
            replace(context, &pattern, &rewrite)
        })],
        ..PATTERN
    },
];

const PATTERN: Op = Op {
    shape: shapes::unchanged,
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};

/// The pattern in the syntax of the `regex` crate: Perl's classes mean ASCII in RE2.
fn translated(pattern: &str) -> String {
    let mut result = String::with_capacity(pattern.len());
    let (mut characters, mut in_class) = (pattern.chars(), false);
    while let Some(character) = characters.next() {
        if character != '\\' {
            in_class = if in_class {
                character != ']'
            } else {
                character == '['
            };
            result.push(character);
            continue;
        }
        let Some(escaped) = characters.next() else {
            result.push('\\');
            break;
        };
        match (escaped, in_class) {
            ('d', true) => result.push_str("0-9"),
            ('w', true) => result.push_str("0-9A-Za-z_"),
            ('s', true) => result.push_str(r"\t\n\f\r "),
            ('d', false) => result.push_str("[0-9]"),
            ('D', _) => result.push_str("[^0-9]"),
            ('w', false) => result.push_str("[0-9A-Za-z_]"),
            ('W', _) => result.push_str("[^0-9A-Za-z_]"),
            ('s', false) => result.push_str(r"[\t\n\f\r ]"),
            ('S', _) => result.push_str(r"[^\t\n\f\r ]"),
            ('b', false) => result.push_str(r"(?-u:\b)"),
            ('B', false) => result.push_str(r"(?-u:\B)"),
            ('Q', false) => {
                let rest = characters.as_str();
                let (quoted, after) = rest.split_once("\\E").unwrap_or((rest, ""));
                result.push_str(&regex::escape(quoted));
                characters = after.chars();
            }
            _ => {
                result.push('\\');
                result.push(escaped);
            }
        }
    }
    result
}

/// Compiles a pattern, for whole strings or for any part. INVALID_ARGUMENT when it is malformed.
fn compile(pattern: &[u8], whole: bool) -> Result<Regex> {
    let invalid = |why: String| {
        let pattern = String::from_utf8_lossy(pattern).into_owned();
        status!(InvalidArgument, "Invalid pattern: {pattern}, error: {why}")
    };
    let text = std::str::from_utf8(pattern).map_err(|error| invalid(error.to_string()))?;
    let translated = translated(text);
    let full = if whole {
        format!(r"\A(?:{translated})\z")
    } else {
        translated
    };
    Regex::new(&full).map_err(|error| invalid(error.to_string().replace('\n', " ")))
}

fn prepared(attrs: &Attrs, whole: bool) -> Result<Prepared> {
    let pattern: Prepared = Arc::new(compile(attrs.bytes("pattern")?, whole)?);
    Ok(pattern)
}

fn prepare_match(context: &PrepareContext) -> Result<Prepared> {
    prepared(&context.node.attrs, true)
}

fn prepare_replacement(context: &PrepareContext) -> Result<Prepared> {
    prepared(&context.node.attrs, false)
}

/// The one string of an input.
fn text(context: &KernelContext, index: usize, what: &str) -> Result<Vec<u8>> {
    let input = context.input(index)?;
    ensure!(
        input.rank() == 0,
        InvalidArgument,
        "{what} must be scalar, but received {}",
        input.shape()
    );
    Ok(input.strings()?[0].as_bytes().to_vec())
}

fn match_all(context: &mut KernelContext, pattern: &Regex) -> Result<()> {
    let input = context.input(0)?;
    let matches = input
        .strings()?
        .iter()
        .map(|text| Bool::from(pattern.is_match(text.as_bytes())));
    let output = Tensor::from_slice(input.shape().clone(), &matches.collect::<Vec<_>>())?;
    context.set_output(0, output)
}

fn static_match(context: &mut KernelContext) -> Result<()> {
    let pattern = context.prepared::<Regex>()?;
    match_all(context, pattern)
}

fn dynamic_match(context: &mut KernelContext) -> Result<()> {
    let pattern = compile(&text(context, 1, "Pattern")?, true)?;
    match_all(context, &pattern)
}

/// Whether a rewrite names only groups that the pattern has; RE2 leaves the text alone otherwise.
fn rewrite_fits(rewrite: &[u8], groups: usize) -> bool {
    let mut bytes = rewrite.iter();
    while let Some(byte) = bytes.next() {
        if *byte != b'\\' {
            continue;
        }
        match bytes.next() {
            Some(digit) if digit.is_ascii_digit() && usize::from(digit - b'0') < groups => {}
            Some(b'\\') => {}
            _ => return false,
        }
    }
    true
}

/// The rewrite with `\0` to `\9` replaced by what the groups matched.
fn expanded(rewrite: &[u8], captures: &Captures) -> Vec<u8> {
    let mut text = Vec::new();
    let mut bytes = rewrite.iter();
    while let Some(&byte) = bytes.next() {
        match (byte, bytes.as_slice().first()) {
            (b'\\', Some(digit)) if digit.is_ascii_digit() => {
                let group = captures.get(usize::from(digit - b'0'));
                text.extend(group.map_or(&[][..], |group| group.as_bytes()));
                bytes.next();
            }
            (b'\\', _) => {
                text.push(b'\\');
                bytes.next();
            }
            _ => text.push(byte),
        }
    }
    text
}

fn replace(context: &mut KernelContext, pattern: &Regex, rewrite: &[u8]) -> Result<()> {
    let limit = if context.attrs().bool("replace_global")? {
        0
    } else {
        1
    };
    if !rewrite_fits(rewrite, pattern.captures_len()) {
        context.forward(0, 0);
        return Ok(());
    }
    let replaced = map(context.input(0)?, |text| {
        let result = pattern.replacen(text, limit, |captures: &Captures| expanded(rewrite, captures));
        Ok(result[..].into())
    })?;
    context.set_output(0, replaced)
}

crate::op_cases! {
    whole: Case::op("StaticRegexFullMatch").input(strings(&[3], &["s3://x", "a", ""])).attr("pattern", "^s3://.*")
        .gives(bools(&[3], &[true, false, false]));
    ascii_digits: Case::op("StaticRegexFullMatch").input(strings(&[2], &["12", "١"])).attr("pattern", r"[\d]+");
    whole_malformed: Case::op("StaticRegexFullMatch").input(strings(&[1], &["a"])).attr("pattern", "(").fails(Code::InvalidArgument);
    whole_dynamic: Case::op("RegexFullMatch").inputs([strings(&[2], &["ab", "abc"]), strings(&[], &[r"\w\w"])])
        .gives(bools(&[2], &[true, false]));
    whole_dynamic_malformed: Case::op("RegexFullMatch").inputs([strings(&[1], &["a"]), strings(&[], &["["])])
        .fails(Code::InvalidArgument);
    replaced: Case::op("RegexReplace")
        .inputs([strings(&[2], &["a-b-c", "é"]), strings(&[], &["([a-z])-"]), strings(&[], &[r"\1\\+"])]);
    replaced_malformed: Case::op("RegexReplace")
        .inputs([strings(&[1], &["a"]), strings(&[], &["("]), strings(&[], &[""])]).fails(Code::InvalidArgument);
    replaced_once: Case::op("StaticRegexReplace").input(strings(&[1], &["aaa"])).attr("pattern", "a").attr("rewrite", r"<\0>")
        .attr("replace_global", false).gives(strings(&[1], &["<a>aa"]));
    replaced_empty_matches: Case::op("StaticRegexReplace").input(strings(&[1], &["ab"])).attr("pattern", "x*").attr("rewrite", "-");
    replaced_by_missing_group: Case::op("StaticRegexReplace").input(strings(&[1], &["ab"])).attr("pattern", "a").attr("rewrite", r"\1")
        .gives(strings(&[1], &["ab"]));
}
