//! The order that every solution has: the closure of chains and edges.
//!
//! Reachability is kept as a table `first[event][chain]`, the place in the chain of the first event
//! that must follow (vector clocks seen from the other end). `Before` atoms that it decides never
//! reach a solver.

use std::collections::HashMap;

use foretell_trace::EventId;

use crate::problem::OrderProblem;
use crate::solver::SolveError;

/// No event of the chain follows.
pub(crate) const NEVER: u32 = u32::MAX;

/// The events of a problem with dense numbers, and the order that always holds among them.
#[derive(Clone, Debug)]
pub struct MustOrder {
    numbers: HashMap<EventId, u32>,
    events: Vec<EventId>,
    chain: Vec<u32>,
    place: Vec<u32>,
    chains: Vec<Vec<u32>>,
    edges: Vec<(u32, u32)>,
    first: Vec<u32>,
    cyclic: bool,
}

impl MustOrder {
    /// The closure of the problem's chains and edges; an event that is in two chains, or an edge
    /// between events that are in none, is an error.
    pub fn new(problem: &OrderProblem) -> Result<Self, SolveError> {
        let mut must = Self {
            numbers: HashMap::new(),
            events: Vec::new(),
            chain: Vec::new(),
            place: Vec::new(),
            chains: Vec::with_capacity(problem.chains.len()),
            edges: Vec::with_capacity(problem.edges.len()),
            first: Vec::new(),
            cyclic: false,
        };
        for chain in &problem.chains {
            let mut numbers = Vec::with_capacity(chain.len());
            for (place, &event) in chain.iter().enumerate() {
                let number = must.events.len() as u32;
                if must.numbers.insert(event, number).is_some() {
                    return Err(SolveError::TwoChains(event));
                }
                must.events.push(event);
                must.chain.push(must.chains.len() as u32);
                must.place.push(place as u32);
                numbers.push(number);
            }
            must.chains.push(numbers);
        }
        for &(first, second) in &problem.edges {
            let edge = (must.require(first)?, must.require(second)?);
            must.edges.push(edge);
        }
        must.close();
        Ok(must)
    }

    /// Visits events in reverse topological order, so each edge is looked at once.
    fn close(&mut self) {
        let (events, chains) = (self.events.len(), self.chains.len());
        self.first = vec![NEVER; events * chains];
        let mut before: Vec<Vec<u32>> = vec![Vec::new(); events];
        let mut after: Vec<Vec<u32>> = vec![Vec::new(); events];
        let steps = self.chains.iter().flat_map(|chain| chain.windows(2).map(|w| (w[0], w[1])));
        for (first, second) in steps.chain(self.edges.iter().copied()) {
            before[second as usize].push(first);
            after[first as usize].push(second);
        }
        let mut open: Vec<usize> = after.iter().map(Vec::len).collect();
        let mut ready: Vec<u32> =
            (0..events as u32).filter(|&event| open[event as usize] == 0).collect();
        let mut done = 0;
        while let Some(event) = ready.pop() {
            done += 1;
            let row = event as usize * chains;
            for &next in &after[event as usize] {
                for chain in 0..chains {
                    let theirs = self.first[next as usize * chains + chain];
                    let mine = &mut self.first[row + chain];
                    *mine = theirs.min(*mine);
                }
                let mine = &mut self.first[row + self.chain[next as usize] as usize];
                *mine = self.place[next as usize].min(*mine);
            }
            for &previous in &before[event as usize] {
                open[previous as usize] -= 1;
                if open[previous as usize] == 0 {
                    ready.push(previous);
                }
            }
        }
        self.cyclic = done < events;
    }

    /// No order extends chains and edges.
    pub fn is_cyclic(&self) -> bool {
        self.cyclic
    }

    /// Must the first event come before the second (true), after it (false), or is it open?
    pub fn before(&self, first: EventId, second: EventId) -> Result<Option<bool>, SolveError> {
        let (first, second) = (self.require(first)?, self.require(second)?);
        Ok(match (self.reaches(first, second), self.reaches(second, first)) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ if first == second => Some(false),
            _ => None,
        })
    }

    pub(crate) fn require(&self, event: EventId) -> Result<u32, SolveError> {
        self.numbers.get(&event).copied().ok_or(SolveError::NoChain(event))
    }

    pub(crate) fn reaches(&self, first: u32, second: u32) -> bool {
        self.first(first, self.chain(second)) <= self.place(second)
    }

    /// The place in the chain of the first event that must follow, [`NEVER`] if none must.
    pub(crate) fn first(&self, event: u32, chain: usize) -> u32 {
        self.first[event as usize * self.chains.len() + chain]
    }

    pub(crate) fn chain(&self, event: u32) -> usize {
        self.chain[event as usize] as usize
    }

    pub(crate) fn place(&self, event: u32) -> u32 {
        self.place[event as usize]
    }

    pub(crate) fn chains(&self) -> &[Vec<u32>] {
        &self.chains
    }

    pub(crate) fn edges(&self) -> &[(u32, u32)] {
        &self.edges
    }

    pub(crate) fn events(&self) -> &[EventId] {
        &self.events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(numbers: &[u32]) -> Vec<EventId> {
        numbers.iter().copied().map(EventId).collect()
    }

    #[test]
    fn edges_are_closed_over_chains() {
        let problem = OrderProblem {
            chains: vec![events(&[0, 1, 2]), events(&[10, 11]), events(&[20])],
            edges: vec![(EventId(1), EventId(11)), (EventId(11), EventId(20))],
            ..OrderProblem::default()
        };
        let must = MustOrder::new(&problem).unwrap();
        let before = |a, b| must.before(EventId(a), EventId(b)).unwrap();
        assert_eq!(before(0, 20), Some(true));
        assert_eq!(before(20, 0), Some(false));
        assert_eq!(before(2, 20), None);
        assert_eq!(before(10, 0), None);
        assert_eq!(before(10, 10), Some(false));
        assert!(!must.is_cyclic());
        assert_eq!(must.before(EventId(5), EventId(0)), Err(SolveError::NoChain(EventId(5))));
    }

    #[test]
    fn a_cycle_is_noticed() {
        let problem = OrderProblem {
            chains: vec![events(&[0, 1]), events(&[2, 3])],
            edges: vec![(EventId(1), EventId(2)), (EventId(3), EventId(0))],
            ..OrderProblem::default()
        };
        assert!(MustOrder::new(&problem).unwrap().is_cyclic());
    }
}
