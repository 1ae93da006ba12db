//! `ferroflow compile`: models to objects.

use crate::arguments::Arguments;
use ff_aot::{Options, Source};
use ff_tensor::{Result, ensure, status};

const HELP: &str = "usage: ferroflow compile MODEL -o PREFIX [options]

Writes PREFIX.o and PREFIX.h (and PREFIX.weights). Link them with libferroflow_aot.a.

MODEL is one of
  --saved-model DIR [--signature NAME] [--tags TAG,..]    NAME is serving_default, TAG is serve if not said
  --graph FILE --feed TENSOR .. --fetch TENSOR ..         a GraphDef

  -o PREFIX            where the files go
  --name NAME          the prefix of the C names; the last part of PREFIX if not said
  --shape INPUT=2,3    the shape of an input whose shape is not fixed
  --extent N           what stands for every other unknown extent of inputs
  --weights side       weights in PREFIX.weights instead of in the object
  --target TRIPLE      x86_64-.. or aarch64-..; this machine's system if not said
  --cpu PROCESSOR      x86-64-v3 (the default on x86), x86-64-v4, x86-64, native, cortex-a72 ..
  --report             prints the instructions after all passes and their buffers";

/// Runs the command.
pub fn run(words: &[String]) -> Result<()> {
    let mut arguments = Arguments::new(words);
    if arguments.switch("--help") {
        println!("{HELP}");
        return Ok(());
    }
    let report = arguments.switch("--report");
    let prefix = arguments.value("-o")?;
    let prefix = prefix.ok_or_else(|| status!(InvalidArgument, "Say where the files go: -o PREFIX"))?;
    let source = source(&mut arguments)?;
    let mut rest = arguments.all();
    if !rest.iter().any(|word| word == "--name") {
        rest.extend([String::from("--name"), name_of(&prefix)]);
    }
    let options = Options::parse(rest.iter().map(String::as_str))?;
    let artifact = ff_aot::compile_to(&source()?, &options, &prefix)?;
    if report {
        println!("{}", artifact.report);
    }
    let bytes = |bytes: &Option<Vec<u8>>| {
        bytes.as_ref().map_or(String::new(), |bytes| {
            format!(", {} bytes of weights in {prefix}.weights", bytes.len())
        })
    };
    println!(
        "{prefix}.o: {} bytes, {} fusions with machine code, for {} ({}){}",
        artifact.object.len(),
        artifact.num_fusions,
        options.target.triple,
        options.target.processor,
        bytes(&artifact.weights)
    );
    Ok(())
}

/// How to read the model that the words name.
fn source(arguments: &mut Arguments) -> Result<Box<dyn Fn() -> Result<Source>>> {
    let directory = arguments.value("--saved-model")?;
    let signature = arguments.value("--signature")?;
    let tags = arguments.value("--tags")?;
    let graph = arguments.value("--graph")?;
    let feeds = arguments.values("--feed")?;
    let fetches = arguments.values("--fetch")?;
    ensure!(
        directory.is_some() != graph.is_some(),
        InvalidArgument,
        "Name one model: --saved-model DIR, or --graph FILE"
    );
    if let Some(directory) = directory {
        let signature = signature.unwrap_or_else(|| String::from("serving_default"));
        let tags = tags.unwrap_or_else(|| String::from("serve"));
        let tags: Vec<String> = tags
            .split(',')
            .filter(|tag| !tag.is_empty())
            .map(String::from)
            .collect();
        return Ok(Box::new(move || {
            Source::saved_model(&directory, &tags, &signature)
        }));
    }
    let path = graph.unwrap_or_default();
    Ok(Box::new(move || {
        Source::graph_def(ff_platform::files::read(&path)?, &feeds, &fetches)
    }))
}

/// A C name out of the last part of a path.
fn name_of(prefix: &str) -> String {
    let last = prefix.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = last.chars().map(plain).collect();
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name
    } else {
        format!("model_{name}")
    }
}
