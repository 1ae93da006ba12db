//! Patterns of paths: `*`, `?`, `[a-z]`, `[!a-z]` within a component, and `\` before a character that means itself.

use crate::file_system::FileSystem;

fn has_wildcard(component: &str) -> bool {
    component.contains(['*', '?', '[', '\\'])
}

/// Whether a name (one component) matches a pattern.
pub fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut p, mut n) = (0, 0);
    // Where to go on when a character does not match: after the last star, one character further.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        if p < pattern.len() && pattern[p] == '*' {
            p += 1;
            retry = Some((p, n));
            continue;
        }
        if p == pattern.len() && n == name.len() {
            return true;
        }
        if p < pattern.len()
            && n < name.len()
            && let Some(length) = one(&pattern[p..], name[n])
        {
            p += length;
            n += 1;
            continue;
        }
        match &mut retry {
            Some((after, at)) if *at < name.len() => {
                *at += 1;
                (p, n) = (*after, *at);
            }
            _ => return false,
        }
    }
}

/// How much of the pattern's start matches the character, if it does.
fn one(pattern: &[char], c: char) -> Option<usize> {
    match pattern[0] {
        '?' => Some(1),
        '[' => match set(pattern, c) {
            Some((true, length)) => Some(length),
            Some((false, _)) => None,
            None => (c == '[').then_some(1),
        },
        '\\' if pattern.len() > 1 => (pattern[1] == c).then_some(2),
        other => (other == c).then_some(1),
    }
}

/// Whether the set at the pattern's start holds the character, and the set's length; none if it does not end.
fn set(pattern: &[char], c: char) -> Option<(bool, usize)> {
    let negated = matches!(pattern.get(1), Some('!' | '^'));
    let first = 1 + usize::from(negated);
    let mut at = first;
    let mut found = false;
    loop {
        let low = *pattern.get(at)?;
        if low == ']' && at > first {
            return Some((found != negated, at + 1));
        }
        match (pattern.get(at + 1), pattern.get(at + 2)) {
            (Some('-'), Some(&high)) if high != ']' => {
                found |= (low..=high).contains(&c);
                at += 3;
            }
            _ => {
                found |= low == c;
                at += 1;
            }
        }
    }
}

/// The paths that match a pattern, sorted. Folders that cannot be read have no matches.
pub fn matching_paths(system: &dyn FileSystem, pattern: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    for (i, component) in pattern.split('/').enumerate() {
        let separator = if i > 0 { "/" } else { "" };
        let mut next = Vec::new();
        for path in found {
            if !has_wildcard(component) {
                next.push(format!("{path}{separator}{component}"));
                continue;
            }
            let directory = if i == 1 && path.is_empty() { "/" } else { &path };
            let names = system.list(directory).unwrap_or_default();
            let kept = names.iter().filter(|name| matches(component, name));
            next.extend(kept.map(|name| format!("{path}{separator}{name}")));
        }
        found = next;
    }
    found.retain(|path| system.exists(path));
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("*", ".hidden", true),
            ("a*b*c", "aXXbYYc", true),
            ("a*b*c", "aXXbYY", false),
            ("?", "", false),
            ("a[12]", "a2", true),
            ("a[!12]", "a2", false),
            ("a[^1-3]", "a4", true),
            ("[]a]", "]", true),
            ("[a", "[a", true),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("ab", "a", false),
            ("*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaa", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
