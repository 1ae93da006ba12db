//! Runs the inputs of a target in workers, watches them, and keeps what they do not survive.

use crate::minimise;
use crate::process::{self, PANICKED};
use crate::targets::Target;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Longest that one input may take.
pub const LONGEST: Duration = Duration::from_secs(10);

/// Most memory that a worker may hold, in bytes.
const MOST_MEMORY: u64 = 2 << 30;

/// Longest that making one fault smaller may take.
const MINIMISING: Duration = Duration::from_secs(30);

/// What came out of a run.
pub struct Report {
    /// Inputs that were run.
    pub inputs: u64,
    /// Inputs that ended badly.
    pub faults: u64,
    /// Different ways in which they did.
    pub kinds: usize,
}

/// How a worker ended.
enum End {
    /// All its inputs are done, or the time is over.
    Well,
    /// The input that ran ended badly, in this way.
    Badly(String),
}

/// Fuzzes a target for some time; faults go to the folder `out`.
pub fn run(target: &Target, seed: u64, time: Duration, out: &Path) -> Result<Report, String> {
    let end = Instant::now() + time;
    let (mut first, mut faults) = (0, 0);
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    let seeds = target.seeds();
    fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;
    while Instant::now() < end {
        let (next, how) = worker(target, seed, first, end, out)?;
        first = next;
        if let End::Badly(kind) = how {
            faults += 1;
            let times = kinds.entry(kind.clone()).or_default();
            *times += 1;
            if *times == 1 {
                let input = process::input(target, &seeds, seed, next - 1);
                keep(target, seed, next - 1, input, &kind, out)?;
            }
        }
    }
    let kinds = kinds.len();
    Ok(Report {
        inputs: first,
        faults,
        kinds,
    })
}

/// Runs one worker from input `first` on; gives the number of the first input that it did not run, and its end.
fn worker(target: &Target, seed: u64, first: u64, end: Instant, out: &Path) -> Result<(u64, End), String> {
    let errors = out.join("stderr.txt");
    let mut child = command(
        "worker",
        target,
        &[&seed.to_string(), &first.to_string()],
        &errors,
    )?
    .current_dir(scratch(out)?)
    .spawn()
    .map_err(|error| format!("cannot start a worker: {error}"))?;
    let mut stdout = child.stdout.take().ok_or("a worker without output")?;
    let (sender, receiver) = channel();
    let reader = std::thread::spawn(move || {
        let mut number = [0; 8];
        while stdout.read_exact(&mut number).is_ok() {
            let number = u64::from_le_bytes(number);
            let mut text = String::new();
            if number == PANICKED {
                // What is no text is lost: the number alone says enough.
                let _ = stdout.read_to_string(&mut text);
            }
            if sender.send((number, text)).is_err() {
                break;
            }
        }
    });
    let (next, early) = watch(&mut child, first, end, &receiver);
    if early.is_some() {
        let _ = child.kill();
    }
    let status = child
        .wait()
        .map_err(|error| format!("cannot wait for a worker: {error}"))?;
    drop(receiver);
    let _ = reader.join();
    let how = early.unwrap_or_else(|| ended(status, &errors));
    Ok((next, how))
}

