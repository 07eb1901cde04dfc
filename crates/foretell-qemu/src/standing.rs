//! Where the threads are and what they wait for, when the program cannot go on.

use foretell_wire::record::Stands;
use foretell_wire::standing::{self as wire, Awaited, Piece, Sentence};

use crate::objects::Objects;
use crate::scheduler::Scheduler;
use crate::thread::{State, Thread, Wait};

/// Who waits for what; the recorder has it as data.
pub fn standstill(scheduler: &mut Scheduler) -> Sentence {
    // SAFETY: threads are never freed.
    let threads: Vec<&Thread> =
        scheduler.threads.iter().map(|&thread| unsafe { &*thread }).collect();
    let path = |number: u32| threads.iter().find(|thread| thread.number == number);
    let mut said = Vec::new();
    for thread in &threads {
        let stands = stands(&scheduler.objects, thread);
        scheduler.ring.record(0, 0, &stands);
        let holder = stands.holder().and_then(path).map(|holder| &*holder.path);
        let on = stands.on().unwrap_or(Awaited::Nothing);
        let awaited = wire::awaited(on, Piece::Address(stands.subject), holder, None);
        said.push((&*thread.path, awaited));
    }
    wire::standstill(said)
}

/// Where the thread is and what it waits for.
pub fn stands(objects: &Objects, thread: &Thread) -> Stands {
    let stands = |on: Awaited, subject: u64| Stands::new(thread.number, thread.index, on, subject);
    match thread.wait {
        _ if thread.state == State::Runnable => stands(Awaited::Nothing, 0),
        Wait::None => stands(Awaited::Nothing, 0),
        Wait::Object(number) => {
            let (on, address, holder) = objects.awaited(number);
            stands(on, address).held_by(holder)
        }
        Wait::Thread(number) => stands(Awaited::Thread, number.into()),
        Wait::Futex(address) => stands(Awaited::Futex, address),
        Wait::Time => stands(Awaited::Time, 0),
        Wait::Others => stands(Awaited::Others, 0),
    }
}
