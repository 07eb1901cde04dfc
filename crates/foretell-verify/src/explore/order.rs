//! Where C leaves open which operand is evaluated first, and the program can see it.
//!
//! clang evaluates arguments from left to right, other compilers do not. In IR before any optimisation a
//! register lives no longer than its expression, so that the operands of an instruction are trees of
//! what C evaluates in any order. Two calls, or a call and an access, in different operands are an *open
//! order* if one writes what the other reads or writes, or if both synchronise while other threads run.

use std::collections::BTreeSet;

use super::library::is_input;
use super::liveness::Lives;
use crate::ir::{Constant, Function, GlobalId, Instruction, Module, Op, Operand, Register};

/// Whether an order is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Open {
    /// It is not.
    #[default]
    No,
    /// While other threads run.
    Beside,
    /// It is.
    Always,
}

/// What an instruction or a function does to memory that others can name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Effects {
    reads: BTreeSet<GlobalId>,
    writes: BTreeSet<GlobalId>,
    /// Through pointers.
    reads_any: bool,
    writes_any: bool,
    synchronises: bool,
}

impl Effects {
    fn add(&mut self, other: &Effects) {
        self.reads.extend(&other.reads);
        self.writes.extend(&other.writes);
        self.reads_any |= other.reads_any;
        self.writes_any |= other.writes_any;
        self.synchronises |= other.synchronises;
    }

    fn touches(&self) -> bool {
        self.reads_any || self.writes_any || !self.reads.is_empty() || !self.writes.is_empty()
    }

    fn spoils(&self, other: &Effects) -> bool {
        let through_pointer = self.writes_any && other.touches()
            || !self.writes.is_empty() && (other.reads_any || other.writes_any);
        let same = |id: &GlobalId| other.reads.contains(id) || other.writes.contains(id);
        through_pointer || self.writes.iter().any(same)
    }

    fn order(&self, other: &Effects) -> Open {
        if self.spoils(other) || other.spoils(self) {
            Open::Always
        } else if self.synchronises && other.synchronises {
            Open::Beside
        } else {
            Open::No
        }
    }
}

/// For each function, block and instruction: is the order of its operands open?
pub fn open_orders(module: &Module, lives: &[Lives]) -> Vec<Vec<Vec<Open>>> {
    let mut known = vec![Effects::default(); module.functions.len()];
    loop {
        let before = known.clone();
        for (id, function) in module.functions.iter().enumerate() {
            let body = Body::of(module, function, &lives[id], &known);
            let mut sum = Effects::default();
            for instruction in function.blocks.iter().flat_map(|block| &block.instructions) {
                sum.add(&body.effects(instruction));
            }
            known[id].add(&sum);
        }
        if known == before {
            break;
        }
    }
    let functions = module.functions.iter().enumerate();
    functions
        .map(|(id, function)| {
            let body = Body::of(module, function, &lives[id], &known);
            let blocks = function.blocks.iter().enumerate();
            blocks
                .map(|(at, block)| {
                    block
                        .instructions
                        .iter()
                        .enumerate()
                        .map(|(place, _)| body.order(at, place))
                        .collect()
                })
                .collect()
        })
        .collect()
}

/// An instruction by its block and place.
type At = (usize, usize);

struct Body<'a> {
    module: &'a Module,
    function: &'a Function,
    lives: &'a Lives,
    known: &'a [Effects],
    /// Where each register gets its value.
    defined: Vec<Option<At>>,
}

impl<'a> Body<'a> {
    fn of(
        module: &'a Module,
        function: &'a Function,
        lives: &'a Lives,
        known: &'a [Effects],
    ) -> Self {
        let mut defined = vec![None; function.registers.len()];
        for (block, instructions) in function.blocks.iter().enumerate() {
            for (place, instruction) in instructions.instructions.iter().enumerate() {
                if let Some(register) = instruction.result {
                    defined[register as usize] = Some((block, place));
                }
            }
        }
        Self { module, function, lives, known, defined }
    }

