//! Gauges of a program that hold numbers and truth values.

use crate::TF_Status;
use crate::eager_metric::{Metric, cell_of};
use crate::ffi::{Handle, Text, given};
use crate::guard::{guard_or, quiet};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// A number that is set. Any thread may use it at any time.
#[derive(Default)]
pub struct TFE_MonitoringIntGaugeCell {
    value: AtomicI64,
}

/// Sets a gauge.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringIntGaugeCellSet(cell: Handle<TFE_MonitoringIntGaugeCell>, value: i64) {
    quiet((), || {
        given(cell, "cell")?.value.store(value, Ordering::Relaxed);
        Ok(())
    });
}

/// What a gauge was set to; 0 at first and for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringIntGaugeCellValue(cell: Handle<TFE_MonitoringIntGaugeCell>) -> i64 {
    quiet(0, || Ok(given(cell, "cell")?.value.load(Ordering::Relaxed)))
}

/// A gauge without labels. Any thread may use it at any time.
pub struct TFE_MonitoringIntGauge0 {
    metric: Metric<TFE_MonitoringIntGaugeCell>,
}

/// A new gauge without labels. Names need not be unique. Free it with `TFE_MonitoringDeleteIntGauge0`. NULL with
/// INVALID_ARGUMENT for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringNewIntGauge0(
    name: Text,
    out_status: Option<&mut TF_Status>,
    description: Text,
) -> Option<Box<TFE_MonitoringIntGauge0>> {
    guard_or(out_status, None, || {
        let metric = Metric::new(&[name, description], TFE_MonitoringIntGaugeCell::default)?;
        Ok(Some(Box::new(TFE_MonitoringIntGauge0 { metric })))
    })
}

/// Frees a gauge, and its cells; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringDeleteIntGauge0(gauge: Option<Box<TFE_MonitoringIntGauge0>>) {
    quiet((), || {
        drop(gauge);
        Ok(())
    });
}

/// The cell of a gauge. It lives as long as the gauge; any thread may use it. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringGetCellIntGauge0(
    gauge: Handle<TFE_MonitoringIntGauge0>,
) -> *mut TFE_MonitoringIntGaugeCell {
    cell_of(gauge.map(|gauge| &gauge.metric), &[])
}

/// A gauge with one label. Any thread may use it at any time.
pub struct TFE_MonitoringIntGauge1 {
    metric: Metric<TFE_MonitoringIntGaugeCell>,
}

/// A new gauge with one label. Names need not be unique. Free it with `TFE_MonitoringDeleteIntGauge1`. NULL with
/// INVALID_ARGUMENT for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringNewIntGauge1(
    name: Text,
    out_status: Option<&mut TF_Status>,
    description: Text,
    label1: Text,
) -> Option<Box<TFE_MonitoringIntGauge1>> {
    guard_or(out_status, None, || {
        let metric = Metric::new(&[name, description, label1], TFE_MonitoringIntGaugeCell::default)?;
        Ok(Some(Box::new(TFE_MonitoringIntGauge1 { metric })))
    })
}

/// Frees a gauge, and its cells; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringDeleteIntGauge1(gauge: Option<Box<TFE_MonitoringIntGauge1>>) {
    quiet((), || {
        drop(gauge);
        Ok(())
    });
}

/// The cell of a gauge for these labels. It lives as long as the gauge; any thread may use it. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringGetCellIntGauge1(
    gauge: Handle<TFE_MonitoringIntGauge1>,
    label1: Text,
) -> *mut TFE_MonitoringIntGaugeCell {
    cell_of(gauge.map(|gauge| &gauge.metric), &[label1])
}

/// A gauge with two labels. Any thread may use it at any time.
pub struct TFE_MonitoringIntGauge2 {
    metric: Metric<TFE_MonitoringIntGaugeCell>,
}

/// A new gauge with two labels. Names need not be unique. Free it with `TFE_MonitoringDeleteIntGauge2`. NULL with
/// INVALID_ARGUMENT for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringNewIntGauge2(
    name: Text,
    out_status: Option<&mut TF_Status>,
    description: Text,
    label1: Text,
    label2: Text,
) -> Option<Box<TFE_MonitoringIntGauge2>> {
    guard_or(out_status, None, || {
        let metric = Metric::new(
            &[name, description, label1, label2],
            TFE_MonitoringIntGaugeCell::default,
        )?;
        Ok(Some(Box::new(TFE_MonitoringIntGauge2 { metric })))
    })
}

/// Frees a gauge, and its cells; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringDeleteIntGauge2(gauge: Option<Box<TFE_MonitoringIntGauge2>>) {
    quiet((), || {
        drop(gauge);
        Ok(())
    });
}

/// The cell of a gauge for these labels. It lives as long as the gauge; any thread may use it. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringGetCellIntGauge2(
    gauge: Handle<TFE_MonitoringIntGauge2>,
    label1: Text,
    label2: Text,
) -> *mut TFE_MonitoringIntGaugeCell {
    cell_of(gauge.map(|gauge| &gauge.metric), &[label1, label2])
}

