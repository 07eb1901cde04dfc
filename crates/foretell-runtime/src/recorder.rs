//! Appends records to the ring that the recorder outside reads.
//!
//! Only the thread that has the turn writes: this module, or code of our compiler by itself (see
//! `foretell-abi`). A record is complete before the cursor, which lies in the shared memory, moves on;
//! whatever kills the program, the reader finds whole records. When the reader is behind, the
//! writer waits; when the reader is gone, recording ends and the program goes on.

use std::cell::UnsafeCell;
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, compiler_fence};

use foretell_abi::{Cursor, Met, NEVER};
use foretell_wire::again::{Again, Short};
pub use foretell_wire::record::head;
use foretell_wire::record::{self, Record};
use foretell_wire::standing::Sentence;
use foretell_wire::{
    ATTACHED, CHUNK_BYTES, CHUNKS, CONTRACT, End, HEADER_BYTES, Header, Kind, MAGIC, MAX_TEXT,
    MESSAGE_BYTES, OTHER_BUILD, RECORD_BYTES, RING_BYTES, TERM_SHADOW, VERSION, access, gap,
};

use crate::sys;
use crate::thread::Thread;
use crate::turn::TurnCell;

/// The writing end of the ring.
pub struct Recorder {
    header: *mut Header,
    /// Where the next record goes, in the header: so whatever kills the program, it is known.
    cursor: *mut Cursor,
    /// From here on the next record needs [`Recorder::make_room`] first.
    limit: *mut u64,
    base: *mut u64,
    chunk: usize,
    /// The thread that the last `Turn` record named.
    turn: u32,
    /// Where the records of the turn begin; null when that is in another chunk.
    turn_began: *const u64,
    /// The thread that has the turn, its index when it got it, and all events before that.
    running: *const Thread,
    began: u32,
    events_before: u64,
    /// The process that reads; kept here, as the program may overwrite what is shared.
    recorder: u32,
    on: bool,
    /// Every event is shown to `forced::check`: the limit is such that each record is looked at.
    checked: bool,
    again: Again,
    /// The instruction that may append short records itself, by the number of its entry in `again`.
    granted: [*mut Met; Again::WAYS],
    /// Instructions may do so; not while a library is being unloaded.
    grants: bool,
    sites: SeenSites,
}

static RECORDER: TurnCell<Recorder> = TurnCell::new(Recorder {
    header: null_mut(),
    cursor: NOWHERE.0.get(),
    limit: null_mut(),
    base: null_mut(),
    chunk: 0,
    turn: u32::MAX,
    turn_began: null(),
    running: null(),
    began: 0,
    events_before: 0,
    recorder: 0,
    on: false,
    checked: false,
    again: Again::new(),
    granted: [null_mut(); Again::WAYS],
    grants: true,
    sites: SeenSites { cache: [0; SeenSites::WAYS], all: Vec::new(), count: 0 },
});

/// The cursor of those who may not append records: nothing lies below its limit.
pub struct Nowhere(pub UnsafeCell<Cursor>);
// SAFETY: never written.
unsafe impl Sync for Nowhere {}
/// See [`Nowhere`].
pub static NOWHERE: Nowhere =
    Nowhere(UnsafeCell::new(Cursor { next: null_mut(), limit: null_mut(), terms: 0 }));

/// What signal handlers that ran inside the runtime did not record.
pub static SKIPPED: AtomicU64 = AtomicU64::new(0);
static SECOND: libc::timespec = libc::timespec { tv_sec: 1, tv_nsec: 0 };
static ENDED: AtomicBool = AtomicBool::new(false);

/// The recorder.
///
/// # Safety
/// Only for the thread that has the turn, and not while another reference lives.
#[inline(always)]
pub unsafe fn recorder() -> &'static mut Recorder {
    // SAFETY: the caller's promise.
    unsafe { RECORDER.get() }
}

/// The same for a record that has `N` words more, see `foretell_wire::access::MORE`.
#[inline(always)]
fn with_more<const N: usize>(head: u64) -> u64 {
    if N > 0 { head | u64::from(access::MORE) << 8 } else { head }
}

