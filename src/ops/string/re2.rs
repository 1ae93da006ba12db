//! Patterns in the syntax of RE2, said in the syntax of the `regex` crate.
//!
//! The two engines match alike; they differ in notation: RE2's `\d \s \w \b` are ASCII, `[` and `&&` in a class are
//! themselves, a brace that is no repetition is itself, `\Q..\E`, `\C` and octal numbers exist. What RE2 refuses is
//! refused with its words where programs can meet them.

use ff_tensor::{Result, status};
use regex::bytes::{Regex, RegexBuilder};

/// Compiles a pattern, for matching `whole` texts or parts. INVALID_ARGUMENT with the pattern and what is wrong.
pub fn compile(pattern: &[u8], whole: bool) -> Result<Regex> {
    let text = String::from_utf8_lossy(pattern);
    let invalid = |error: String| status!(InvalidArgument, "Invalid pattern: {text}, error: {error}");
    let translated = Translation::of(&text).map_err(invalid)?;
    let translated = if whole {
        format!(r"\A(?:{translated})\z")
    } else {
        translated
    };
    RegexBuilder::new(&translated)
        .build()
        .map_err(|error| invalid(last_line(&error.to_string())))
}

/// The line of a syntax error that says what is wrong.
fn last_line(error: &str) -> String {
    let line = error.lines().last().unwrap_or("");
    line.trim_start_matches("error: ").to_string()
}

struct Translation<'a> {
    pattern: &'a str,
    /// What is not read yet.
    rest: &'a str,
    written: String,
    open_groups: usize,
    /// The last thing read was a repetition, which cannot be repeated.
    repeated: bool,
}

type Outcome<T> = std::result::Result<T, String>;

impl<'a> Translation<'a> {
    fn of(pattern: &'a str) -> Outcome<String> {
        let mut translation = Translation {
            pattern,
            rest: pattern,
            written: String::with_capacity(pattern.len() + 16),
            open_groups: 0,
            repeated: false,
        };
        while let Some(next) = translation.next() {
            translation.item(next)?;
        }
        if translation.open_groups > 0 {
            return Err(format!("missing ): {pattern}"));
        }
        Ok(translation.written)
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest.chars().next()?;
        self.rest = &self.rest[next.len_utf8()..];
        Some(next)
    }

    fn item(&mut self, next: char) -> Outcome<()> {
        let repeatable = std::mem::take(&mut self.repeated);
        match next {
            '\\' => return self.escape(false),
            '[' => return self.class(),
            '*' | '+' | '?' => return self.repetition(next.to_string(), repeatable),
            '{' => match counted(self.rest) {
                Some(length) => {
                    let text = format!("{{{}", &self.rest[..length]);
                    self.rest = &self.rest[length..];
                    return self.repetition(text, repeatable);
                }
                None => self.written.push('\\'),
            },
            '(' => self.open_groups += 1,
            ')' if self.open_groups == 0 => return Err(format!("unexpected ): {}", self.pattern)),
            ')' => self.open_groups -= 1,
            _ => {}
        }
        self.written.push(next);
        if next == '(' && self.rest.starts_with('?') {
            // The question mark belongs to the group.
            self.written.push('?');
            self.rest = &self.rest[1..];
        }
        Ok(())
    }

    fn repetition(&mut self, text: String, after_repetition: bool) -> Outcome<()> {
        if after_repetition {
            let before = self.written.chars().last().unwrap_or('*');
            return Err(format!("bad repetition operator: {before}{text}"));
        }
        self.written.push_str(&text);
        if let Some(rest) = self.rest.strip_prefix('?') {
            self.written.push('?');
            self.rest = rest;
        }
        self.repeated = true;
        Ok(())
    }

