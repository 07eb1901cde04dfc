//! The ordering theory: which literals about the order of events fit together?
//!
//! A literal is an edge between two events when it is true and the opposite edge when it is false.
//! Chains make reachability small: for each event and chain, `first` is the place of the first event
//! of the chain that follows and `last` one more than the place of the last that precedes, both
//! transitively closed and undone on backtracking. An edge that closes a cycle is a conflict, whose
//! clause is the edges of the cycle. Everything that a new edge implies is propagated at once;
//! the reason, a shortest path of edges that were there at the time, is only computed when asked for.
//!
//! Reads-from (section 4.1 of 004): when a read takes the value of definition `w`, every other
//! write `x` is before `w` or after the read. That is the clause `¬rf(w,r) ∨ ¬(w<x) ∨ (r<x)`, one for
//! each read, definition and write. They are never written down: a literal that becomes true looks
//! for those that it makes unit or false.
//!
//! The theory only sees literals; it can be driven by any SAT solver with a stack-like trail.

mod reads;

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::cnf::{FALSE, Lit, TRUE};
use crate::must::{MustOrder, NEVER};
pub(crate) use reads::Read;

/// Why a literal was propagated.
#[derive(Clone, Copy, Debug)]
enum Why {
    /// A path from the first to the second event, of edges older than the stamp.
    Path(u32, u32, u32),
    /// Two literals that hold.
    Both(Lit, Lit),
}

#[derive(Clone, Copy, Debug)]
struct Edge {
    to: u32,
    literal: Lit,
    stamp: u32,
}

/// Lengths of all stacks when a decision level began.
#[derive(Clone, Copy, Debug)]
struct Level {
    trail: usize,
    edges: usize,
    undo: usize,
    processed: usize,
}

type Pairs = FxHashMap<(u32, u32), Lit>;

/// What is known about the order under the literals assigned so far.
pub(crate) struct OrderTheory {
    must: MustOrder,
    chains: usize,
    first: Vec<u32>,
    last: Vec<u32>,
    /// Entry of `first` (or of `last`, behind those) and its old value.
    undo: Vec<(u32, u32)>,
    out: Vec<Vec<Edge>>,
    edge_sources: Vec<u32>,
    /// By event and chain: places in the chain, and the literal that holds when the event comes
    /// before the event there.
    implied: Vec<Vec<(u32, Lit)>>,
    pairs: Pairs,
    /// By literal: the edge that it is.
    edge_of: Vec<Option<(u32, u32)>>,
    /// By literal: the read, and the definition that it chooses.
    choice_of: Vec<Option<(u32, Option<u32>)>>,
    /// Choices that are false for good and still in the lists.
    dropped: Vec<Lit>,
    reads: Vec<Read>,
    groups: Vec<Vec<u32>>,
    groups_of: Vec<Vec<u32>>, // each sorted
    reads_at: Vec<Vec<u32>>,
    /// By event: reads that may take its value, and the literal.
    reads_of: Vec<Vec<(u32, Lit)>>,
    values: Vec<i8>,
    why: Vec<Why>,
    trail: Vec<Lit>,
    processed: usize,
    levels: Vec<Level>,
    fresh: Vec<(u32, u32, Lit)>,
    queue: VecDeque<Lit>,
    conflict: Option<Vec<Lit>>,
    seen: Vec<u32>,
    parent: Vec<(u32, Lit)>,
    epoch: u32,
    pub(crate) cycles: u64,
    pub(crate) propagations: u64,
}

