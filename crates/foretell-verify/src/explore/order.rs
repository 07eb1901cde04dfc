//! Where C leaves open which operand is evaluated first, and the program can see it.
//!
//! clang evaluates arguments from left to right, other compilers do not. Which expressions have no order
//! is what the syntax says ([`crate::ir::syntax`]): an instruction belongs to the operand in which its
//! place is. Two accesses in different operands, of which one writes, are *undefined* if they are of the
//! same bytes: the addresses are compared when the later one is executed. Two calls, or a call and an
//! access, are an *open order* if one may write what the other reads or writes, or if both synchronise
//! while other threads run.

use std::collections::{BTreeSet, HashMap};

use super::library::is_input;
use super::liveness::Lives;
use crate::ir::syntax::{Group, Spot};
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

/// What C does not order in a function.
#[derive(Clone, Debug, Default)]
pub struct Orders {
    /// For each block and instruction: is the order with what was executed before open?
    open: Vec<Vec<Open>>,
    /// Earlier accesses that an access must not be of the same bytes as.
    beside: HashMap<At, Vec<At>>,
}

impl Orders {
    /// Is the order of an instruction and what was executed before it open?
    pub fn open(&self, block: u32, at: u32) -> Open {
        self.open[block as usize][at as usize]
    }

    /// Accesses before this one that have no order with it.
    pub fn beside(&self, block: u32, at: u32) -> &[At] {
        self.beside.get(&(block as usize, at as usize)).map_or(&[], Vec::as_slice)
    }

    /// Registers that are needed to compare addresses, by the instruction that compares.
    pub fn needed(&self, function: &Function) -> HashMap<At, Vec<Register>> {
        let registers = |at: &At| {
            let operands = function.blocks[at.0].instructions[at.1].op.operands().into_iter();
            let registers = operands.filter_map(|operand| match operand {
                Operand::Register(register) => Some(*register),
                Operand::Constant(_) => None,
            });
            registers.collect::<Vec<_>>()
        };
        let all = self.beside.iter();
        all.map(|(at, earlier)| (*at, earlier.iter().flat_map(registers).collect())).collect()
    }
}

/// What C does not order, for each function.
pub fn orders(module: &Module, lives: &[Lives]) -> Vec<Orders> {
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
            body.orders(module.shapes.get(id).map_or(&[], |shape| &shape.groups))
        })
        .collect()
}

/// An instruction by its block and place.
pub type At = (usize, usize);

/// An instruction that accesses memory or calls a function.
struct Action {
    spot: Spot,
    at: At,
    effects: Effects,
    /// It calls a function that does more than to copy.
    calls: bool,
    writes: bool,
}

