//! Functions of a session's graph, made ready to run: each body gets a plan of its own, kept by name and attributes.

use crate::better_plan::{KeptPlan, Source};
use crate::executor;
use crate::frame::Frame;
use crate::may_wait::{AnyWaits, Calls};
use crate::nested::{self, Nested, trace_of};
use crate::options::SessionOptions;
use crate::plan::{Fetch, Plan, Signature};
use ff_graph::{FunctionBody, FunctionLibrary};
use ff_hlo::{Builder, Op as HloOp};
use ff_jit::{Mode, Policy};
use ff_op::{
    Callable, CompileRequest, FunctionHost, FunctionRef, FunctionSignature, HandleShapes, KernelHost,
    Registry, Relay, Returned, Runner, Value,
};
use ff_platform::threads;
use ff_proto::FunctionDefLibrary;
use ff_tensor::{PartialShape, Result, Tensor, ensure};
use parking_lot::RwLock;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::Cell;
use std::sync::{Arc, OnceLock};

/// How deep function calls may nest before a step is refused.
const MAX_DEPTH: usize = 200;

/// So many nested calls use one stack at most; deeper ones go on on a thread of their own, so that callers need no large
/// stack.
const CALLS_PER_STACK: usize = 16;

/// The functions of one graph, as the ops of its sessions see them.
pub struct Functions {
    registry: Arc<Registry>,
    library: Arc<FunctionLibrary>,
    ready: RwLock<FxHashMap<FunctionRef, Arc<Function>>>,
    any_waits: AnyWaits,
}

impl Functions {
    /// The functions of this library.
    pub fn new(registry: Arc<Registry>, library: Arc<FunctionLibrary>) -> Functions {
        Functions {
            registry,
            library,
            ready: RwLock::default(),
            any_waits: AnyWaits::default(),
        }
    }

    fn find(&self, function: &FunctionRef) -> Result<Arc<Function>> {
        if let Some(ready) = self.ready.read().get(function) {
            return Ok(ready.clone());
        }
        let body = match function.name.as_str() {
            // Named by its op; the function is an attribute.
            "SymbolicGradient" => {
                let forward = function.attrs.func("f")?;
                FunctionBody::symbolic_gradient(&self.registry, &self.library, forward)?
            }
            _ => FunctionBody::instantiate(&self.registry, &self.library, function)?,
        };
        let made = Function::new(&function.name, Arc::new(body), true);
        Ok(self.ready.write().entry(function.clone()).or_insert(made).clone())
    }
}

/// A function with its body and, once run, its plan.
pub struct Function {
    name: String,
    body: Arc<FunctionBody>,
    signature: FunctionSignature,
    plan: OnceLock<Result<Arc<KeptPlan>>>,
    /// Whether a better plan than the first may be looked for.
    improves: bool,
    calls: OnceLock<Calls>,
}

impl Function {
    fn new(name: &str, body: Arc<FunctionBody>, improves: bool) -> Arc<Function> {
        Arc::new(Function {
            name: name.to_string(),
            signature: body.signature(),
            body,
            plan: OnceLock::new(),
            improves,
            calls: OnceLock::new(),
        })
    }
}

/// A body that no library names, ready to run: a part of a graph that a node stands for.
pub fn callable(name: &str, body: Arc<FunctionBody>) -> Arc<dyn Callable> {
    // It is what runs where there is no better way.
    Function::new(name, body, false)
}

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// How many calls deep this thread is, until it is dropped.
pub struct Depth {
    before: usize,
}

impl Depth {
    /// One call deeper. RESOURCE_EXHAUSTED beyond the bound.
    fn enter(function: &str) -> Result<Depth> {
        let depth = DEPTH.get();
        ensure!(
            depth < MAX_DEPTH,
            ResourceExhausted,
            "Function {function} is nested more than {MAX_DEPTH} calls deep"
        );
        Ok(Depth::set(depth + 1))
    }

    /// So deep.
    pub fn set(depth: usize) -> Depth {
        Depth {
            before: DEPTH.replace(depth),
        }
    }
}

impl Drop for Depth {
    fn drop(&mut self) {
        DEPTH.set(self.before);
    }
}

impl Callable for Function {
    fn signature(&self) -> &FunctionSignature {
        &self.signature
    }

    fn run(&self, host: &dyn KernelHost, arguments: Vec<Tensor>) -> Result<Vec<Tensor>> {
        let _depth = Depth::enter(&self.name)?;
        let choice = self.kept(host)?.choose(&arguments, host.trace().is_some());
        let plan = choice.plan;
        let depth = DEPTH.get();
        let results = if !depth.is_multiple_of(CALLS_PER_STACK) && threads::has_stack() {
            executor::run(plan, arguments, host, trace_of(host))
        } else {
            threads::on_new_stack(|| {
                DEPTH.set(depth);
                executor::run(plan, arguments, host, trace_of(host))
            })
        };
        choice.ended(results.is_ok());
        results
    }

