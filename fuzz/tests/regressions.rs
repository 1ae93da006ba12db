//! Replays every input that once ended badly, each in a process of its own.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longest that one input may take.
const LONGEST: Duration = Duration::from_secs(30);

/// How an input ended, if badly.
fn replay(target: &str, file: &Path) -> Option<String> {
    let scratch = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_ff-fuzz"))
        .args(["replay", target])
        .arg(file)
        .current_dir(scratch.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return (!status.success()).then(|| status.to_string());
        }
        if start.elapsed() > LONGEST {
            child.kill().unwrap();
            child.wait().unwrap();
            return Some("takes too long".into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn mended_faults_stay_mended() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
    let mut count = 0;
    let mut faults = Vec::new();
    for target in std::fs::read_dir(folder).unwrap() {
        let target = target.unwrap();
        for file in std::fs::read_dir(target.path()).unwrap() {
            let file = file.unwrap().path();
            if let Some(how) = replay(target.file_name().to_str().unwrap(), &file) {
                faults.push(format!("{}: {how}", file.display()));
            }
            count += 1;
        }
    }
    assert!(count > 0);
    assert_eq!(faults, Vec::<String>::new());
}
