//! Makes an input that ends badly smaller while it ends in the same way.

use crate::supervise::fault_of;
use crate::targets::{Form, Target};
use crate::wire;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// The command: shrinks a file in place for at most five minutes. False when the input ends well.
pub fn file(target: &Target, path: &Path) -> Result<bool, String> {
    let Some(kind) = fault_of(target, path)? else {
        println!("{} ends well", path.display());
        return Ok(false);
    };
    println!("{kind}");
    keep_smaller(target, path, &kind, Instant::now() + Duration::from_secs(300))?;
    Ok(true)
}

/// Shrinks a file in place until nothing can be left out or the time is over.
pub fn keep_smaller(target: &Target, path: &Path, kind: &str, end: Instant) -> Result<(), String> {
    let trial = path.with_extension("trial");
    let mut best = fs::read(path).map_err(|error| error.to_string())?;
    let mut fails = |candidate: &[u8]| -> Result<bool, String> {
        if Instant::now() > end {
            return Ok(false);
        }
        fs::write(&trial, candidate).map_err(|error| error.to_string())?;
        Ok(fault_of(target, &trial)?.as_deref() == Some(kind))
    };
    if target.form == Form::Message {
        without_fields(&mut best, &mut fails)?;
    } else {
        without_bytes(&mut best, &mut fails)?;
    }
    let _ = fs::remove_file(&trial);
    fs::write(path, &best).map_err(|error| error.to_string())
}

type Fails<'a> = dyn FnMut(&[u8]) -> Result<bool, String> + 'a;

/// Leaves out fields of a message, runs of them first.
fn without_fields(best: &mut Vec<u8>, fails: &mut Fails) -> Result<(), String> {
    let Some(mut fields) = wire::parse(best) else {
        return without_bytes(best, fails);
    };
    let mut run = wire::count(&fields) / 2;
    while run > 0 {
        let mut at = 0;
        while at < wire::count(&fields) {
            let mut smaller = fields.clone();
            for _ in 0..run {
                if let Some((list, place)) = wire::locate(&mut smaller, at) {
                    list.remove(place);
                }
            }
            if smaller != fields && fails(&wire::encode(&smaller))? {
                fields = smaller;
            } else {
                at += run;
            }
        }
        run /= 2;
    }
    *best = wire::encode(&fields);
    Ok(())
}

/// Leaves out runs of bytes, long ones first.
fn without_bytes(best: &mut Vec<u8>, fails: &mut Fails) -> Result<(), String> {
    let mut run = best.len() / 2;
    while run > 0 {
        let mut at = 0;
        while at < best.len() {
            let mut smaller = best.clone();
            smaller.drain(at..(at + run).min(best.len()));
            if fails(&smaller)? {
                *best = smaller;
            } else {
                at += run;
            }
        }
        run /= 2;
    }
    Ok(())
}
