//! Threads of a scope (`std::thread::scope`), and code that handles panics.
//!
//! The library counts the threads of a scope that run in a word, and who ends the last of them wakes the
//! thread that waits at the end of the scope. In the trace each of them posts a semaphore when it is over,
//! and the end of the scope takes one post of each: no order among the threads is of any interest.
//!
//! Code that came compiled may count, too (the harness of tests has threads of the same kind): what is missing in the
//! library's word is posted by the next thread that looks.
//!
//! The post comes when the thread's routine returns. Between the library's count and that it only gives back
//! what it shares with the scope, and who does so last would be a choice for nothing. What the program has
//! in thread-local variables is destroyed after it, as in the library.

use std::cell::RefCell;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use foretell_abi::{Order, Site};
use foretell_wire::{Kind, access};

use crate::objects;
use crate::recorder::head;
use crate::scheduler;
use crate::thread::{Session, Wait};
use crate::turn::TurnCell;

/// A scope.
struct Scope {
    /// The word in which the library counts.
    word: u64,
    /// How many threads have begun in it.
    begun: u32,
    /// How many of them the library has counted as over.
    over: u32,
}

/// The scopes whose ends have not been reached.
static SCOPES: TurnCell<RefCell<Vec<Scope>>> = TurnCell::new(RefCell::new(Vec::new()));

/// How many threads of the scope were counted as over by code that is not seen. From now on they are known:
/// somebody must post for them.
fn unseen(session: &Session, word: u64) -> u32 {
    let mut scopes = SCOPES.shared(session.turn()).borrow_mut();
    let Some(scope) = scopes.iter_mut().find(|scope| scope.word == word) else { return 0 };
    // SAFETY: the scope is there, because its end has not been reached.
    let running = unsafe { (*(word as *const AtomicU64)).load(SeqCst) };
    let unseen = scope.begun.saturating_sub(scope.over + running as u32);
    scope.over += unseen;
    unseen
}

/// How many words the state of a scope has.
const WORDS: usize = 3;

/// The state of a scope, and the library's change of it, which nobody else may see in between.
unsafe fn changed(
    session: Session,
    scope: *const AtomicU64,
    library: impl FnOnce(),
) -> Option<(Session, [u64; WORDS], [u64; WORDS])> {
    let place = session.place;
    // SAFETY: the state of a scope is so large.
    let words = || unsafe { std::array::from_fn(|at| (*scope.add(at)).load(SeqCst)) };
    let before = words();
    session.me.unpreemptible += 1;
    drop(session);
    library();
    let mut session = Session::begin()?;
    session.me.unpreemptible -= 1;
    session.place = place;
    Some((session, before, words()))
}

/// Which word counts: the one that the library has changed by one.
fn counter(before: &[u64; WORDS], after: &[u64; WORDS]) -> Option<usize> {
    (0..WORDS).find(|&at| before[at].abs_diff(after[at]) == 1)
}

/// `ScopeData::increment_num_running_threads`.
///
/// # Safety
/// Called by instrumented code as the library's function would be.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __foretell_rust_scope_begin(
    original: unsafe extern "C-unwind" fn(*const AtomicU64),
    scope: *const AtomicU64,
) {
    // SAFETY: the caller's promise.
    let library = || unsafe { original(scope) };
    let Some(session) = Session::begin() else { return library() };
    // SAFETY: the library's state of a scope.
    let Some((session, before, after)) = (unsafe { changed(session, scope, library) }) else {
        return;
    };
    let Some(at) = counter(&before, &after) else { return };
    let word = scope as u64 + 8 * at as u64;
    session.me.scopes.begins = word;
    let mut scopes = SCOPES.shared(session.turn()).borrow_mut();
    match scopes.iter_mut().find(|scope| scope.word == word) {
        Some(scope) => scope.begun += 1,
        None => {
            // Another scope was there before.
            objects::forget(session.turn(), word);
            scopes.push(Scope { word, begun: 1, over: 0 });
        }
    }
}

