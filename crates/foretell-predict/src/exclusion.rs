//! What locks and flags alone exclude, seen before anything is encoded.
//!
//! Two sections of one lock never overlap unless both are shared. For real locks the locksets of
//! 000 section 3 say the same; the sections of a CTP also contain those of flags
//! ([`crate::flag_section`]), and what these exclude would otherwise cost a formula over the data
//! of all threads to find.

use foretell_model::ctp::{ConcurrentTraceProgram, LockSection};
use foretell_trace::{EventId, LockMode};

/// The sections of a CTP by thread.
#[derive(Debug)]
pub struct Exclusion<'c> {
    ctp: &'c ConcurrentTraceProgram,
    sections: Vec<Vec<&'c LockSection>>,
}

impl<'c> Exclusion<'c> {
    /// Sorts the sections.
    pub fn new(ctp: &'c ConcurrentTraceProgram) -> Self {
        let mut sections = vec![Vec::new(); ctp.threads.len()];
        for section in &ctp.sections {
            sections[section.thread.index()].push(section);
        }
        Self { ctp, sections }
    }

    /// Can the remote event not take place after the first and before the second event of one
    /// thread, because that thread holds a lock from the one to the other?
    pub fn keeps_out(&self, first: EventId, remote: EventId, second: EventId) -> bool {
        let around = self.around(first).filter(|section| self.ends_with_or_after(section, second));
        self.any_excludes(around, || self.around(remote))
    }

    /// Can the two threads not stand before these events at the same time?
    pub fn keeps_apart(&self, one: EventId, two: EventId) -> bool {
        let inside = |event: EventId| {
            self.around(event).filter(move |section| section.acquire != Some(event))
        };
        self.any_excludes(inside(one), || inside(two))
    }

    /// The sections that begin with or before the event and end with or after it.
    fn around(&self, event: EventId) -> impl Iterator<Item = &'c LockSection> + '_ {
        let here = self.ctp.event(event);
        let sections = self.sections[here.thread.index()].iter().copied();
        sections.filter(move |section| {
            let begins = section.acquire.map(|acquire| self.ctp.event(acquire).position);
            begins.is_none_or(|begins| begins <= here.position)
                && self.ends_with_or_after(section, event)
        })
    }

    fn ends_with_or_after(&self, section: &LockSection, event: EventId) -> bool {
        let position = |event: EventId| self.ctp.event(event).position;
        section.release.is_none_or(|release| position(event) <= position(release))
    }

    fn any_excludes<T: Iterator<Item = &'c LockSection>>(
        &self,
        ones: impl Iterator<Item = &'c LockSection>,
        twos: impl Fn() -> T,
    ) -> bool {
        let mut ones = ones;
        ones.any(|one| {
            twos().any(|two| {
                one.lock == two.lock
                    && one.thread != two.thread
                    && [one, two].iter().any(|section| section.mode == LockMode::Exclusive)
            })
        })
    }
}
