//! Records to bytes: what the recorder calls for every event. Nothing here panics, and nothing
//! allocates as long as the caller's buffer has room.

mod definitions;

use super::codes::{Context, MAX_SLOT_TEXT, TABLE, attribute, code};
use super::varint::{SHORT, Short, put, step, zigzag};
use crate::event::{Access, Condition, Event, MemoryOrder, Op};
use crate::id::{ObjectId, SiteId, TermId, ThreadId, VariableId};
use crate::sync::SyncOp;
use crate::term::Value;
use definitions::{put_content, put_sort};

/// The most bytes that one event takes, the text of a [`Name`] and the lists of guarded
/// assignments and transitions not counted. A buffer with this much room does not grow.
pub const MAX_STEP_BYTES: usize = 96;

/// Which event, of whom and where: what all events have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Place in the recorded total order: taken from one counter, each number once.
    pub sequence: u64,
    /// The thread.
    pub thread: ThreadId,
    /// How many events the thread had before.
    pub index: u32,
    /// Where in the source, when known.
    pub site: Option<SiteId>,
}

/// A text that comes again and again (a function, a region), with a key by which the encoder knows
/// it again in the same chunk, e.g. the address of a string constant. Equal keys must mean equal
/// texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    /// Anything but `u64::MAX`.
    pub key: u64,
    /// The text.
    pub text: &'a str,
}

/// Appends the records of one chunk to a buffer of the caller's; a
/// [`ChunkSealer`](super::ChunkSealer) makes the chunk. One encoder has one buffer.
///
/// ```
/// use foretell_trace::format::binary::{ChunkEncoder, ChunkSealer, Compression, FILE_HEADER};
/// use foretell_trace::{Access, Event, Op, Sort, Scope, ThreadId, VariableId};
///
/// let mut encoder = ChunkEncoder::new();
/// let mut sealer = ChunkSealer::new(Compression::Lz4);
/// let mut records = Vec::with_capacity(64 * 1024);
/// encoder.thread(ThreadId(0), "main", &[], &mut records);
/// encoder.variable(VariableId(0), "x", Sort::bit_vec(32), Scope::Shared, None, None, &mut records);
/// let access = Access {
///     variable: VariableId(0), value: Some(7), term: None, address: None, order: None,
/// };
/// let event = Event { thread: ThreadId(0), index: 0, site: None, op: Op::Write(access) };
/// encoder.event(0, &event, &mut records);
/// encoder.end(1, &mut records);
///
/// let mut file = FILE_HEADER.to_vec();
/// file.extend_from_slice(sealer.seal(&mut encoder, &mut records));
/// let trace = foretell_trace::format::binary::read(&file).unwrap();
/// assert_eq!(trace.events, [event]);
/// ```
#[derive(Clone, Debug)]
pub struct ChunkEncoder {
    context: Context,
    names: [u64; TABLE],
    events: u32,
    definitions: u32,
    first: u64,
    last: u64,
}

const NO_KEY: u64 = u64::MAX;

impl Default for ChunkEncoder {
    fn default() -> Self {
        Self::new()
    }
}

impl ChunkEncoder {
    /// An encoder at the start of a chunk (a bit more than 4 KiB of tables).
    pub const fn new() -> Self {
        Self {
            context: Context::new(),
            names: [NO_KEY; TABLE],
            events: 0,
            definitions: 0,
            first: u64::MAX,
            last: 0,
        }
    }

    /// How many events the chunk has so far.
    pub fn events(&self) -> u32 {
        self.events
    }

    /// How many other records the chunk has so far.
    pub fn definitions(&self) -> u32 {
        self.definitions
    }

    /// The smallest and the largest sequence number so far.
    pub fn sequence_range(&self) -> Option<(u64, u64)> {
        (self.events > 0).then_some((self.first, self.last))
    }

    pub(super) fn reset(&mut self) {
        *self = Self::new();
    }

