//! Loops that wait: `while (!flag);`, a lock that is taken by exchange or compare-and-swap.
//!
//! Of a round of such a loop that is followed by another nothing is left. It stores to nothing but local
//! variables, and none of those, and no value of the loop, is read in a later round or after the loop
//! before it is written again. So the round can be left out of any execution, and what the loop does is to
//! wait until a round leaves it. What else a round does to memory is known only when it runs: the result of
//! a read-modify-write is compared there (`foretell-runtime`, `spin`).
//!
//! What lies between the decision to go round again and the next round must not even read: a race or a
//! fault there would be left out, too, and no round that leaves the loop would show it.
//!
//! Where anything is in doubt the loop is an ordinary one.

use crate::dominance::Dominators;
use crate::llvm::{Block, Opcode, Value};
use crate::locals::{Local, Locals};
use std::collections::{HashMap, HashSet};

/// Functions that do nothing but let others go first.
const PAUSES: &[&str] = &["sched_yield", "pthread_yield", "thrd_yield", "usleep"];
/// Assembly that does nothing but wait a moment.
const PAUSING_ASSEMBLY: &[&str] = &["", "pause", "rep; nop", "rep;nop", "rep nop", "nop"];
/// Intrinsics that do nothing to memory.
const HARMLESS_INTRINSICS: &[&str] =
    &["dbg.", "lifetime.", "assume", "expect", "x86.sse2.pause", "experimental.noalias"];

/// The loops that wait of a function.
#[derive(Default)]
pub struct Awaits {
    /// The first block of each, and the blocks from which it is entered.
    pub loops: Vec<(Block, Vec<Block>)>,
    /// Branches one side of which goes straight to the next round, and the outcome that does.
    tests: HashMap<Value, bool>,
}

impl Awaits {
    /// Of a function, by its reachable blocks in reverse post-order.
    pub fn find(blocks: &[Block], locals: &Locals) -> Awaits {
        let graph = Graph::new(blocks);
        let mut awaits = Awaits::default();
        for header in 0..blocks.len() {
            if let Some(found) = graph.loop_at(header)
                && let Some(tests) = waits(&graph, &found, locals)
            {
                let entries = found.entries.iter().map(|&entry| blocks[entry]).collect();
                awaits.loops.push((blocks[header], entries));
                awaits.tests.extend(tests);
            }
        }
        awaits
    }

    /// For a branch of a loop that waits: the outcome that goes straight to the next round.
    pub fn goes_round(&self, branch: Value) -> Option<bool> {
        self.tests.get(&branch).copied()
    }
}

/// Blocks by their numbers in reverse post-order.
struct Graph<'b> {
    blocks: &'b [Block],
    successors: Vec<Vec<usize>>,
    predecessors: Vec<Vec<usize>>,
    dominators: Dominators,
}

/// A loop without loops in it.
struct Loop {
    header: usize,
    body: HashSet<usize>,
    entries: Vec<usize>,
}

impl<'b> Graph<'b> {
    fn new(blocks: &'b [Block]) -> Self {
        let numbers: HashMap<Block, usize> = blocks.iter().copied().zip(0..).collect();
        let successors: Vec<Vec<usize>> = blocks
            .iter()
            .map(|b| b.successors().iter().filter_map(|next| numbers.get(next).copied()).collect())
            .collect();
        let mut predecessors = vec![Vec::new(); blocks.len()];
        for (block, next) in successors.iter().enumerate() {
            next.iter().for_each(|&next| predecessors[next].push(block));
        }
        let dominators = Dominators::new(&successors);
        Self { blocks, successors, predecessors, dominators }
    }

    /// The innermost loop that begins with this block.
    fn loop_at(&self, header: usize) -> Option<Loop> {
        let back = |&block: &usize| self.dominators.dominates(header, block);
        let (latches, entries): (Vec<usize>, Vec<usize>) =
            self.predecessors[header].iter().copied().partition(back);
        if latches.is_empty() || entries.is_empty() {
            return None;
        }
        let mut body = HashSet::from([header]);
        let mut open = latches;
        while let Some(block) = open.pop() {
            if body.insert(block) {
                open.extend(&self.predecessors[block]);
            }
        }
        let forward = |&block: &usize| {
            let next = self.successors[block].iter();
            next.filter(|&&next| next != header && body.contains(&next)).all(|&next| next > block)
        };
        body.iter().all(forward).then_some(Loop { header, body, entries })
    }