/// Whether a record with this first word has so many words, and no texts.
fn fits(head: u64, words: usize) -> bool {
    Kind::from_code(head as u8).is_some_and(|kind| {
        let layout = kind.layout();
        (words, 0) == (layout.fixed((head >> 8) as u8), layout.texts.len())
    })
}

/// A place in the log.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    at: *const u64,
    chunk: usize,
}

/// A part of a record that has no fixed size.
pub enum Text<'a> {
    /// Cut at [`MAX_TEXT`].
    Bytes(&'a [u8]),
    /// A C string; null is empty.
    C(*const libc::c_char),
}

impl record::Text for Text<'_> {
    fn bytes(&self) -> &[u8] {
        match *self {
            Text::Bytes(bytes) => bytes,
            Text::C(pointer) if pointer.is_null() => &[],
            // SAFETY: instrumented code passes strings that end in NUL.
            Text::C(pointer) => unsafe { std::ffi::CStr::from_ptr(pointer).to_bytes() },
        }
    }
}

impl Recorder {
    /// Takes hold of the ring in `file`. Says why not.
    pub fn attach(&mut self, file: i32) -> Result<(), &'static str> {
        if sys::file_size(file) < HEADER_BYTES as u64 {
            return Err(crate::start::OTHER_RECORDER); // touching what is not there would be fatal
        }
        let memory = sys::map_file(file, RING_BYTES);
        if memory.is_null() {
            return Err("cannot map the recorder's memory");
        }
        let header = memory.cast::<Header>();
        // SAFETY: the mapping is as large as a ring and lives as long as the process.
        unsafe {
            let known = (*header).magic == MAGIC && (*header).version == VERSION;
            if !known || (*header).contract != CONTRACT {
                (*header).attached.store(OTHER_BUILD, Relaxed);
                return Err(crate::start::OTHER_RECORDER);
            }
            if (*header).attached.swap(ATTACHED, Relaxed) != 0 {
                return Err("another program is being recorded already");
            }
            (*header).writer.store(sys::process(), Relaxed);
        }
        self.header = header;
        // SAFETY: as above.
        self.cursor = unsafe { (&raw mut (*header).cursor).cast() };
        // SAFETY: as above.
        self.recorder = unsafe { (*header).recorder.load(Relaxed) };
        self.on = true;
        self.open_chunk();
        Ok(())
    }

    /// Whether records are kept.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Stops for good: in a forked child, or when the reader is gone.
    pub fn stop(&mut self) {
        self.on = false;
        self.limit = null_mut();
        self.allow(0);
        self.cursor = NOWHERE.0.get();
    }

    /// Stops for good because a record may have been left half written.
    pub fn leave(&mut self) {
        if self.on {
            // SAFETY: the header lives as long as the process.
            unsafe { &(*self.header).left }.store(1, Relaxed);
            self.stop();
        }
    }

    /// Where instrumented code appends records.
    pub fn cursor(&self) -> *mut Cursor {
        self.cursor
    }

    /// Instrumented code may append this many events by itself, and no more than there is room for.
    #[inline(always)]
    pub fn allow(&mut self, events: u32) {
        if std::ptr::eq(self.cursor, NOWHERE.0.get()) {
            return;
        }
        // SAFETY: the cursor is in the header.
        let cursor = unsafe { &mut *self.cursor };
        // The last shadows of terms are not given away there.
        let may = events > 0 && cursor.terms < u64::from(TERM_SHADOW / 2);
        // An event has at least a word.
        let room = cursor.next.wrapping_add(events as usize).min(self.limit);
        cursor.limit = if may { room } else { null_mut() };
    }

    #[inline(always)]
    fn next(&self) -> *mut u64 {
        // SAFETY: the cursor is in the header, which lives as long as the process.
        unsafe { (*self.cursor).next }
    }

    fn open_chunk(&mut self) {
        // SAFETY: within the mapping.
        unsafe {
            let at = HEADER_BYTES + self.chunk % CHUNKS * CHUNK_BYTES;
            self.base = self.header.cast::<u8>().add(at).cast();
            (*self.cursor).limit = null_mut();
            self.advance(self.base);
            (*self.header).base.store(self.base as u64, Release);
        }
        self.set_limit();
    }

    fn full_at(&self) -> *mut u64 {
        // SAFETY: within the chunk.
        unsafe { self.base.byte_add(CHUNK_BYTES - RECORD_BYTES) }
    }

    fn set_limit(&mut self) {
        self.limit = if self.checked { self.base } else { self.full_at() };
    }

    /// From now on every event is shown to `forced::check`, or none is.
    pub fn set_checked(&mut self, checked: bool) {
        self.checked = checked;
        if self.on {
            self.set_limit();
        }
    }

    /// The limit is reached: makes room for a record. Says whether it is wanted at all.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) -> bool {
        if self.on && self.next() >= self.full_at() {
            self.change_chunk();
        }
        self.on
    }

    /// A record with this first word (of its long form) was written, and the limit is reached.
    #[cold]
    #[inline(never)]
    fn at_limit(&mut self, head: u64) {
        if self.checked
            && let Some(kind) = Kind::from_code(head as u8)
            && kind.is_event()
        {
            crate::forced::check(self.turn, kind, (head >> 8) as u8, head >> 16);
        }
    }

    fn change_chunk(&mut self) {
        // SAFETY: the header lives as long as the process.
        let header = unsafe { &*self.header };
        let slot = self.chunk % CHUNKS;
        // SAFETY: both are in the chunk.
        let used = unsafe { self.next().byte_offset_from(self.base) } as u32;
        header.used[slot].store(used, Relaxed);
        header.events[slot].store(self.events(), Relaxed);
        header.base.store(0, Release); // no chunk is being filled
        let produced = header.produced.load(Relaxed).wrapping_add(1);
        header.produced.store(produced, Release);
        sys::futex_wake(&header.produced, 1, true);
        loop {
            let consumed = header.consumed.load(Acquire);
            if (produced.wrapping_sub(consumed) as usize) < CHUNKS {
                break;
            }
            sys::futex_wait(&header.consumed, consumed, Some(&SECOND), true);
            if sys::is_gone(self.recorder) {
                return self.stop();
            }
        }
        self.chunk = self.chunk.wrapping_add(1);
        self.turn_began = null();
        header.notable[self.chunk % CHUNKS].store(0, Relaxed);
        self.open_chunk();
    }

    /// All events so far.
    fn events(&self) -> u64 {
        // SAFETY: the states of threads are never freed.
        let turn =
            unsafe { self.running.as_ref() }.map_or(0, |thread| thread.slots.index - self.began);
        self.events_before + u64::from(turn)
    }

    /// Appends an access, or what else has a short form; `head` is the first word of the long one.
    /// Its place is a source site if `SITE`, else a program counter.
    #[inline(always)]
    pub fn put_again<const SITE: bool, const N: usize>(
        &mut self,
        head: u64,
        address: u64,
        value: u64,
        more: [u64; N],
    ) {
        if !self.try_again(head, address, value, more) {
            self.put_first::<SITE, N>(head, address, value, more);
        }
    }

    /// Appends an access in its short form, if that can be done at once; says whether.
    #[inline(always)]
    pub fn try_again<const N: usize>(
        &mut self,
        head: u64,
        address: u64,
        value: u64,
        more: [u64; N],
    ) -> bool {
        let head = with_more::<N>(head);
        let Some(short) = self.again.short(head, address, value, N > 0) else { return false };
        let next = self.next();
        if next >= self.limit {
            return false;
        }
        // SAFETY: below the limit there is room for the longest record.
        unsafe {
            next.write(short.word());
            let mut after = next.add(1);
            if short.value().is_none() {
                after.write(value);
                after = after.add(1);
            }
            for word in more {
                after.write(word);
                after = after.add(1);
            }
            self.advance(after);
        }
        true
    }

    /// The long form of an access, with what its place needs.
    #[cold]
    #[inline(never)]
    fn put_first<const SITE: bool, const N: usize>(
        &mut self,
        head: u64,
        address: u64,
        value: u64,
        more: [u64; N],
    ) {
        let head = with_more::<N>(head);
        if SITE {
            self.site((head >> 16) as *const foretell_abi::Site);
        } else {
            self.meet(head >> 16);
        }
        if self.next() >= self.limit && !self.make_room() {
            return;
        }
        self.revoke(Again::way(head));
        self.again.enter(head, address);
        // SAFETY: below the limit there is room for the longest record.
        unsafe {
            for (i, word) in [head, address, value].into_iter().chain(more).enumerate() {
                self.next().add(i).write(word);
            }
            self.publish(3 + N, head);
        }
    }

    /// Appends a record of fixed size.
    #[inline(always)]
    pub fn put<const N: usize>(&mut self, words: [u64; N]) {
        debug_assert!(fits(words[0], N));
        if self.next() >= self.limit && !self.make_room() {
            return;
        }
        // SAFETY: below the limit there is room for the longest record.
        unsafe {
            for (i, word) in words.into_iter().enumerate() {
                self.next().add(i).write(word);
            }
            self.publish(N, words[0]);
        }
    }

    /// The chunk has something that the recorder outside wants to see at once.
    fn note(&self) {
        // SAFETY: the header lives as long as the process.
        unsafe { &(*self.header).notable[self.chunk % CHUNKS] }.store(1, Relaxed);
    }

    /// Appends a record; its texts are cut at [`MAX_TEXT`].
    #[inline(always)]
    pub fn record<const N: usize, R: Record<N>>(&mut self, detail: u8, place: u64, record: &R) {
        if self.next() >= self.limit && !self.make_room() {
            return;
        }
        if R::KIND.is_notable() {
            self.note();
        }
        let head = head(R::KIND, detail, place);
        // SAFETY: below the limit there is room for the longest record.
        unsafe {
            self.next().write(head);
            for (i, word) in record.words().into_iter().enumerate() {
                self.next().add(1 + i).write(word);
            }
            let mut at = 1 + N;
            for text in record.texts() {
                let bytes = record::Text::bytes(text);
                let bytes = &bytes[..bytes.len().min(MAX_TEXT)];
                self.next().add(at).write(bytes.len() as u64);
                at += 1;
                for part in bytes.chunks(8) {
                    let mut word = [0; 8];
                    word[..part.len()].copy_from_slice(part);
                    self.next().add(at).write(u64::from_le_bytes(word));
                    at += 1;
                }
            }
            self.publish(at, head);
        }
    }

    /// A record of so many words was written; `head` is the first word of its long form.
    #[inline(always)]
    unsafe fn publish(&mut self, words: usize, head: u64) {
        // SAFETY: the caller's promise.
        unsafe { self.advance(self.next().add(words)) };
        if self.next() >= self.limit {
            self.at_limit(head);
        }
    }

    /// All words before `next` can be read.
    #[inline(always)]
    unsafe fn advance(&mut self, next: *mut u64) {
        compiler_fence(SeqCst); // what was written comes first; the processor keeps that order
        // SAFETY: the cursor is in the header.
        unsafe { (*self.cursor).next = next };
    }

    /// Lets an instruction append its next records by itself, in their short form; `head` is the first word of the long form, without the mark of what has a word `more`.
    pub fn grant(&mut self, head: u64, more: bool, met: *mut Met) {
        let head = if more { with_more::<1>(head) } else { head };
        let way = Again::way(head);
        let owner = self.granted[way];
        if met.is_null() || !self.grants || (owner != met && !owner.is_null()) {
            return;
        }
        if let Some(begin) = self.again.begin(head) {
            self.granted[way] = met;
            // SAFETY: it belongs to a module that is loaded.
            unsafe {
                (*met).word = Again::begin_of_short(way, more);
                (*met).begin = begin;
            }
        }
    }

    /// The entry with this number becomes another one: its instruction appends nothing by itself any more.
    fn revoke(&mut self, way: usize) {
        let met = std::mem::replace(&mut self.granted[way], null_mut());
        if !met.is_null() {
            // SAFETY: it belongs to a module that is loaded.
            unsafe { (*met).begin = NEVER };
        }
    }

    /// Forgets all places: a library is being unloaded, and what is loaded next may take its place.
    /// With `quiet` no instruction appends records by itself from now on.
    pub fn forget_places(&mut self, quiet: bool) {
        self.grants = !quiet;
        self.again.forget();
        for way in 0..Again::WAYS {
            self.revoke(way);
        }
        self.sites.forget();
    }

    /// Says that the events that follow are this thread's.
    #[inline(always)]
    pub fn turn(&mut self, thread: &Thread) {
        self.events_before = self.events();
        self.running = thread;
        self.turn_began = self.next();
        self.began = thread.slots.index;
        if self.turn != thread.number {
            self.turn = thread.number;
            self.record(0, 0, &record::Turn { thread: thread.number });
        }
    }

    /// The records of the turn, as far as they are in this chunk and it is known where they begin.
    pub fn words_of_turn(&self) -> &[u64] {
        if self.turn_began.is_null() || !self.on {
            return &[];
        }
        // SAFETY: both lie in the chunk, the second after the first.
        unsafe {
            let count = self.next().cast_const().offset_from(self.turn_began);
            std::slice::from_raw_parts(self.turn_began, count.max(0) as usize)
        }
    }

    /// Where the next record goes; for [`Recorder::words_since`].
    pub fn mark(&self) -> Mark {
        Mark { at: self.next(), chunk: self.chunk }
    }

    /// The records since the mark, of all threads; `None` where they are no longer in this chunk.
    pub fn words_since(&self, mark: Mark) -> Option<&[u64]> {
        if !self.on || mark.chunk != self.chunk {
            return None;
        }
        // SAFETY: both lie in the chunk, the second after the first.
        unsafe {
            let count = self.next().offset_from(mark.at);
            Some(std::slice::from_raw_parts(mark.at, usize::try_from(count).ok()?))
        }
    }

    /// Those that come from now on are the words of the turn.
    pub fn forget_words_of_turn(&mut self) {
        self.turn_began = self.next();
    }

    /// What a short stands for.
    pub fn long(&self, short: Short) -> Option<(u64, u64)> {
        self.again.long(short)
    }

    /// Defines the source site if it is new, and gives its place.
    #[inline(always)]
    pub fn site(&mut self, site: *const foretell_abi::Site) -> u64 {
        let place = site as u64;
        if self.sites.cache[SeenSites::way(place)] != place && !site.is_null() {
            self.define_site(site);
        }
        place
    }

    /// Whether a source site was defined at this place.
    pub fn has_site(&self, place: u64) -> bool {
        self.sites.has(place)
    }

    /// Announces a program counter if it is new, and no site.
    #[inline(always)]
    pub fn meet(&mut self, place: u64) {
        if self.sites.cache[SeenSites::way(place)] != place && place != 0 {
            self.define_place(place);
        }
    }

    #[cold]
    #[inline(never)]
    fn define_place(&mut self, place: u64) {
        if !self.sites.has(place) && self.sites.insert(place | SeenSites::COUNTER) {
            self.record(0, place, &record::DefinePlace {});
        }
        self.sites.cache[SeenSites::way(place)] = place;
    }

    #[cold]
    #[inline(never)]
    fn define_site(&mut self, site: *const foretell_abi::Site) {
        let place = site as u64;
        self.sites.cache[SeenSites::way(place)] = place;
        if self.sites.insert(place) {
            // SAFETY: sites are constants of the instrumented module.
            let site = unsafe { &*site };
            let (file, function) = (Text::C(site.file), Text::C(site.function));
            let foretell_abi::Site { line, column, .. } = *site;
            self.record(0, place, &record::DefineSite { line, column, file, function });
        }
    }

    /// Tells what a piece of memory is called.
    pub fn describe(&mut self, address: u64, what: *const foretell_abi::Described) {
        let place = what as u64;
        if self.sites.insert(place) {
            // SAFETY: descriptions are constants of the instrumented module.
            let what = unsafe { &*what };
            let record = record::DefineDescription {
                size: what.size,
                name: Text::C(what.name),
                function: Text::C(what.function),
                layout: Text::C(what.layout),
            };
            self.record(0, place, &record);
        }
        self.record(0, place, &record::Describe { address });
    }

    /// The shadow of the next term to be defined; 0 when there are too many.
    #[inline(always)]
    pub fn next_term(&mut self) -> u32 {
        // SAFETY: the cursor is in the header; without one nothing is recorded.
        let terms = unsafe { &mut (*self.cursor).terms };
        if !self.on || *terms >= u64::from(TERM_SHADOW - 1) {
            return 0;
        }
        *terms += 1;
        TERM_SHADOW | (*terms - 1) as u32
    }

    /// A sentence on what the trace lacks.
    pub fn gap(&mut self, count: u64, what: &str) {
        self.record(gap::ANY, 0, &record::Gap { count, what });
    }

    /// A sentence on what was held at its recorded value: it restricts what can be predicted to the
    /// recorded path, as a branch does, and loses nothing of it.
    pub fn restriction(&mut self, count: u64, what: &str) {
        self.record(gap::HELD_FIXED, 0, &record::Gap { count, what });
    }

    /// Why the run leaves its schedule: with threads and addresses as data, as the recorder outside has their names.
    pub fn why_it_left(&mut self, why: &Sentence) {
        for piece in &why.0 {
            let (detail, content) = piece.record();
            self.record(detail, 0, &record::Said { content });
        }
    }

    /// Counts a turn, so that the recorder outside sees that the program lives.
    #[inline(always)]
    pub fn progress(&self) {
        if self.on {
            // SAFETY: the header lives as long as the process.
            unsafe {
                let turns = &(*self.header).turns;
                turns.store(turns.load(Relaxed).wrapping_add(1), Relaxed);
            }
        }
    }

    /// Says how the run will have ended if nothing more is heard, or takes that back.
    pub fn announce_end(&mut self, end: End, message: &str) {
        if self.on && !ENDED.load(Relaxed) {
            self.say(end, message);
        }
    }

    fn say(&mut self, end: End, message: &str) {
        let length = message.len().min(MESSAGE_BYTES);
        // SAFETY: the header lives as long as the process, and nobody else writes the message.
        unsafe {
            let target = (&raw mut (*self.header).message).cast::<u8>();
            target.copy_from_nonoverlapping(message.as_ptr(), length);
            (*self.header).message_length.store(length as u32, Relaxed);
            (*self.header).end.store(end as u32, Release);
            sys::futex_wake(&(*self.header).produced, 1, true); // it waits for the process then
        }
    }

    /// Says how the run ends; the first word counts.
    pub fn end(&mut self, end: End, message: &str) {
        if !self.on || ENDED.swap(true, Relaxed) {
            return;
        }
        crate::path::end(self);
        let skipped = SKIPPED.load(Relaxed);
        if skipped > 0 {
            self.gap(skipped, "events in signal handlers that interrupted the runtime");
        }
        self.say(end, message);
    }
}

