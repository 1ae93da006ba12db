//! `ferroflow show`: the signatures of a SavedModel, as `compile` takes them.

use crate::arguments::Arguments;
use ff_proto::{Message, SavedModel, SignatureDef, TensorInfo, tensor_info::Encoding};
use ff_tensor::{DataType, PartialShape, Result, ensure, status};

const HELP: &str = "usage: ferroflow show DIR

Prints the tags and signatures of a SavedModel, with the names, types and shapes of inputs and outputs.";

/// Runs the command.
pub fn run(words: &[String]) -> Result<()> {
    let mut arguments = Arguments::new(words);
    if arguments.switch("--help") {
        println!("{HELP}");
        return Ok(());
    }
    let folders = arguments.rest()?;
    ensure!(folders.len() == 1, InvalidArgument, "Name one folder");
    let path = format!("{}/saved_model.pb", folders[0].trim_end_matches('/'));
    let bytes = ff_platform::files::read(&path)?;
    let model = SavedModel::decode(bytes.as_slice())
        .map_err(|error| status!(DataLoss, "{path} is no SavedModel: {error}"))?;
    for meta_graph in &model.meta_graphs {
        let tags = meta_graph.meta_info_def.as_ref().map(|info| info.tags.join(","));
        println!("tags {}", tags.unwrap_or_default());
        for (name, signature) in &meta_graph.signature_def {
            print(name, signature);
        }
    }
    Ok(())
}

fn print(name: &str, signature: &SignatureDef) {
    println!("  signature {name}");
    for (kind, values) in [("input", &signature.inputs), ("output", &signature.outputs)] {
        for (name, info) in values {
            println!("    {kind} {name}: {}", describe(info));
        }
    }
}

fn describe(info: &TensorInfo) -> String {
    let shape = match info.tensor_shape.as_ref().map(PartialShape::from_proto) {
        Some(Ok(shape)) => shape,
        _ => PartialShape::unknown(),
    };
    let tensor = match &info.encoding {
        Some(Encoding::Name(name)) => name.as_str(),
        _ => "(no dense tensor)",
    };
    format!("{} {shape}, {tensor}", DataType(info.dtype))
}
