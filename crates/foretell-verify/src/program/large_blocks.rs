//! Edges joined with the steps behind them that nobody else can see.

use std::collections::HashMap;

use foretell_trace::{Term, TermId, VariableId};

use super::{
    Edge, EdgeId, Location, Program, Thread, VariableSet, Visible, bit, replace_variables,
};

impl Program {
    /// The same program with every edge joined with what follows it unseen: steps that touch no
    /// shared variable and can always go on, and the rest of an atomic section.
    ///
    /// Nothing else can be told apart. An unseen step commutes with all steps of others, and as some
    /// step is always possible behind it, whoever sees the first part of a joined edge sees all of
    /// it at once. Inside an atomic section nobody else moves: a section that cannot be left ends
    /// the run, and then violates nothing. Loop heads stay, so no thread can hide the others by
    /// turning round for ever.
    pub fn in_large_blocks(&self) -> Program {
        let mut program = self.clone();
        let shared = self.shared();
        let silent = |program: &Program, edge: EdgeId| {
            let joined = &program.edges[edge];
            // the end of the program is seen by all
            let ends = program.threads[joined.thread].dead == Some(joined.to);
            (program.reads(edge) | program.writes(edge)) & shared == 0
                && !ends
                && joined.starts.is_none()
                && joined.awaits.is_none()
        };
        for index in 0..program.threads.len() {
            let thread = self.threads[index].clone();
            for location in forward_order(self, &thread) {
                let kept = [thread.entry, thread.exit, thread.error, thread.idle];
                let ended = thread.dead == Some(location);
                if kept.contains(&location) || ended || thread.loop_head[location] {
                    continue;
                }
                let outgoing = program.threads[index].outgoing[location].clone();
                let total = program.threads[index].total[location];
                let unseen = total && outgoing.iter().all(|&edge| silent(&program, edge));
                let controls = outgoing.iter().any(|&edge| {
                    program.edges[edge].starts.is_some() || program.edges[edge].awaits.is_some()
                });
                if controls || !(unseen || thread.atomic[location]) {
                    continue;
                }
                let incoming: Vec<EdgeId> = program.threads[index]
                    .outgoing
                    .iter()
                    .flatten()
                    .copied()
                    .filter(|&edge| program.edges[edge].to == location)
                    .collect();
                if incoming.len() * outgoing.len() > 16.max(incoming.len() + outgoing.len()) {
                    continue;
                }
                for &first in &incoming {
                    let from = program.edges[first].from;
                    program.threads[index].total[from] &= total;
                    for &second in &outgoing {
                        if let Some(edge) = program.join(first, second) {
                            program.edges.push(edge);
                            let id = program.edges.len() - 1;
                            program.threads[index].outgoing[from].push(id);
                        }
                    }
                }
                let leaving = &mut program.threads[index].outgoing;
                leaving[location].clear();
                for edges in leaving.iter_mut() {
                    edges.retain(|edge| !incoming.contains(edge));
                }
            }
        }
        program.without_ends();
        program.without_dead_values();
        program.without_unused_edges()
    }

    /// Drops the edges that end the whole program: behind them nothing is violated. A location that
    /// loses one can no longer always go on.
    fn without_ends(&mut self) {
        for thread in &mut self.threads {
            let Some(dead) = thread.dead else { continue };
            for (location, edges) in thread.outgoing.iter_mut().enumerate() {
                let before = edges.len();
                edges.retain(|&edge| self.edges[edge].to != dead);
                thread.total[location] &= edges.len() == before;
            }
        }
    }

