//! Names of devices as handles and calls carry them.
//!
//! A process knows few names, so each is kept once and for ever: a [`DeviceName`] is one pointer, copied and compared
//! without counting references.

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::ffi::{CStr, CString};
use std::sync::{LazyLock, OnceLock};

/// The full name of a device. Equal names are the same pointer.
#[derive(Clone, Copy)]
pub struct DeviceName(&'static CStr);

static NAMES: LazyLock<Mutex<FxHashMap<String, DeviceName>>> = LazyLock::new(Mutex::default);

impl DeviceName {
    /// The name with this text, up to its first zero byte.
    pub fn of(text: &str) -> DeviceName {
        let text = text.split('\0').next().unwrap_or_default();
        let mut names = NAMES.lock();
        if let Some(name) = names.get(text) {
            return *name;
        }
        let kept: &'static CStr = Box::leak(CString::new(text).unwrap_or_default().into_boxed_c_str());
        names.insert(text.to_string(), DeviceName(kept));
        DeviceName(kept)
    }

    /// The first CPU of this process, where tensors are that no op made.
    pub fn host() -> DeviceName {
        static HOST: OnceLock<DeviceName> = OnceLock::new();
        *HOST.get_or_init(|| DeviceName::of("/job:localhost/replica:0/task:0/device:CPU:0"))
    }

    /// The name as C reads it.
    pub fn as_c(self) -> &'static CStr {
        self.0
    }

    /// The name as text.
    pub fn as_str(self) -> &'static str {
        self.0.to_str().unwrap_or_default()
    }

    /// A number that no other name has.
    pub fn address(self) -> usize {
        self.0.as_ptr().addr()
    }

    /// The type and the number at the end of the name: `CPU` and 0. None for a name of another form.
    pub fn kind_and_number(self) -> Option<(&'static str, i32)> {
        let (_, device) = self.as_str().rsplit_once("/device:")?;
        let (kind, number) = device.rsplit_once(':')?;
        Some((kind, number.parse().ok()?))
    }
}

impl PartialEq for DeviceName {
    fn eq(&self, other: &DeviceName) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for DeviceName {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_are_one() {
        let name = DeviceName::of("/job:a/replica:0/task:0/device:XPU:12");
        assert!(name == DeviceName::of("/job:a/replica:0/task:0/device:XPU:12"));
        assert!(name != DeviceName::host());
        assert_eq!(name.kind_and_number(), Some(("XPU", 12)));
        assert_eq!(DeviceName::of("XPU").kind_and_number(), None);
    }
}
