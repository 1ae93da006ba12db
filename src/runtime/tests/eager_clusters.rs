//! Eager contexts as tasks of clusters: what is refused, and what happens while other threads execute and wait.

use ff_ops::registry;
use ff_proto::{ClusterDef, ConfigProto, CoordinationServiceConfig, JobDef, ServerDef, config_proto};
use ff_runtime::{EagerContext, Joining, SessionOptions};
use ff_tensor::{Code, DataType, Tensor};
use std::sync::Arc;

fn context() -> Arc<EagerContext> {
    Arc::new(EagerContext::new(registry(), &SessionOptions::default(), false))
}

fn server(job: &str, tasks: &[(i32, &str)]) -> ServerDef {
    let job = JobDef {
        name: job.to_string(),
        tasks: tasks
            .iter()
            .map(|(number, address)| (*number, (*address).to_string()))
            .collect(),
    };
    ServerDef {
        job_name: job.name.clone(),
        task_index: tasks[0].0,
        cluster: Some(ClusterDef { job: vec![job] }),
        protocol: "grpc".to_string(),
        ..ServerDef::default()
    }
}

fn coordinated(job: &str) -> ServerDef {
    let coordination = CoordinationServiceConfig {
        service_type: "standalone".to_string(),
        ..CoordinationServiceConfig::default()
    };
    ServerDef {
        default_session_config: Some(ConfigProto {
            experimental: Some(config_proto::Experimental {
                coordination_config: Some(coordination),
                ..config_proto::Experimental::default()
            }),
            ..ConfigProto::default()
        }),
        ..server(job, &[(0, "localhost:0")])
    }
}

const WAYS: [Joining; 3] = [Joining::Cluster, Joining::Locally, Joining::ForCollectives];

#[test]
fn several_tasks_need_a_distributed_runtime() {
    let two = server("worker", &[(0, "localhost:0"), (1, "localhost:1")]);
    for joining in WAYS {
        let context = context();
        let error = context.join(&two, joining).unwrap_err();
        assert_eq!(error.code(), Code::Unimplemented);
        assert!(error.message().contains("distributed runtime"), "{error}");
        assert_eq!(
            context.device_names(),
            ["/job:localhost/replica:0/task:0/device:CPU:0"]
        );
    }
    let context = context();
    context
        .join(&server("worker", &[(0, "localhost:0")]), Joining::Cluster)
        .unwrap();
    assert_eq!(
        context.update_cluster(&two).unwrap_err().code(),
        Code::Unimplemented
    );
}

#[test]
fn names_that_no_device_can_have_are_refused() {
    for name in ["", "a b", "a/b", "1a", "_a", "a-", "a.b", "ä"] {
        for joining in WAYS {
            let error = context().join(&server(name, &[(0, "localhost:0")]), joining);
            assert_eq!(error.unwrap_err().code(), Code::InvalidArgument, "{name:?}");
        }
    }
    let error = context().join(&server("a", &[(-1, "localhost:0")]), Joining::Cluster);
    assert_eq!(error.unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn an_update_needs_a_cluster() {
    let task = server("worker", &[(0, "localhost:0")]);
    assert_eq!(
        context().update_cluster(&task).unwrap_err().code(),
        Code::FailedPrecondition
    );
    assert_eq!(
        context()
            .is_alive("/job:localhost/replica:0/task:0")
            .unwrap_err()
            .code(),
        Code::InvalidArgument
    );
}

#[test]
fn states_of_tasks() {
    let context = context();
    context.join(&coordinated("worker"), Joining::Cluster).unwrap();
    let service = context.coordination().unwrap();
    assert!(service.state_of("worker", 0).unwrap().is_ok());
    assert_eq!(
        service.state_of("worker", 1).unwrap_err().code(),
        Code::InvalidArgument
    );
    service.report(Code::DataLoss, "lost").unwrap();
    let error = service.state_of("worker", 0).unwrap().unwrap_err();
    assert_eq!((error.code(), error.message()), (Code::DataLoss, "lost"));
}

#[test]
fn a_value_that_is_waited_for_when_the_cluster_goes() {
    let context = context();
    context.join(&coordinated("worker"), Joining::Cluster).unwrap();
    let service = context.coordination().unwrap();
    let waiting = std::thread::spawn(move || service.get("never", None));
    context
        .join(&server("worker", &[(0, "localhost:0")]), Joining::Cluster)
        .unwrap();
    assert_eq!(waiting.join().unwrap().unwrap_err().code(), Code::Cancelled);
}

/// Calls on the first device, whatever that is called at the time.
fn add(context: &Arc<EagerContext>) -> ff_tensor::Result<Vec<f32>> {
    let one = Tensor::scalar(1f32)?;
    let (op, device) = (context.find_op("AddV2")?, context.home());
    let types = [DataType::FLOAT, DataType::FLOAT].into_iter().collect();
    let kernel = context.kernel(&op, device, &ff_op::Attrs::new(), &types)?;
    let inputs = [one.clone(), one].map(|value| Ok(ff_runtime::EagerTensor::Ready(value)));
    let outputs = context.execute(&kernel, device, inputs.into_iter(), None)?;
    Ok(outputs[0].wait()?.as_slice::<f32>()?.to_vec())
}

#[test]
fn calls_while_the_task_changes() {
    let context = context();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    match add(&context) {
                        Ok(sum) => assert_eq!(sum, [2.0]),
                        // The device went between its being chosen and the call.
                        Err(error) => assert_eq!(error.code(), Code::InvalidArgument, "{error}"),
                    }
                }
            });
        }
        for turn in 0..200 {
            let job = if turn % 2 == 0 { "a" } else { "b" };
            context
                .join(&server(job, &[(0, "localhost:0")]), Joining::Cluster)
                .unwrap();
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(add(&context).unwrap(), [2.0]);
    assert_eq!(context.device_names(), ["/job:b/replica:0/task:0/device:CPU:0"]);
}
