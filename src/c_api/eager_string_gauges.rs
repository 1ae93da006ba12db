//! Gauges of a program that hold text.

use crate::TF_Status;
use crate::buffer::{TF_Buffer, fill_bytes};
use crate::eager_metric::{Metric, cell_of};
use crate::ffi::{Handle, Text, given};
use crate::guard::{guard_or, quiet};
use parking_lot::Mutex;

/// A text that is set. Any thread may use it at any time.
#[derive(Default)]
pub struct TFE_MonitoringStringGaugeCell {
    value: Mutex<Vec<u8>>,
}

/// Sets a gauge to a copy of the text; ignored for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringStringGaugeCellSet(cell: Handle<TFE_MonitoringStringGaugeCell>, value: Text) {
    quiet((), || {
        let (cell, value) = (given(cell, "cell")?, value.bytes());
        *cell.value.lock() = given(value, "value")?.to_vec();
        Ok(())
    });
}

/// Fills `buf`, which must be empty, with what a gauge was set to; nothing at first.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringStringGaugeCellValue(
    cell: Handle<TFE_MonitoringStringGaugeCell>,
    buf: Option<&mut TF_Buffer>,
) {
    quiet((), || {
        let value = given(cell, "cell")?.value.lock().clone();
        fill_bytes(buf, &value)
    });
}

/// A gauge without labels. Any thread may use it at any time.
pub struct TFE_MonitoringStringGauge0 {
    metric: Metric<TFE_MonitoringStringGaugeCell>,
}

/// A new gauge without labels. Names need not be unique. Free it with `TFE_MonitoringDeleteStringGauge0`. NULL with
/// INVALID_ARGUMENT for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringNewStringGauge0(
    name: Text,
    out_status: Option<&mut TF_Status>,
    description: Text,
) -> Option<Box<TFE_MonitoringStringGauge0>> {
    guard_or(out_status, None, || {
        let metric = Metric::new(&[name, description], TFE_MonitoringStringGaugeCell::default)?;
        Ok(Some(Box::new(TFE_MonitoringStringGauge0 { metric })))
    })
}

/// Frees a gauge, and its cells; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringDeleteStringGauge0(gauge: Option<Box<TFE_MonitoringStringGauge0>>) {
    quiet((), || {
        drop(gauge);
        Ok(())
    });
}

/// The cell of a gauge. It lives as long as the gauge; any thread may use it. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringGetCellStringGauge0(
    gauge: Handle<TFE_MonitoringStringGauge0>,
) -> *mut TFE_MonitoringStringGaugeCell {
    cell_of(gauge.map(|gauge| &gauge.metric), &[])
}

/// A gauge with one label. Any thread may use it at any time.
pub struct TFE_MonitoringStringGauge1 {
    metric: Metric<TFE_MonitoringStringGaugeCell>,
}

/// A new gauge with one label. Names need not be unique. Free it with `TFE_MonitoringDeleteStringGauge1`. NULL with
/// INVALID_ARGUMENT for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringNewStringGauge1(
    name: Text,
    out_status: Option<&mut TF_Status>,
    description: Text,
    label1: Text,
) -> Option<Box<TFE_MonitoringStringGauge1>> {
    guard_or(out_status, None, || {
        let metric = Metric::new(
            &[name, description, label1],
            TFE_MonitoringStringGaugeCell::default,
        )?;
        Ok(Some(Box::new(TFE_MonitoringStringGauge1 { metric })))
    })
}

/// Frees a gauge, and its cells; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringDeleteStringGauge1(gauge: Option<Box<TFE_MonitoringStringGauge1>>) {
    quiet((), || {
        drop(gauge);
        Ok(())
    });
}

/// The cell of a gauge for these labels. It lives as long as the gauge; any thread may use it. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringGetCellStringGauge1(
    gauge: Handle<TFE_MonitoringStringGauge1>,
    label1: Text,
) -> *mut TFE_MonitoringStringGaugeCell {
    cell_of(gauge.map(|gauge| &gauge.metric), &[label1])
}

/// A gauge with two labels. Any thread may use it at any time.
pub struct TFE_MonitoringStringGauge2 {
    metric: Metric<TFE_MonitoringStringGaugeCell>,
}