    fn start(
        self: Arc<Self>,
        host: Arc<dyn KernelHost>,
        relay: Arc<dyn Relay>,
        arguments: Vec<Tensor>,
        returned: Returned,
    ) {
        let begun = self.begin(&*host, arguments);
        let (plan, frame) = match begun {
            Ok(Begun::Waiting(plan, frame)) => (plan, frame),
            Ok(Begun::Ended(results)) => return returned(Ok(results)),
            Err(error) => return returned(Err(error)),
        };
        let depth = DEPTH.get() + 1;
        let run = Nested::new(self.clone(), plan, frame, (host, relay.clone()), depth, returned);
        if depth.is_multiple_of(CALLS_PER_STACK) || !threads::has_stack() {
            relay.post(Box::new(move || run.go_on()));
        } else {
            run.go_on();
        }
    }

    fn runner<'a>(&'a self, host: &'a dyn KernelHost) -> Result<Box<dyn Runner + 'a>> {
        // Where a thread of its own may be needed, each run decides.
        let next = DEPTH.get() + 1;
        if next.is_multiple_of(CALLS_PER_STACK) || next >= MAX_DEPTH || !threads::has_stack() {
            return Ok(Box::new(EachRun { function: self, host }));
        }
        Ok(Box::new(InFrame {
            name: &self.name,
            kept: self.kept(host)?,
            places: [None, None],
            host,
        }))
    }
}

/// What came of beginning a function.
enum Begun<'a> {
    Ended(Vec<Tensor>),
    /// It may wait.
    Waiting(&'a Plan, Frame),
}

impl Function {
    /// Runs a function that does not wait; makes one that may ready to run.
    fn begin(&self, host: &dyn KernelHost, arguments: Vec<Tensor>) -> Result<Begun<'_>> {
        let depth = Depth::enter(&self.name)?;
        // A run that stops goes on in the plan that it began with: it is always the first.
        let plan = self.first_plan(host)?;
        if !nested::can_stop(plan) {
            drop(depth);
            return Ok(Begun::Ended(self.run(host, arguments)?));
        }
        let mut frame = plan.take_frame();
        match executor::feed(plan, arguments, &mut frame) {
            Ok(()) => Ok(Begun::Waiting(plan, frame)),
            Err(error) => {
                plan.return_frame(frame);
                Err(error)
            }
        }
    }

    /// The plan without clusters, worked out when first asked for.
    pub fn first_plan(&self, host: &dyn KernelHost) -> Result<&Plan> {
        self.kept(host).map(|kept| &kept.first)
    }

    fn kept(&self, host: &dyn KernelHost) -> Result<&Arc<KeptPlan>> {
        let plan = self.plan.get_or_init(|| {
            if self.body.request() != CompileRequest::None {
                return self.compiled(host);
            }
            let signature = Signature {
                feeds: self.body.arguments().into(),
                fetches: self.body.results().into(),
                targets: self.body.targets().into(),
            };
            let plan = Plan::build(self.body.graph(), &signature, host)?;
            Ok(KeptPlan::new(plan, self.source(host)))
        });
        plan.as_ref().map_err(Clone::clone)
    }

    /// The plan of a function that asks to be compiled. INVALID_ARGUMENT where all of it must be and cannot be.
    fn compiled(&self, host: &dyn KernelHost) -> Result<Arc<KeptPlan>> {
        if self.body.request() == CompileRequest::Must {
            self.body.check_compilable(&self.name)?;
        }
        let plan = crate::planner::plan_body(&self.body, &policy_of(host), host)?;
        Ok(KeptPlan::new(plan, None))
    }

    /// What a better plan can be made of, where it could pay.
    fn source(&self, host: &dyn KernelHost) -> Option<(Source, Policy)> {
        // Also where more is asked for: the function's caller is what was asked about.
        let policy = Policy::AUTO;
        if !self.improves || host.device_names().len() > 1 || !ff_jit::could_pay(self.body.graph(), &policy) {
            return None;
        }
        let is_off = policy_of(host).mode == Mode::Off;
        (!is_off).then(|| (Source::Body(self.body.clone()), policy))
    }
}

/// What is clustered in the step that `host` belongs to.
fn policy_of(host: &dyn KernelHost) -> Policy {
    let options = SessionOptions {
        config: host.config(),
        ..SessionOptions::default()
    };
    options.clusters()
}

/// Calls a function as any caller does.
struct EachRun<'a> {
    function: &'a Function,
    host: &'a dyn KernelHost,
}

