//! Running graphs: devices, plans, engines, sessions, SavedModels.
//!
//! [`Session::run`] looks up (or builds) a [`Plan`] and gives it to an engine. The straight-line engine runs
//! instructions in order on the caller's thread, or branches in parallel where that pays; the structured one does so for
//! v1 loops of the usual shape; the waiting one goes on without nodes that wait; and the dataflow engine runs nodes as
//! their inputs arrive, for whatever else v1 control flow allows and for partial runs.

mod better_plan;
mod coordination;
mod dataflow;
mod device;
mod eager;
mod eager_cluster;
mod eager_device;
mod eager_executor;
mod eager_host;
mod eager_kernel;
mod eager_library;
mod eager_tensor;
mod executor;
mod flow;
mod frame;
mod functions;
mod letters;
mod loop_turn;
mod loops;
mod may_wait;
mod nested;
mod options;
mod parallel;
mod partial;
mod placement;
mod plan;
mod planner;
mod plans;
pub mod profile;
mod saved_model;
mod session;
mod sketch;
mod slots;
mod step;
mod straight_line;
mod structured;
mod structured_run;
mod structured_uses;
mod trace;
mod transfer;
mod trials;
mod waiting;
mod watchdog;
pub mod xplane;

pub use coordination::Coordination;
pub use device::{Device, Task, plug_in_devices};
pub use eager::EagerContext;
pub use eager_cluster::Joining;
pub use eager_device::DeviceName;
pub use eager_executor::Executor;
pub use eager_kernel::{EagerKernel, EagerOp, is_list};
pub use eager_tensor::EagerTensor;
pub use functions::Functions;
pub use loop_turn::LoopTurn;
pub use options::SessionOptions;
pub use placement::is_device_name;
pub use plan::{Plan, Signature};
pub use saved_model::{LoadedModel, load_saved_model};
pub use session::{RunRequest, RunResponse, Session, SharedGraph};