/// A new gauge with two labels. Names need not be unique. Free it with `TFE_MonitoringDeleteStringGauge2`. NULL with
/// INVALID_ARGUMENT for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringNewStringGauge2(
    name: Text,
    out_status: Option<&mut TF_Status>,
    description: Text,
    label1: Text,
    label2: Text,
) -> Option<Box<TFE_MonitoringStringGauge2>> {
    guard_or(out_status, None, || {
        let metric = Metric::new(
            &[name, description, label1, label2],
            TFE_MonitoringStringGaugeCell::default,
        )?;
        Ok(Some(Box::new(TFE_MonitoringStringGauge2 { metric })))
    })
}

/// Frees a gauge, and its cells; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringDeleteStringGauge2(gauge: Option<Box<TFE_MonitoringStringGauge2>>) {
    quiet((), || {
        drop(gauge);
        Ok(())
    });
}

/// The cell of a gauge for these labels. It lives as long as the gauge; any thread may use it. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringGetCellStringGauge2(
    gauge: Handle<TFE_MonitoringStringGauge2>,
    label1: Text,
    label2: Text,
) -> *mut TFE_MonitoringStringGaugeCell {
    cell_of(gauge.map(|gauge| &gauge.metric), &[label1, label2])
}

/// A gauge with three labels. Any thread may use it at any time.
pub struct TFE_MonitoringStringGauge3 {
    metric: Metric<TFE_MonitoringStringGaugeCell>,
}

/// A new gauge with three labels. Names need not be unique. Free it with `TFE_MonitoringDeleteStringGauge3`. NULL with
/// INVALID_ARGUMENT for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringNewStringGauge3(
    name: Text,
    out_status: Option<&mut TF_Status>,
    description: Text,
    label1: Text,
    label2: Text,
    label3: Text,
) -> Option<Box<TFE_MonitoringStringGauge3>> {
    guard_or(out_status, None, || {
        let metric = Metric::new(
            &[name, description, label1, label2, label3],
            TFE_MonitoringStringGaugeCell::default,
        )?;
        Ok(Some(Box::new(TFE_MonitoringStringGauge3 { metric })))
    })
}

/// Frees a gauge, and its cells; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringDeleteStringGauge3(gauge: Option<Box<TFE_MonitoringStringGauge3>>) {
    quiet((), || {
        drop(gauge);
        Ok(())
    });
}

/// The cell of a gauge for these labels. It lives as long as the gauge; any thread may use it. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringGetCellStringGauge3(
    gauge: Handle<TFE_MonitoringStringGauge3>,
    label1: Text,
    label2: Text,
    label3: Text,
) -> *mut TFE_MonitoringStringGaugeCell {
    cell_of(gauge.map(|gauge| &gauge.metric), &[label1, label2, label3])
}

/// A gauge with four labels. Any thread may use it at any time.
pub struct TFE_MonitoringStringGauge4 {
    metric: Metric<TFE_MonitoringStringGaugeCell>,
}

/// A new gauge with four labels. Names need not be unique. Free it with `TFE_MonitoringDeleteStringGauge4`. NULL with
/// INVALID_ARGUMENT for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringNewStringGauge4(
    name: Text,
    out_status: Option<&mut TF_Status>,
    description: Text,
    label1: Text,
    label2: Text,
    label3: Text,
    label4: Text,
) -> Option<Box<TFE_MonitoringStringGauge4>> {
    guard_or(out_status, None, || {
        let metric = Metric::new(
            &[name, description, label1, label2, label3, label4],
            TFE_MonitoringStringGaugeCell::default,
        )?;
        Ok(Some(Box::new(TFE_MonitoringStringGauge4 { metric })))
    })
}

/// Frees a gauge, and its cells; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringDeleteStringGauge4(gauge: Option<Box<TFE_MonitoringStringGauge4>>) {
    quiet((), || {
        drop(gauge);
        Ok(())
    });
}

/// The cell of a gauge for these labels. It lives as long as the gauge; any thread may use it. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringGetCellStringGauge4(
    gauge: Handle<TFE_MonitoringStringGauge4>,
    label1: Text,
    label2: Text,
    label3: Text,
    label4: Text,
) -> *mut TFE_MonitoringStringGaugeCell {
    cell_of(
        gauge.map(|gauge| &gauge.metric),
        &[label1, label2, label3, label4],
    )
}
