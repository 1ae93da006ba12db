//! `ff-fuzz`: feeds the library what is broken, and reports what it does not survive.
//!
//! ```text
//! ff-fuzz run TARGET|all [--seconds N] [--seed S] [--out FOLDER]   changes seeds and runs them, in processes of their own
//! ff-fuzz replay TARGET FILE...                                    runs inputs in this process
//! ff-fuzz minimise TARGET FILE                                     makes an input that ends badly smaller, in place
//! ff-fuzz list                                                     the targets
//! ```
//!
//! An input is a fault when it makes the library panic (also where the panic would become a status), abort, overflow its
//! stack, take longer than ten seconds or more than two gigabytes. A run is determined by its seed: the input number
//! `i` of a target is a function of target, seed and `i`. Faults are kept under `--out`, smaller if that is found
//! quickly; what was mended lies in `regressions/` and is replayed by the tests.
//!
//! Coverage does not guide it: the changes know the forms of the inputs (fields of messages, words of texts) instead.

// Each handle is a box of its own, because the C functions give and take them one by one.
#![allow(clippy::vec_box)]

mod minimise;
mod process;
mod random;
mod supervise;
mod table;
mod targets;
mod text;
mod wire;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use targets::{TARGETS, Target};

/// What the command line asked for beside names.
struct Options {
    seconds: u64,
    seed: u64,
    out: PathBuf,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("ff-fuzz: {message}");
            ExitCode::from(2)
        }
    }
}

/// Runs a command; false when there was a fault.
fn run(arguments: &[String]) -> Result<bool, String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["list"] => {
            for target in TARGETS {
                println!("{:14} {}", target.name, target.about);
            }
            Ok(true)
        }
        ["run", name, ref rest @ ..] => fuzz(name, &options(rest)?),
        ["replay", name, ref files @ ..] => {
            let target = find(name)?;
            process::prepare_to_replay();
            for file in files {
                (target.run)(&std::fs::read(file).map_err(|error| format!("{file}: {error}"))?);
            }
            Ok(true)
        }
        ["minimise", name, file] => minimise::file(find(name)?, &PathBuf::from(file)),
        ["worker", name, seed, first] => {
            let number = |text: &str| text.parse().map_err(|_| format!("{text} is no number"));
            process::work(find(name)?, number(seed)?, number(first)?);
            Ok(true)
        }
        _ => Err("use: run TARGET|all, replay TARGET FILE..., minimise TARGET FILE, list".into()),
    }
}

fn find(name: &str) -> Result<&'static Target, String> {
    let found = TARGETS.iter().copied().find(|target| target.name == name);
    found.ok_or_else(|| format!("{name} is no target"))
}

fn options(words: &[&str]) -> Result<Options, String> {
    let mut options = Options {
        seconds: 10,
        seed: 1,
        out: PathBuf::from("build/fuzz"),
    };
    for pair in words.chunks(2) {
        let number = |text: &str| text.parse().map_err(|_| format!("{text} is no number"));
        match pair {
            ["--seconds", value] => options.seconds = number(value)?,
            ["--seed", value] => options.seed = number(value)?,
            ["--out", value] => options.out = PathBuf::from(value),
            _ => return Err(format!("unknown option {}", pair[0])),
        }
    }
    Ok(options)
}

fn fuzz(name: &str, options: &Options) -> Result<bool, String> {
    let chosen: Vec<&Target> = match name {
        "all" => TARGETS.to_vec(),
        name => vec![find(name)?],
    };
    let mut good = true;
    for target in chosen {
        let out = options.out.join(target.name);
        let time = Duration::from_secs(options.seconds);
        let report = supervise::run(target, options.seed, time, &out)?;
        println!(
            "{:14} {:8} inputs, {} faults of {} kinds",
            target.name, report.inputs, report.faults, report.kinds
        );
        good &= report.faults == 0;
    }
    Ok(good)
}