/// A truth value that is set. Any thread may use it at any time.
#[derive(Default)]
pub struct TFE_MonitoringBoolGaugeCell {
    value: AtomicBool,
}

/// Sets a gauge.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringBoolGaugeCellSet(cell: Handle<TFE_MonitoringBoolGaugeCell>, value: bool) {
    quiet((), || {
        given(cell, "cell")?.value.store(value, Ordering::Relaxed);
        Ok(())
    });
}

/// What a gauge was set to; false at first and for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringBoolGaugeCellValue(cell: Handle<TFE_MonitoringBoolGaugeCell>) -> bool {
    quiet(false, || Ok(given(cell, "cell")?.value.load(Ordering::Relaxed)))
}

/// A gauge without labels. Any thread may use it at any time.
pub struct TFE_MonitoringBoolGauge0 {
    metric: Metric<TFE_MonitoringBoolGaugeCell>,
}

/// A new gauge without labels. Names need not be unique. Free it with `TFE_MonitoringDeleteBoolGauge0`. NULL with
/// INVALID_ARGUMENT for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringNewBoolGauge0(
    name: Text,
    out_status: Option<&mut TF_Status>,
    description: Text,
) -> Option<Box<TFE_MonitoringBoolGauge0>> {
    guard_or(out_status, None, || {
        let metric = Metric::new(&[name, description], TFE_MonitoringBoolGaugeCell::default)?;
        Ok(Some(Box::new(TFE_MonitoringBoolGauge0 { metric })))
    })
}

/// Frees a gauge, and its cells; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringDeleteBoolGauge0(gauge: Option<Box<TFE_MonitoringBoolGauge0>>) {
    quiet((), || {
        drop(gauge);
        Ok(())
    });
}

/// The cell of a gauge. It lives as long as the gauge; any thread may use it. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringGetCellBoolGauge0(
    gauge: Handle<TFE_MonitoringBoolGauge0>,
) -> *mut TFE_MonitoringBoolGaugeCell {
    cell_of(gauge.map(|gauge| &gauge.metric), &[])
}

/// A gauge with one label. Any thread may use it at any time.
pub struct TFE_MonitoringBoolGauge1 {
    metric: Metric<TFE_MonitoringBoolGaugeCell>,
}

/// A new gauge with one label. Names need not be unique. Free it with `TFE_MonitoringDeleteBoolGauge1`. NULL with
/// INVALID_ARGUMENT for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringNewBoolGauge1(
    name: Text,
    out_status: Option<&mut TF_Status>,
    description: Text,
    label1: Text,
) -> Option<Box<TFE_MonitoringBoolGauge1>> {
    guard_or(out_status, None, || {
        let metric = Metric::new(&[name, description, label1], TFE_MonitoringBoolGaugeCell::default)?;
        Ok(Some(Box::new(TFE_MonitoringBoolGauge1 { metric })))
    })
}

/// Frees a gauge, and its cells; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringDeleteBoolGauge1(gauge: Option<Box<TFE_MonitoringBoolGauge1>>) {
    quiet((), || {
        drop(gauge);
        Ok(())
    });
}

/// The cell of a gauge for these labels. It lives as long as the gauge; any thread may use it. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringGetCellBoolGauge1(
    gauge: Handle<TFE_MonitoringBoolGauge1>,
    label1: Text,
) -> *mut TFE_MonitoringBoolGaugeCell {
    cell_of(gauge.map(|gauge| &gauge.metric), &[label1])
}

/// A gauge with two labels. Any thread may use it at any time.
pub struct TFE_MonitoringBoolGauge2 {
    metric: Metric<TFE_MonitoringBoolGaugeCell>,
}

/// A new gauge with two labels. Names need not be unique. Free it with `TFE_MonitoringDeleteBoolGauge2`. NULL with
/// INVALID_ARGUMENT for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringNewBoolGauge2(
    name: Text,
    out_status: Option<&mut TF_Status>,
    description: Text,
    label1: Text,
    label2: Text,
) -> Option<Box<TFE_MonitoringBoolGauge2>> {
    guard_or(out_status, None, || {
        let metric = Metric::new(
            &[name, description, label1, label2],
            TFE_MonitoringBoolGaugeCell::default,
        )?;
        Ok(Some(Box::new(TFE_MonitoringBoolGauge2 { metric })))
    })
}

/// Frees a gauge, and its cells; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringDeleteBoolGauge2(gauge: Option<Box<TFE_MonitoringBoolGauge2>>) {
    quiet((), || {
        drop(gauge);
        Ok(())
    });
}

/// The cell of a gauge for these labels. It lives as long as the gauge; any thread may use it. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringGetCellBoolGauge2(
    gauge: Handle<TFE_MonitoringBoolGauge2>,
    label1: Text,
    label2: Text,
) -> *mut TFE_MonitoringBoolGaugeCell {
    cell_of(gauge.map(|gauge| &gauge.metric), &[label1, label2])
}