/// `ScopeData::decrement_num_running_threads`.
///
/// # Safety
/// Called by instrumented code as the library's function would be.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __foretell_rust_scope_end(
    original: unsafe extern "C-unwind" fn(*const AtomicU64, bool),
    scope: *const AtomicU64,
    panicked: bool,
) {
    // SAFETY: the caller's promise.
    let library = || unsafe { original(scope, panicked) };
    let Some(mut session) = Session::begin() else { return library() };
    session.point();
    // SAFETY: the library's state of a scope.
    let Some((mut session, before, after)) = (unsafe { changed(session, scope, library) }) else {
        return;
    };
    let Some(counter) = counter(&before, &after) else { return };
    let others = (0..WORDS).filter(|&at| at != counter && before[at] != after[at]);
    // That a thread panicked is a byte, which the thread that waits will read.
    for (at, byte) in others.flat_map(|at| (0..8).map(move |byte| (at, byte))) {
        let value = |words: &[u64; WORDS]| words[at] >> (8 * byte) & 0xff;
        if value(&before) != value(&after) {
            let address = scope as u64 + 8 * at as u64 + byte;
            let head = head(Kind::Write, access::detail(1, Order::Relaxed as u8), session.place);
            session.me.access::<false, 0>(head, address, value(&after), []);
        }
    }
    let word = scope as u64 + 8 * counter as u64;
    let mut scopes = SCOPES.shared(session.turn()).borrow_mut();
    if let Some(scope) = scopes.iter_mut().find(|scope| scope.word == word) {
        scope.over += 1;
    }
    drop(scopes);
    // Who had the last handle of a thread counts it as over, which may be any thread.
    match session.me.scopes.own == word {
        true => session.me.scopes.over += 1,
        false => post(&mut session, word),
    }
}

fn post(session: &mut Session, word: u64) {
    let (number, count) = objects::semaphore_at(session.turn(), word);
    count.set(count.get() + 1);
    session.event(Kind::SemaphorePost, 0, [number.into()]);
    scheduler::wake(Wait::Object(number));
    session.point();
}

/// What is known of a thread and scopes.
#[derive(Default)]
pub struct Scopes {
    /// The scope in which it was begun; 0 for none.
    pub own: u64,
    /// So many threads of that scope it has counted as over.
    over: u32,
    /// The scope of the thread that it is about to begin; 0 for none.
    begins: u64,
}

impl Scopes {
    /// Those of the thread that this one begins now.
    pub fn of_child(&mut self) -> Scopes {
        Scopes { own: std::mem::take(&mut self.begins), ..Scopes::default() }
    }
}

/// The thread's routine has returned.
pub fn routine_returned() {
    let Some(mut session) = Session::begin() else { return };
    let scopes = std::mem::take(&mut session.me.scopes);
    session.place = 0;
    let unseen = if scopes.own == 0 { 0 } else { unseen(&session, scopes.own) };
    for _ in 0..scopes.over + unseen {
        post(&mut session, scopes.own);
    }
}

/// See `foretell-abi`.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc)] // foretell-abi
pub unsafe extern "C" fn __foretell_rust_scope_wait(
    word: *const AtomicU64,
    site: *const Site,
) -> u64 {
    let address = word as u64;
    if let Some(mut session) = Session::begin_hook() {
        session.place = session.recorder().site(site);
        session.point();
        let mut taken = 0;
        // More may begin while this one waits.
        loop {
            let mut scopes = SCOPES.shared(session.turn()).borrow_mut();
            let Some(at) = scopes.iter().position(|scope| scope.word == address) else { break };
            if taken == scopes[at].begun {
                scopes.swap_remove(at);
                break;
            }
            drop(scopes);
            let (number, count) = objects::semaphore_at(session.turn(), address);
            if count.get() == 0 {
                for _ in 0..unseen(&session, address) {
                    post(&mut session, address);
                }
            }
            if count.get() == 0 {
                scheduler::block(session.me, Wait::Object(number), None);
                continue;
            }
            count.set(count.get() - 1);
            taken += 1;
            session.event(Kind::SemaphoreWait, 0, [number.into()]);
            session.point();
        }
    }
    // SAFETY: the program's word.
    unsafe { &*word }.load(SeqCst)
}

/// See `foretell-abi`.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc)] // foretell-abi
pub unsafe extern "C" fn __foretell_rust_catch(begins: u32) {
    if let Some(session) = Session::begin_hook() {
        let handlers = &mut session.me.handlers;
        *handlers = if begins == 0 { handlers.saturating_sub(1) } else { *handlers + 1 };
    }
}