    /// Appends an event. Texts in it are written out in full: [`ChunkEncoder::call`],
    /// [`ChunkEncoder::region_begin`] and [`ChunkEncoder::input`] are cheaper.
    pub fn event(&mut self, sequence: u64, event: &Event, out: &mut Vec<u8>) {
        let at = Step { sequence, thread: event.thread, index: event.index, site: event.site };
        match &event.op {
            Op::ThreadBegin => self.start(code::THREAD_BEGIN, 0, at, out),
            Op::ThreadEnd => self.start(code::THREAD_END, 0, at, out),
            Op::Fork(thread) => self.with_thread(code::FORK, *thread, at, out),
            Op::Join(thread) => self.with_thread(code::JOIN, *thread, at, out),
            Op::Read(access) => self.access(code::READ, access, at, out),
            Op::Write(access) => self.access(code::WRITE, access, at, out),
            Op::ReadModifyWrite(update) => {
                let attributes = order_number(Some(update.order))
                    | flag(update.old.is_none(), attribute::NO_VALUE)
                    | flag(update.new.is_none(), attribute::NO_NEW_VALUE)
                    | flag(update.term.is_some(), attribute::TERM)
                    | flag(update.address.is_some(), attribute::ADDRESS);
                self.start(code::READ_MODIFY_WRITE, attributes, at, out);
                self.variable_id(update.variable, out);
                for value in [update.old, update.new].into_iter().flatten() {
                    self.value(update.variable, value, out);
                }
                for term in [update.term, update.address].into_iter().flatten() {
                    self.term_id(term, out);
                }
            }
            Op::Sync(object, step) => self.sync(*object, step, at, out),
            Op::Fence(order) => self.start(code::FENCE, order_number(Some(*order)), at, out),
            Op::Branch(condition) => self.condition(code::BRANCH, *condition, at, out),
            Op::Assert(condition) => self.condition(code::ASSERT, *condition, at, out),
            Op::RegionBegin(name) => {
                self.start(code::REGION_BEGIN, 0, at, out);
                put_unkeyed(name, out);
            }
            Op::RegionEnd => self.start(code::REGION_END, 0, at, out),
            Op::Call(name) => {
                self.start(code::CALL, 0, at, out);
                put_unkeyed(name, out);
            }
            Op::Return => self.start(code::RETURN, 0, at, out),
            Op::Await(mark) => self.start(code::AWAIT, *mark as u8, at, out),
            Op::Alloc { address, size } => {
                self.start(code::ALLOC, 0, at, out);
                put(out, *address);
                put(out, *size);
            }
            Op::Free { address } => {
                self.start(code::FREE, 0, at, out);
                put(out, *address);
            }
            Op::Input { source, value } => {
                self.start(code::INPUT, 0, at, out);
                put_unkeyed(source, out);
                put(out, *value);
            }
            Op::Guarded(guarded) => {
                self.start(code::GUARDED, 0, at, out);
                self.term_id(guarded.guard, out);
                put(out, guarded.assignments.len() as u64);
                for &(variable, term) in &guarded.assignments {
                    self.variable_id(variable, out);
                    self.term_id(term, out);
                }
            }
            Op::Transition(transition) => {
                self.start(code::TRANSITION, 0, at, out);
                self.term_id(transition.predicate, out);
                put(out, transition.changed.len() as u64);
                for &variable in &transition.changed {
                    self.variable_id(variable, out);
                }
            }
        }
    }

    /// Appends [`Op::Call`].
    pub fn call(&mut self, at: Step, function: Name<'_>, out: &mut Vec<u8>) {
        self.start(code::CALL, 0, at, out);
        self.name(function, out);
    }

    /// Appends [`Op::Read`].
    #[inline]
    pub fn read(&mut self, at: Step, access: &Access, out: &mut Vec<u8>) {
        self.access(code::READ, access, at, out);
    }