impl OrderTheory {
    pub(crate) fn new(must: MustOrder) -> Self {
        let (events, chains) = (must.events().len(), must.chains().len());
        let mut first = Vec::with_capacity(events * chains);
        for event in 0..events as u32 {
            first.extend((0..chains).map(|chain| must.first(event, chain)));
        }
        let mut last = vec![0; events * chains];
        // `last` is `first` read from the other side
        for event in 0..events as u32 {
            for chain in 0..chains {
                let place = must.first(event, chain);
                if place != NEVER {
                    let next = must.chains()[chain][place as usize] as usize;
                    let entry = &mut last[next * chains + must.chain(event)];
                    *entry = (*entry).max(must.place(event) + 1);
                }
            }
        }
        for members in must.chains() {
            for pair in members.windows(2) {
                for other in 0..chains {
                    let before = last[pair[0] as usize * chains + other];
                    let entry = &mut last[pair[1] as usize * chains + other];
                    *entry = (*entry).max(before);
                }
            }
        }
        Self {
            must,
            chains,
            first,
            last,
            undo: Vec::new(),
            out: vec![Vec::new(); events],
            edge_sources: Vec::new(),
            implied: vec![Vec::new(); events * chains],
            pairs: Pairs::default(),
            edge_of: vec![None; 4],
            choice_of: vec![None; 4],
            dropped: Vec::new(),
            reads: Vec::new(),
            groups: Vec::new(),
            groups_of: vec![Vec::new(); events],
            reads_at: vec![Vec::new(); events],
            reads_of: vec![Vec::new(); events],
            values: vec![0, 1],
            why: vec![Why::Both(TRUE, TRUE); 4],
            trail: Vec::new(),
            processed: 0,
            levels: Vec::new(),
            fresh: Vec::new(),
            queue: VecDeque::new(),
            conflict: None,
            seen: vec![0; events],
            parent: vec![(0, TRUE); events],
            epoch: 0,
            cycles: 0,
            propagations: 0,
        }
    }

    pub(crate) fn must(&self) -> &MustOrder {
        &self.must
    }

    fn reserve(&mut self, literal: Lit) {
        let variables = literal.variable() + 1;
        if self.values.len() < variables {
            self.values.resize(variables, 0);
            self.edge_of.resize(2 * variables, None);
            self.choice_of.resize(2 * variables, None);
            self.why.resize(2 * variables, Why::Both(TRUE, TRUE));
        }
    }

    /// The literal for "first before second", if there is one already or it is known.
    pub(crate) fn before(&self, first: u32, second: u32) -> Option<Lit> {
        if self.must.reaches(first, second) {
            Some(TRUE)
        } else if first == second || self.must.reaches(second, first) {
            Some(FALSE)
        } else {
            self.pairs.get(&(first, second)).copied()
        }
    }

    /// From now on the literal says that the first event comes before the second.
    pub(crate) fn add_pair(&mut self, literal: Lit, first: u32, second: u32) {
        self.reserve(literal);
        for (literal, a, b) in [(literal, first, second), (!literal, second, first)] {
            self.pairs.insert((a, b), literal);
            self.edge_of[literal.index()] = Some((a, b));
            let list = &mut self.implied[a as usize * self.chains + self.must.chain(b)];
            let place = self.must.place(b);
            let at = list.partition_point(|entry| entry.0 < place);
            list.insert(at, (place, literal));
            self.fresh.push((a, b, literal));
        }
    }

    /// A set of writes that interfere with each other's readers.
    pub(crate) fn group(&mut self, writes: &[u32]) -> usize {
        // reads of one variable come with one set, mostly with the very same
        let recent = self.groups.len().saturating_sub(64)..self.groups.len();
        if let Some(found) = recent.rev().find(|&group| self.groups[group] == writes) {
            return found;
        }
        let group = self.groups.len();
        for &write in writes {
            self.groups_of[write as usize].push(group as u32);
        }
        self.groups.push(writes.to_vec());
        group
    }

    fn reaches(&self, first: u32, second: u32) -> bool {
        let row = first as usize * self.chains;
        self.first[row + self.must.chain(second)] <= self.must.place(second)
    }

    fn value(&self, literal: Lit) -> i8 {
        let value = self.values[literal.variable()];
        if literal.0 < 0 { -value } else { value }
    }

    pub(crate) fn assign(&mut self, literal: Lit) {
        let value = &mut self.values[literal.variable()];
        if *value == 0 {
            *value = if literal.0 > 0 { 1 } else { -1 };
            self.trail.push(literal);
            if self.levels.is_empty() && self.choice_of[(!literal).index()].is_some() {
                self.dropped.push(!literal);
            }
        }
    }

    pub(crate) fn new_level(&mut self) {
        if self.levels.is_empty() {
            self.drop_choices();
        }
        self.levels.push(Level {
            trail: self.trail.len(),
            edges: self.edge_sources.len(),
            undo: self.undo.len(),
            processed: self.processed,
        });
    }

    pub(crate) fn backtrack(&mut self, level: usize) {
        self.queue.clear();
        self.conflict = None;
        let Some(&to) = self.levels.get(level) else { return };
        self.levels.truncate(level);
        for literal in self.trail.drain(to.trail..) {
            self.values[literal.variable()] = 0;
        }
        // literals from before the level may have been looked at within it
        self.processed = self.processed.min(to.processed);
        for (entry, old) in self.undo.drain(to.undo..).rev() {
            let entry = entry as usize;
            match entry.checked_sub(self.first.len()) {
                None => self.first[entry] = old,
                Some(entry) => self.last[entry] = old,
            }
        }
        for source in self.edge_sources.drain(to.edges..) {
            self.out[source as usize].pop();
        }
    }

