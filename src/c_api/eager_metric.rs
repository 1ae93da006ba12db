//! What the metrics of a program have in common: cells by labels.
//!
//! A metric makes a cell when its labels are first asked for; cells live as long as their metric, at one address. Two metrics
//! may have one name: they are not the same.

use crate::ffi::{Text, given};
use crate::guard::quiet;
use ff_tensor::Result;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ptr::null_mut;

/// A metric: its cells by their labels. Any thread may use it at any time.
pub struct Metric<C> {
    cells: Mutex<BTreeMap<Vec<String>, Box<C>>>,
    make: Box<dyn Fn() -> C + Send + Sync>,
}

impl<C> Metric<C> {
    /// A metric without cells. INVALID_ARGUMENT when a text is NULL.
    pub fn new(texts: &[Text], make: impl Fn() -> C + Send + Sync + 'static) -> Result<Metric<C>> {
        for text in texts {
            text.given("a name, description or label")?;
        }
        Ok(Metric {
            cells: Mutex::default(),
            make: Box::new(make),
        })
    }

    fn cell(&self, labels: &[Text]) -> Result<*mut C> {
        let text = |label: &Text| Ok(label.text("a label")?.into_owned());
        let labels = labels.iter().map(text).collect::<Result<Vec<_>>>()?;
        let mut cells = self.cells.lock();
        let cell = cells.entry(labels).or_insert_with(|| Box::new((self.make)()));
        Ok((&raw const **cell).cast_mut())
    }
}

/// The cell of a metric for these labels; NULL when the metric or a label is.
pub fn cell_of<C>(metric: Option<&Metric<C>>, labels: &[Text]) -> *mut C {
    quiet(null_mut(), || given(metric, "the metric")?.cell(labels))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_kept_by_their_labels() {
        let metric = Metric::new(&[Text::new(c"name")], || 7).unwrap();
        let cell = cell_of(Some(&metric), &[Text::new(c"a")]);
        assert_eq!(cell, cell_of(Some(&metric), &[Text::new(c"a")]));
        assert_ne!(cell, cell_of(Some(&metric), &[Text::new(c"b")]));
        assert!(cell_of(Some(&metric), &[Text::NULL]).is_null());
        assert!(Metric::new(&[Text::NULL], || 7).is_err());
    }
}
