//! What a call still needs: registers and locals whose values will never be read are forgotten, so that
//! states that differ in nothing that matters become one.
//!
//! A local counts as *private* when its address is used for accesses only: no other thread can reach
//! it, so its accesses need no scheduling point. A private local that is only read and written as a
//! whole is forgotten like a register.

use std::collections::HashMap;

use super::order::At;
use crate::ir::{Constant, Function, Module, Op, Operand, Register};

/// What is known about a function.
#[derive(Clone, Debug, Default)]
pub struct Lives {
    /// For each register: a local whose address never leaves the function.
    pub private: Vec<bool>,
    /// For each register: something is read or written there, or at a part of it.
    pub accessed: Vec<bool>,
    /// For each register: the place among the locals of one that can be forgotten.
    slot: Vec<Option<u16>>,
    /// Registers that instructions look at beside their operands.
    needed: HashMap<At, Vec<Register>>,
    /// For each block and instruction: what nobody reads behind it.
    behind: Vec<Vec<Dead>>,
    /// For each block: what is read in it or behind it.
    into: Vec<Vec<bool>>,
}

/// What can be forgotten.
#[derive(Clone, Debug, Default)]
pub struct Dead {
    /// Registers.
    pub registers: Vec<Register>,
    /// Locals.
    pub locals: Vec<u16>,
}

impl Lives {
    /// Looks at a function; `needed` are registers that an instruction looks at beside its operands.
    pub fn of(module: &Module, function: &Function, needed: HashMap<At, Vec<Register>>) -> Self {
        let count = function.registers.len();
        let mut lives = Lives {
            private: vec![false; count],
            slot: vec![None; count],
            needed,
            ..Self::default()
        };
        lives.accessed = vec![false; count];
        for instruction in function.blocks.iter().flat_map(|block| &block.instructions) {
            if let Op::Load { from: at, .. }
            | Op::Store { to: at, .. }
            | Op::Modify { at, .. }
            | Op::Exchange { at, .. }
            | Op::Address { base: at, .. } = &instruction.op
                && let Operand::Register(register) = at
            {
                lives.accessed[*register as usize] = true;
            }
        }
        lives.find_private(module, function);
        lives.find_slots(module, function);
        lives.flow(module, function);
        lives
    }

    /// What can be forgotten behind an instruction that does not jump.
    pub fn behind(&self, block: u32, at: u32) -> Option<&Dead> {
        self.behind.get(block as usize)?.get(at as usize)
    }

    /// What can be forgotten on entry of a block.
    pub fn before(&self, block: u32) -> Dead {
        let mut dead = Dead::default();
        if let Some(live) = self.into.get(block as usize) {
            let count = self.slot.len();
            for register in 0..count {
                if !live[register] {
                    dead.registers.push(register as Register);
                }
                if let Some(slot) = self.slot[register]
                    && !live[count + register]
                {
                    dead.locals.push(slot);
                }
            }
        }
        dead
    }

    fn find_private(&mut self, module: &Module, function: &Function) {
        let instructions = || function.blocks.iter().flat_map(|block| &block.instructions);
        // whose address a register may hold: itself, or what it was computed from
        let mut root: Vec<Option<Register>> = vec![None; self.private.len()];
        for instruction in instructions() {
            if let (Op::Allocate { .. }, Some(register)) = (&instruction.op, instruction.result) {
                self.private[register as usize] = true;
                root[register as usize] = Some(register);
            }
        }
        // unoptimised code computes an address after what it is computed from, but a block may stand
        // earlier in the text: until nothing changes
        loop {
            let before = root.clone();
            for instruction in instructions() {
                if let (Op::Address { base: Operand::Register(base), .. }, Some(register)) =
                    (&instruction.op, instruction.result)
                {
                    root[register as usize] = root[*base as usize];
                }
            }
            if root == before {
                break;
            }
        }
        for instruction in instructions() {
            let used_well: Vec<&Operand> = match &instruction.op {
                Op::Load { from, .. } => vec![from],
                Op::Store { to, .. } => vec![to],
                Op::Modify { at, .. } | Op::Exchange { at, .. } => vec![at],
                Op::Address { base, .. } => vec![base],
                Op::Call {
                    callee: Operand::Constant(Constant::Function(id)), arguments, ..
                } if is_memory(&module.functions[*id as usize].name) => {
                    arguments.iter().map(|argument| &argument.value).collect()
                }
                _ => Vec::new(),
            };
            for operand in instruction.op.operands() {
                if let Operand::Register(register) = operand
                    && let Some(local) = root[*register as usize]
                    && !used_well.iter().any(|used| std::ptr::eq(*used, operand))
                {
                    self.private[local as usize] = false;
                }
            }
        }
    }

