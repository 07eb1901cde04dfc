//! Reads-from: the clauses that are never written down.

use super::OrderTheory;
use crate::cnf::{Lit, TRUE};

/// A reads-from structure, with literals for its choices.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    /// The reading event.
    pub(crate) event: u32,
    /// Definition (`None`: the initial value) and the literal that chooses it.
    pub(crate) choices: Vec<(Option<u32>, Lit)>,
    /// The writes that must not interfere, from [`OrderTheory::group`].
    pub(crate) group: usize,
}

impl OrderTheory {
    /// The pairs of the read's event and definitions with its group must have literals.
    pub(crate) fn add_read(&mut self, read: Read) {
        let number = self.reads.len() as u32;
        for &(definition, literal) in &read.choices {
            self.reserve(literal);
            self.choice_of[literal.index()] = Some((number, definition));
            if let Some(definition) = definition {
                self.reads_of[definition as usize].push((number, literal));
            }
        }
        self.reads_at[read.event as usize].push(number);
        self.reads.push(read);
    }

    /// Takes choices that are false for good out of the lists.
    pub(super) fn drop_choices(&mut self) {
        for choice in std::mem::take(&mut self.dropped) {
            let Some((read, definition)) = self.choice_of[choice.index()] else { continue };
            self.reads[read as usize].choices.retain(|&(_, literal)| literal != choice);
            if let Some(definition) = definition {
                self.reads_of[definition as usize].retain(|&(_, literal)| literal != choice);
            }
        }
    }

    /// The clause `¬choice ∨ ¬(definition < write) ∨ (event < write)` after a change.
    fn read_clause(&mut self, choice: Lit, definition: Option<u32>, event: u32, write: u32) {
        if definition == Some(write) || write == event {
            return;
        }
        let chosen = self.value(choice);
        // The tables are faster than the literals. What they do not know yet comes up again when
        // the literal that tells them is looked at.
        if chosen < 0
            || definition.is_some_and(|definition| self.reaches(write, definition))
            || self.reaches(event, write)
        {
            return;
        }
        let earlier = definition.is_none_or(|definition| self.reaches(definition, write));
        let known = [chosen > 0, earlier, self.reaches(write, event)];
        if known.into_iter().filter(|&known| known).count() < 2 {
            return;
        }
        let follows = match definition {
            Some(definition) => self.before(definition, write).expect("made with the read"),
            None => TRUE,
        };
        let following = self.value(follows);
        if following < 0 {
            return;
        }
        let after = self.before(event, write).expect("made with the read");
        match (chosen, following, self.value(after)) {
            (_, _, 1) => {}
            (1, 1, _) => self.imply(after, choice, follows),
            (1, _, -1) => self.imply(!follows, choice, !after),
            (_, 1, -1) => self.imply(!choice, follows, !after),
            _ => {}
        }
    }

    pub(super) fn choice_made(&mut self, read: u32, definition: Option<u32>, literal: Lit) {
        for index in 0..self.reads[read as usize].choices.len() {
            let other = self.reads[read as usize].choices[index].1;
            if other != literal {
                self.imply(!other, literal, TRUE);
                if self.conflict.is_some() {
                    return;
                }
            }
        }
        let Read { event, group, .. } = self.reads[read as usize];
        for index in 0..self.groups[group].len() {
            let write = self.groups[group][index];
            self.read_clause(literal, definition, event, write);
            if self.conflict.is_some() {
                return;
            }
        }
    }

    /// `first` comes before `second`: what do the reads make of it?
    pub(super) fn pair_decided(&mut self, first: u32, second: u32) {
        for index in 0..self.reads_of[first as usize].len() {
            let (read, choice) = self.reads_of[first as usize][index];
            let Read { event, group, .. } = self.reads[read as usize];
            if self.groups_of[second as usize].binary_search(&(group as u32)).is_ok() {
                self.read_clause(choice, Some(first), event, second);
                if self.conflict.is_some() {
                    return;
                }
            }
        }
        for index in 0..self.reads_at[second as usize].len() {
            let read = self.reads_at[second as usize][index] as usize;
            let group = self.reads[read].group as u32;
            if self.groups_of[first as usize].binary_search(&group).is_err() {
                continue;
            }
            for choice in 0..self.reads[read].choices.len() {
                let (definition, literal) = self.reads[read].choices[choice];
                self.read_clause(literal, definition, second, first);
                if self.conflict.is_some() {
                    return;
                }
            }
        }
    }
}
