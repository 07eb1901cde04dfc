//! Loops that C lets compilers assume to end (C17 6.8.5, 6).
//!
//! A loop whose condition is not constant, and that does no output, no atomic or volatile access and
//! no synchronisation, may be assumed to end. If it does not, a compiler may leave it out, and what is
//! behind it is executed after all. Unoptimised code loops, so a proof would rest on it.
//!
//! A *quiet* step does nothing of the kind. (An access that races is assumed to be sequentially
//! consistent, as if it were atomic: a proof says so, and the step is not quiet.) A thread is in an endless loop if it goes round by quiet
//! steps and no state that can be reached, whatever the others do, lets it leave the loop or do
//! something that is not quiet, and the program does not end.

use std::collections::BTreeSet;

use super::state::State;
use crate::ir::{Function, FunctionId, Module, Op, Place};

/// A step from one state to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) thread: u8,
    pub(super) quiet: bool,
}

/// The blocks of a loop that has to end, and where it goes back.
struct Loop {
    blocks: BTreeSet<u32>,
    place: Place,
}

/// The loops of a function that have to end.
fn loops(function: &Function) -> Vec<Loop> {
    let mut before: Vec<Vec<u32>> = vec![Vec::new(); function.blocks.len()];
    for (number, block) in function.blocks.iter().enumerate() {
        for target in block.instructions.last().iter().flat_map(|last| last.op.targets()) {
            before[target as usize].push(number as u32);
        }
    }
    let mut loops = Vec::new();
    for (number, block) in function.blocks.iter().enumerate() {
        let Some(last) = block.instructions.last().filter(|last| last.must_end) else { continue };
        let header = match last.op {
            Op::Jump(to) => to,
            // clang goes back where the condition holds
            Op::Branch { yes, .. } => yes,
            _ => continue,
        };
        let mut blocks = BTreeSet::from([header]);
        let mut open = vec![number as u32];
        while let Some(block) = open.pop() {
            if blocks.insert(block) {
                open.extend(&before[block as usize]);
            }
        }
        loops.push(Loop { blocks, place: last.place });
    }
    loops
}

/// Edges by where they lead to.
struct Backwards {
    starts: Vec<u32>,
    edges: Vec<u32>,
}

impl Backwards {
    fn of(count: usize, edges: &[Edge], is: impl Fn(&Edge) -> bool) -> Self {
        let mut starts = vec![0_u32; count + 1];
        for edge in edges.iter().filter(|edge| is(edge)) {
            starts[edge.to as usize + 1] += 1;
        }
        for at in 0..count {
            starts[at + 1] += starts[at];
        }
        let mut next = starts.clone();
        let mut sorted = vec![0; starts[count] as usize];
        for edge in edges.iter().filter(|edge| is(edge)) {
            let place = &mut next[edge.to as usize];
            sorted[*place as usize] = edge.from;
            *place += 1;
        }
        Self { starts, edges: sorted }
    }

    fn to(&self, state: u32) -> &[u32] {
        let range = self.starts[state as usize]..self.starts[state as usize + 1];
        &self.edges[range.start as usize..range.end as usize]
    }
}

/// States from which the thread can go round by quiet steps for ever.
fn rounds(count: usize, edges: &[Edge], thread: u8) -> Vec<bool> {
    let is_quiet = |edge: &Edge| edge.quiet && edge.thread == thread;
    let mut out = vec![0_u32; count];
    for edge in edges.iter().filter(|edge| is_quiet(edge)) {
        out[edge.from as usize] += 1;
    }
    let backwards = Backwards::of(count, edges, is_quiet);
    let mut open: Vec<u32> = (0..count as u32).filter(|&at| out[at as usize] == 0).collect();
    let mut goes_round: Vec<bool> = out.iter().map(|&out| out > 0).collect();
    while let Some(at) = open.pop() {
        for &from in backwards.to(at) {
            out[from as usize] -= 1;
            if out[from as usize] == 0 {
                goes_round[from as usize] = false;
                open.push(from);
            }
        }
    }
    goes_round
}

/// A loop that has to end and does not; `ends` are states in which the program can end.
pub(super) fn endless(
    module: &Module,
    states: &[State],
    edges: &[Edge],
    ends: &BTreeSet<u32>,
) -> Option<Place> {
    let threads: BTreeSet<u8> =
        edges.iter().filter(|edge| edge.quiet).map(|edge| edge.thread).collect();
    let mut all: Option<(Vec<Vec<Loop>>, Backwards)> = None;
    for thread in threads {
        let goes_round = rounds(states.len(), edges, thread);
        if !goes_round.contains(&true) {
            continue;
        }
        let (loops, backwards) = all.get_or_insert_with(|| {
            let loops = module.functions.iter().map(loops).collect();
            (loops, Backwards::of(states.len(), edges, |_| true))
        });
        // which calls are in which loops
        let mut candidates: BTreeSet<(usize, FunctionId, usize)> = BTreeSet::new();
        for (state, _) in states.iter().zip(&goes_round).filter(|(_, round)| **round) {
            let Some(running) = &state.threads[usize::from(thread)] else { continue };
            for (depth, frame) in running.frames.iter().enumerate() {
                for (number, found) in loops[frame.function as usize].iter().enumerate() {
                    if found.blocks.contains(&frame.block) {
                        candidates.insert((depth, frame.function, number));
                    }
                }
            }
        }
        for (depth, function, number) in candidates {
            let found = &loops[function as usize][number];
            let inside: Vec<bool> = states
                .iter()
                .map(|state| {
                    let running = state.threads.get(usize::from(thread)).and_then(Option::as_ref);
                    running.and_then(|running| running.frames.get(depth)).is_some_and(|frame| {
                        frame.function == function && found.blocks.contains(&frame.block)
                    })
                })
                .collect();
            let mut leaves: Vec<bool> = vec![false; states.len()];
            let mut open: Vec<u32> = ends.iter().copied().collect();
            let own = edges.iter().filter(|edge| edge.thread == thread);
            let away = own.filter(|edge| !edge.quiet || !inside[edge.to as usize]);
            open.extend(away.map(|edge| edge.from));
            while let Some(at) = open.pop() {
                if inside[at as usize] && !std::mem::replace(&mut leaves[at as usize], true) {
                    open.extend(backwards.to(at));
                }
            }
            if (0..states.len()).any(|at| inside[at] && goes_round[at] && !leaves[at]) {
                return Some(found.place);
            }
        }
    }
    None
}