    /// What follows a backslash, outside or inside of a class.
    fn escape(&mut self, in_class: bool) -> Outcome<()> {
        let Some(next) = self.next() else {
            return Err("trailing \\".to_string());
        };
        let text = match (next, in_class) {
            ('d', false) => "[0-9]",
            ('d', true) => "0-9",
            ('D', _) => "[^0-9]",
            ('s', false) => r"[\t\n\f\r ]",
            ('s', true) => r"\t\n\f\r ",
            ('S', _) => r"[^\t\n\f\r ]",
            ('w', false) => "[0-9A-Za-z_]",
            ('w', true) => "0-9A-Za-z_",
            ('W', _) => "[^0-9A-Za-z_]",
            ('b', false) => r"(?-u:\b)",
            ('B', false) => r"(?-u:\B)",
            ('C', false) => "(?s-u:.)",
            ('Q', false) => {
                let (quoted, rest) = self.rest.split_once(r"\E").unwrap_or((self.rest, ""));
                self.written.push_str(&regex::escape(quoted));
                self.rest = rest;
                return Ok(());
            }
            ('0'..='7', _) => return self.octal(next),
            ('a' | 'f' | 'n' | 'r' | 't' | 'v' | 'x' | 'p' | 'P', _) | ('A' | 'z', false) => {
                self.written.extend(['\\', next]);
                return Ok(());
            }
            ('<' | '>', _) => {
                self.written.push(next);
                return Ok(());
            }
            _ if next.is_ascii_punctuation() => {
                self.written.extend(['\\', next]);
                return Ok(());
            }
            _ => return Err(format!("invalid escape sequence: \\{next}")),
        };
        self.written.push_str(text);
        Ok(())
    }

    /// Up to three octal digits; one alone, unless it is 0, would be a back reference.
    fn octal(&mut self, first: char) -> Outcome<()> {
        let more = self
            .rest
            .bytes()
            .take(2)
            .take_while(|byte| (b'0'..=b'7').contains(byte))
            .count();
        if first != '0' && more == 0 {
            return Err(format!("invalid escape sequence: \\{first}"));
        }
        let digits = format!("{first}{}", &self.rest[..more]);
        self.rest = &self.rest[more..];
        let value =
            u32::from_str_radix(&digits, 8).map_err(|_| format!("invalid escape sequence: \\{digits}"))?;
        self.written.push_str(&format!(r"\x{{{value:x}}}"));
        Ok(())
    }

    /// A class in brackets, after the first one.
    fn class(&mut self) -> Outcome<()> {
        let missing = format!("missing ]: [{}", self.rest);
        self.written.push('[');
        if let Some(rest) = self.rest.strip_prefix('^') {
            self.written.push('^');
            self.rest = rest;
        }
        let mut first = true;
        loop {
            let Some(next) = self.next() else {
                return Err(missing);
            };
            match next {
                ']' if !first => break,
                '\\' => self.escape(true)?,
                '[' if self.rest.starts_with(':') && self.rest.contains(":]") => {
                    let end = self.rest.find(":]").map_or(0, |at| at + 2);
                    self.written.push('[');
                    self.written.push_str(&self.rest[..end]);
                    self.rest = &self.rest[end..];
                }
                '-' if self.rest.starts_with('-') && !first => {
                    return Err(format!("invalid character class range: {}", self.pattern));
                }
                '-' if first || self.rest.starts_with(']') => self.written.push_str(r"\-"),
                '[' | ']' | '&' | '~' => self.written.extend(['\\', next]),
                _ => self.written.push(next),
            }
            first = false;
        }
        self.written.push(']');
        Ok(())
    }
}

/// The length of `m}`, `m,}` or `m,n}` at the start of a text, if that is there.
fn counted(text: &str) -> Option<usize> {
    let end = text.find('}')?;
    let (from, to) = text[..end].split_once(',').unwrap_or((&text[..end], ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    (!from.is_empty() && digits(from) && digits(to)).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notations() {
        for (re2, ours) in [
            ("a{2,3}?b", "a{2,3}?b"),
            ("{a}", r"\{a}"),
            ("[]a]", r"[\]a]"),
            ("[^-a]", r"[^\-a]"),
            (r"[\d\w[:alpha:]]", "[0-90-9A-Za-z_[:alpha:]]"),
            (r"\Q*\E*", r"\**"),
            ("(?:a)?", "(?:a)?"),
        ] {
            assert_eq!(Translation::of(re2).unwrap(), ours);
        }
    }

    #[test]
    fn refusals() {
        for (pattern, error) in [
            ("(", "missing ): ("),
            ("a)", "unexpected ): a)"),
            ("[a", "missing ]: [a"),
            ("a**", "bad repetition operator: **"),
            (r"\1", r"invalid escape sequence: \1"),
            ("a\\", "trailing \\"),
        ] {
            assert_eq!(Translation::of(pattern).unwrap_err(), error);
        }
    }
}