    /// Drops assignments to locals that nobody reads any more, unless they name an input.
    fn without_dead_values(&mut self) {
        let shared = self.shared();
        for index in 0..self.threads.len() {
            let thread = self.threads[index].clone();
            let mut live: Vec<VariableSet> = vec![0; thread.locations];
            let mut changed = true;
            while changed {
                changed = false;
                for location in 0..thread.locations {
                    for &edge in &thread.outgoing[location] {
                        let behind = live[self.edges[edge].to];
                        let kept = self.edges[edge].assignments.iter();
                        let kept = kept.filter(|(v, value)| {
                            (behind | shared) & bit(*v) != 0 || self.names_input(edge, *value)
                        });
                        let used = kept
                            .fold(self.variables_of(self.edges[edge].guard), |all, &(_, value)| {
                                all | self.variables_of(value)
                            });
                        let before = live[location] | used | behind & !self.writes(edge);
                        changed |= before != live[location];
                        live[location] = before;
                    }
                }
            }
            for &edge in thread.outgoing.iter().flatten() {
                let behind = live[self.edges[edge].to] | shared;
                let mut assignments = std::mem::take(&mut self.edges[edge].assignments);
                assignments
                    .retain(|&(v, value)| behind & bit(v) != 0 || self.names_input(edge, value));
                self.edges[edge].assignments = assignments;
                let edge = &mut self.edges[edge];
                let used: Vec<TermId> =
                    edge.assignments.iter().map(|&(_, v)| v).chain([edge.guard]).collect();
                let leaves: Vec<TermId> =
                    used.into_iter().flat_map(|term| self.terms.leaves(term)).collect();
                edge.inputs.retain(|input| leaves.contains(input));
            }
        }
    }

    /// Is the value an input that the edge's guard is about? Then its variable is the only name by
    /// which a predicate can say what the guard demands.
    fn names_input(&self, edge: EdgeId, value: TermId) -> bool {
        let is_input = |leaf: &TermId| matches!(self.terms.term(*leaf), Term::Symbol(_));
        let constrained = self.terms.leaves(self.edges[edge].guard);
        self.terms.leaves(value).iter().any(|leaf| is_input(leaf) && constrained.contains(leaf))
    }

    fn without_unused_edges(mut self) -> Program {
        let mut edges = Vec::new();
        for thread in &mut self.threads {
            for edge in thread.outgoing.iter_mut().flatten() {
                edges.push(self.edges[*edge].clone());
                *edge = edges.len() - 1;
            }
        }
        self.edges = edges;
        self
    }

    /// First one edge, then the other; `None` if that is never possible.
    fn join(&mut self, first: EdgeId, second: EdgeId) -> Option<Edge> {
        let (first, second) = (self.edges[first].clone(), self.edges[second].clone());
        let known: HashMap<VariableId, TermId> = first.assignments.iter().copied().collect();
        let guard = replace_variables(&mut self.terms, second.guard, &known);
        let guard = self.terms.and(&[first.guard, guard]);
        if self.terms.is_false(guard) {
            return None;
        }
        let mut assignments = first.assignments.clone();
        for &(variable, value) in &second.assignments {
            let value = replace_variables(&mut self.terms, value, &known);
            assignments.retain(|(other, _)| *other != variable);
            assignments.push((variable, value));
        }
        Some(Edge {
            thread: first.thread,
            from: first.from,
            to: second.to,
            guard,
            assignments,
            inputs: [first.inputs, second.inputs].concat(),
            starts: first.starts.or(second.starts),
            awaits: first.awaits.or(second.awaits),
            place: first.place,
            text: match (&*first.text, &*second.text) {
                (text, "") => text.into(),
                ("", text) => text.into(),
                (one, two) => format!("{one}; {two}").into(),
            },
            visible: Visible::No,
            parts: [first.parts, second.parts].concat(),
        })
    }
}

/// The locations of a thread, each after one that leads to it where possible.
fn forward_order(program: &Program, thread: &Thread) -> Vec<Location> {
    let mut seen = vec![false; thread.locations];
    let mut order = Vec::new();
    let mut queue = std::collections::VecDeque::from([thread.entry]);
    seen[thread.entry] = true;
    while let Some(location) = queue.pop_front() {
        order.push(location);
        for &edge in &thread.outgoing[location] {
            let to = program.edges[edge].to;
            if !std::mem::replace(&mut seen[to], true) {
                queue.push_back(to);
            }
        }
    }
    order
}
