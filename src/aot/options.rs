//! What a client may choose, and its text form: the words of the command line.

use crate::source::Value;
use ff_codegen::ObjectTarget;
use ff_tensor::{Result, Shape, bail, ensure, status};

/// How a model is compiled.
#[derive(Clone, Debug)]
pub struct Options {
    /// The prefix of all names in the header: a C name.
    pub name: String,
    /// What the object is for.
    pub target: ObjectTarget,
    /// Whether weights get a file of their own.
    pub weights_aside: bool,
    /// Shapes of inputs, by their names in the signature or in the graph.
    pub shapes: Vec<(String, Vec<i64>)>,
    /// What stands for every extent of inputs that is not known.
    pub extent: Option<i64>,
}

impl Options {
    /// The defaults: a model named `model` for this machine's system, weights inside.
    pub fn new() -> Result<Options> {
        Ok(Options {
            name: String::from("model"),
            target: ObjectTarget::new(None, None)?,
            weights_aside: false,
            shapes: Vec::new(),
            extent: None,
        })
    }

    /// The options in words: `--name NAME`, `--target TRIPLE`, `--cpu PROCESSOR`, `--weights inside|side`,
    /// `--shape INPUT=2,3` (once for each input), `--extent N`. INVALID_ARGUMENT for others.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Options> {
        let mut options = Options::new()?;
        let (mut triple, mut processor) = (None, None);
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let (name, value) = match word.split_once('=').filter(|_| word.starts_with("--")) {
                Some((name, value)) => (name, Some(value)),
                None => (word, words.next()),
            };
            let value = value.ok_or_else(|| status!(InvalidArgument, "{name} needs a value"))?;
            match name {
                "--name" => options.name = value.to_string(),
                "--target" => triple = Some(value),
                "--cpu" => processor = Some(value),
                "--weights" => options.weights_aside = of_weights(value)?,
                "--shape" => options.shapes.push(shape(value)?),
                "--extent" => options.extent = Some(extent(value)?),
                _ => bail!(InvalidArgument, "Option {name} is not known"),
            }
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        ensure!(
            options.name.chars().all(plain) && options.name.starts_with(|c: char| c.is_ascii_alphabetic()),
            InvalidArgument,
            "{:?} is no C name",
            options.name
        );
        options.target = ObjectTarget::new(triple, processor)?;
        Ok(options)
    }

    /// The shape of each input. INVALID_ARGUMENT where it is not fixed, or does not fit what the model says.
    pub(crate) fn shapes_of(&self, inputs: &[Value]) -> Result<Vec<Shape>> {
        for (name, _) in &self.shapes {
            ensure!(
                inputs.iter().any(|input| input.is_named(name)),
                InvalidArgument,
                "The model has no input {name:?}"
            );
        }
        inputs.iter().map(|input| self.shape_of(input)).collect()
    }

    fn shape_of(&self, input: &Value) -> Result<Shape> {
        let given = self.shapes.iter().find(|(name, _)| input.is_named(name));
        let dims: Vec<i64> = match (given, input.shape.dims()) {
            (Some((_, dims)), _) => dims.clone(),
            (None, Some(dims)) => dims
                .iter()
                .map(|&extent| {
                    if extent < 0 {
                        self.extent.unwrap_or(-1)
                    } else {
                        extent
                    }
                })
                .collect(),
            (None, None) => vec![-1],
        };
        ensure!(
            dims.iter().all(|&extent| extent >= 0),
            InvalidArgument,
            "Input {:?} has shape {}: fix it by --shape {}=.., or unknown extents by --extent",
            input.name,
            input.shape,
            input.name
        );
        let shape = Shape::new(&dims)?;
        ensure!(
            input
                .shape
                .is_compatible_with(&ff_tensor::PartialShape::new(&dims)),
            InvalidArgument,
            "Shape {shape} does not fit input {:?} of shape {}",
            input.name,
            input.shape
        );
        Ok(shape)
    }
}

fn of_weights(value: &str) -> Result<bool> {
    match value {
        "inside" => Ok(false),
        "side" => Ok(true),
        _ => bail!(InvalidArgument, "Weights are inside or side, not {value:?}"),
    }
}

fn extent(value: &str) -> Result<i64> {
    let extent = value.parse().ok().filter(|extent| *extent >= 0);
    extent.ok_or_else(|| status!(InvalidArgument, "{value:?} is no extent"))
}

/// `name=2,3`; `name=` for a scalar.
fn shape(value: &str) -> Result<(String, Vec<i64>)> {
    let (name, dims) = value
        .rsplit_once('=')
        .ok_or_else(|| status!(InvalidArgument, "{value:?} is not INPUT=EXTENT,.."))?;
    let dims = dims.trim_matches(['[', ']']);
    let dims = dims.split(',').map(str::trim).filter(|text| !text.is_empty());
    Ok((name.to_string(), dims.map(extent).collect::<Result<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff_tensor::{DataType, PartialShape};

    fn value(dims: &[i64]) -> Value {
        Value {
            name: "x".into(),
            tensor: "serving_x:0".into(),
            dtype: DataType::FLOAT,
            shape: PartialShape::new(dims),
        }
    }

    #[test]
    fn words_are_checked() {
        let words = "--name m --shape x=2,3 --shape=s= --weights side --extent 4 --cpu native";
        let options = Options::parse(words.split(' ')).unwrap();
        assert_eq!(
            (options.name.as_str(), options.weights_aside, options.extent),
            ("m", true, Some(4))
        );
        assert_eq!(options.shapes, [("x".into(), vec![2, 3]), ("s".into(), vec![])]);
        for bad in [
            "--name 3m",
            "--name",
            "--shape x",
            "--shape x=-1",
            "--shape x=a",
            "--weights none",
            "--extent -2",
            "--target pdp11-dec",
            "--frobnicate 1",
            "x",
        ] {
            assert!(Options::parse(bad.split(' ')).is_err(), "{bad}");
        }
    }

    #[test]
    fn shapes_must_be_fixed_and_fit() {
        let parse = |text: &str| Options::parse(text.split_whitespace()).unwrap();
        let of = |text: &str, dims: &[i64]| parse(text).shapes_of(&[value(dims)]);
        assert_eq!(of("", &[2, 3]).unwrap()[0].dims(), [2, 3]);
        assert!(of("", &[-1, 3]).is_err());
        assert_eq!(of("--extent 5", &[-1, 3]).unwrap()[0].dims(), [5, 3]);
        assert_eq!(of("--shape serving_x=7,3", &[-1, 3]).unwrap()[0].dims(), [7, 3]);
        assert!(of("--shape x=7,4", &[-1, 3]).is_err());
        assert!(of("--shape y=7,4", &[-1, 3]).is_err());
        let unknown = Value {
            shape: PartialShape::unknown(),
            ..value(&[])
        };
        assert!(
            parse("--extent 1")
                .shapes_of(std::slice::from_ref(&unknown))
                .is_err()
        );
        assert!(parse("--shape x=1,2").shapes_of(&[unknown]).is_ok());
    }
}
