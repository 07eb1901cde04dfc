//! Locks in a round of a loop that waits: `lock; look; unlock; sleep`, or `trylock` again and again.
//!
//! A round that gives back every lock that it took, and went round because it did not get one, leaves nothing
//! behind: without it the locks are free for longer, which keeps nobody from going on. (Who only tries one of
//! those locks could tell; `foretell-explore` looks for that.)

use std::collections::{HashMap, HashSet};

use llvm_sys::LLVMLinkage;

use crate::awaits::{Does, Graph, Look, does};
use crate::llvm::{Opcode, Value};
use crate::locals::{Local, Locals};

/// Functions that take the lock that is their first argument, however long that takes.
const LOCKS: &[&str] = &[
    "mtx_lock",
    "pthread_mutex_lock",
    "pthread_rwlock_rdlock",
    "pthread_rwlock_wrlock",
    "pthread_spin_lock",
];
/// Those that give it back.
const UNLOCKS: &[&str] =
    &["mtx_unlock", "pthread_mutex_unlock", "pthread_rwlock_unlock", "pthread_spin_unlock"];
/// Those that take it if it is free; then their result is 0.
const TRIES: &[&str] = &["mtx_trylock", "pthread_mutex_trylock", "pthread_spin_trylock"];

/// How deep calls of functions, and addresses, are looked into.
const DEPTH: usize = 4;

/// Keeps the optimiser from making copies of calls that take locks: a loop that it has turned round begins in the middle
/// of a round. (A copy of one that gives a lock back does no harm, and the way out of a loop may need its own.)
pub fn keep_whole(functions: impl Iterator<Item = Value>) {
    let is_known = |function: &Value| {
        let name = function.name();
        [LOCKS, TRIES].iter().any(|names| names.contains(&&*name))
    };
    functions
        .filter(|function| function.is_declaration())
        .filter(is_known)
        .for_each(Value::set_convergent);
}

/// What a call does to a lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Locking {
    Take,
    GiveBack,
    Try,
}

/// What the call does to which lock.
pub fn locking(call: Value) -> Option<(Locking, Value)> {
    let function = call.callee().as_function().filter(|function| function.is_declaration())?;
    let name = function.name();
    let locking = [(LOCKS, Locking::Take), (UNLOCKS, Locking::GiveBack), (TRIES, Locking::Try)]
        .into_iter()
        .find_map(|(names, locking)| names.contains(&&*name).then_some(locking))?;
    (call.argument_count() == 1).then(|| (locking, call.operand(0)))
}

/// The functions among these that read memory and take locks, which they give back, and do nothing else that lasts.
pub fn looking(functions: &[Value]) -> HashSet<Value> {
    let mut looking = HashSet::new();
    for _ in 0..DEPTH {
        let before = looking.len();
        let found: Vec<Value> = functions
            .iter()
            .copied()
            .filter(|function| !looking.contains(function) && only_looks(*function, &looking))
            .collect();
        looking.extend(found);
        if looking.len() == before {
            break;
        }
    }
    looking
}

fn only_looks(function: Value, looking: &HashSet<Value>) -> bool {
    // Another module may have another function of the name.
    if matches!(function.linkage(), LLVMLinkage::LLVMWeakAnyLinkage) {
        return false;
    }
    let blocks = function.reachable_blocks();
    let locals = Locals::find(blocks.iter().flat_map(|block| block.instructions()));
    let mut stored = HashSet::new();
    for instruction in blocks.iter().flat_map(|block| block.instructions()) {
        match does(instruction, &locals) {
            Does::Nothing | Does::Access | Does::Lock(..) => {}
            Does::StoreLocal(variable) => _ = stored.insert(variable),
            Does::Call(function) if looking.contains(&function) => {}
            Does::More if matches!(instruction.opcode(), Opcode::LLVMRet | Opcode::LLVMAlloca) => {}
            Does::Call(_) | Does::Look | Does::More => return false,
        }
    }
    let graph = Graph::new(&blocks);
    let all: HashSet<usize> = (0..blocks.len()).collect();
    let mut edges = graph
        .successors
        .iter()
        .enumerate()
        .flat_map(|(block, next)| next.iter().map(move |&next| (block, next)));
    edges.all(|(block, next)| next > block) && gives_back(&graph, &all, 0, &[], &stored, &locals)
}

