//! Samplers of a program: how often values fall into each of a row of buckets.

use crate::TF_Status;
use crate::buffer::{TF_Buffer, fill};
use crate::eager_metric::{Metric, cell_of};
use crate::ffi::{Handle, Text, given};
use crate::guard::{guard_or, quiet};
use ff_proto::HistogramProto;
use parking_lot::Mutex;
use std::ffi::c_int;
use std::sync::Arc;

/// Values that were added, counted by buckets. Any thread may use it at any time.
pub struct TFE_MonitoringSamplerCell {
    histogram: Mutex<HistogramProto>,
}

/// Where buckets end. Threads may read one at the same time.
pub struct TFE_MonitoringBuckets {
    limits: Arc<Vec<f64>>,
}

/// Buckets beyond which no more are made.
const BUCKETS: c_int = 1 << 16;

impl TFE_MonitoringSamplerCell {
    fn new(limits: &[f64]) -> TFE_MonitoringSamplerCell {
        TFE_MonitoringSamplerCell {
            histogram: Mutex::new(HistogramProto {
                // So that any value is a new least and greatest one.
                min: f64::MAX,
                max: f64::MIN,
                bucket: vec![0.0; limits.len()],
                bucket_limit: limits.to_vec(),
                ..HistogramProto::default()
            }),
        }
    }

    fn add(&self, value: f64) {
        let histogram = &mut *self.histogram.lock();
        let bucket = histogram.bucket_limit.partition_point(|limit| *limit <= value);
        let last = histogram.bucket.len().saturating_sub(1);
        if let Some(count) = histogram.bucket.get_mut(bucket.min(last)) {
            *count += 1.0;
        }
        histogram.min = histogram.min.min(value);
        histogram.max = histogram.max.max(value);
        histogram.num += 1.0;
        histogram.sum += value;
        histogram.sum_squares += value * value;
    }
}

/// Adds a value to a sampler.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringSamplerCellAdd(cell: Handle<TFE_MonitoringSamplerCell>, value: f64) {
    quiet((), || {
        given(cell, "cell")?.add(value);
        Ok(())
    });
}

/// Fills `buf`, which must be empty, with a serialized `HistogramProto` of the values that were added.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringSamplerCellValue(
    cell: Handle<TFE_MonitoringSamplerCell>,
    buf: Option<&mut TF_Buffer>,
) {
    quiet((), || {
        let histogram = given(cell, "cell")?.histogram.lock().clone();
        fill(buf, &histogram)
    });
}

/// New buckets that end at `scale`, `scale * growth_factor`, `scale * growth_factor^2` and so on, `bucket_count` of them, and
/// one for what is greater. A value at the end of a bucket belongs to the next. Free them with `TFE_MonitoringDeleteBuckets`.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringNewExponentialBuckets(
    scale: f64,
    growth_factor: f64,
    bucket_count: c_int,
) -> Box<TFE_MonitoringBuckets> {
    let mut limits = Vec::new();
    let mut limit = scale;
    for _ in 0..bucket_count.clamp(0, BUCKETS) {
        limits.push(limit);
        limit *= growth_factor;
    }
    limits.push(f64::MAX);
    Box::new(TFE_MonitoringBuckets {
        limits: Arc::new(limits),
    })
}

/// Frees buckets; samplers made with them keep what they need. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringDeleteBuckets(buckets: Option<Box<TFE_MonitoringBuckets>>) {
    quiet((), || {
        drop(buckets);
        Ok(())
    });
}

/// A sampler without labels. Any thread may use it at any time.
pub struct TFE_MonitoringSampler0 {
    metric: Metric<TFE_MonitoringSamplerCell>,
}

/// A new sampler without labels. Names need not be unique. Free it with `TFE_MonitoringDeleteSampler0`. NULL with
/// INVALID_ARGUMENT for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringNewSampler0(
    name: Text,
    buckets: Handle<TFE_MonitoringBuckets>,
    out_status: Option<&mut TF_Status>,
    description: Text,
) -> Option<Box<TFE_MonitoringSampler0>> {
    guard_or(out_status, None, || {
        let limits = given(buckets, "buckets")?.limits.clone();
        let metric = Metric::new(&[name, description], move || {
            TFE_MonitoringSamplerCell::new(&limits)
        })?;
        Ok(Some(Box::new(TFE_MonitoringSampler0 { metric })))
    })
}

