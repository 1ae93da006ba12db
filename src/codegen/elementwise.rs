//! The description of a fused elementwise kernel over f32 arrays of one length.

use ff_tensor::{Result, ensure};

/// A step of an elementwise computation. Operands are positions of earlier instructions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Instruction {
    /// The element of the input array with this number.
    Input(usize),
    /// A constant.
    Constant(f32),
    /// The sum of two values.
    Add(usize, usize),
    /// The first value less the second.
    Subtract(usize, usize),
    /// The product of two values.
    Multiply(usize, usize),
    /// The quotient of two values.
    Divide(usize, usize),
}

/// A kernel that computes each element of its output from the elements of its inputs at the same index.
#[derive(Clone, Debug, PartialEq)]
pub struct Elementwise {
    /// The name of the function in the object: a C identifier.
    pub name: String,
    /// The number of input arrays.
    pub inputs: usize,
    /// The computation; the last instruction is the output.
    pub body: Vec<Instruction>,
}

impl Elementwise {
    /// Checks that the name is an identifier, inputs exist and operands come before their use.
    pub fn verify(&self) -> Result<()> {
        let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        ensure!(
            self.name.bytes().all(word) && self.name.bytes().next().is_some_and(|b| !b.is_ascii_digit()),
            InvalidArgument,
            "{:?} is not a name for a kernel",
            self.name
        );
        ensure!(
            !self.body.is_empty(),
            InvalidArgument,
            "kernel {} computes nothing",
            self.name
        );
        for (position, instruction) in self.body.iter().enumerate() {
            let valid = match *instruction {
                Instruction::Input(number) => number < self.inputs,
                Instruction::Constant(_) => true,
                Instruction::Add(left, right)
                | Instruction::Subtract(left, right)
                | Instruction::Multiply(left, right)
                | Instruction::Divide(left, right) => left < position && right < position,
            };
            ensure!(
                valid,
                InvalidArgument,
                "kernel {}: instruction {position} refers to nothing",
                self.name
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Instruction::*;

    fn kernel(name: &str, body: &[Instruction]) -> Elementwise {
        Elementwise {
            name: name.into(),
            inputs: 1,
            body: body.to_vec(),
        }
    }

    #[test]
    fn verify_tells_right_from_wrong() {
        assert!(kernel("k", &[Input(0), Add(0, 0)]).verify().is_ok());
        for wrong in [
            kernel("", &[Input(0)]),
            kernel("1k", &[Input(0)]),
            kernel("a b", &[Input(0)]),
            kernel("k", &[]),
            kernel("k", &[Input(1)]),
            kernel("k", &[Input(0), Add(0, 1)]),
        ] {
            assert!(wrong.verify().is_err(), "{wrong:?}");
        }
    }
}
