//! Developer commands: `cargo xtask <command>`.

mod coverage;
mod diff;
mod dist;
mod header_comments;
mod headers;
mod tidy;
mod tools;

use std::process::ExitCode;

/// Name, the cargo feature that the command needs, what it does, and the function.
struct Command {
    name: &'static str,
    feature: Option<&'static str>,
    help: &'static str,
    run: fn(&[String]) -> Result<(), String>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "dist",
        feature: None,
        help: "build, link and install the package: [--prefix DIR] [--no-llvm] [--no-aot] [--profile NAME] [--archive]",
        run: dist::run,
    },
    Command {
        name: "headers",
        feature: Some("headers"),
        help: "write the C headers under include/ from the Rust sources: [--check]",
        run: headers::run,
    },
    Command {
        name: "tidy",
        feature: None,
        help: "check the rules of the house that the compiler does not know",
        run: tidy::run,
    },
    Command {
        name: "coverage",
        feature: Some("coverage"),
        help: "write COVERAGE.md: which ops have what: [--check]; --cases: what no unit test ran",
        run: coverage::run,
    },
    Command {
        name: "diff",
        feature: Some("diff"),
        help: "random graphs through this library and the reference: [--seconds N] [--seed N] [--ops PATTERN]",
        run: diff::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let name = arguments.first().map_or("", String::as_str);
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        eprintln!("usage: cargo xtask <command> [options]");
        for command in COMMANDS {
            eprintln!("  {:10} {}", command.name, command.help);
        }
        return ExitCode::from(2);
    };
    let outcome = match command.feature {
        Some(feature) if !enabled(feature) => tools::rebuild_with(feature, &arguments),
        _ => (command.run)(&arguments[1..]),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask {name}: {message}");
            ExitCode::FAILURE
        }
    }
}

fn enabled(feature: &str) -> bool {
    match feature {
        "headers" => cfg!(feature = "headers"),
        "coverage" => cfg!(feature = "coverage"),
        "diff" => cfg!(feature = "diff"),
        _ => false,
    }
}