/// Is every lock that is taken in these blocks given back where they lead to `first` again, or end? They have no other
/// loop.
pub fn gives_back(
    graph: &Graph<'_>,
    body: &HashSet<usize>,
    first: usize,
    tries: &[Look],
    stored: &HashSet<Value>,
    locals: &Locals,
) -> bool {
    let same = Same { stored, locals };
    let mut order: Vec<usize> = body.iter().copied().collect();
    order.sort_unstable();
    let mut held_at: HashMap<usize, Vec<Value>> = HashMap::from([(first, Vec::new())]);
    for block in order {
        let Some(mut held) = held_at.get(&block).cloned() else { return false };
        let mut tried = None;
        for instruction in graph.blocks[block].instructions() {
            match does(instruction, locals) {
                Does::Lock(Locking::Take, lock) => held.push(lock),
                Does::Lock(Locking::GiveBack, lock) => {
                    let Some(at) = held.iter().position(|&other| same.lock(lock, other, 0)) else {
                        return false;
                    };
                    held.swap_remove(at);
                }
                Does::Lock(Locking::Try, lock) => {
                    let look = tries.iter().find(|look| look.call == instruction);
                    let Some(look) = look.filter(|look| look.waits_for_zero()) else {
                        return false;
                    };
                    tried = Some((lock, look.again));
                }
                _ => {}
            }
        }
        let next = &graph.successors[block];
        if next.is_empty() && !held.is_empty() {
            return false;
        }
        for (number, &next) in next.iter().enumerate() {
            let mut held = held.clone();
            // The first successor is that of the outcome `true`.
            if let Some((lock, again)) = tried
                && (number == 0) != again
            {
                held.push(lock);
            }
            if next == first && !held.is_empty() {
                return false;
            }
            if next == first || !body.contains(&next) {
                continue;
            }
            let there = held_at.entry(next).or_insert_with(|| held.clone());
            let as_many = there.len() == held.len();
            if !as_many || !held.iter().all(|&lock| there.iter().any(|&o| same.lock(lock, o, 0))) {
                return false;
            }
        }
    }
    true
}

/// Are two values the same in one round?
struct Same<'a> {
    /// Local variables that the round stores to.
    stored: &'a HashSet<Value>,
    locals: &'a Locals,
}

impl Same<'_> {
    fn lock(&self, one: Value, two: Value, depth: usize) -> bool {
        let (one, two) = (self.known(one), self.known(two));
        if one == two {
            return true;
        }
        let (Some(opcode), Some(other)) = (one.instruction_opcode(), two.instruction_opcode())
        else {
            return false;
        };
        if opcode != other || depth > DEPTH || one.ty() != two.ty() {
            return false;
        }
        match opcode {
            Opcode::LLVMGetElementPtr => {
                one.source_element_type() == two.source_element_type()
                    && one.operand_count() == two.operand_count()
                    && one.operands().zip(two.operands()).all(|(a, b)| self.lock(a, b, depth + 1))
            }
            Opcode::LLVMLoad => {
                let variable = self.locals.get(one.operand(0)).map(|(variable, _)| variable);
                one.operand(0) == two.operand(0)
                    && variable.is_some_and(|variable| !self.stored.contains(&variable))
            }
            _ => false,
        }
    }

    /// What a load of a local variable gives that is stored to once, such as a guard's pointer to its mutex.
    fn known(&self, value: Value) -> Value {
        let is_load = value.instruction_opcode() == Some(Opcode::LLVMLoad);
        let local = if is_load { self.locals.get(value.operand(0)) } else { None };
        let Some((variable, Local::Scalar)) = local else { return value };
        let users = variable.users();
        let mut stores = users.iter().filter(|user| user.opcode() == Opcode::LLVMStore);
        match (stores.next(), stores.next()) {
            (Some(only), None) => only.operand(0),
            _ => value,
        }
    }
}
