//! The compiler of fusions: which of them get code, and a cache of kernels by structure.

use crate::disk::DiskCache;
use crate::dump::Dump;
use crate::kernel::{CompiledFusion, object};
use ff_hlo::fusion::{FusionCompiler, FusionKernel, FusionPlan, NodeKind};
use ff_hlo::passes::pipeline;
use ff_hlo::{Module, Program};
use ff_tensor::{Result, Status};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Bytes of executable memory that cached kernels may hold together.
const LARGEST_CACHE: usize = 64 << 20;
/// The longest row that code reduces: longer ones are folded in blocks, which the evaluator does.
const LONGEST_REDUCED_ROW: usize = 4096;
/// Elements below which the time of a kernel's compilation is not worth it; for the compiler of the process. Fewer where rows
/// are reduced, which takes the evaluator a step for each reduction and for what lies between (measured: code saves 2 us
/// for a softmax of ten elements).
const LEAST_ELEMENTS: usize = 64;
const LEAST_REDUCED: usize = 8;
/// Rows below this cost more than they do where they are not reduced.
const SHORTEST_ROW: usize = 8;

/// The kernel of a structure, made once.
#[derive(Default)]
struct Slot {
    kernel: OnceLock<std::result::Result<Arc<CompiledFusion>, Status>>,
    used: AtomicU64,
}

/// Compiles fusions for this machine; kernels are kept by structure, the least used leave first.
pub struct Compiler {
    slots: Mutex<HashMap<String, Arc<Slot>>>,
    disk: Option<DiskCache>,
    limit: usize,
    least_elements: usize,
    clock: AtomicU64,
    compiled: AtomicU64,
}

impl Compiler {
    /// A compiler with a cache of its own of so many bytes of code, and with files in `folder` if there is one.
    pub fn new(limit: usize, folder: Option<std::path::PathBuf>) -> Compiler {
        Compiler {
            slots: Mutex::default(),
            disk: folder.map(DiskCache::new),
            limit,
            least_elements: 0,
            clock: AtomicU64::new(0),
            compiled: AtomicU64::new(0),
        }
    }

    /// The compiler of this process. Keeps objects in the folder that `FF_CACHE_DIR` names, if it is set.
    pub fn host() -> &'static Compiler {
        static HOST: OnceLock<Compiler> = OnceLock::new();
        HOST.get_or_init(|| {
            let folder = std::env::var_os("FF_CACHE_DIR").filter(|folder| !folder.is_empty());
            Compiler {
                least_elements: LEAST_ELEMENTS,
                ..Compiler::new(LARGEST_CACHE, folder.map(Into::into))
            }
        })
    }

    /// The number of kernels that were compiled, those from files not counted.
    pub fn num_compiled(&self) -> u64 {
        self.compiled.load(Ordering::Relaxed)
    }

    /// Bytes of executable memory of the kernels in the cache.
    pub fn cached_bytes(&self) -> usize {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.values().map(|slot| bytes(slot)).sum()
    }

    fn kernel(&self, plan: &FusionPlan) -> Result<Arc<CompiledFusion>> {
        let structure = plan.structure();
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let slot = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            slots.entry(structure.clone()).or_default().clone()
        };
        slot.used.store(now, Ordering::Relaxed);
        if let Some(known) = slot.kernel.get() {
            return known.clone();
        }
        let made = slot
            .kernel
            .get_or_init(|| self.make(&structure, plan).map(Arc::new))
            .clone();
        self.evict();
        made
    }

    fn make(&self, structure: &str, plan: &FusionPlan) -> Result<CompiledFusion> {
        if let Some(bytes) = self.disk.as_ref().and_then(|disk| disk.read(structure))
            && let Ok(kernel) = CompiledFusion::load(plan, &bytes)
        {
            return Ok(kernel);
        }
        let object = object(plan)?;
        self.compiled.fetch_add(1, Ordering::Relaxed);
        if let Some(disk) = &self.disk {
            disk.write(structure, &object);
        }
        CompiledFusion::load(plan, &object)
    }

    /// Drops the kernels that were used longest ago while all together are too large. Programs keep what they run.
    fn evict(&self) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let mut total: usize = slots.values().map(|slot| bytes(slot)).sum();
        while total > self.limit && slots.len() > 1 {
            let oldest = slots
                .iter()
                .filter(|(_, slot)| slot.kernel.get().is_some())
                .min_by_key(|(_, slot)| slot.used.load(Ordering::Relaxed))
                .map(|(structure, slot)| (structure.clone(), bytes(slot)));
            let Some((structure, freed)) = oldest else {
                return;
            };
            slots.remove(&structure);
            total -= freed;
        }
    }
}

fn bytes(slot: &Slot) -> usize {
    match slot.kernel.get() {
        Some(Ok(kernel)) => kernel.code_bytes(),
        _ => 0,
    }
}

impl FusionCompiler for Compiler {
    fn compile(&self, plan: &FusionPlan) -> Result<Option<Arc<dyn FusionKernel>>> {
        let elements: usize = plan.extents.iter().product();
        let least = match plan.reduces() {
            true => self.least_elements.min(LEAST_REDUCED),
            false => self.least_elements,
        };
        if !has_code(plan) || !has_processor() || elements < least {
            return Ok(None);
        }
        Ok(Some(self.kernel(plan)?))
    }
}

/// Whether code for a fusion is possible and faster than the evaluator, on a processor that it can be made for.
pub fn has_code(plan: &FusionPlan) -> bool {
    let (row, reduces) = (plan.row(), plan.reduces());
    let computes = plan
        .nodes
        .iter()
        .any(|node| matches!(node.kind, NodeKind::Map(..)));
    let fits = if reduces {
        row <= LONGEST_REDUCED_ROW
    } else {
        row >= SHORTEST_ROW || plan.rows() == 1
    };
    let small = plan.extents.iter().product::<usize>() < i32::MAX as usize;
    computes && fits && small
}

/// Whether the processor has what the emitters count on: fused multiply-add, half precision, rounding.
fn has_processor() -> bool {
    if cfg!(target_arch = "x86_64") {
        ff_kernels::cpu::level() >= ff_kernels::cpu::Level::Avx2
    } else {
        cfg!(target_arch = "aarch64")
    }
}

/// Simplifies and fuses a module, and compiles its fusions; the evaluator runs the rest.
///
/// The errors of [`Program::compile`]. A pass that fails is no error: the module runs as it was given; nor is a fusion
/// that cannot be compiled: the evaluator runs it. Writes what `XLA_FLAGS` asks for, see `dump.rs`.
pub fn compile(module: &Module, compiler: &Compiler) -> Result<Program> {
    Program::compile_with(&prepare(module, Dump::of_environment()), compiler)
}

/// A module after the passes; as it is if one fails.
pub(crate) fn prepare(module: &Module, dump: &Dump) -> Module {
    let number = dump.begin(module);
    let mut prepared = module.clone();
    let mut turn = 0;
    let outcome = if dump.watches_passes(module) {
        pipeline::prepare_with(&mut prepared, &mut |name, before, after| {
            turn += 1;
            dump.pass(number, (turn, name), before, after);
        })
    } else {
        pipeline::prepare(&mut prepared)
    };
    if let Err(error) = outcome {
        dump.text(number, module, "failed_pass.txt", &error.to_string());
        prepared = module.clone();
    }
    dump.module(number, &prepared, "after_optimizations");
    dump.fusions(number, &prepared);
    prepared
}
