//! Condition variables as the runtime and the plugin for QEMU model them.

use std::collections::VecDeque;

/// A condition variable. A signal does not choose its waiter: any thread that waited when it came may
/// take it, and the schedule decides which (as POSIX allows).
#[derive(Default)]
pub struct Condition {
    /// Who waits: thread and ticket, in order of arrival.
    waiters: Vec<(u32, u64)>,
    /// Signals that nobody has taken yet: each is for tickets up to this.
    signals: VecDeque<u64>,
    /// The last ticket.
    ticket: u64,
}

impl Condition {
    /// A thread begins to wait.
    pub fn arrive(&mut self, thread: u32) {
        self.ticket += 1;
        self.waiters.push((thread, self.ticket));
    }

    /// How many wait that no signal is for.
    pub fn sleepers(&self) -> u32 {
        (self.waiters.len() - self.signals.len()) as u32
    }

    /// One more waiter may go; lost where all may go already.
    pub fn signal(&mut self) {
        if self.signals.len() < self.waiters.len() {
            self.signals.push_back(self.ticket);
        }
    }

    /// All waiters may go.
    pub fn broadcast(&mut self) {
        while self.signals.len() < self.waiters.len() {
            self.signals.push_back(self.ticket);
        }
    }

    /// The waiter takes the oldest signal that came after it began to wait, if there is one.
    pub fn take(&mut self, thread: u32) -> bool {
        let Some(position) = self.waiters.iter().position(|&(waiter, _)| waiter == thread) else {
            return true;
        };
        let ticket = self.waiters[position].1;
        let Some(signal) = self.signals.iter().position(|&up_to| up_to >= ticket) else {
            return false;
        };
        self.signals.remove(signal);
        self.waiters.remove(position);
        true
    }

    /// The waiter gives up: its time is over, or it was cancelled.
    pub fn give_up(&mut self, thread: u32) {
        self.waiters.retain(|&(waiter, _)| waiter != thread);
        self.signals.truncate(self.waiters.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_for_those_who_waited_when_it_came() {
        let mut condition = Condition::default();
        condition.signal();
        condition.arrive(1);
        assert!(!condition.take(1), "nobody waited");
        condition.arrive(2);
        condition.signal();
        condition.arrive(3);
        assert!(!condition.take(3), "it came later");
        assert!(condition.take(2), "any of the two");
        assert!(!condition.take(1));
        condition.broadcast();
        assert!(condition.take(1) && condition.take(3));
    }

    #[test]
    fn who_gives_up_takes_no_signal_along() {
        let mut condition = Condition::default();
        condition.arrive(1);
        condition.arrive(2);
        condition.broadcast();
        condition.give_up(1);
        assert!(condition.take(2));
        condition.arrive(1);
        assert!(!condition.take(1));
    }
}