    /// Appends [`Op::Write`].
    #[inline]
    pub fn write(&mut self, at: Step, access: &Access, out: &mut Vec<u8>) {
        self.access(code::WRITE, access, at, out);
    }

    /// Appends [`Op::Branch`].
    #[inline]
    pub fn branch(&mut self, at: Step, condition: Condition, out: &mut Vec<u8>) {
        self.condition(code::BRANCH, condition, at, out);
    }

    /// Appends [`Op::RegionBegin`].
    pub fn region_begin(&mut self, at: Step, region: Name<'_>, out: &mut Vec<u8>) {
        self.start(code::REGION_BEGIN, 0, at, out);
        self.name(region, out);
    }

    /// Appends [`Op::Input`].
    pub fn input(&mut self, at: Step, source: Name<'_>, value: u64, out: &mut Vec<u8>) {
        self.start(code::INPUT, 0, at, out);
        self.name(source, out);
        put(out, value);
    }

    #[inline]
    fn start(&mut self, code: u8, attributes: u8, at: Step, out: &mut Vec<u8>) {
        let context = &mut self.context;
        if context.thread != Some(at.thread) || context.next_index != at.index {
            out.push(code::SWITCH);
            put(out, u64::from(at.thread.0));
            put(out, u64::from(at.index));
            context.thread = Some(at.thread);
        }
        context.next_index = at.index.wrapping_add(1);
        let jump = at.sequence.wrapping_sub(context.next_sequence);
        context.next_sequence = at.sequence.wrapping_add(1);
        let site_changed = at.site != context.site;
        let flags = flag(site_changed, code::SITE)
            | flag(jump != 0, code::JUMP)
            | flag(attributes != 0, code::ATTRIBUTES);
        if code < code::DEFINITION {
            out.push(code | flags);
        } else {
            out.extend([code::ESCAPE, code, flags]);
        }
        if attributes != 0 {
            out.push(attributes);
        }
        if jump != 0 {
            put(out, zigzag(jump as i64));
        }
        if site_changed {
            match at.site {
                None => put(out, 0),
                Some(site) => put(out, 1 + step(context.site.map_or(0, |site| site.0), site.0)),
            }
            context.site = at.site;
        }
        self.events = self.events.saturating_add(1);
        self.first = self.first.min(at.sequence);
        self.last = self.last.max(at.sequence);
    }

    /// What almost all records are. They are put together in place; those that do not follow
    /// straight on the previous event begin in the general way.
    #[inline]
    fn access(&mut self, code: u8, access: &Access, at: Step, out: &mut Vec<u8>) {
        let attributes = order_number(access.order)
            | flag(access.value.is_none(), attribute::NO_VALUE)
            | flag(access.term.is_some(), attribute::TERM)
            | flag(access.address.is_some(), attribute::ADDRESS);
        let context = &self.context;
        let follows = context.thread == Some(at.thread)
            && context.next_index == at.index
            && context.next_sequence == at.sequence;
        if !follows {
            self.start(code, attributes, at, out);
        }
        out.extend_from_slice(&[0; SHORT]);
        let Some(mut short) = Short::at_end(out) else { return };
        let context = &mut self.context;
        if follows {
            let site_changed = at.site != context.site;
            let marks = flag(site_changed, code::SITE) | flag(attributes != 0, code::ATTRIBUTES);
            short.byte(code | marks);
            if attributes != 0 {
                short.byte(attributes);
            }
            if site_changed {
                let last = context.site.map_or(0, |site| site.0);
                short.put(at.site.map_or(0, |site| 1 + step(last, site.0)));
                context.site = at.site;
            }
            context.next_index = at.index.wrapping_add(1);
            context.next_sequence = at.sequence.wrapping_add(1);
            self.events = self.events.saturating_add(1);
            self.first = self.first.min(at.sequence);
            self.last = self.last.max(at.sequence);
        }
        short.put(step(context.variable, access.variable.0));
        context.variable = access.variable.0;
        if let Some(value) = access.value {
            let last = &mut context.values[access.variable.index() % TABLE];
            short.put(zigzag(value.wrapping_sub(*last) as i64));
            *last = value;
        }
        for term in [access.term, access.address].into_iter().flatten() {
            short.put(step(context.term, term.0));
            context.term = term.0;
        }
        let unused = SHORT - short.length();
        out.truncate(out.len() - unused);
    }

