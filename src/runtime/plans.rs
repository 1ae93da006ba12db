//! The plans of a session by what they are for.

use crate::better_plan::KeptPlan;
use crate::plan::Signature;
use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Plans kept by a session. Beyond that the one used longest ago goes.
const PLANS_KEPT: usize = 128;

/// See the module.
#[derive(Default)]
pub struct Plans(RwLock<FxHashMap<Signature, Entry>>);

struct Entry {
    plan: Arc<KeptPlan>,
    last_used: AtomicU64,
}

impl Plans {
    /// The plan, if there is one, noting the step that uses it.
    #[inline]
    pub fn find(&self, signature: &Signature, step: u64) -> Option<Arc<KeptPlan>> {
        let plans = self.0.read();
        let entry = plans.get(signature)?;
        entry.last_used.store(step, Ordering::Relaxed);
        Some(entry.plan.clone())
    }

    /// Keeps a plan.
    pub fn keep(&self, signature: &Signature, plan: &Arc<KeptPlan>, step: u64) {
        let mut plans = self.0.write();
        if plans.len() >= PLANS_KEPT {
            let oldest = plans
                .iter()
                .min_by_key(|(_, entry)| entry.last_used.load(Ordering::Relaxed));
            if let Some(key) = oldest.map(|(key, _)| key.clone()) {
                plans.remove(&key);
            }
        }
        let entry = Entry {
            plan: plan.clone(),
            last_used: AtomicU64::new(step),
        };
        plans.insert(signature.clone(), entry);
    }

    /// Forgets all.
    pub fn clear(&self) {
        self.0.write().clear();
    }
}
