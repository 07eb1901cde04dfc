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
//! A loop may also wait for a file: `while (access("ready", F_OK)) usleep(1000);`. Where its look
//! ([`LOOKS`]) decides right away whether it goes round again, the runtime is told, and makes the look when
//! it leaves the loop. A compiler puts the first look before the loop; where all else is the same it is
//! one of the loop. A semaphore that is tried is looked at, too. (A look in vain leaves `errno` behind, which nobody may read after one that succeeds.)
//!
//! How long a round pauses may depend on the rounds before it, if nothing else does: to back off for longer and longer is
//! to wait.
//!
//! A round may take locks if it gives them back, and try to (`polled`): polling under a lock is waiting, too.
//!
//! Where anything is in doubt the loop is an ordinary one.

use crate::dominance::Dominators;
use crate::llvm::{Block, Opcode, Predicate, Value};
use crate::locals::{Local, Locals};
use crate::polled::{self, Locking};
use crate::rust;
use std::collections::{HashMap, HashSet};

/// Functions that do nothing but let others go first.
const PAUSES: &[&str] = &[
    "_ZNSt11this_thread11__sleep_forENSt6chrono8durationIlSt5ratioILl1ELl1EEEENS1_IlS2_ILl1ELl1000000000EEEE",
    "pthread_yield",
    "sched_yield",
    "sleep",
    "thrd_yield",
    "usleep",
];
/// Functions that look at something, and leave nothing behind where they find it not as it should be.
const LOOKS: &[&str] = &[
    "access",
    "faccessat",
    "lstat",
    "lstat64",
    "open",
    "open64",
    "openat",
    "openat64",
    "pread",
    "read",
    "sem_trywait",
    "stat",
    "stat64",
];
/// Those of them that fill their second argument.
const FILLING: &[&str] = &["lstat", "lstat64", "stat", "stat64"];
/// Comparisons of a result with a constant, by the numbers that the runtime knows them by.
const COMPARISONS: [Predicate; 6] = [
    Predicate::LLVMIntEQ,
    Predicate::LLVMIntNE,
    Predicate::LLVMIntSLT,
    Predicate::LLVMIntSLE,
    Predicate::LLVMIntSGT,
    Predicate::LLVMIntSGE,
];
/// Assembly that does nothing but wait a moment.
const PAUSING_ASSEMBLY: &[&str] = &["", "pause", "rep; nop", "rep;nop", "rep nop", "nop"];
/// A switch with more ways than this decides nothing about waiting.
const LONGEST_SWITCH: usize = 8;
/// Intrinsics that do nothing to memory.
const HARMLESS_INTRINSICS: &[&str] =
    &["dbg.", "lifetime.", "assume", "expect", "x86.sse2.pause", "experimental.noalias"];

/// The loops that wait of a function.
#[derive(Default)]
pub struct Awaits {
    /// The first block of each, and the blocks from which it is entered.
    pub loops: Vec<(Block, Vec<Block>)>,
    /// Looks by which such a loop, or its begin, decides.
    pub looks: Vec<Look>,
    /// Switches that decide whether such a loop goes round again, and the way that does: a branch in front of
    /// them makes it one that waits.
    pub switches: Vec<(Value, Block)>,
    /// Branches one side of which goes straight to the next round, and the outcome that does.
    tests: HashMap<Value, bool>,
}

/// A look by which a loop decides whether it goes round again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// The call.
    pub call: Value,
    /// How its result is compared, a number in [`COMPARISONS`].
    pub comparison: u32,
    /// With what.
    pub constant: i64,
    /// The call may as well be made when it leaves the loop: there is nothing else in a round.
    pub alone: bool,
    /// The branch is by the opposite of the comparison.
    negated: bool,
    /// The outcome of the branch with which the loop goes round again.
    pub again: bool,
}