    fn sync(&mut self, object: ObjectId, step: &SyncOp, at: Step, out: &mut Vec<u8>) {
        let (shape, parts) = (step.kind().shape(), step.parts());
        self.start(shape.code, parts.attributes, at, out);
        self.object_id(object, out);
        if let Some(mutex) = parts.mutex {
            self.object_id(mutex, out);
        }
        for (number, _) in parts.numbers.into_iter().zip(shape.numbers) {
            put(out, number);
        }
    }

    #[inline]
    fn condition(&mut self, code: u8, condition: Condition, at: Step, out: &mut Vec<u8>) {
        let attributes = flag(condition.outcome, attribute::OUTCOME)
            | flag(condition.term.is_some(), attribute::TERM);
        self.start(code, attributes, at, out);
        if let Some(term) = condition.term {
            self.term_id(term, out);
        }
    }

    fn with_thread(&mut self, code: u8, thread: ThreadId, at: Step, out: &mut Vec<u8>) {
        self.start(code, 0, at, out);
        put(out, u64::from(thread.0));
    }

    #[inline]
    fn variable_id(&mut self, variable: VariableId, out: &mut Vec<u8>) {
        put(out, step(self.context.variable, variable.0));
        self.context.variable = variable.0;
    }

    #[inline]
    fn object_id(&mut self, object: ObjectId, out: &mut Vec<u8>) {
        put(out, step(self.context.object, object.0));
        self.context.object = object.0;
    }

    #[inline]
    fn term_id(&mut self, term: TermId, out: &mut Vec<u8>) {
        put(out, step(self.context.term, term.0));
        self.context.term = term.0;
    }

    #[inline]
    fn value(&mut self, variable: VariableId, value: u64, out: &mut Vec<u8>) {
        let last = &mut self.context.values[variable.index() % TABLE];
        put(out, zigzag(value.wrapping_sub(*last) as i64));
        *last = value;
    }

    /// Writes 1 + 2 * slot for a text that the slot holds already; one more where the text follows
    /// and goes into the slot.
    fn name(&mut self, name: Name<'_>, out: &mut Vec<u8>) {
        if name.text.len() > MAX_SLOT_TEXT {
            return put_unkeyed(name.text, out);
        }
        let slot = (name.key ^ (name.key >> 8) ^ (name.key >> 16)) as usize % TABLE;
        if self.names[slot] == name.key && name.key != NO_KEY {
            put(out, 1 + 2 * slot as u64);
        } else {
            put(out, 2 + 2 * slot as u64);
            put_text(name.text, out);
            self.names[slot] = name.key;
        }
    }
}

fn flag(set: bool, bit: u8) -> u8 {
    if set { bit } else { 0 }
}

fn order_number(order: Option<MemoryOrder>) -> u8 {
    match order {
        None => 0,
        Some(MemoryOrder::Relaxed) => 1,
        Some(MemoryOrder::Acquire) => 2,
        Some(MemoryOrder::Release) => 3,
        Some(MemoryOrder::AcquireRelease) => 4,
        Some(MemoryOrder::SequentiallyConsistent) => 5,
    }
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// A name without a slot: 0, then the text.
fn put_unkeyed(text: &str, out: &mut Vec<u8>) {
    out.push(0);
    put_text(text, out);
}

/// A value is its sort and then its bits, numbers, or entries.
#[inline]
fn put_value(value: &Value, out: &mut Vec<u8>) {
    put_sort(value.sort(), out);
    put_content(value, out);
}
