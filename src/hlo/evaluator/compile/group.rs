//! Groups: which elementwise instructions run together as one fusion.
//!
//! Every instruction has a *level*: a fusion's members have one level and one number of elements, and everything that
//! a member reads from outside was ready at that level. A path that leaves a group and comes back would have to climb
//! a level, so grouping makes no cycles.

/// The most instructions in a group: bounds registers and the numbers of inputs.
const MAX_MEMBERS: u32 = 1024;

/// Union-find over instructions.
pub(super) struct Groups {
    parent: Vec<u32>,
    size: Vec<u32>,
    level: Vec<u32>,
}

impl Groups {
    pub fn new(instructions: usize) -> Groups {
        Groups {
            parent: (0..instructions as u32).collect(),
            size: vec![1; instructions],
            level: vec![0; instructions],
        }
    }

    /// The instruction that stands for the group of another.
    pub fn root(&self, instruction: usize) -> usize {
        let mut at = instruction;
        while self.parent[at] as usize != at {
            at = self.parent[at] as usize;
        }
        at
    }

    /// Places an instruction that reads outside values ready at `ready`, and members `operands` of its size.
    /// Returns its level.
    pub fn place(&mut self, instruction: usize, ready: u32, operands: &[usize]) -> u32 {
        let mut level = operands
            .iter()
            .map(|&operand| self.level[operand])
            .fold(ready, u32::max);
        let mut joined: Vec<usize> = Vec::new();
        let mut members = 1;
        for &operand in operands {
            let root = self.root(operand);
            if self.level[operand] == level && !joined.contains(&root) {
                members += self.size[root];
                joined.push(root);
            }
        }
        if members > MAX_MEMBERS {
            level += 1;
            joined.clear();
        }
        self.level[instruction] = level;
        for root in joined {
            self.union(instruction, root);
        }
        level
    }

    fn union(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        if a == b {
            return;
        }
        let (large, small) = if self.size[a] >= self.size[b] {
            (a, b)
        } else {
            (b, a)
        };
        self.parent[small] = large as u32;
        self.size[large] += self.size[small];
    }
}
