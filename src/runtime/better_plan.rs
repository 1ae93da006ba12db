//! A plan, and one with clusters that may take its place.
//!
//! A plan whose graph could gain is looked at again, on a thread behind the scenes, once it has run a few times: by then
//! it is known which values are large. The plan with clusters has to show that it is faster, for feeds of each size
//! apart ([`crate::trials`]); until then, and wherever it is not, the first plan runs as if there were no other.
//!
//! Contract: both plans give the same bits. Steps under way end with the plan that they began with. Steps that are traced
//! run the first one, so that they show every node. The thread behind the scenes keeps nothing of a session: a plan that
//! is gone when its turn comes stays gone.

use crate::plan::Plan;
use crate::trials::{Trial, Trials};
use ff_graph::passes::Goal;
use ff_graph::{FunctionBody, Graph};
use ff_jit::{Policy, Watch};
use ff_op::RunOneHost;
use ff_tensor::Tensor;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Runs of a plan before it is looked at again.
const RUNS_BEFORE: u32 = 3;

/// What a plan with clusters is made of.
pub enum Source {
    /// A graph after the passes.
    Graph(Box<Graph>, Goal),
    /// A function.
    Body(Arc<FunctionBody>),
}

impl Source {
    fn parts(self) -> (Graph, Goal) {
        match self {
            Source::Graph(graph, goal) => (*graph, goal),
            Source::Body(body) => (body.graph().clone(), body.goal()),
        }
    }
}

/// See the module.
pub struct KeptPlan {
    /// The plan without clusters, or with those that the client asked for.
    pub first: Plan,
    /// Runs until it is looked at again; 0 when it is not.
    left: AtomicU32,
    source: Mutex<Option<(Source, Policy)>>,
    better: OnceLock<Better>,
}

struct Better {
    plan: Plan,
    watch: Arc<Watch>,
    trials: Trials,
}

/// The plan that a run takes.
pub struct Choice<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Whether it is not the first.
    pub is_better: bool,
    turn: Option<Turn<'a>>,
}

/// A run that is looked at.
struct Turn<'a> {
    trial: &'a Trial,
    watch: &'a Watch,
    /// Runs that were not ready before.
    unready: u64,
    /// When it began, where its time counts.
    began: Option<Instant>,
}

impl KeptPlan {
    /// A plan, and of what a better one could be made.
    pub fn new(first: Plan, source: Option<(Source, Policy)>) -> Arc<KeptPlan> {
        Arc::new(KeptPlan {
            first,
            left: AtomicU32::new(if source.is_some() { RUNS_BEFORE } else { 0 }),
            source: Mutex::new(source),
            better: OnceLock::new(),
        })
    }

    /// The plan for a run with these feeds. [`Choice::ended`] must be told of its end.
    #[inline]
    pub fn choose(self: &Arc<KeptPlan>, feeds: &[Tensor], traced: bool) -> Choice<'_> {
        if let Some(better) = self.better.get()
            && !traced
        {
            return better.choose(&self.first, feeds);
        }
        let left = self.left.load(Relaxed);
        if left > 0 {
            self.left.store(left - 1, Relaxed);
            if left == 1 {
                self.ask();
            }
        }
        Choice::only(&self.first)
    }

    #[cold]
    fn ask(self: &Arc<KeptPlan>) {
        let kept = Arc::downgrade(self);
        ff_jit::in_background(Box::new(move || {
            if let Some(kept) = kept.upgrade() {
                kept.improve();
            }
        }));
    }

    fn improve(&self) {
        let Some((source, policy)) = self.source.lock().take() else {
            return;
        };
        let watch = Arc::new(Watch::default());
        // Nodes that know their session are those of the first plan.
        let host = RunOneHost::new();
        let sketch = self.first.sketch();
        // Where there is no better plan, the one that there is goes on.
        if let Ok(Some(plan)) = crate::planner::improved(&sketch, source.parts(), &policy, &watch, &host) {
            let trials = Trials::default();
            let _ = self.better.set(Better { plan, watch, trials });
        }
    }
}