    /// Locals of the entry block that are private and only accessed as a whole.
    fn find_slots(&mut self, module: &Module, function: &Function) {
        let Some(entry) = function.blocks.first() else { return };
        let copies = function.parameters.iter().filter(|p| p.by_value.is_some()).count()
            + usize::from(function.variadic);
        let mut sizes: Vec<Option<u64>> = vec![None; self.slot.len()];
        for (slot, instruction) in (copies as u16..).zip(&entry.instructions) {
            let (Op::Allocate { content, count, .. }, Some(register)) =
                (&instruction.op, instruction.result)
            else {
                break;
            };
            let one = *count == Operand::Constant(Constant::Integer(1));
            if one && self.private[register as usize] {
                self.slot[register as usize] = Some(slot);
                sizes[register as usize] = content.size();
            }
        }
        for instruction in function.blocks.iter().flat_map(|block| &block.instructions) {
            let whole = match &instruction.op {
                Op::Load { kind, from: Operand::Register(local), .. } => Some((local, kind)),
                Op::Store { kind, to: Operand::Register(local), .. } => Some((local, kind)),
                _ => None,
            };
            for operand in instruction.op.operands() {
                if let Operand::Register(register) = operand {
                    let fits = whole.is_some_and(|(local, kind)| {
                        local == register && kind.size() == sizes[*register as usize]
                    });
                    if !fits && lifetime(module, &instruction.op).is_none() {
                        self.slot[*register as usize] = None;
                    }
                }
            }
        }
    }

    /// Liveness: registers first, then slots, by the number of their register.
    fn flow(&mut self, module: &Module, function: &Function) {
        let count = self.slot.len();
        self.into = vec![vec![false; 2 * count]; function.blocks.len()];
        self.behind = function
            .blocks
            .iter()
            .map(|block| vec![Dead::default(); block.instructions.len()])
            .collect();
        let mut changed = true;
        while changed {
            changed = false;
            for block in (0..function.blocks.len()).rev() {
                let live = self.through(module, function, block, false);
                if live != self.into[block] {
                    self.into[block] = live;
                    changed = true;
                }
            }
        }
        for block in 0..function.blocks.len() {
            self.through(module, function, block, true);
        }
    }

    /// What is live on entry of a block; notes what dies in it if asked to.
    fn through(
        &mut self,
        module: &Module,
        function: &Function,
        block: usize,
        note: bool,
    ) -> Vec<bool> {
        let count = self.slot.len();
        let instructions = &function.blocks[block].instructions;
        let mut live = vec![false; 2 * count];
        if let Some(last) = instructions.last() {
            for target in last.op.targets() {
                let Some(into) = self.into.get(target as usize) else { continue };
                for (mine, theirs) in live.iter_mut().zip(into) {
                    *mine |= theirs;
                }
                for phi in &function.blocks[target as usize].instructions {
                    let Op::Phi { incoming, .. } = &phi.op else { break };
                    for (value, from) in incoming {
                        if let Operand::Register(register) = value
                            && *from as usize == block
                        {
                            live[*register as usize] = true;
                        }
                    }
                }
            }
        }
        for (at, instruction) in instructions.iter().enumerate().rev() {
            if note {
                let slots = &self.slot;
                let dead = &mut self.behind[block][at];
                let mut used: Vec<Register> = instruction
                    .op
                    .operands()
                    .into_iter()
                    .filter_map(|operand| match operand {
                        Operand::Register(register) => Some(*register),
                        Operand::Constant(_) => None,
                    })
                    .collect();
                used.extend(instruction.result);
                used.extend(self.needed.get(&(block, at)).into_iter().flatten());
                for register in used {
                    if !live[register as usize] && !dead.registers.contains(&register) {
                        dead.registers.push(register);
                    }
                    if let Some(slot) = slots[register as usize]
                        && !live[count + register as usize]
                        && !dead.locals.contains(&slot)
                    {
                        dead.locals.push(slot);
                    }
                }
            }
            if let Some(register) = instruction.result {
                // a phi's result is assigned before its block begins
                let phi = matches!(instruction.op, Op::Phi { .. });
                live[register as usize] = phi && live[register as usize];
            }
            match &instruction.op {
                Op::Phi { .. } => continue,
                Op::Store { to: Operand::Register(local), .. } => {
                    live[count + *local as usize] = false;
                }
                Op::Load { from: Operand::Register(local), .. } => {
                    live[count + *local as usize] = true;
                }
                op => {
                    if let Some(local) = lifetime(module, op) {
                        live[count + local as usize] = false;
                    }
                }
            }
            for operand in instruction.op.operands() {
                if let Operand::Register(register) = operand {
                    live[*register as usize] = true;
                }
            }
            for register in self.needed.get(&(block, at)).into_iter().flatten() {
                live[*register as usize] = true;
            }
        }
        live
    }
}

/// Intrinsics that access the memory they are given and keep no address.
fn is_memory(name: &str) -> bool {
    name.starts_with("llvm.mem") || name.starts_with("llvm.lifetime.")
}

/// The local whose lifetime begins or ends.
fn lifetime(module: &Module, op: &Op) -> Option<Register> {
    let Op::Call { callee: Operand::Constant(Constant::Function(id)), arguments, .. } = op else {
        return None;
    };
    let name = &module.functions[*id as usize].name;
    match arguments.last().map(|argument| &argument.value) {
        Some(Operand::Register(local)) if name.starts_with("llvm.lifetime.") => Some(*local),
        _ => None,
    }
}