    /// The next literal that follows from those assigned, if there is any and no conflict.
    pub(crate) fn propagate(&mut self) -> Option<Lit> {
        loop {
            if self.conflict.is_some() {
                return None;
            }
            while let Some(literal) = self.queue.pop_front() {
                if self.value(literal) == 0 {
                    return Some(literal);
                }
            }
            if !self.look_at_next() {
                return None;
            }
        }
    }

    /// The clause that the assigned literals violate.
    pub(crate) fn take_conflict(&mut self) -> Option<Vec<Lit>> {
        self.conflict.take()
    }

    /// Looks at all literals; do they fit together?
    pub(crate) fn consistent(&mut self) -> bool {
        while self.conflict.is_none() && self.look_at_next() {}
        self.queue.clear();
        self.conflict.is_none()
    }

    /// One step; false when there is nothing left to look at.
    fn look_at_next(&mut self) -> bool {
        if self.levels.is_empty() && !self.fresh.is_empty() {
            for (first, second, literal) in std::mem::take(&mut self.fresh) {
                if self.reaches(first, second) {
                    self.imply_path(literal, first, second);
                }
            }
            return true;
        }
        let Some(&literal) = self.trail.get(self.processed) else { return false };
        if let Some((first, second)) = self.edge_of[literal.index()] {
            self.insert(first, second, literal);
            if self.conflict.is_none() {
                self.pair_decided(first, second);
            }
        }
        if self.conflict.is_none()
            && let Some((read, definition)) = self.choice_of[literal.index()]
        {
            self.choice_made(read, definition, literal);
        }
        // after a conflict the literal is looked at again, should it survive the backtracking
        if self.conflict.is_none() {
            self.processed += 1;
        }
        true
    }

    fn insert(&mut self, from: u32, to: u32, literal: Lit) {
        if self.reaches(from, to) {
            return;
        }
        let stamp = self.edge_sources.len() as u32;
        if self.reaches(to, from) {
            self.cycles += 1;
            let mut clause = vec![!literal];
            self.path(to, from, stamp, &mut clause);
            self.conflict = Some(clause);
            return;
        }
        self.edge_sources.push(from);
        self.out[from as usize].push(Edge { to, literal, stamp });
        let chains = self.chains;
        let row = |event: u32| event as usize * chains..(event as usize + 1) * chains;
        let mut after = self.first[row(to)].to_vec();
        let own = &mut after[self.must.chain(to)];
        *own = self.must.place(to).min(*own);
        let mut before = self.last[row(from)].to_vec();
        let own = &mut before[self.must.chain(from)];
        *own = (self.must.place(from) + 1).max(*own);
        for (chain, &end) in before.iter().enumerate() {
            for place in (0..end).rev() {
                let event = self.must.chains()[chain][place as usize];
                if !self.lower_first(event, &after) {
                    break;
                }
            }
        }
        for (chain, &start) in after.iter().enumerate() {
            let length = self.must.chains()[chain].len() as u32;
            for place in start.min(length)..length {
                let event = self.must.chains()[chain][place as usize];
                if !self.raise_last(event, &before) {
                    break;
                }
            }
        }
    }

    fn lower_first(&mut self, event: u32, after: &[u32]) -> bool {
        let mut changed = false;
        for (chain, &new) in after.iter().enumerate() {
            let entry = event as usize * self.chains + chain;
            let old = self.first[entry];
            if new >= old {
                continue;
            }
            changed = true;
            self.undo.push((entry as u32, old));
            self.first[entry] = new;
            let start = self.implied[entry].partition_point(|implied| implied.0 < new);
            for index in start..self.implied[entry].len() {
                let (place, literal) = self.implied[entry][index];
                if place >= old {
                    break;
                }
                let other = self.must.chains()[chain][place as usize];
                self.imply_path(literal, event, other);
            }
        }
        changed
    }