/// Follows a worker until it ends by itself (none) or must be ended.
fn watch(
    child: &mut Child,
    first: u64,
    end: Instant,
    messages: &Receiver<(u64, String)>,
) -> (u64, Option<End>) {
    let mut next = first;
    let mut since = Instant::now();
    loop {
        match messages.recv_timeout(Duration::from_millis(50)) {
            Ok((PANICKED, text)) => return (next, Some(End::Badly(panic_kind(&text)))),
            Ok((number, _)) => {
                next = number + 1;
                since = Instant::now();
                // The channel may never be empty.
                if number % 64 != 0 {
                    continue;
                }
            }
            Err(RecvTimeoutError::Disconnected) => return (next, None),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if resident(child.id()) > MOST_MEMORY {
            return (next, Some(End::Badly("too much memory".into())));
        }
        if since.elapsed() > LONGEST {
            return (next, Some(End::Badly("takes too long".into())));
        }
        if Instant::now() > end && since.elapsed() > Duration::from_millis(500)
            || Instant::now() > end + LONGEST
        {
            return (next, Some(End::Well));
        }
        if Instant::now() > end {
            return (next.max(1), Some(End::Well));
        }
    }
}

/// Bytes of memory that a process holds.
fn resident(process: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/statm")).unwrap_or_default();
    let pages: u64 = text
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .unwrap_or(0);
    pages * 4096
}

/// How a process that ended by itself ended.
fn ended(status: ExitStatus, errors: &Path) -> End {
    use std::os::unix::process::ExitStatusExt;
    if status.success() {
        return End::Well;
    }
    let text = String::from_utf8_lossy(&fs::read(errors).unwrap_or_default()).into_owned();
    let tail: Vec<&str> = text.lines().rev().take(60).collect();
    for line in tail {
        if line.contains("has overflowed its stack") {
            return End::Badly("stack overflow".into());
        }
        if line.starts_with("memory allocation of") {
            return End::Badly("allocation that cannot fail".into());
        }
        if line.starts_with("panicked at") {
            return End::Badly(panic_kind(line));
        }
    }
    End::Badly(match status.signal() {
        Some(signal) => format!("signal {signal}"),
        None => format!("exit {:?}", status.code()),
    })
}

/// The place of a panic, from its message.
fn panic_kind(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    first.trim_end_matches(':').to_string()
}

/// This program again, on a target, with limits; what it prints as errors goes to a file.
fn command(verb: &str, target: &Target, rest: &[&str], errors: &Path) -> Result<Command, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let file = File::create(errors).map_err(|error| format!("{}: {error}", errors.display()))?;
    let mut command = Command::new(program);
    command
        .args([verb, target.name])
        .args(rest)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(file);
    Ok(command)
}

/// A folder for what a worker may write.
fn scratch(out: &Path) -> Result<PathBuf, String> {
    let folder = out.join("scratch");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

/// Runs one input in a process; the way in which it ends badly, if it does.
pub fn fault_of(target: &Target, file: &Path) -> Result<Option<String>, String> {
    let out = file.parent().unwrap_or(Path::new("."));
    let absolute = std::path::absolute(file).map_err(|error| error.to_string())?;
    let errors = file.with_extension("stderr");
    let mut child = command("replay", target, &[&absolute.display().to_string()], &errors)?
        .stdout(Stdio::null())
        .current_dir(scratch(out)?)
        .spawn()
        .map_err(|error| format!("cannot start a process: {error}"))?;
    let start = Instant::now();
    let how = loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            break ended(status, &errors);
        }
        let kind = if resident(child.id()) > MOST_MEMORY {
            "too much memory"
        } else if start.elapsed() > LONGEST {
            "takes too long"
        } else {
            std::thread::sleep(Duration::from_millis(2));
            continue;
        };
        let _ = child.kill();
        let _ = child.wait();
        break End::Badly(kind.into());
    };
    let _ = fs::remove_file(errors);
    Ok(match how {
        End::Well => None,
        End::Badly(kind) => Some(kind),
    })
}

/// Saves an input that ended badly, and makes it smaller.
fn keep(
    target: &Target,
    seed: u64,
    number: u64,
    input: Vec<u8>,
    kind: &str,
    out: &Path,
) -> Result<(), String> {
    let path = out.join(format!("{seed}-{number}.bin"));
    fs::write(&path, &input).map_err(|error| format!("{}: {error}", path.display()))?;
    let alone = fault_of(target, &path)?;
    let note = match &alone {
        Some(alone) if alone == kind => "",
        Some(_) => " (alone it ends in another way)",
        None => " (not alone)",
    };
    println!("{}: {kind}{note}: {}", target.name, path.display());
    if let Some(alone) = alone {
        minimise::keep_smaller(target, &path, &alone, Instant::now() + MINIMISING)?;
    }
    Ok(())
}
