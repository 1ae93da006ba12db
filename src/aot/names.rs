//! Names of tensors as C names.

use ff_tensor::{Result, ensure};

/// A name that C accepts, out of any text: other characters become underscores.
pub(crate) fn c_name(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = text.chars().map(plain).collect();
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return format!("_{name}");
    }
    name
}

/// C names of all texts, made different by numbers where they would be equal.
pub(crate) fn distinct(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for text in texts {
        let name = c_name(&text).to_ascii_lowercase();
        let mut candidate = name.clone();
        let mut number = 1;
        while names.contains(&candidate) {
            number += 1;
            candidate = format!("{name}_{number}");
        }
        names.push(candidate);
    }
    names
}

/// `digits_model` as `DigitsModel`.
pub(crate) fn class_name(name: &str) -> String {
    let words = name.split('_').filter(|word| !word.is_empty());
    words
        .map(|word| word[..1].to_ascii_uppercase() + &word[1..])
        .collect()
}

/// A tensor's name, `node:output`, as its parts. INVALID_ARGUMENT for another text.
pub(crate) fn tensor_name(name: &str) -> Result<(&str, u32)> {
    let (node, index) = name.rsplit_once(':').unwrap_or((name, "0"));
    let index = index.parse::<u32>();
    ensure!(
        !node.is_empty() && !node.starts_with('^') && index.is_ok(),
        InvalidArgument,
        "{name:?} is no name of a tensor"
    );
    Ok((node, index.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_gives_names() {
        let names = distinct(["x.y", "x_y", "X:y", "3", ""].map(String::from).into_iter());
        assert_eq!(names, ["x_y", "x_y_2", "x_y_3", "_3", "_"]);
        assert_eq!(class_name("digits_model2"), "DigitsModel2");
        assert_eq!(tensor_name("a/b:2").unwrap(), ("a/b", 2));
        assert_eq!(tensor_name("a").unwrap(), ("a", 0));
        assert!(tensor_name("^a").is_err() && tensor_name("a:x").is_err() && tensor_name("").is_err());
    }
}