impl Look {
    /// The look that the branch at the end of the block decides by, if nothing else comes in between.
    fn at_end(block: Block, locals: &Locals) -> Option<Self> {
        let end = block.terminator()?;
        if end.opcode() != Opcode::LLVMBr || !end.is_conditional() {
            return None;
        }
        let mut condition = end.condition();
        let mut negated = false;
        if condition.instruction_opcode() == Some(Opcode::LLVMXor)
            && condition.operand(1).constant_unsigned() == Some(1)
        {
            (condition, negated) = (condition.operand(0), true);
        }
        if condition.instruction_opcode() != Some(Opcode::LLVMICmp) {
            return None;
        }
        let call = condition.operand(0);
        let constant = condition.operand(1).constant_integer()?;
        let predicate = condition.integer_predicate();
        let comparison = COMPARISONS.iter().position(|&known| known == predicate)? as u32;
        let instructions = block.instructions();
        let at = instructions.iter().position(|&instruction| instruction == call)?;
        let after = &instructions[at + 1..];
        let quiet = after.iter().all(|&i| matches!(does(i, locals), Does::Nothing));
        let look = Self { call, comparison, constant, alone: true, negated, again: false };
        (quiet && (is_look(call) || is_try(call))).then_some(look)
    }

    /// Whether the loop goes on where the result is 0, and round again where it is anything else.
    pub fn waits_for_zero(&self) -> bool {
        let equal = match COMPARISONS[self.comparison as usize] {
            Predicate::LLVMIntEQ => true,
            Predicate::LLVMIntNE => false,
            _ => return false,
        };
        self.constant == 0 && self.compared() != equal
    }

    /// The outcome of the comparison with which the loop goes round again.
    pub fn compared(&self) -> bool {
        self.again != self.negated
    }

    /// Whether it looks at the same, and decides by it in the same way.
    fn is_like(&self, other: &Look) -> bool {
        let same = |(one, two): (Value, Value)| {
            let load = |value: Value| {
                let is_load = value.instruction_opcode() == Some(Opcode::LLVMLoad);
                is_load.then(|| (value.operand(0), value.ty()))
            };
            one == two || load(one).is_some() && load(one) == load(two)
        };
        self.call.operand_count() == other.call.operand_count()
            && self.call.operands().zip(other.call.operands()).all(same)
            && Self { call: other.call, ..*self } == *other
    }
}

/// Is it the call of a function that tries to take a lock?
fn is_try(call: Value) -> bool {
    call.instruction_opcode() == Some(Opcode::LLVMCall)
        && polled::locking(call).is_some_and(|(locking, _)| locking == Locking::Try)
}

/// Is it the call of a function that looks, as it is declared, and is what it fills read by nobody?
fn is_look(call: Value) -> bool {
    if call.instruction_opcode() != Some(Opcode::LLVMCall) {
        return false;
    }
    let Some(function) = call.callee().as_function() else { return false };
    let name = function.name();
    let fills = FILLING.contains(&&*name);
    function.is_declaration()
        && LOOKS.contains(&&*name)
        && (!fills || call.argument_count() > 1 && is_never_read(call.operand(1)))
}

/// Whether the variable is only handed to functions that fill it.
fn is_never_read(variable: Value) -> bool {
    let fills = |user: &Value| {
        user.instruction_opcode() == Some(Opcode::LLVMCall)
            && (user.intrinsic().is_some_and(|name| name.starts_with("lifetime."))
                || user
                    .callee()
                    .as_function()
                    .is_some_and(|function| FILLING.contains(&&*function.name())))
    };
    variable.instruction_opcode() == Some(Opcode::LLVMAlloca) && variable.users().iter().all(fills)
}

/// Where control goes from a block on, past blocks that do nothing, and by which block it gets there.
fn leads(from: Block, mut to: Block) -> (Block, Block) {
    let (mut by, mut left) = (from, 8);
    while let ([_], [next]) = (&to.instructions()[..], &to.successors()[..])
        && left > 0
    {
        (by, to, left) = (to, *next, left - 1);
    }
    (to, by)
}

