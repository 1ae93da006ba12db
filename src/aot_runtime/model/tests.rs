use super::*;
use ff_tensor::Code;

/// A table that lives as long as the test.
fn table(text: &str, weights: &'static [u8]) -> &'static Table {
    let text: &'static str = Box::leak(text.to_string().into_boxed_str());
    Box::leak(Box::new(Table {
        version: VERSION,
        level: 0,
        text: text.as_ptr(),
        text_size: text.len() as u64,
        weights: if weights.is_empty() {
            std::ptr::null()
        } else {
            weights.as_ptr()
        },
        weights_size: weights.len() as u64,
        weights_hash: weights::hash(weights),
        fusions: std::ptr::null(),
        num_fusions: 0,
        name: c"test".as_ptr(),
    }))
}

#[repr(align(64))]
struct Aligned([f32; 32]);

static WEIGHTS: Aligned = Aligned([3.0; 32]);

const TEXT: &str = "HloModule m\nENTRY %e () -> (f32[32]) {\n  %x = f32[32] parameter(0)\n  %w = f32[32] custom-call(), \
     custom_call_target=\"ferroflow.weights\", backend_config=\"0\"\n  %p = f32[32] multiply(%x, %w)\n  \
     ROOT %t = (f32[32]) tuple(%p)\n}";

fn bytes(weights: &'static Aligned) -> &'static [u8] {
    // SAFETY: plain numbers.
    unsafe { std::slice::from_raw_parts(weights.0.as_ptr().cast(), 128) }
}

fn model(table: &'static Table, file: Option<&str>) -> Model {
    // SAFETY: the tables of these tests name memory that lives.
    unsafe { Model::new(table, 1, file) }
}

fn first(model: &Model) -> f32 {
    // SAFETY: the result of a run has 32 elements.
    unsafe { *model.result(0).cast::<f32>() }
}

#[test]
fn arguments_come_from_either_memory() {
    let mut model = model(table(TEXT, bytes(&WEIGHTS)), None);
    assert_eq!((model.num_arguments(), model.num_results()), (1, 1));
    assert_eq!((model.argument_size(0), model.result_size(0)), (128, 128));
    assert!(model.result(0).is_null());
    let own = model.argument(0).cast::<f32>();
    // SAFETY: 32 elements of the model's.
    unsafe { own.write(2.0) };
    model.run().unwrap();
    assert_eq!(first(&model), 6.0);
    let aligned = Aligned([5.0; 32]);
    assert!(model.set_argument(0, aligned.0.as_ptr().cast()));
    model.run().unwrap();
    assert_eq!((first(&model), aligned.0[0]), (15.0, 5.0));
    let values = [7.0f32; 40];
    assert!(model.set_argument(0, values[1..].as_ptr().cast()));
    model.run().unwrap();
    assert_eq!(first(&model), 21.0);
    assert!(!model.set_argument(1, values.as_ptr().cast()) && model.argument(1).is_null());
}

#[test]
fn files_of_weights_are_checked() {
    let table = Box::leak(Box::new(Table {
        weights: std::ptr::null(),
        ..*table(TEXT, bytes(&WEIGHTS))
    }));
    let path = std::env::temp_dir().join(format!("ff_aot_weights_{}", std::process::id()));
    let name = path.to_str().unwrap();
    assert_eq!(model(table, None).run().unwrap_err().code(), Code::NotFound);
    assert_eq!(model(table, Some(name)).run().unwrap_err().code(), Code::NotFound);
    std::fs::write(&path, &bytes(&WEIGHTS)[1..]).unwrap();
    assert_eq!(model(table, Some(name)).run().unwrap_err().code(), Code::DataLoss);
    std::fs::write(&path, bytes(&WEIGHTS)).unwrap();
    model(table, Some(name)).run().unwrap();
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn failures_are_kept() {
    let mut damaged = model(table("HloModule m\nENTRY", &[]), None);
    assert!(damaged.run().is_err() && damaged.error().0 != 0);
    assert!(!damaged.error().1.unwrap().is_empty());
    let newer = Box::leak(Box::new(Table {
        version: VERSION + 1,
        ..*table(TEXT, bytes(&WEIGHTS))
    }));
    assert_eq!(
        model(newer, None).run().unwrap_err().code(),
        Code::FailedPrecondition
    );
}
