//! The `ferroflow` command: models compiled ahead of time, and the compiler's own modules.
//!
//! - `ferroflow compile`: a signature of a SavedModel, or part of a GraphDef, to an object and a header (`compile`).
//! - `ferroflow show`: the signatures of a SavedModel (`show`).
//! - `ferroflow hlo`: passes and runs of modules in text files (`hlo`).
//!
//! Contract: exit status 0, or 1 with a message on standard error; 2 for words that mean nothing. Damaged files are
//! messages, never crashes.
//!
//! What it does not do: it needs no library beside it; what models compute is the business of the crates that it calls.

mod arguments;
mod compile;
mod hlo;
mod show;

use ff_tensor::{Code, Status};
use std::process::ExitCode;

const HELP: &str = "usage: ferroflow COMMAND ..\n
  compile   a model to an object file and a header, for programs without this library
  show      the signatures of a SavedModel
  hlo       passes and runs of modules in the compiler's text form
  version   the release and the processors that there is code for

`ferroflow COMMAND --help` says more.";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((command, rest)) = words.split_first() else {
        eprintln!("{HELP}");
        return ExitCode::from(2);
    };
    let result = match command.as_str() {
        "compile" => compile::run(rest),
        "show" => show::run(rest),
        "hlo" => hlo::run(rest),
        "version" | "--version" => version(),
        "help" | "--help" | "-h" => {
            println!("{HELP}");
            Ok(())
        }
        other => {
            eprintln!("ferroflow: {other:?} is no command\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!(
                "ferroflow {command}: {}: {}",
                name_of(error.code()),
                error.message()
            );
            ExitCode::FAILURE
        }
    }
}

fn name_of(code: Code) -> String {
    format!("{code:?}")
}

fn version() -> Result<(), Status> {
    println!("ferroflow {}", env!("CARGO_PKG_VERSION"));
    match ff_codegen::version() {
        Some((major, minor, patch)) => {
            println!("LLVM {major}.{minor}.{patch}: {}", ff_codegen::target());
        }
        None => println!("without LLVM"),
    }
    Ok(())
}
