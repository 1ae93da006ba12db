//! Runs the regions of a plan with v1 control flow in order, on the caller's thread.

use crate::frame::Frame;
use crate::loop_turn::LoopTurn;
use crate::plan::{Plan, Source};
use crate::step::{Trace, at_node};
use crate::straight_line::{Surroundings, read_variable, run_instruction};
use crate::structured::{Item, Move, Structured, StructuredLoop};
use ff_op::{KernelHost, Value};
use ff_tensor::{Result, status};

/// Runs a plan in a frame whose feeds are set; leaves fetched values in the frame.
pub fn run(
    plan: &Plan,
    structured: &Structured,
    frame: &mut Frame,
    host: &dyn KernelHost,
    trace: Option<&Trace>,
) -> Result<()> {
    let dead = match structured.controls {
        Some(_) => vec![false; plan.instructions.len()],
        None => Vec::new(),
    };
    let mut run = Run {
        plan,
        structured,
        frame,
        surroundings: Surroundings { host, trace },
        dead,
        turn: LoopTurn::default(),
    };
    run.items(&structured.top)
}

struct Run<'a> {
    plan: &'a Plan,
    structured: &'a Structured,
    frame: &'a mut Frame,
    surroundings: Surroundings<'a>,
    /// Instructions that were not run because of a conditional; empty for plans without one.
    dead: Vec<bool>,
    /// The turn under way, as kernels are told.
    turn: LoopTurn,
}

impl Run<'_> {
    fn items(&mut self, items: &[Item]) -> Result<()> {
        for item in items {
            match *item {
                Item::Run(number) => self.run(number)?,
                Item::RunAsking(number) => self.turn.within(|| self.run(number))?,
                Item::Loop(number) => self.run_loop(&self.structured.loops[number as usize])?,
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn run(&mut self, number: u32) -> Result<()> {
        match self.structured.controls {
            Some(_) => self.run_unless_dead(number),
            None => run_instruction(self.plan, number as usize, self.frame, &self.surroundings),
        }
    }

    /// Whether a control edge into an instruction comes from a dead one.
    fn waits_for_dead(&self, number: u32) -> bool {
        let controls = self.structured.controls.as_ref();
        controls.is_some_and(|controls| {
            controls[number as usize]
                .iter()
                .any(|before| self.dead[*before as usize])
        })
    }

    fn run_unless_dead(&mut self, number: u32) -> Result<()> {
        let instruction = &self.plan.instructions[number as usize];
        let is_absent = |source: &Source| match source {
            Source::Slot { slot, .. } => matches!(self.frame.values[*slot as usize], Value::Absent),
            Source::Constant(_) => false,
        };
        let mut inputs = instruction.inputs.iter().map(|input| is_absent(&input.source));
        let is_dead = if instruction.is_merge {
            inputs.all(|absent| absent)
        } else {
            inputs.any(|absent| absent) || self.waits_for_dead(number)
        };
        self.dead[number as usize] = is_dead;
        if !is_dead {
            return run_instruction(self.plan, number as usize, self.frame, &self.surroundings);
        }
        let first = instruction.first_output as usize;
        self.frame.values[first..first + instruction.output_uses.len()].fill(Value::Absent);
        Ok(())
    }

    fn run_loop(&mut self, region: &StructuredLoop) -> Result<()> {
        self.moves(&region.enters)?;
        let is_absent = |slot: &u32| matches!(self.frame.values[*slot as usize], Value::Absent);
        let controls_dead = !self.dead.is_empty()
            && region
                .enter_nodes
                .iter()
                .any(|&number| self.waits_for_dead(number));
        let is_dead = controls_dead || region.variables.iter().any(is_absent);
        if !self.dead.is_empty() {
            region
                .exit_nodes
                .iter()
                .for_each(|&number| self.dead[number as usize] = false);
        }
        if is_dead {
            self.leave_dead(region);
        } else {
            let around = self.turn;
            self.turn = around.inner(region.name_hash);
            self.turns(region)?;
            self.turn = around;
        }
        for &slot in &region.inner {
            self.frame.values[slot as usize] = Value::Absent;
        }
        Ok(())
    }

    /// Nothing leaves a loop that was not entered, or whose condition is dead in some turn.
    fn leave_dead(&mut self, region: &StructuredLoop) {
        for &number in &region.exit_nodes {
            let slot = self.plan.instructions[number as usize].first_output;
            self.frame.values[slot as usize] = Value::Absent;
            if let Some(dead) = self.dead.get_mut(number as usize) {
                *dead = true;
            }
        }
    }

    fn turns(&mut self, region: &StructuredLoop) -> Result<()> {
        let cancellation = self.surroundings.host.cancellation();
        loop {
            if cancellation.is_cancelled() {
                cancellation.check()?;
            }
            self.items(&region.head)?;
            match self.holds(region)? {
                Some(true) => {}
                Some(false) => break,
                None => {
                    self.leave_dead(region);
                    return Ok(());
                }
            }
            self.moves(&region.into_body)?;
            self.items(&region.body)?;
            self.moves(&region.next)?;
            self.turn.turn += 1;
        }
        self.moves(&region.into_tail)?;
        self.items(&region.tail)?;
        self.moves(&region.exits)
    }

    /// Whether the condition of a loop holds; none when it is dead.
    fn holds(&self, region: &StructuredLoop) -> Result<Option<bool>> {
        let value = match region.condition {
            Some(Source::Slot { slot, .. }) => match &self.frame.values[slot as usize] {
                Value::Tensor(tensor) => tensor.to_bool(),
                Value::Ref(variable) => variable.read()?.to_bool(),
                Value::Absent => return Ok(None),
            },
            Some(Source::Constant(constant)) => self.plan.constants[constant as usize].to_bool(),
            None => Err(status!(Internal, "a loop has no condition")),
        };
        value.map(Some).map_err(|error| self.at_switch(region, error))
    }

    #[cold]
    fn at_switch(&self, region: &StructuredLoop, error: ff_tensor::Status) -> ff_tensor::Status {
        match region.exit_nodes.first() {
            Some(&exit) => at_node(error, self.plan.instructions[exit as usize].executable.node()),
            None => error,
        }
    }

    #[inline]
    fn moves(&mut self, moves: &[Move]) -> Result<()> {
        for step in moves {
            let mut value = match step.from {
                Source::Slot { slot, last: true } => std::mem::take(&mut self.frame.values[slot as usize]),
                Source::Slot { slot, last: false } => self.frame.values[slot as usize].clone(),
                Source::Constant(constant) => Value::Tensor(self.plan.constants[constant as usize].clone()),
            };
            read_variable(&mut value, step.is_ref)?;
            self.frame.values[step.to as usize] = value;
        }
        Ok(())
    }
}