impl Awaits {
    /// Of a function, by its reachable blocks in reverse post-order. `looking` are functions that leave nothing
    /// behind.
    pub fn find(blocks: &[Block], locals: &Locals, looking: &HashSet<Value>) -> Awaits {
        let graph = Graph::new(blocks);
        let mut awaits = Awaits::default();
        for header in 0..blocks.len() {
            if let Some(found) = graph.loop_at(header)
                && let Some((tests, looks)) =
                    waits(&graph, &found, locals, looking, &mut awaits.switches)
            {
                let entries: Vec<Block> =
                    found.entries.iter().map(|&entry| blocks[entry]).collect();
                if let [look] = looks[..]
                    && look.alone
                {
                    awaits.looks.extend(first_looks(&graph, &found, &look, locals));
                }
                awaits.loops.push((blocks[header], entries));
                awaits.tests.extend(tests);
                awaits.looks.extend(looks);
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
pub struct Graph<'b> {
    pub blocks: &'b [Block],
    pub successors: Vec<Vec<usize>>,
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
    pub fn new(blocks: &'b [Block]) -> Self {
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

/// The looks before the loop that do what its own does: they go to where it goes.
fn first_looks(graph: &Graph<'_>, of: &Loop, look: &Look, locals: &Locals) -> Vec<Look> {
    let way_out = |block: Block, goes_round: bool| {
        let next = block.successors();
        let [when_true, when_false] = next[..] else { return None };
        let (again, out) =
            if goes_round { (when_true, when_false) } else { (when_false, when_true) };
        Some((leads(block, again).0, leads(block, out)))
    };
    let Some((_, (after, by))) = way_out(look.call.block(), look.again) else { return Vec::new() };
    let mut found = Vec::new();
    for &entry in &of.entries {
        // Empty blocks may stand between the look and the loop.
        let mut before = entry;
        while let ([_], &[only]) =
            (&graph.blocks[before].instructions()[..], &graph.predecessors[before][..])
            && only < before
        {
            before = only;
        }
        let before = graph.blocks[before];
        for again in [true, false] {
            let first = Look::at_end(before, locals).map(|first| Look { again, ..first });
            let Some(first) = first.filter(|first| first.is_like(look)) else { continue };
            let Some((into, (there, by_there))) = way_out(before, again) else { continue };
            let phis = after.instructions().into_iter();
            let mut phis = phis.filter(|i| i.opcode() == Opcode::LLVMPHI);
            let same = phis.all(|phi| {
                let from = |block: Block| {
                    let incoming = phi.incoming();
                    incoming.iter().find(|(_, other)| *other == block).map(|(value, _)| *value)
                };
                from(by).is_some() && from(by) == from(by_there)
            });
            if into == graph.blocks[of.header] && there == after && same {
                found.push(first);
            }
        }
    }
    found
}

/// The branches that decide whether the loop goes round again, and the looks that they decide by; `None`
/// where it is not one that waits.
fn waits(
    graph: &Graph<'_>,
    found: &Loop,
    locals: &Locals,
    looking: &HashSet<Value>,
    switches: &mut Vec<(Value, Block)>,
) -> Option<(HashMap<Value, bool>, Vec<Look>)> {
    let inevitable = graph.inevitable(found);
    let mut stored: HashSet<Value> = HashSet::new();
    let mut looks: Vec<(usize, Value)> = Vec::new();
    let (mut accesses, mut locks, mut takes) = (false, false, 0);
    for &block in &found.body {
        let decided = inevitable.contains(&block);
        for instruction in graph.blocks[block].instructions() {
            match does(instruction, locals) {
                Does::Nothing => {}
                Does::StoreLocal(variable) => _ = stored.insert(variable),
                Does::Lock(Locking::GiveBack, _) => locks = true,
                Does::Access if !decided => accesses = true,
                Does::Call(function) if !decided && looking.contains(&function) => accesses = true,
                Does::Look if !decided => looks.push((block, instruction)),
                Does::Lock(locking, _) if !decided => {
                    locks = true;
                    takes += 1;
                    if locking == Locking::Try {
                        looks.push((block, instruction));
                    }
                }
                Does::Access | Does::Call(_) | Does::Lock(..) | Does::Look | Does::More => {
                    return None;
                }
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
        if phi.incoming().iter().any(|(value, from)| in_body(from) && *value != phi)
            && !only_sets_pauses(phi, None, &mut HashSet::new())
        {
            return None;
        }
    }
    let lasts = |&variable: &Value| {
        is_live(graph, found.header, variable)
            && !variable
                .loads()
                .all(|load| only_sets_pauses(load, Some(variable), &mut HashSet::new()))
    };
    if stored.iter().any(lasts) {
        return None;
    }
    let mut tests = HashMap::new();
    for &block in &found.body {
        let Some(end) = graph.blocks[block].terminator() else { continue };
        let again = |next: usize| next == found.header || inevitable.contains(&next);
        if end.opcode() == Opcode::LLVMSwitch {
            let next: HashSet<usize> = graph.successors[block].iter().copied().collect();
            let round: Vec<usize> = next.iter().copied().filter(|&next| again(next)).collect();
            if let [round] = round[..]
                && (2..=LONGEST_SWITCH).contains(&next.len())
            {
                switches.push((end, graph.blocks[round]));
            }
        }
        if end.opcode() != Opcode::LLVMBr || !end.is_conditional() {
            continue;
        }
        if let [when_true, when_false] = graph.successors[block][..]
            && again(when_true) != again(when_false)
        {
            tests.insert(end, again(when_true));
        }
    }
    let decides = |&(block, call): &(usize, Value)| {
        let look = Look::at_end(graph.blocks[block], locals).filter(|look| look.call == call)?;
        let again = *tests.get(&graph.blocks[block].terminator()?)?;
        Some(Look { again, ..look })
    };
    let mut looks: Vec<Look> = looks.iter().map(decides).collect::<Option<_>>()?;
    let all_try = looks.iter().all(|look| is_try(look.call));
    // What the loop reads besides may be what it waits for, if anything else decides. That a lock cannot be had is in
    // the trace.
    if !all_try && (locks || accesses && looks.len() != tests.len()) {
        return None;
    }
    let gives_back =
        !locks || polled::gives_back(graph, &found.body, found.header, &looks, &stored, locals);
    let alone = !all_try || (takes, looks.len(), tests.len(), accesses) == (1, 1, 1, false);
    looks.iter_mut().for_each(|look| look.alone = alone);
    (gives_back && !tests.is_empty()).then_some((tests, looks))
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
pub enum Does {
    /// Nothing that lasts.
    Nothing,
    /// It stores to this local variable.
    StoreLocal(Value),
    /// It reads memory that others can see, or changes it in a way that is known when it runs.
    Access,
    /// It looks at something outside memory.
    Look,
    /// It takes this lock, gives it back, or tries to take it.
    Lock(Locking, Value),
    /// It calls this function of the module.
    Call(Value),
    /// Anything else.
    More,
}

pub fn does(instruction: Value, locals: &Locals) -> Does {
    use Opcode::*;
    match instruction.opcode() {
        LLVMLoad if locals.get(instruction.operand(0)).is_some() => Does::Nothing,
        LLVMLoad | LLVMAtomicRMW | LLVMAtomicCmpXchg => Does::Access,
        LLVMStore => match locals.get(instruction.operand(1)) {
            Some((variable, Local::Scalar)) => Does::StoreLocal(variable),
            _ if is_for_a_sleep(instruction.operand(1)) => Does::Nothing,
            _ => Does::More,
        },
        LLVMCall if is_harmless_call(instruction) => Does::Nothing,
        LLVMCall if is_look(instruction) => Does::Look,
        LLVMCall => match polled::locking(instruction) {
            Some((locking, lock)) => Does::Lock(locking, lock),
            None => defined(instruction).map_or(Does::More, Does::Call),
        },
        LLVMInvoke | LLVMCallBr | LLVMAlloca | LLVMVAArg | LLVMRet | LLVMResume
        | LLVMLandingPad | LLVMIndirectBr | LLVMCleanupRet | LLVMCatchRet | LLVMCatchPad
        | LLVMCleanupPad | LLVMCatchSwitch => Does::More,
        _ => Does::Nothing,
    }
}

/// The function of this module that is called.
fn defined(call: Value) -> Option<Value> {
    call.callee().as_function().filter(|function| !function.is_declaration())
}

/// Does the value say how long pauses are, and nothing else (`usleep(pause); pause *= 2;`)? It may be kept in this
/// local variable.
fn only_sets_pauses(value: Value, variable: Option<Value>, seen: &mut HashSet<Value>) -> bool {
    use Opcode::*;
    if !seen.insert(value) {
        return true;
    }
    value.users().into_iter().all(|user| match user.instruction_opcode() {
        Some(LLVMCall) => is_harmless_call(user),
        Some(LLVMStore) => {
            user.operand(0) == value
                && (Some(user.operand(1)) == variable || is_for_a_sleep(user.operand(1)))
        }
        Some(
            LLVMPHI | LLVMSelect | LLVMICmp | LLVMAdd | LLVMSub | LLVMMul | LLVMShl | LLVMLShr
            | LLVMAnd | LLVMOr | LLVMZExt | LLVMSExt | LLVMTrunc,
        ) => only_sets_pauses(user, variable, seen),
        _ => false,
    })
}

/// Does the address lie in a variable that is filled to say how long to sleep, and for nothing else?
fn is_for_a_sleep(address: Value) -> bool {
    let mut variable = address;
    while variable.instruction_opcode() == Some(Opcode::LLVMGetElementPtr) {
        variable = variable.operand(0);
    }
    variable.instruction_opcode() == Some(Opcode::LLVMAlloca) && only_says_how_long(variable)
}

fn only_says_how_long(address: Value) -> bool {
    address.users().into_iter().all(|user| match user.instruction_opcode() {
        Some(Opcode::LLVMStore) => user.operand(1) == address && user.operand(0) != address,
        Some(Opcode::LLVMGetElementPtr) => only_says_how_long(user),
        Some(Opcode::LLVMCall) if user.intrinsic().is_some() => {
            let name = user.intrinsic().unwrap_or_default();
            let fills = ["memset", "memcpy"].iter().any(|begin| name.starts_with(begin));
            name.starts_with("lifetime.")
                || name.starts_with("dbg.")
                || fills && user.operand(0) == address && user.operand(1) != address
        }
        Some(Opcode::LLVMCall) => {
            let name = user.callee().as_function().map(Value::name).unwrap_or_default();
            let position = match &*name {
                "nanosleep" | "thrd_sleep" => 0,
                "clock_nanosleep" => 2,
                _ => return false,
            };
            let given = (0..user.argument_count()).filter(|&at| user.operand(at) == address);
            given.eq([position])
        }
        _ => false,
    })
}

fn is_harmless_call(call: Value) -> bool {
    let callee = call.callee();
    if callee.is_inline_asm() {
        let text = callee.assembly_text();
        return call.argument_count() == 0 && PAUSING_ASSEMBLY.contains(&text.trim());
    }
    if let Some(name) = call.intrinsic() {
        let fills = (name.starts_with("memset") || name.starts_with("memcpy"))
            && is_for_a_sleep(call.operand(0))
            && (name.starts_with("memset") || call.operand(1).is_constant_global());
        return fills || HARMLESS_INTRINSICS.iter().any(|begin| name.starts_with(begin));
    }
    // What is left of a sleep that was interrupted, nobody is told.
    let tells_nobody =
        |position: u32| call.argument_count() == position + 1 && call.operand(position).is_null();
    callee.as_function().is_some_and(|function| match &*function.name() {
        "nanosleep" | "thrd_sleep" => tells_nobody(1),
        "clock_nanosleep" => tells_nobody(3),
        name => PAUSES.contains(&name) || rust::is_pause(name),
    })
}