    /// The blocks of the loop from which nothing but its next round is reached.
    fn inevitable(&self, found: &Loop) -> HashSet<usize> {
        let mut inevitable = HashSet::new();
        let mut body: Vec<usize> = found.body.iter().copied().collect();
        body.sort_unstable();
        for &block in body.iter().rev().filter(|&&block| block != found.header) {
            let goes_round = |next: &usize| *next == found.header || inevitable.contains(next);
            if self.successors[block].iter().all(goes_round) {
                inevitable.insert(block);
            }
        }
        inevitable
    }
}

/// The branches that decide whether the loop goes round again; `None` where it is not one that waits.
fn waits(graph: &Graph<'_>, found: &Loop, locals: &Locals) -> Option<HashMap<Value, bool>> {
    let inevitable = graph.inevitable(found);
    let mut stored: HashSet<Value> = HashSet::new();
    for &block in &found.body {
        for instruction in graph.blocks[block].instructions() {
            match does(instruction, locals) {
                Does::Nothing => {}
                Does::StoreLocal(variable) => _ = stored.insert(variable),
                Does::Access if !inevitable.contains(&block) => {}
                Does::Access | Does::More => return None,
            }
        }
    }
    let header = graph.blocks[found.header];
    let in_body = |block: &Block| {
        graph
            .blocks
            .iter()
            .position(|other| other == block)
            .is_some_and(|n| found.body.contains(&n))
    };
    let phis = header.instructions().into_iter().filter(|i| i.opcode() == Opcode::LLVMPHI);
    for phi in phis {
        if phi.incoming().iter().any(|(value, from)| in_body(from) && *value != phi) {
            return None;
        }
    }
    if stored.into_iter().any(|variable| is_live(graph, found.header, variable)) {
        return None;
    }
    let mut tests = HashMap::new();
    for &block in &found.body {
        let Some(end) = graph.blocks[block].terminator() else { continue };
        if end.opcode() != Opcode::LLVMBr || !end.is_conditional() {
            continue;
        }
        let again = |next: usize| next == found.header || inevitable.contains(&next);
        if let [when_true, when_false] = graph.successors[block][..]
            && again(when_true) != again(when_false)
        {
            tests.insert(end, again(when_true));
        }
    }
    (!tests.is_empty()).then_some(tests)
}

/// Is the local variable read, from the begin of this block on, before it is written?
fn is_live(graph: &Graph<'_>, from: usize, variable: Value) -> bool {
    let mut seen = HashSet::from([from]);
    let mut open = vec![from];
    while let Some(block) = open.pop() {
        let mut written = false;
        for instruction in graph.blocks[block].instructions() {
            match instruction.opcode() {
                Opcode::LLVMLoad if instruction.operand(0) == variable => return true,
                Opcode::LLVMStore if instruction.operand(1) == variable => {
                    written = true;
                    break;
                }
                _ => {}
            }
        }
        if !written {
            let next = graph.successors[block].iter().copied();
            open.extend(next.filter(|&next| seen.insert(next)));
        }
    }
    false
}

/// What an instruction does, as far as a loop that waits is concerned.
enum Does {
    /// Nothing that lasts.
    Nothing,
    /// It stores to this local variable.
    StoreLocal(Value),
    /// It reads memory that others can see, or changes it in a way that is known when it runs.
    Access,
    /// Anything else.
    More,
}

fn does(instruction: Value, locals: &Locals) -> Does {
    use Opcode::*;
    match instruction.opcode() {
        LLVMLoad if locals.get(instruction.operand(0)).is_some() => Does::Nothing,
        LLVMLoad | LLVMAtomicRMW | LLVMAtomicCmpXchg => Does::Access,
        LLVMStore => match locals.get(instruction.operand(1)) {
            Some((variable, Local::Scalar)) => Does::StoreLocal(variable),
            _ => Does::More,
        },
        LLVMCall if is_harmless_call(instruction) => Does::Nothing,
        LLVMCall | LLVMInvoke | LLVMCallBr | LLVMAlloca | LLVMVAArg | LLVMRet | LLVMResume
        | LLVMLandingPad | LLVMIndirectBr | LLVMCleanupRet | LLVMCatchRet | LLVMCatchPad
        | LLVMCleanupPad | LLVMCatchSwitch => Does::More,
        _ => Does::Nothing,
    }
}

fn is_harmless_call(call: Value) -> bool {
    let callee = call.callee();
    if callee.is_inline_asm() {
        let text = callee.assembly_text();
        return call.argument_count() == 0 && PAUSING_ASSEMBLY.contains(&text.trim());
    }
    if let Some(name) = call.intrinsic() {
        return HARMLESS_INTRINSICS.iter().any(|begin| name.starts_with(begin));
    }
    callee.as_function().is_some_and(|function| PAUSES.contains(&&*function.name()))
}
