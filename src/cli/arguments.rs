//! The words of a command line: switches, options with values, and the rest.

use ff_tensor::{Result, ensure, status};

/// What was said, taken out piece by piece.
pub struct Arguments {
    words: Vec<String>,
}

impl Arguments {
    /// The words after the command's name.
    pub fn new(words: &[String]) -> Arguments {
        let mut separate = Vec::with_capacity(words.len());
        for word in words {
            match word.split_once('=').filter(|(name, _)| is_option(name)) {
                // A value may have further equals signs.
                Some((name, value)) => separate.extend([name.to_string(), value.to_string()]),
                None => separate.push(word.clone()),
            }
        }
        Arguments { words: separate }
    }

    /// Takes a switch out; whether it was there.
    pub fn switch(&mut self, name: &str) -> bool {
        let before = self.words.len();
        self.words.retain(|word| word != name);
        self.words.len() < before
    }

    /// Takes out all values of an option. INVALID_ARGUMENT for one without.
    pub fn values(&mut self, name: &str) -> Result<Vec<String>> {
        let mut values = Vec::new();
        while let Some(at) = self.words.iter().position(|word| word == name) {
            ensure!(at + 1 < self.words.len(), InvalidArgument, "{name} needs a value");
            values.push(self.words.remove(at + 1));
            self.words.remove(at);
        }
        Ok(values)
    }

    /// Takes out the value of an option that may be said once.
    pub fn value(&mut self, name: &str) -> Result<Option<String>> {
        let mut values = self.values(name)?;
        ensure!(values.len() < 2, InvalidArgument, "{name} was said twice");
        Ok(values.pop())
    }

    /// The words that are left. INVALID_ARGUMENT for an option among them.
    pub fn rest(self) -> Result<Vec<String>> {
        let unknown = self.words.iter().find(|word| is_option(word));
        match unknown {
            Some(word) => Err(status!(InvalidArgument, "Option {word} is not known")),
            None => Ok(self.words),
        }
    }

    /// The words that are left, options among them.
    pub fn all(self) -> Vec<String> {
        self.words
    }
}

fn is_option(word: &str) -> bool {
    word.starts_with("--")
}
