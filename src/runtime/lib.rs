//! Running graphs: devices, plans, engines, sessions, SavedModels.
//!
//! [`Session::run`] looks up (or builds) a [`Plan`] and gives it to an engine. The straight-line engine runs
//! instructions in order on the caller's thread; the dataflow engine runs nodes as their inputs arrive, for graphs
//! with v1 control flow and for nodes that wait.

mod dataflow;
mod device;
mod eager;
mod executor;
mod flow;
mod frame;
mod functions;
mod loops;
mod options;
mod partial;
mod placement;
mod plan;
mod planner;
mod saved_model;
mod session;
mod slots;
mod step;
mod straight_line;
mod watchdog;

pub use device::Device;
pub use eager::{Call, EagerContext};
pub use options::SessionOptions;
pub use placement::is_device_name;
pub use plan::{Plan, Signature};
pub use saved_model::{LoadedModel, load_saved_model};
pub use session::{RunRequest, RunResponse, Session, SharedGraph};