impl Runner for EachRun<'_> {
    fn run(&mut self, arguments: &mut Vec<Tensor>, results: &mut Vec<Tensor>) -> Result<()> {
        results.extend(self.function.run(self.host, std::mem::take(arguments))?);
        Ok(())
    }
}

/// Runs a function's plans, each in one frame.
struct InFrame<'a> {
    name: &'a str,
    kept: &'a Arc<KeptPlan>,
    /// Of the first plan, and of the better one.
    places: [Option<Place<'a>>; 2],
    host: &'a dyn KernelHost,
}

/// Where a plan runs.
struct Place<'a> {
    plan: &'a Plan,
    frame: Frame,
    /// Whether each result can be moved out of its slot: no later one is in the same.
    moved: Vec<bool>,
}

impl<'a> Place<'a> {
    fn new(plan: &'a Plan) -> Place<'a> {
        Place {
            plan,
            frame: plan.take_frame(),
            moved: movable(&plan.fetches),
        }
    }

    fn run(
        &mut self,
        host: &dyn KernelHost,
        arguments: &mut Vec<Tensor>,
        results: &mut Vec<Tensor>,
    ) -> Result<()> {
        executor::feed(self.plan, arguments.drain(..), &mut self.frame)?;
        executor::engine(self.plan, &mut self.frame, host, trace_of(host))?;
        for (fetch, &moved) in self.plan.fetches.iter().zip(&self.moved) {
            let place = fetch.slot().filter(|_| moved);
            let place = place.and_then(|slot| self.frame.values.get_mut(slot as usize));
            match place {
                Some(place) if matches!(place, Value::Tensor(_)) => {
                    if let Value::Tensor(tensor) = std::mem::take(place) {
                        results.push(tensor);
                    }
                }
                _ => results.push(executor::fetched(self.plan, &self.frame, *fetch)?),
            }
        }
        self.frame.clear();
        Ok(())
    }
}

fn movable(fetches: &[Fetch]) -> Vec<bool> {
    let is_last = |index: usize, fetch: &Fetch| {
        let slot = fetch.slot();
        fetches[index + 1..].iter().all(|later| later.slot() != slot)
    };
    fetches
        .iter()
        .enumerate()
        .map(|(index, fetch)| is_last(index, fetch))
        .collect()
}

impl Runner for InFrame<'_> {
    fn run(&mut self, arguments: &mut Vec<Tensor>, results: &mut Vec<Tensor>) -> Result<()> {
        let _depth = Depth::enter(self.name)?;
        let choice = self.kept.choose(arguments, self.host.trace().is_some());
        let plan = choice.plan;
        let place = self.places[usize::from(choice.is_better)].get_or_insert_with(|| Place::new(plan));
        let result = place.run(self.host, arguments, results);
        choice.ended(result.is_ok());
        result
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let none = Frame::new(0, 0);
        self.plan.return_frame(std::mem::replace(&mut self.frame, none));
    }
}

impl FunctionHost for Functions {
    fn signature(&self, function: &FunctionRef) -> Result<FunctionSignature> {
        Ok(self.find(function)?.signature.clone())
    }

    fn instantiate(&self, function: &FunctionRef) -> Result<Arc<dyn Callable>> {
        let callable: Arc<dyn Callable> = self.find(function)?;
        Ok(callable)
    }

    fn may_wait(&self, function: &FunctionRef) -> bool {
        if !self.any_waits.of(&self.library, &self.registry) {
            return false;
        }
        let mut seen = FxHashSet::default();
        let mut left = vec![function.clone()];
        while let Some(function) = left.pop() {
            // What is wrong with a function is said when it runs.
            let Ok(found) = self.find(&function) else { continue };
            if !seen.insert(Arc::as_ptr(&found)) {
                continue;
            }
            let calls = found.calls.get_or_init(|| Calls::of(found.body.graph()));
            if calls.waits {
                return true;
            }
            left.extend(calls.functions.iter().cloned());
        }
        false
    }

    fn library(&self) -> FunctionDefLibrary {
        ff_graph::export_library(&self.library)
    }

    /// Nothing: while a step runs, functional ops take the shapes of their results from the results.
    fn infer(
        &self,
        function: &FunctionRef,
        _arguments: &[PartialShape],
        _handles: &[Option<HandleShapes>],
    ) -> Result<(Vec<PartialShape>, Vec<Option<HandleShapes>>)> {
        let outputs = self.find(function)?.signature.outputs.len();
        Ok((vec![PartialShape::unknown(); outputs], Vec::new()))
    }

    fn lower(
        &self,
        function: &FunctionRef,
        builder: &mut Builder,
        arguments: &[HloOp],
    ) -> Result<Vec<HloOp>> {
        self.find(function)?.body.lower(builder, arguments, self)
    }
}