/// Frees a sampler, and its cells; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringDeleteSampler0(sampler: Option<Box<TFE_MonitoringSampler0>>) {
    quiet((), || {
        drop(sampler);
        Ok(())
    });
}

/// The cell of a sampler. It lives as long as the sampler; any thread may use it. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringGetCellSampler0(
    sampler: Handle<TFE_MonitoringSampler0>,
) -> *mut TFE_MonitoringSamplerCell {
    cell_of(sampler.map(|sampler| &sampler.metric), &[])
}

/// A sampler with one label. Any thread may use it at any time.
pub struct TFE_MonitoringSampler1 {
    metric: Metric<TFE_MonitoringSamplerCell>,
}

/// A new sampler with one label. Names need not be unique. Free it with `TFE_MonitoringDeleteSampler1`. NULL with
/// INVALID_ARGUMENT for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringNewSampler1(
    name: Text,
    buckets: Handle<TFE_MonitoringBuckets>,
    out_status: Option<&mut TF_Status>,
    description: Text,
    label1: Text,
) -> Option<Box<TFE_MonitoringSampler1>> {
    guard_or(out_status, None, || {
        let limits = given(buckets, "buckets")?.limits.clone();
        let metric = Metric::new(&[name, description, label1], move || {
            TFE_MonitoringSamplerCell::new(&limits)
        })?;
        Ok(Some(Box::new(TFE_MonitoringSampler1 { metric })))
    })
}

/// Frees a sampler, and its cells; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringDeleteSampler1(sampler: Option<Box<TFE_MonitoringSampler1>>) {
    quiet((), || {
        drop(sampler);
        Ok(())
    });
}

/// The cell of a sampler for these labels. It lives as long as the sampler; any thread may use it. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringGetCellSampler1(
    sampler: Handle<TFE_MonitoringSampler1>,
    label1: Text,
) -> *mut TFE_MonitoringSamplerCell {
    cell_of(sampler.map(|sampler| &sampler.metric), &[label1])
}

/// A sampler with two labels. Any thread may use it at any time.
pub struct TFE_MonitoringSampler2 {
    metric: Metric<TFE_MonitoringSamplerCell>,
}

/// A new sampler with two labels. Names need not be unique. Free it with `TFE_MonitoringDeleteSampler2`. NULL with
/// INVALID_ARGUMENT for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringNewSampler2(
    name: Text,
    buckets: Handle<TFE_MonitoringBuckets>,
    out_status: Option<&mut TF_Status>,
    description: Text,
    label1: Text,
    label2: Text,
) -> Option<Box<TFE_MonitoringSampler2>> {
    guard_or(out_status, None, || {
        let limits = given(buckets, "buckets")?.limits.clone();
        let metric = Metric::new(&[name, description, label1, label2], move || {
            TFE_MonitoringSamplerCell::new(&limits)
        })?;
        Ok(Some(Box::new(TFE_MonitoringSampler2 { metric })))
    })
}

/// Frees a sampler, and its cells; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringDeleteSampler2(sampler: Option<Box<TFE_MonitoringSampler2>>) {
    quiet((), || {
        drop(sampler);
        Ok(())
    });
}

/// The cell of a sampler for these labels. It lives as long as the sampler; any thread may use it. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_MonitoringGetCellSampler2(
    sampler: Handle<TFE_MonitoringSampler2>,
    label1: Text,
    label2: Text,
) -> *mut TFE_MonitoringSamplerCell {
    cell_of(sampler.map(|sampler| &sampler.metric), &[label1, label2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_at_a_limit_belong_to_the_next_bucket() {
        let buckets = TFE_MonitoringNewExponentialBuckets(1.0, 2.0, 2);
        let cell = TFE_MonitoringSamplerCell::new(&buckets.limits);
        [0.5, 1.0, 1.5, 2.0, 1e300]
            .into_iter()
            .for_each(|value| cell.add(value));
        let histogram = cell.histogram.lock().clone();
        assert_eq!(histogram.bucket_limit, [1.0, 2.0, f64::MAX]);
        assert_eq!(histogram.bucket, [1.0, 2.0, 2.0]);
        assert_eq!((histogram.min, histogram.max, histogram.num), (0.5, 1e300, 5.0));
    }
}
