//! `ferroflow hlo`: modules from text files through passes, in pictures and as code, and run.

mod inputs;
mod output;
mod run;

use crate::arguments::Arguments;
use ff_hlo::passes::pipeline::{ALL, LAST, Pass};
use ff_hlo::passes::{Changed, pipeline};
use ff_hlo::{Module, print};
use ff_tensor::{Result, ensure, status};

const HELP: &str = "usage: ferroflow hlo FILE [options]

Reads a module in text form (- for standard input), runs passes over it, and prints it.

  --passes all         the whole pipeline (the default); none; or names in the order in which they run
  --list-passes        prints the names of the passes
  --print-after-all    the module after each pass that changed it
  --emit WHAT          text (the default), html, svg, buffers, llvm, asm, ptx[:sm_80], structure, none
  --run                runs the module, as it was and after the passes, and prints the results
  --compare            runs it in the evaluator and as compiled code: their bits must be equal
  --input LITERAL      an argument, as 'f32[2] {1, 2}', once for each parameter; random numbers if not said
  --seed N             of the random numbers
  --repeat N           prints the time of a run, the best of N";

/// Runs the command.
pub fn run(words: &[String]) -> Result<()> {
    let mut arguments = Arguments::new(words);
    if arguments.switch("--help") {
        println!("{HELP}");
        return Ok(());
    }
    if arguments.switch("--list-passes") {
        ALL.iter().chain(LAST).for_each(|pass| println!("{}", pass.name));
        return Ok(());
    }
    let passes = arguments
        .value("--passes")?
        .unwrap_or_else(|| String::from("all"));
    let each = arguments.switch("--print-after-all");
    let emit = arguments.value("--emit")?;
    let request = run::Request {
        run: arguments.switch("--run"),
        compare: arguments.switch("--compare"),
        inputs: arguments.values("--input")?,
        seed: number(arguments.value("--seed")?, 1)?,
        repeat: number(arguments.value("--repeat")?, 0)?,
    };
    let files = arguments.rest()?;
    ensure!(files.len() == 1, InvalidArgument, "Name one file");
    let text = read(&files[0])?;
    let module = ff_hlo::parse(&text).map_err(|error| error.prefixed(&format!("{}: ", files[0])))?;
    ff_hlo::verify(&module)?;
    let mut prepared = module.clone();
    apply(&mut prepared, &passes, each)?;
    ff_hlo::verify(&prepared)?;
    let runs = request.wanted();
    let emit = emit.unwrap_or_else(|| String::from(if runs { "none" } else { "text" }));
    output::emit(&prepared, &emit)?;
    if runs {
        request.perform(&module, &prepared)
    } else {
        Ok(())
    }
}

fn number(text: Option<String>, other: u64) -> Result<u64> {
    match text {
        None => Ok(other),
        Some(text) => text
            .parse()
            .map_err(|_| status!(InvalidArgument, "{text:?} is no number")),
    }
}

fn read(path: &str) -> Result<String> {
    let bytes = if path == "-" {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin(), &mut bytes)
            .map_err(|error| status!(Unknown, "standard input: {error}"))?;
        bytes
    } else {
        ff_platform::files::read(path)?
    };
    String::from_utf8(bytes).map_err(|_| status!(InvalidArgument, "{path} is no text"))
}

/// Runs the passes of these names.
fn apply(module: &mut Module, names: &str, each: bool) -> Result<()> {
    match names {
        "none" => return Ok(()),
        "all" if !each => return pipeline::prepare(module).map(drop),
        "all" => {
            return pipeline::prepare_with(module, &mut |name, before, after| {
                if print(before) != print(after) {
                    println!("// after {name}\n{}", print(after));
                }
            })
            .map(drop);
        }
        _ => {}
    }
    for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let pass = find(name)?;
        let changed = (pass.run)(module).map_err(|error| error.prefixed(&format!("pass {name}: ")))?;
        if each && changed == Changed::Yes {
            println!("// after {name}\n{}", print(module));
        }
    }
    Ok(())
}

fn find(name: &str) -> Result<&'static Pass> {
    let found = ALL.iter().chain(LAST).find(|pass| pass.name == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = ALL.iter().chain(LAST).map(|pass| pass.name).collect();
        status!(
            NotFound,
            "There is no pass {name:?}; there are {}",
            names.join(", ")
        )
    })
}