/// The places that have been defined, sites and program counters: a small cache in front of a table
/// of addresses.
struct SeenSites {
    cache: [u64; SeenSites::WAYS],
    all: Vec<u64>,
    count: usize,
}

impl SeenSites {
    const WAYS: usize = 4096;
    /// In the table: a program counter.
    const COUNTER: u64 = 1 << 63;

    #[inline(always)]
    fn way(place: u64) -> usize {
        (place >> 3) as usize % Self::WAYS
    }

    /// Nothing was defined.
    fn forget(&mut self) {
        self.cache.fill(0);
        self.all.fill(0);
        self.count = 0;
    }

    /// Adds the place; false when it was there already.
    fn insert(&mut self, place: u64) -> bool {
        if self.count * 2 >= self.all.len() {
            let old = std::mem::take(&mut self.all);
            self.all = vec![0; (old.len() * 2).max(1024)];
            for place in old.into_iter().filter(|&place| place != 0) {
                let slot = self.slot(place);
                self.all[slot] = place;
            }
        }
        let slot = self.slot(place);
        if self.all[slot] == place {
            return false;
        }
        self.all[slot] = place;
        self.count += 1;
        true
    }

    fn has(&self, place: u64) -> bool {
        place != 0 && !self.all.is_empty() && self.all[self.slot(place)] == place
    }

    fn slot(&self, place: u64) -> usize {
        let mask = self.all.len() - 1;
        let mut slot = crate::objects::hash(place) & mask;
        while self.all[slot] != 0 && self.all[slot] != place {
            slot = (slot + 1) & mask;
        }
        slot
    }
}