    fn raise_last(&mut self, event: u32, before: &[u32]) -> bool {
        let mut changed = false;
        for (chain, &new) in before.iter().enumerate() {
            let entry = event as usize * self.chains + chain;
            let old = self.last[entry];
            if new > old {
                changed = true;
                self.undo.push(((self.first.len() + entry) as u32, old));
                self.last[entry] = new;
            }
        }
        changed
    }

    fn imply_path(&mut self, literal: Lit, first: u32, second: u32) {
        let stamp = self.edge_sources.len() as u32;
        match self.value(literal) {
            0 => {
                self.why[literal.index()] = Why::Path(first, second, stamp);
                self.propagations += 1;
                self.queue.push_back(literal);
            }
            // the tables are completed first: the edge may survive this conflict
            -1 if self.conflict.is_none() => {
                self.cycles += 1;
                let mut clause = vec![literal];
                self.path(first, second, stamp, &mut clause);
                self.conflict = Some(clause);
            }
            _ => {}
        }
    }

    fn imply(&mut self, literal: Lit, a: Lit, b: Lit) {
        match self.value(literal) {
            0 => {
                self.why[literal.index()] = Why::Both(a, b);
                self.propagations += 1;
                self.queue.push_back(literal);
            }
            -1 => {
                let clause = [literal, !a, !b].into_iter().filter(|&part| part != FALSE);
                self.conflict = Some(clause.collect());
            }
            _ => {}
        }
    }

    /// The clause that made the literal follow; it comes first.
    pub(crate) fn explain(&mut self, literal: Lit) -> Vec<Lit> {
        let mut clause = vec![literal];
        match self.why[literal.index()] {
            Why::Path(first, second, stamp) => self.path(first, second, stamp, &mut clause),
            Why::Both(a, b) => {
                clause.extend([!a, !b].into_iter().filter(|&part| part != FALSE));
            }
        }
        clause
    }

    /// Adds the negated literals of a path with fewest edges, all older than the stamp.
    fn path(&mut self, from: u32, to: u32, stamp: u32, clause: &mut Vec<Lit>) {
        self.epoch += 1;
        // places from here on were searched already
        let mut searched = vec![NEVER; self.chains];
        let mut queue = VecDeque::from([from]);
        self.seen[from as usize] = self.epoch;
        while let Some(event) = queue.pop_front() {
            if event == to || self.must.reaches(event, to) {
                let mut event = event;
                while event != from {
                    let (previous, literal) = self.parent[event as usize];
                    clause.push(!literal);
                    event = previous;
                }
                return;
            }
            for (chain, searched) in searched.iter_mut().enumerate() {
                let mut start = self.must.first(event, chain);
                if chain == self.must.chain(event) {
                    start = self.must.place(event);
                }
                let members = &self.must.chains()[chain];
                let end = (*searched).min(members.len() as u32);
                for place in start.min(end)..end {
                    for edge in &self.out[members[place as usize] as usize] {
                        if edge.stamp >= stamp {
                            break;
                        }
                        if self.seen[edge.to as usize] != self.epoch {
                            self.seen[edge.to as usize] = self.epoch;
                            self.parent[edge.to as usize] = (event, edge.literal);
                            queue.push_back(edge.to);
                        }
                    }
                }
                *searched = start.min(*searched);
            }
        }
        unreachable!("the tables say that there is a path");
    }

    /// All events in an order that fits; a chain goes on while it can.
    pub(crate) fn linearise(&self) -> Vec<u32> {
        let events = self.out.len();
        let mut open = vec![0u32; events];
        let mut after: Vec<Vec<u32>> =
            self.out.iter().map(|edges| edges.iter().map(|edge| edge.to).collect()).collect();
        let steps = self.must.chains().iter().flat_map(|chain| chain.windows(2));
        let steps = steps.map(|pair| (pair[0], pair[1])).chain(self.must.edges().iter().copied());
        for (first, second) in steps {
            after[first as usize].push(second);
        }
        for &next in after.iter().flatten() {
            open[next as usize] += 1;
        }
        let mut ready: Vec<u32> =
            (0..events as u32).rev().filter(|&event| open[event as usize] == 0).collect();
        let mut order = Vec::with_capacity(events);
        while let Some(event) = ready.pop() {
            order.push(event);
            let mut same = None;
            for &next in &after[event as usize] {
                open[next as usize] -= 1;
                if open[next as usize] == 0 {
                    if self.must.chain(next) == self.must.chain(event) {
                        same = Some(next);
                    } else {
                        ready.push(next);
                    }
                }
            }
            ready.extend(same);
        }
        order
    }
}
