//! What `cargo xtask tidy` asks of the comments in the C headers: ownership, threads and errors, function by function.
//!
//! A rule that holds for a whole header stands in its opening comment; the rest stands at each function or type. This looks
//! for the words that such a statement must have; it does not know whether the statement is true.

use crate::tools::{files_below, read};
use std::path::Path;

/// One of these words says whose a result is.
const OWNERSHIP: &[&str] = &[
    "free",
    "Free",
    "End it with",
    "belong",
    "delete",
    "static",
    "caller",
    "owner",
    "for good",
    "lives",
    "valid",
    "long as",
    "same as `",
    "As `",
    "gives back",
];

/// One of these words says how a function with a status fails, where the opening comment does not.
const ERRORS: &[&str] = &["error", "fail", "same as `", "As `"];

/// Checks all headers below `include/tensorflow/c` and `include/ferroflow`.
pub fn check(root: &Path, findings: &mut Vec<String>) -> Result<(), String> {
    let mut files = files_below(&root.join("include/tensorflow/c"), &["h"])?;
    files.extend(files_below(&root.join("include/ferroflow"), &["h"])?);
    for file in files {
        let text = read(&file)?;
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        let opening = text.split("*/").next().unwrap_or("").replace("\n *", "");
        for (line, comment, declaration) in declarations(&text) {
            if let Some(missing) = missing(&opening, &comment, &declaration) {
                findings.push(format!("{name}:{line}: {missing}: {declaration}"));
            }
        }
    }
    Ok(())
}

/// What the comment of a declaration does not say.
fn missing(opening: &str, comment: &str, declaration: &str) -> Option<&'static str> {
    let says = |words: &[&str]| words.iter().any(|word| comment.contains(word));
    if let Some(kind) = declaration.strip_prefix("typedef struct ") {
        let is_object = kind.split_whitespace().count() == 2 && !kind.contains('*');
        return (is_object && !says(&["thread", "Thread"])).then_some("no word on threads");
    }
    if comment.is_empty() {
        return Some("no comment");
    }
    let (before, parameters) = declaration.split_once('(')?;
    if before.contains('*') && !says(OWNERSHIP) {
        return Some("no word on whose the result is");
    }
    let is_status_header = opening.contains("The outcome of a call");
    let has_status = parameters.contains("TF_Status");
    let is_stated = is_status_header || opening.contains("TF_Status sets it") || says(ERRORS);
    (has_status && !is_stated && !has_code(comment)).then_some("no word on errors")
}

/// Whether a code such as `NOT_FOUND` is named.
fn has_code(comment: &str) -> bool {
    comment.contains("INTERNAL")
        || comment
            .split_whitespace()
            .any(|word| word.contains('_') && word.to_uppercase() == word)
}

/// Exported functions and opaque types: line, comment and text on one line.
fn declarations(text: &str) -> Vec<(usize, String, String)> {
    let (mut found, mut comment, mut lines) = (Vec::new(), String::new(), text.lines().enumerate());
    while let Some((number, line)) = lines.next() {
        if line.starts_with("/*") {
            comment = line.to_string();
            let mut last = line;
            while !last.contains("*/") {
                let Some((_, next)) = lines.next() else { break };
                comment.push('\n');
                comment.push_str(next);
                last = next;
            }
            continue;
        }
        let is_function = line.starts_with("TF_CAPI_EXPORT extern")
            || (line.starts_with("extern ") && line.contains("FF_"));
        let is_type = line.starts_with("typedef struct ") && line.ends_with(';');
        if !is_function && !is_type {
            comment.clear();
            continue;
        }
        let mut declaration = line.to_string();
        while !declaration.ends_with(';') {
            let Some((_, next)) = lines.next() else { break };
            declaration.push(' ');
            declaration.push_str(next.trim());
        }
        let declaration = declaration.replace("TF_CAPI_EXPORT ", "").replace("extern ", "");
        found.push((number + 1, std::mem::take(&mut comment), declaration));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENING: &str = "/* Things. A function that takes a TF_Status sets it on every call.";

    fn first(opening: &str, text: &str) -> Option<&'static str> {
        let (_, comment, declaration) = declarations(text).remove(0);
        missing(opening, &comment, &declaration)
    }

    #[test]
    fn says_what_is_missing() {
        let silent =
            "/** Makes a thing. */\nTF_CAPI_EXPORT extern\nTF_Thing *TF_Make(int n,\n    TF_Status *s);\n";
        assert_eq!(first(OPENING, silent), Some("no word on whose the result is"));
        let owned = silent.replace("thing.", "thing. Free it.");
        assert_eq!(first(OPENING, &owned), None);
        assert_eq!(first("/* Things.", &owned), Some("no word on errors"));
        assert_eq!(
            first(
                "/* Things.",
                &owned.replace("Free it.", "Free it. NOT_FOUND when.")
            ),
            None
        );
        assert_eq!(
            first(OPENING, "TF_CAPI_EXPORT extern void TF_Do(void);\n"),
            Some("no comment")
        );
        let object = "/** A thing. */\ntypedef struct TF_Thing TF_Thing;\n";
        assert_eq!(first(OPENING, object), Some("no word on threads"));
        assert_eq!(
            first(OPENING, &object.replace("thing.", "thing. Threads may.")),
            None
        );
    }
}