    fn at(&self, at: At) -> &'a Instruction {
        &self.function.blocks[at.0].instructions[at.1]
    }

    /// The variable that an address belongs to, if it is computed from one.
    fn root(&self, address: &'a Operand) -> &'a Operand {
        let mut address = address;
        while let Operand::Register(register) = address
            && let Some(at) = self.defined[*register as usize]
            && let Op::Address { base, .. } = &self.at(at).op
        {
            address = base;
        }
        address
    }

    /// The local that an address belongs to.
    fn local(&self, address: &'a Operand) -> Option<Register> {
        let Operand::Register(register) = self.root(address) else { return None };
        let at = self.defined[*register as usize]?;
        matches!(self.at(at).op, Op::Allocate { .. }).then_some(*register)
    }

    fn access(&self, address: &'a Operand, reads: bool, writes: bool) -> Effects {
        let mut effects = Effects::default();
        if self.local(address).is_some_and(|local| self.lives.private[local as usize]) {
            return effects;
        }
        let mut constant = match self.root(address) {
            Operand::Constant(constant) => Some(constant),
            Operand::Register(_) => None,
        };
        while let Some(Constant::Behind(base, _)) = constant {
            constant = Some(base);
        }
        match constant {
            Some(Constant::Global(id)) if self.module.globals[*id as usize].constant => {}
            Some(Constant::Global(id)) => {
                effects.reads.extend(reads.then_some(*id));
                effects.writes.extend(writes.then_some(*id));
            }
            _ => (effects.reads_any, effects.writes_any) = (reads, writes),
        }
        effects
    }

    /// What an instruction does by itself.
    fn effects(&self, instruction: &'a Instruction) -> Effects {
        match &instruction.op {
            Op::Load { from, order, .. } => {
                let synchronises = order.is_some();
                Effects { synchronises, ..self.access(from, true, false) }
            }
            Op::Store { to, order, .. } => {
                let synchronises = order.is_some();
                Effects { synchronises, ..self.access(to, false, true) }
            }
            Op::Modify { at, .. } | Op::Exchange { at, .. } => {
                Effects { synchronises: true, ..self.access(at, true, true) }
            }
            Op::Call { callee: Operand::Constant(Constant::Function(id)), arguments, .. } => {
                let function = &self.module.functions[*id as usize];
                if function.is_defined() {
                    return self.known[*id as usize].clone();
                }
                let all = || Effects { reads_any: true, writes_any: true, ..Effects::default() };
                match &*function.name {
                    "malloc" | "calloc" | "printf" | "puts" | "putchar" | "pthread_self"
                    | "abs" | "usleep" | "sleep" | "sched_yield" | "__assert_fail"
                    | "reach_error" => Effects::default(),
                    "strlen" | "strcmp" | "strncmp" | "memcmp" | "atoi" => {
                        Effects { reads_any: true, ..Effects::default() }
                    }
                    name if is_input(name) => Effects::default(),
                    name if name.starts_with("llvm.mem") => {
                        let mut effects = self.access(&arguments[0].value, false, true);
                        if !name.starts_with("llvm.memset") {
                            effects.add(&self.access(&arguments[1].value, true, false));
                        }
                        effects
                    }
                    name if name.starts_with("llvm.") => Effects::default(),
                    name if name.starts_with("pthread_mutex_")
                        || name.starts_with("pthread_rwlock_")
                        || name.starts_with("pthread_spin_")
                        || name.starts_with("__VERIFIER_atomic_") =>
                    {
                        Effects { synchronises: true, ..Effects::default() }
                    }
                    _ => Effects { synchronises: true, ..all() },
                }
            }
            // any function of the program with these types; one of the library is another matter
            Op::Call { arguments, result, .. } => {
                let mut effects = Effects { reads_any: true, ..Effects::default() };
                for (function, known) in self.module.functions.iter().zip(self.known) {
                    let kinds = function.parameters.iter().map(|parameter| &parameter.kind);
                    let fits = function.result == *result
                        && (kinds.eq(arguments.iter().map(|argument| &argument.kind))
                            || function.variadic);
                    if fits && function.is_defined() {
                        effects.add(known);
                    } else if fits && !function.name.starts_with("llvm.") {
                        effects.writes_any = true;
                        effects.synchronises = true;
                    }
                }
                effects
            }
            _ => Effects::default(),
        }
    }

    /// The instructions that compute an operand.
    fn tree(&self, operand: &'a Operand, user: At, tree: &mut BTreeSet<At>) {
        let Operand::Register(register) = operand else { return };
        let Some(at) = self.defined[*register as usize] else { return };
        if matches!(self.at(at).op, Op::Allocate { .. }) {
            self.temporary(*register, user, tree);
            return;
        }
        if tree.insert(at) {
            self.below(at, tree);
        }
    }

    fn below(&self, at: At, tree: &mut BTreeSet<At>) {
        for operand in self.at(at).op.operands() {
            self.tree(operand, at, tree);
        }
        if let Op::Phi { incoming, .. } = &self.at(at).op {
            for &(_, block) in incoming {
                let last = self.function.blocks[block as usize].instructions.len() - 1;
                if let Op::Branch { condition, .. } = &self.at((block as usize, last)).op {
                    self.tree(condition, (block as usize, last), tree);
                }
            }
        }
    }

    /// The compiler's own variables carry structures from one call to another.
    fn temporary(&self, local: Register, user: At, tree: &mut BTreeSet<At>) {
        let name = &self.function.registers[local as usize];
        if !["agg.tmp", "tmp", "coerce", "byval-temp"].iter().any(|own| name.starts_with(own)) {
            return;
        }
        for place in 0..user.1 {
            let at = (user.0, place);
            let fills = match &self.at(at).op {
                Op::Store { to, .. } => self.local(to) == Some(local),
                Op::Call { arguments, .. } => {
                    arguments.iter().any(|argument| self.local(&argument.value) == Some(local))
                }
                _ => false,
            };
            if fills && tree.insert(at) {
                self.below(at, tree);
            }
        }
    }

    /// What an access or a call in a tree does; a variable that is counted up is written, too.
    fn effects_at(&self, at: At, user: At) -> Effects {
        let mut effects = self.effects(self.at(at));
        if let Op::Load { from, .. } = &self.at(at).op {
            let behind = if at.0 == user.0 { user.1 } else { at.1 };
            let counts = (at.1..behind).any(
                |place| matches!(&self.at((at.0, place)).op, Op::Store { to, .. } if to == from),
            );
            if counts {
                effects.add(&self.access(from, false, true));
            }
        }
        effects
    }

    fn order(&self, block: usize, place: usize) -> Open {
        let user = (block, place);
        // the values of a phi and of a selection come from an order that C fixes
        if matches!(self.at(user).op, Op::Phi { .. } | Op::Select { .. }) {
            return Open::No;
        }
        let trees: Vec<BTreeSet<At>> = self
            .at(user)
            .op
            .operands()
            .into_iter()
            .map(|operand| {
                let mut tree = BTreeSet::new();
                self.tree(operand, user, &mut tree);
                tree
            })
            .filter(|tree| !tree.is_empty())
            .collect();
        let mut open = Open::No;
        for (index, one) in trees.iter().enumerate() {
            for other in &trees[..index] {
                for &a in one.difference(other) {
                    for &b in other.difference(one) {
                        open = open.max(self.pair(a, b, user));
                    }
                }
            }
        }
        open
    }

    fn pair(&self, a: At, b: At, user: At) -> Open {
        let (first, second) = (self.effects_at(a, user), self.effects_at(b, user));
        let open = first.order(&second);
        let calls = |at| matches!(self.at(at).op, Op::Call { .. });
        // two plain accesses conflict only where C has no order at all, which clang refuses
        let open = match calls(a) || calls(b) {
            true => open,
            false => open.min(Open::Beside),
        };
        if open == Open::No || self.is_below(a, b) || self.is_below(b, a) { Open::No } else { open }
    }

    fn is_below(&self, inner: At, outer: At) -> bool {
        let mut tree = BTreeSet::new();
        self.below(outer, &mut tree);
        tree.contains(&inner)
    }
}
