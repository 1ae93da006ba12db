//! Texts changed word by word: to change programs and text messages so that they can still be read.

use crate::random::Random;

/// A text cut into words, numbers, quoted strings, blanks and single signs.
fn tokens(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut last = ' ';
    let mut quoted = false;
    for c in text.chars() {
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '%');
        let joins = quoted || (is_word(c) && is_word(last)) || (c == ' ' && last == ' ');
        if c == '"' && last != '\\' {
            quoted = !quoted;
        }
        match found.last_mut() {
            Some(word) if joins => word.push(c),
            _ => found.push(c.to_string()),
        }
        last = c;
    }
    found
}

/// Changes a few words of a text; `donor` is another text whose words may be put in.
pub fn mutate(text: &str, donor: &str, random: &mut Random) -> String {
    let mut words = tokens(text);
    let others = tokens(donor);
    for _ in 0..=random.below(5) {
        if words.is_empty() || others.is_empty() {
            break;
        }
        let at = random.below(words.len());
        match random.below(9) {
            0 => drop(words.remove(at)),
            1 => words.insert(at, words[random.below(words.len())].clone()),
            2 => {
                let other = random.below(words.len());
                words.swap(at, other);
            }
            3 => words[at] = random.pick(&others).clone(),
            4 => change_number(&mut words, random),
            5 => same_kind(&mut words, at, random),
            6 => {
                let end = (at + 1 + random.below(30)).min(words.len());
                let copy = words[at..end].to_vec();
                words.splice(at..at, copy);
            }
            7 if random.one_in(20) => {
                let many = words[at].repeat(300);
                words[at] = many;
            }
            _ => drop(words.drain(at..(at + 1 + random.below(8)).min(words.len()))),
        }
    }
    words.concat()
}

/// Another number in place of one.
fn change_number(words: &mut [String], random: &mut Random) {
    let is_number = |word: &String| word.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    let places: Vec<usize> = (0..words.len()).filter(|&at| is_number(&words[at])).collect();
    if !places.is_empty() {
        words[*random.pick(&places)] = if random.one_in(3) {
            random.number().to_string()
        } else {
            random.below(9).to_string()
        };
    }
}

/// Another word of the text of the same length or beginning in place of one.
fn same_kind(words: &mut [String], at: usize, random: &mut Random) {
    let first = words[at].chars().next();
    let places: Vec<usize> = (0..words.len())
        .filter(|&other| words[other].chars().next() == first || words[other].len() == words[at].len())
        .collect();
    words[at] = words[*random.pick(&places)].clone();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_lose_nothing() {
        let text = "%a.1 = f32[2,3]{1,0} add(%x, \"a b\\\" c\")\n";
        assert_eq!(tokens(text).concat(), text);
        assert!(tokens(text).contains(&"%a.1".to_string()));
    }
}