/// How many actions of a kind stand before each.
struct Counts {
    calls: Vec<usize>,
    writes: Vec<usize>,
    synchronises: Vec<usize>,
}

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

    /// The accesses and calls of the function, by their places.
    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for (block, instructions) in self.function.blocks.iter().enumerate() {
            for (place, instruction) in instructions.instructions.iter().enumerate() {
                let spot = (instruction.place.line, instruction.place.column);
                let (calls, writes) = match &instruction.op {
                    Op::Load { .. } => (false, false),
                    Op::Store { .. } | Op::Modify { .. } | Op::Exchange { .. } => (false, true),
                    Op::Call { callee: Operand::Constant(Constant::Function(id)), .. } => {
                        match &*self.module.functions[*id as usize].name {
                            name if name.starts_with("llvm.mem") => (false, true),
                            name if name.starts_with("llvm.") => continue,
                            _ => (true, true),
                        }
                    }
                    Op::Call { .. } => (true, true),
                    _ => continue,
                };
                let effects = self.effects(instruction);
                if spot.1 > 0 {
                    actions.push(Action { spot, at: (block, place), effects, calls, writes });
                }
            }
        }
        actions.sort_by_key(|action| (action.spot, action.at));
        actions
    }

    fn orders(&self, groups: &[Group]) -> Orders {
        let blocks = self.function.blocks.iter();
        let open = blocks.map(|block| vec![Open::No; block.instructions.len()]).collect();
        let mut orders = Orders { open, beside: HashMap::new() };
        let actions = self.actions();
        let count = |is: &dyn Fn(&Action) -> bool| {
            let mut sums = vec![0];
            sums.extend(actions.iter().scan(0, |sum, action| {
                *sum += usize::from(is(action));
                Some(*sum)
            }));
            sums
        };
        let counts = Counts {
            calls: count(&|action| action.calls),
            writes: count(&|action| action.writes),
            synchronises: count(&|action| action.effects.synchronises),
        };
        let first = |spot: Spot| actions.partition_point(|action| action.spot < spot);
        let behind = |spot: Spot| actions.partition_point(|action| action.spot <= spot);
        for group in groups {
            let slices: Vec<(usize, usize)> = group
                .operands
                .iter()
                .map(|operand| (first(operand.begin), behind(operand.end)))
                .collect();
            // a call by a pointer has its place where the pointer has
            let call = actions[first(group.whole.begin)..behind(group.whole.begin)]
                .iter()
                .filter(|action| action.calls && group.calls)
                .map(|action| action.at)
                .max();
            for (index, &one) in slices.iter().enumerate() {
                for &other in &slices[..index] {
                    if !counts.may_matter(one, other) {
                        continue;
                    }
                    for a in &actions[one.0..one.1] {
                        for b in &actions[other.0..other.1] {
                            if Some(a.at) != call && Some(b.at) != call {
                                self.pair(a, b, &mut orders);
                            }
                        }
                    }
                }
            }
            if !group.writes {
                continue;
            }
            let own = (first(group.whole.begin)..behind(group.whole.end))
                .filter(|at| !slices.iter().any(|slice| (slice.0..slice.1).contains(at)));
            for own in own.map(|at| &actions[at]).filter(|action| !action.calls) {
                for (operand, slice) in slices.iter().enumerate() {
                    for action in &actions[slice.0..slice.1] {
                        // the value that `x += f()` begins with may be read before or after the call
                        let value = !own.writes && operand > 0;
                        if value || action.writes && !action.calls {
                            self.pair(own, action, &mut orders);
                        }
                    }
                }
            }
        }
        orders
    }

    /// Two actions that C does not order.
    fn pair(&self, a: &Action, b: &Action, orders: &mut Orders) {
        let (earlier, later) = if a.at < b.at { (a, b) } else { (b, a) };
        if a.calls || b.calls {
            let open = &mut orders.open[later.at.0][later.at.1];
            let order = earlier.effects.order(&later.effects);
            if order > *open {
                *open = (*open).max(self.order_left(earlier, later, order));
            }
            return;
        }
        if a.effects.synchronises && b.effects.synchronises {
            let open = &mut orders.open[later.at.0][later.at.1];
            *open = (*open).max(Open::Beside);
        }
        if (a.writes || b.writes) && !self.are_disjoint(a.at, b.at) {
            let beside = orders.beside.entry(later.at).or_default();
            if !beside.contains(&earlier.at) {
                beside.push(earlier.at);
            }
        }
    }

    /// What is open of an order: one whose value the other is computed from is evaluated before it.
    fn order_left(&self, earlier: &Action, later: &Action, order: Open) -> Open {
        let op = &self.at(later.at).op;
        if !self.depends(op.operands(), earlier.at) {
            return order;
        }
        // the copy of a structure may go to where a call says, and read what the call changes
        match op {
            Op::Call { arguments, .. } if !later.calls => match arguments.get(1) {
                Some(from) if !self.depends(vec![&from.value], earlier.at) => {
                    earlier.effects.order(&self.access(&from.value, true, false))
                }
                _ => Open::No,
            },
            _ => Open::No,
        }
    }

    /// Is one of the operands computed from the value of the instruction?
    fn depends(&self, operands: Vec<&Operand>, earlier: At) -> bool {
        let mut open = operands;
        let mut seen = BTreeSet::new();
        while let Some(operand) = open.pop() {
            let Operand::Register(register) = operand else { continue };
            let Some(defined) = self.defined[*register as usize] else { continue };
            if defined == earlier {
                return true;
            }
            if seen.insert(defined) {
                open.extend(self.at(defined).op.operands());
            }
        }
        false
    }

    /// Are two accesses of different variables, or of different parts of one?
    fn are_disjoint(&self, a: At, b: At) -> bool {
        let (Some((a, from, to)), Some((b, start, end))) = (self.extent(a), self.extent(b)) else {
            return false;
        };
        let is_variable = |root: &Operand| match root {
            Operand::Constant(constant) => matches!(constant, Constant::Global(_)),
            Operand::Register(register) => self.local(root) == Some(*register),
        };
        let is_private = |root: &Operand| {
            self.local(root).is_some_and(|local| self.lives.private[local as usize])
        };
        if a == b {
            return matches!((from, to, start, end), (Some(from), Some(to), Some(start), Some(end))
                if to <= start || end <= from);
        }
        is_private(a) || is_private(b) || is_variable(a) && is_variable(b)
    }

    /// What an access is of: the variable or pointer, and from where to where if that is known.
    fn extent(&self, at: At) -> Option<(&'a Operand, Option<i64>, Option<i64>)> {
        let (address, kind) = match &self.at(at).op {
            Op::Load { from, kind, .. } => (from, kind),
            Op::Store { to, kind, .. } => (to, kind),
            Op::Modify { at, kind, .. } | Op::Exchange { at, kind, .. } => (at, kind),
            _ => return None,
        };
        let mut offset = Some(0_i64);
        let mut root = address;
        while let Operand::Register(register) = root
            && let Some(at) = self.defined[*register as usize]
            && let Op::Address { base, offset: more, indices, .. } = &self.at(at).op
        {
            offset = offset.filter(|_| indices.is_empty()).and_then(|sum| sum.checked_add(*more));
            root = base;
        }
        let end = offset.and_then(|offset| offset.checked_add(kind.size()? as i64));
        Some((root, offset, end))
    }
}

impl Counts {
    fn has(sums: &[usize], (from, to): (usize, usize)) -> bool {
        from < to && sums[to] > sums[from]
    }

    /// Does one of the slices write or call, or do both synchronise?
    fn may_matter(&self, a: (usize, usize), b: (usize, usize)) -> bool {
        if a.0 >= a.1 || b.0 >= b.1 {
            return false;
        }
        let both = |sums: &[usize]| Self::has(sums, a) && Self::has(sums, b);
        Self::has(&self.writes, a)
            || Self::has(&self.writes, b)
            || both(&self.calls)
            || both(&self.synchronises)
    }
}
