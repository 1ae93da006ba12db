//! Log lines: severities, sinks, listeners.
//!
//! `info!`, `warning!`, `error!` and `vlog!` make lines in TensorFlow's format on standard error:
//! `2026-01-31 12:00:00.123456: W src/x.rs:12] text`. `TF_CPP_MIN_LOG_LEVEL` (0 to 3) hides the less severe,
//! `TF_CPP_MAX_VLOG_LEVEL` shows the verbose; both are read once. Sinks see every line that is not hidden.
//! Listeners are another thing: they take the texts of printing ops.

use crate::environment;
use crate::time::now_microseconds;
use parking_lot::RwLock;
use std::fmt;
use std::io::Write;
use std::sync::{Arc, LazyLock};

/// How bad it is. The numbers are those of `TF_CPP_MIN_LOG_LEVEL` and `TF_LogLevel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // the names are the definition
pub enum Severity {
    Info = 0,
    Warning = 1,
    Error = 2,
    Fatal = 3,
}

/// One line for a sink.
pub struct Entry<'a> {
    /// How bad it is.
    pub severity: Severity,
    /// Source file and line.
    pub place: (&'a str, u32),
    /// The text, without time and place.
    pub text: &'a str,
}

impl Entry<'_> {
    /// The line as it is printed, without its end.
    pub fn line(&self) -> String {
        let letter = ['I', 'W', 'E', 'F'][self.severity as usize];
        let (file, line) = self.place;
        format!(
            "{}: {letter} {file}:{line}] {}",
            timestamp(now_microseconds()),
            self.text
        )
    }
}

/// Something that takes log lines, from any thread.
pub trait LogSink: Send + Sync {
    /// Takes one line.
    fn send(&self, entry: &Entry);
}

struct StandardError;

