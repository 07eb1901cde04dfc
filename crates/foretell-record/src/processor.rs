//! A processor for every run.
//!
//! The threads of a run take turns, and while it is short we only wait for it. To wake somebody on another
//! processor takes longer than most turns, so the run, the server that makes it and our thread that follows
//! it keep to one processor; runs at the same time keep to different ones.

use std::sync::atomic::{AtomicUsize, Ordering};

/// A processor that we may use.
#[derive(Debug)]
pub struct Processor {
    pub number: u32,
    /// Runs that keep to it.
    runs: AtomicUsize,
}

/// The processors that we may use.
pub fn all() -> Vec<Processor> {
    let set = own();
    // SAFETY: the number is below the set's size.
    let is_ours = |number: &u32| unsafe { libc::CPU_ISSET(*number as usize, &set) };
    let processor = |number| Processor { number, runs: AtomicUsize::new(0) };
    (0..libc::CPU_SETSIZE as u32).filter(is_ours).map(processor).collect()
}

/// A place on the processor with the fewest runs, and its number in the list; none if there are none.
pub fn seat(processors: &[Processor]) -> Option<(usize, Seat<'_>)> {
    let runs = |&(_, processor): &(usize, &Processor)| processor.runs.load(Ordering::Relaxed);
    let (at, processor) = processors.iter().enumerate().min_by_key(runs)?;
    processor.runs.fetch_add(1, Ordering::Relaxed);
    Some((at, Seat { processor, before: own() }))
}

/// A place for a run, and for the thread that follows it.
#[derive(Debug)]
pub struct Seat<'p> {
    processor: &'p Processor,
    before: libc::cpu_set_t,
}

impl Seat<'_> {
    /// The calling thread keeps to the processor; whatever it starts would, too.
    pub fn take(&self) {
        // SAFETY: zero is valid for it, and the number is below its size.
        let one = unsafe {
            let mut one: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(self.processor.number as usize, &mut one);
            one
        };
        set_own(&one);
    }

    /// The run is a long one: the calling thread works beside it.
    pub fn leave(&self) {
        set_own(&self.before);
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.leave();
        self.processor.runs.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The processors of the calling thread.
fn own() -> libc::cpu_set_t {
    // SAFETY: zero is valid for it, and the call writes no more than it holds.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of_val(&set), &mut set);
        set
    }
}

fn set_own(set: &libc::cpu_set_t) {
    // SAFETY: only read. Where it is refused, everything is as it was.
    unsafe { libc::sched_setaffinity(0, size_of_val(set), set) };
}
