//! Counters of a program.

use crate::TF_Status;
use crate::eager_metric::{Metric, cell_of};
use crate::ffi::{Handle, Text, given};
use crate::guard::{guard_or, quiet};
use std::sync::atomic::{AtomicI64, Ordering};

/// A number that is counted up. Any thread may use it at any time.
#[derive(Default)]
pub struct TFE_MonitoringCounterCell {
    value: AtomicI64,
}

/// Adds to a counter.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringCounterCellIncrementBy(cell: Handle<TFE_MonitoringCounterCell>, value: i64) {
    quiet((), || {
        given(cell, "cell")?.value.fetch_add(value, Ordering::Relaxed);
        Ok(())
    });
}

/// What has been counted; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringCounterCellValue(cell: Handle<TFE_MonitoringCounterCell>) -> i64 {
    quiet(0, || Ok(given(cell, "cell")?.value.load(Ordering::Relaxed)))
}

/// A counter without labels. Any thread may use it at any time.
pub struct TFE_MonitoringCounter0 {
    metric: Metric<TFE_MonitoringCounterCell>,
}

/// A new counter without labels. Names need not be unique. Free it with `TFE_MonitoringDeleteCounter0`. NULL with
/// INVALID_ARGUMENT for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringNewCounter0(
    name: Text,
    status: Option<&mut TF_Status>,
    description: Text,
) -> Option<Box<TFE_MonitoringCounter0>> {
    guard_or(status, None, || {
        let metric = Metric::new(&[name, description], TFE_MonitoringCounterCell::default)?;
        Ok(Some(Box::new(TFE_MonitoringCounter0 { metric })))
    })
}

/// Frees a counter, and its cells; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringDeleteCounter0(counter: Option<Box<TFE_MonitoringCounter0>>) {
    quiet((), || {
        drop(counter);
        Ok(())
    });
}

/// The cell of a counter. It lives as long as the counter; any thread may use it. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringGetCellCounter0(
    counter: Handle<TFE_MonitoringCounter0>,
) -> *mut TFE_MonitoringCounterCell {
    cell_of(counter.map(|counter| &counter.metric), &[])
}

/// A counter with one label. Any thread may use it at any time.
pub struct TFE_MonitoringCounter1 {
    metric: Metric<TFE_MonitoringCounterCell>,
}

/// A new counter with one label. Names need not be unique. Free it with `TFE_MonitoringDeleteCounter1`. NULL with
/// INVALID_ARGUMENT for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringNewCounter1(
    name: Text,
    status: Option<&mut TF_Status>,
    description: Text,
    label1: Text,
) -> Option<Box<TFE_MonitoringCounter1>> {
    guard_or(status, None, || {
        let metric = Metric::new(&[name, description, label1], TFE_MonitoringCounterCell::default)?;
        Ok(Some(Box::new(TFE_MonitoringCounter1 { metric })))
    })
}

/// Frees a counter, and its cells; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringDeleteCounter1(counter: Option<Box<TFE_MonitoringCounter1>>) {
    quiet((), || {
        drop(counter);
        Ok(())
    });
}

/// The cell of a counter for these labels. It lives as long as the counter; any thread may use it. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringGetCellCounter1(
    counter: Handle<TFE_MonitoringCounter1>,
    label1: Text,
) -> *mut TFE_MonitoringCounterCell {
    cell_of(counter.map(|counter| &counter.metric), &[label1])
}

/// A counter with two labels. Any thread may use it at any time.
pub struct TFE_MonitoringCounter2 {
    metric: Metric<TFE_MonitoringCounterCell>,
}

/// A new counter with two labels. Names need not be unique. Free it with `TFE_MonitoringDeleteCounter2`. NULL with
/// INVALID_ARGUMENT for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringNewCounter2(
    name: Text,
    status: Option<&mut TF_Status>,
    description: Text,
    label1: Text,
    label2: Text,
) -> Option<Box<TFE_MonitoringCounter2>> {
    guard_or(status, None, || {
        let metric = Metric::new(
            &[name, description, label1, label2],
            TFE_MonitoringCounterCell::default,
        )?;
        Ok(Some(Box::new(TFE_MonitoringCounter2 { metric })))
    })
}

/// Frees a counter, and its cells; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringDeleteCounter2(counter: Option<Box<TFE_MonitoringCounter2>>) {
    quiet((), || {
        drop(counter);
        Ok(())
    });
}

/// The cell of a counter for these labels. It lives as long as the counter; any thread may use it. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringGetCellCounter2(
    counter: Handle<TFE_MonitoringCounter2>,
    label1: Text,
    label2: Text,
) -> *mut TFE_MonitoringCounterCell {
    cell_of(counter.map(|counter| &counter.metric), &[label1, label2])
}