impl Better {
    fn choose<'a>(&'a self, first: &'a Plan, feeds: &[Tensor]) -> Choice<'a> {
        let trial = self.trials.of(feeds);
        if trial.is_lost() {
            return Choice::only(first);
        }
        let turn = |began| {
            Some(Turn {
                trial,
                watch: &self.watch,
                unready: self.watch.unready(),
                began,
            })
        };
        let better = Choice {
            plan: &self.plan,
            is_better: true,
            turn: None,
        };
        if trial.is_won() {
            return Choice {
                turn: turn(None),
                ..better
            };
        }
        // What is being compiled is tried when it is there.
        if self.watch.compiling() > 0 {
            return Choice::only(first);
        }
        let chosen = if trial.next_is_better() {
            better
        } else {
            Choice::only(first)
        };
        Choice {
            turn: turn(Some(Instant::now())),
            ..chosen
        }
    }
}

impl<'a> Choice<'a> {
    fn only(plan: &'a Plan) -> Choice<'a> {
        Choice {
            plan,
            is_better: false,
            turn: None,
        }
    }

    /// The run has ended. One that failed says nothing of how long a run takes.
    #[inline]
    pub fn ended(self, well: bool) {
        let Some(turn) = self.turn.filter(|_| well) else {
            return;
        };
        let ready = !self.is_better || turn.watch.unready() == turn.unready;
        match turn.began {
            Some(began) if ready => turn.trial.took(self.is_better, began.elapsed()),
            _ => turn.trial.ran(ready),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor;
    use crate::plan::Signature;
    use ff_graph::NodeBuilder;
    use ff_op::OutputRef;
    use ff_tensor::{DataType, Shape};
    use std::sync::mpsc::channel;
    use std::time::Duration;

    const ELEMENTS: i64 = 10_000;

    /// A plan of `exp(tanh(x))`, of which a better one can be made.
    fn expression() -> Arc<KeptPlan> {
        let mut graph = Graph::new(ff_ops::registry());
        let x = NodeBuilder::new("Placeholder", "x").attr("dtype", DataType::FLOAT);
        let x = OutputRef {
            node: x.finish(&mut graph).unwrap(),
            index: 0,
        };
        let mut y = x;
        for op in ["Tanh", "Exp"] {
            y.node = NodeBuilder::new(op, op).input(y).finish(&mut graph).unwrap();
        }
        let goal = Goal {
            feeds: vec![x],
            fetches: vec![y],
            targets: Vec::new(),
        };
        let signature = Signature {
            feeds: [x].as_slice().into(),
            fetches: [y].as_slice().into(),
            ..Signature::default()
        };
        let plan = Plan::build(&graph, &signature, &RunOneHost::new()).unwrap();
        let source = (Source::Graph(Box::new(graph), goal), Policy::AUTO);
        KeptPlan::new(plan, Some(source))
    }

    fn feed() -> Tensor {
        Tensor::zeros(DataType::FLOAT, Shape::new(&[ELEMENTS]).unwrap()).unwrap()
    }

    fn run(kept: &Arc<KeptPlan>) -> Vec<Tensor> {
        let feeds = vec![feed()];
        let choice = kept.choose(&feeds, false);
        let results = executor::run(choice.plan, feeds, &RunOneHost::new(), None).unwrap();
        choice.ended(true);
        results
    }

    #[test]
    fn a_plan_that_is_gone_is_not_looked_at() {
        let (go_on, wait) = channel::<()>();
        ff_jit::in_background(Box::new(move || {
            let _ = wait.recv();
        }));
        let kept = expression();
        (0..RUNS_BEFORE).for_each(|_| drop(run(&kept)));
        assert_eq!(kept.left.load(Relaxed), 0, "it was asked for");
        let gone = Arc::downgrade(&kept);
        drop(kept);
        assert!(gone.upgrade().is_none(), "what waits for its turn keeps the plan");
        go_on.send(()).unwrap();
    }

    #[test]
    fn a_better_plan_that_loses_leaves_the_first_as_it_was() {
        let kept = expression();
        run(&kept);
        kept.improve();
        let trials = &kept.better.get().expect("large values are clustered").trials;
        let trial = trials.of(&[feed()]);
        while !trial.is_lost() {
            trial.took(true, Duration::from_nanos(2000));
            trial.took(false, Duration::from_nanos(1000));
        }
        let choice = kept.choose(&[feed()], false);
        assert!(std::ptr::eq(choice.plan, &kept.first) && !choice.is_better);
        assert_eq!(run(&kept)[0].as_slice::<f32>().unwrap()[0], 1.0);
    }

    #[test]
    fn steps_that_are_traced_run_the_first_plan() {
        let kept = expression();
        run(&kept);
        kept.improve();
        assert!(kept.better.get().is_some());
        assert!(kept.choose(&[feed()], false).is_better);
        assert!(!kept.choose(&[feed()], true).is_better);
    }
}
