//! Errors of the operating system as statuses.

use ff_tensor::{Code, Status};
use std::io;

/// The status for an error on `path`: "<path>; No such file or directory", with the code that TensorFlow gives.
#[cold]
pub fn status_of(path: &str, error: &io::Error) -> Status {
    let text = error.to_string();
    let reason = text.split(" (os error").next().unwrap_or(&text);
    Status::new(code_of(error), format!("{path}; {reason}"))
}

fn code_of(error: &io::Error) -> Code {
    use io::ErrorKind::*;
    match error.kind() {
        InvalidInput | InvalidFilename | ArgumentListTooLong | NotSeekable => Code::InvalidArgument,
        TimedOut => Code::DeadlineExceeded,
        NotFound => Code::NotFound,
        AlreadyExists | AddrNotAvailable => Code::AlreadyExists,
        PermissionDenied | ReadOnlyFilesystem => Code::PermissionDenied,
        DirectoryNotEmpty | IsADirectory | NotADirectory | AddrInUse | NotConnected | BrokenPipe
        | ResourceBusy | ExecutableFileBusy => Code::FailedPrecondition,
        StorageFull | QuotaExceeded | OutOfMemory | TooManyLinks => Code::ResourceExhausted,
        FileTooLarge => Code::OutOfRange,
        Unsupported | CrossesDevices => Code::Unimplemented,
        WouldBlock | ConnectionRefused | ConnectionAborted | ConnectionReset | Interrupted
        | HostUnreachable | NetworkDown | NetworkUnreachable => Code::Unavailable,
        Deadlock | StaleNetworkFileHandle => Code::Aborted,
        _ => Code::Unknown,
    }
}
