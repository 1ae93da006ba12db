//! Runs of functions that may wait, as part of a step: such a run holds no thread while all that is left of it waits.
//!
//! It starts on the thread of its caller and goes on, when a kernel of it has ended, on the thread that drives the step,
//! which is told through the step's relay. At any time one thread at most works on it. Calls nest in the plans, not on the
//! stack: a start that would go deeper than the stack should is handed to the relay too.

use crate::dataflow;
use crate::executor;
use crate::frame::Frame;
use crate::functions::Function;
use crate::letters::{Home, Key, Letter, Letters, Route};
use crate::plan::{Engine, Plan};
use crate::step::Trace;
use crate::waiting;
use ff_op::{Ended, KernelHost, Relay, Returned};
use ff_tensor::{Result, Tensor, status};
use parking_lot::Mutex;
use std::sync::{Arc, Weak};

/// A run of a function under way.
pub struct Nested {
    function: Arc<Function>,
    host: Arc<dyn KernelHost>,
    relay: Arc<dyn Relay>,
    /// How many calls deep it is.
    depth: usize,
    letters: Letters,
    this: Weak<Nested>,
    /// None once it has ended.
    state: Mutex<Option<State>>,
}

struct State {
    frame: Frame,
    progress: Progress,
    returned: Returned,
}

enum Progress {
    /// The plan cannot stop.
    None,
    Waiting(waiting::Progress),
    Dataflow(dataflow::Progress),
}

/// Whether a run of this plan can stop where it waits.
pub fn can_stop(plan: &Plan) -> bool {
    matches!(plan.engine, Engine::Waiting(_) | Engine::Dataflow(_))
}

impl Nested {
    /// A run of a function with a plan that can stop, in a frame whose feeds are set.
    pub fn new(
        function: Arc<Function>,
        plan: &Plan,
        frame: Frame,
        surroundings: (Arc<dyn KernelHost>, Arc<dyn Relay>),
        depth: usize,
        returned: Returned,
    ) -> Arc<Nested> {
        let progress = match &plan.engine {
            Engine::Dataflow(flow) => Progress::Dataflow(dataflow::Progress::new(plan, flow)),
            Engine::Waiting(waits) => Progress::Waiting(waiting::Progress::new(waits)),
            _ => Progress::None,
        };
        let (host, relay) = surroundings;
        Arc::new_cyclic(|this| Nested {
            function,
            host,
            relay,
            depth,
            letters: Letters::default(),
            this: this.clone(),
            state: Mutex::new(Some(State {
                frame,
                progress,
                returned,
            })),
        })
    }

    /// Runs until it has ended or all that is left waits.
    pub fn go_on(&self) {
        let mut place = self.state.lock();
        let Some(state) = place.as_mut() else { return };
        let result = {
            let _depth = crate::functions::Depth::set(self.depth);
            loop {
                match self.advance(state) {
                    Ok(false) if self.letters.park() => return,
                    Ok(false) => {}
                    Ok(true) => break Ok(()),
                    Err(error) => break Err(error),
                }
            }
        };
        let Some(state) = place.take() else { return };
        drop(place);
        let _depth = crate::functions::Depth::set(self.depth - 1);
        let State { frame, returned, .. } = state;
        returned(result.and_then(|()| self.results(frame)));
    }

    /// Runs what can run; whether that was all.
    fn advance(&self, state: &mut State) -> Result<bool> {
        let plan = self.function.first_plan(&*self.host)?;
        let route = Route {
            home: self
                .this
                .upgrade()
                .ok_or_else(|| status!(Internal, "a run is lost"))?,
            relay: self.relay.clone(),
        };
        let (host, trace) = (&*self.host, trace_of(&*self.host));
        let frame = &mut state.frame;
        match (&mut state.progress, &plan.engine) {
            (Progress::Waiting(progress), Engine::Waiting(waits)) => {
                let place = waiting::Place {
                    plan,
                    waits,
                    host,
                    trace,
                };
                waiting::go_on(&place, frame, progress, &route, &self.letters)
            }
            (Progress::Dataflow(progress), Engine::Dataflow(flow)) => {
                let place = dataflow::Place {
                    plan,
                    flow,
                    host,
                    trace,
                };
                dataflow::advance(&place, frame, progress, &route, &self.letters)
            }
            _ => executor::engine(plan, frame, host, trace).map(|()| true),
        }
    }

    fn results(&self, frame: Frame) -> Result<Vec<Tensor>> {
        let plan = self.function.first_plan(&*self.host)?;
        let results = plan
            .fetches
            .iter()
            .map(|fetch| executor::fetched(plan, &frame, *fetch));
        let results = results.collect();
        plan.return_frame(frame);
        results
    }
}

impl Home for Nested {
    fn ended(&self, key: Key, ended: Ended) {
        if self.letters.put(Letter::Ended(key, ended))
            && let Some(this) = self.this.upgrade()
        {
            self.relay.post(Box::new(move || this.go_on()));
        }
    }
}

/// Where a host notes what runs.
pub fn trace_of(host: &dyn KernelHost) -> Option<&Trace> {
    host.trace()?.downcast_ref()
}