impl LogSink for StandardError {
    fn send(&self, entry: &Entry) {
        let mut line = entry.line();
        line.push('\n');
        // Nobody to tell when standard error is closed.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

static SINKS: LazyLock<RwLock<Vec<Arc<dyn LogSink>>>> =
    LazyLock::new(|| RwLock::new(vec![Arc::new(StandardError)]));

/// Adds a sink.
pub fn add_sink(sink: Arc<dyn LogSink>) {
    SINKS.write().push(sink);
}

/// Removes a sink that was added.
pub fn remove_sink(sink: &Arc<dyn LogSink>) {
    SINKS.write().retain(|other| !Arc::ptr_eq(other, sink));
}

/// The least severe level that is shown.
pub fn min_level() -> i64 {
    static LEVEL: LazyLock<i64> =
        LazyLock::new(|| environment::int64("TF_CPP_MIN_LOG_LEVEL", 0).unwrap_or(0));
    *LEVEL
}

/// The most verbose level that is shown.
pub fn max_vlog_level() -> i64 {
    static LEVEL: LazyLock<i64> =
        LazyLock::new(|| environment::int64("TF_CPP_MAX_VLOG_LEVEL", 0).unwrap_or(0));
    *LEVEL
}

/// Whether lines of this severity are shown.
pub fn is_shown(severity: Severity) -> bool {
    severity as i64 >= min_level()
}

/// Sends one line to all sinks unless its severity is hidden. The macros call this.
#[cold]
pub fn send(severity: Severity, place: (&str, u32), text: fmt::Arguments) {
    if !is_shown(severity) {
        return;
    }
    let text = text.to_string();
    let sinks = SINKS.read().clone();
    for sink in sinks {
        sink.send(&Entry {
            severity,
            place,
            text: &text,
        });
    }
}

/// `info!("loaded {path}")` logs for the curious.
#[macro_export]
macro_rules! info {
    ($($text:tt)*) => {
        $crate::log::send($crate::log::Severity::Info, (file!(), line!()), format_args!($($text)*))
    };
}

/// `warning!("...")` logs what may surprise.
#[macro_export]
macro_rules! warning {
    ($($text:tt)*) => {
        $crate::log::send($crate::log::Severity::Warning, (file!(), line!()), format_args!($($text)*))
    };
}

/// `error!("...")` logs what went wrong and has no caller to return to.
#[macro_export]
macro_rules! error {
    ($($text:tt)*) => {
        $crate::log::send($crate::log::Severity::Error, (file!(), line!()), format_args!($($text)*))
    };
}

/// `vlog!(1, "...")` logs when the verbose level is at least that.
#[macro_export]
macro_rules! vlog {
    ($level:expr, $($text:tt)*) => {
        if i64::from($level) <= $crate::log::max_vlog_level() { $crate::info!($($text)*) }
    };
}

type Listener = Arc<dyn Fn(&str) + Send + Sync>;

static LISTENERS: RwLock<Vec<Listener>> = RwLock::new(Vec::new());

/// Adds a function that gets the texts of printing ops instead of standard error. It stays for the life of the process.
pub fn register_listener(listener: impl Fn(&str) + Send + Sync + 'static) {
    LISTENERS.write().push(Arc::new(listener));
}

/// Hands the text of a printing op to the listeners. False when there are none: the op then prints it itself.
pub fn send_to_listeners(text: &str) -> bool {
    let listeners = LISTENERS.read().clone();
    for listener in &listeners {
        listener(text);
    }
    !listeners.is_empty()
}

/// Local time as `2026-01-31 12:00:00.123456`.
fn timestamp(microseconds: i64) -> String {
    let seconds = microseconds.div_euclid(1_000_000);
    let [year, month, day, hour, minute, second] = calendar(seconds);
    let fraction = microseconds.rem_euclid(1_000_000);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{fraction:06}")
}

#[cfg(unix)]
fn calendar(seconds: i64) -> [i64; 6] {
    let seconds = seconds as libc::time_t;
    // SAFETY: `tm` is plain data that `localtime_r` fills; both pointers are valid for the call.
    let time = unsafe {
        let mut time: libc::tm = std::mem::zeroed();
        if libc::localtime_r(&seconds, &mut time).is_null() {
            return utc(seconds as i64);
        }
        time
    };
    let fields = [
        time.tm_mon + 1,
        time.tm_mday,
        time.tm_hour,
        time.tm_min,
        time.tm_sec,
    ]
    .map(i64::from);
    let [month, day, hour, minute, second] = fields;
    [i64::from(time.tm_year) + 1900, month, day, hour, minute, second]
}

#[cfg(not(unix))]
fn calendar(seconds: i64) -> [i64; 6] {
    utc(seconds)
}

/// Year, month, day, hour, minute and second of universal time, by the proleptic Gregorian calendar.
fn utc(seconds: i64) -> [i64; 6] {
    let (mut days, in_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    days += 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months counted from March, so that the leap day comes last.
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    [year, month, day, in_day / 3600, in_day / 60 % 60, in_day % 60]
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;

    #[test]
    fn universal_time() {
        assert_eq!(utc(0), [1970, 1, 1, 0, 0, 0]);
        assert_eq!(utc(951_827_696), [2000, 2, 29, 12, 34, 56]);
        assert_eq!(utc(-1), [1969, 12, 31, 23, 59, 59]);
        assert_eq!(timestamp(1_500_000_000_000_007).len(), 26);
        assert!(timestamp(1_500_000_000_000_007).ends_with(".000007"));
    }

    #[test]
    fn sinks_and_listeners_get_their_lines() {
        struct Keep(Mutex<Vec<String>>);
        impl LogSink for Keep {
            fn send(&self, entry: &Entry) {
                self.0.lock().push(entry.line());
            }
        }
        let keep = Arc::new(Keep(Mutex::default()));
        let sink: Arc<dyn LogSink> = keep.clone();
        add_sink(sink.clone());
        crate::warning!("number {}", 7);
        crate::vlog!(99, "not shown");
        remove_sink(&sink);
        crate::info!("not kept");
        let lines = keep.0.lock().clone();
        assert_eq!(lines.len(), usize::from(min_level() <= 1));
        for line in lines {
            assert!(line.contains(": W ") && line.ends_with("] number 7"), "{line}");
        }
        assert!(!send_to_listeners("nobody"));
        let texts = Arc::new(Mutex::new(Vec::new()));
        let kept = texts.clone();
        register_listener(move |text| kept.lock().push(text.to_string()));
        assert!(send_to_listeners("printed\n"));
        assert_eq!(*texts.lock(), ["printed\n"]);
    }
}
