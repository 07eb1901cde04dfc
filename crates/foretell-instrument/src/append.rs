//! Accesses, branches and terms that instrumented code records by itself, without a call (see
//! `foretell-abi`): the common case takes some twenty instructions, everything else calls the hook.

use crate::function::FunctionContext;
use crate::llvm::{Opcode, Predicate, Value};
use foretell_abi::{CallSlots, Cursor, Met, OFFSET_AT, RECORDING, VALUE_AT, WINDOW, record};
use std::mem::offset_of;

/// Something that recurs at its place in the source: an access of shared memory, or a branch.
pub struct Event {
    /// What the runtime tells of it.
    pub met: Value,
    /// Where, as an integer.
    pub address: Value,
    /// The value, as 64 bits.
    pub bits: Value,
    /// The value has at most 32 bits.
    pub narrow: bool,
    /// One word more, unless it is 0, and what the runtime tells of the event then.
    pub more: Option<(Value, Value)>,
}

/// What is known after an event until something else may have been recorded.
#[derive(Clone, Copy)]
pub struct Left {
    /// [`Cursor::next`].
    next: Value,
    /// [`CallSlots::index`].
    index: Value,
}

impl FunctionContext<'_> {
    /// Two numbers of at most 32 bits in one word.
    pub(crate) fn pair(&self, low: Value, high: Value) -> Value {
        let builder = &self.module.builder;
        let wide = |value| builder.integer_cast(value, self.module.module.int64, false);
        builder.or(wide(low), builder.shift_left(wide(high), self.constant(32)))
    }

    fn below(&self, left: Value, right: Value) -> Value {
        self.module.builder.compare(Predicate::LLVMIntULT, left, right)
    }

    fn constant(&self, value: u64) -> Value {
        self.module.module.constant64(value)
    }

    /// Begins to record. Gives the address of [`Cursor::next`], what is there, and whether that is
    /// below the limit. `expected`: what is there unless somebody else appended something; then
    /// that is looked at, too, and the processor need not wait for what was stored last.
    fn begin(&self, expected: Option<Value>) -> (Value, Value, Value) {
        let builder = &self.module.builder;
        let (int64, pointer) = (self.module.module.int64, self.module.module.pointer);
        self.mark(self.module.module.constant32(RECORDING));
        let cursor = builder.load(pointer, self.slot(offset_of!(CallSlots, cursor)));
        let next_at = builder.offset(cursor, offset_of!(Cursor, next) as u64);
        let limit_at = builder.offset(cursor, offset_of!(Cursor, limit) as u64);
        let found = builder.load_in_order(int64, next_at);
        let limit = builder.load_in_order(int64, limit_at);
        let Some(expected) = expected else { return (next_at, found, self.below(found, limit)) };
        let stands = builder.equal(expected, found);
        (next_at, expected, builder.and(stands, self.below(expected, limit)))
    }

    /// What the event before in the same block left behind, if nothing comes between that may
    /// append records.
    fn left_behind(&self, before: Value) -> Option<Left> {
        let left = self.left.filter(|left| left.next.block() == before.block())?;
        let mut at = before.previous();
        while let Some(instruction) = at {
            if instruction == left.next {
                return Some(left);
            }
            if instruction.instruction_opcode() == Some(Opcode::LLVMCall) {
                return None;
            }
            at = instruction.previous();
        }
        None
    }

    /// The number of the thread's events.
    pub(crate) fn index(&self) -> Value {
        let index = self.slot(offset_of!(CallSlots, index));
        self.module.builder.load_in_order(self.module.module.int32, index)
    }

    fn mark(&self, entered: Value) {
        self.module.builder.store_in_order(entered, self.slot(offset_of!(CallSlots, entered)));
    }

    fn put(&self, word: Value, next: Value, at: u64) {
        let builder = &self.module.builder;
        let place = match at {
            0 => next,
            at => builder.add(next, self.constant(8 * at)),
        };
        builder.store_in_order(word, builder.to_pointer(place, self.module.module.pointer));
    }

    /// Either way's result. The builder is before `before` afterwards.
    fn either(&self, here: (Value, Value), otherwise: (Value, Value), before: Value) -> Value {
        let builder = &self.module.builder;
        builder.go_before(before);
        let phi = builder.phi(here.0.ty());
        phi.add_incoming(here.0, here.1.block());
        phi.add_incoming(otherwise.0, otherwise.1.block());
        phi
    }

    /// Records an event, or has `hook` called for it, with what the runtime tells; gives the shadow
    /// of what was read. The builder is before `before`, and is there again afterwards.
    pub(crate) fn append(
        &mut self,
        event: &Event,
        before: Value,
        hook: impl FnOnce(&mut Self, Value) -> Value,
    ) -> Value {
        let builder = &self.module.builder;
        let int64 = self.module.module.int64;
        let left = self.left_behind(before);
        let (next_at, next, mut common) = self.begin(left.map(|left| left.next));
        let (mut met, mut length) = (event.met, self.constant(8));
        if let Some((more, met_more)) = event.more {
            let none = builder.equal(more, self.constant(0));
            met = builder.select(none, met, met_more);
            length = builder.select(none, length, self.constant(16));
        }
        let begin = builder.offset(met, offset_of!(Met, begin) as u64);
        let begin = builder.load_in_order(int64, begin);
        let offset = builder.sub(event.address, begin);
        common = builder.and(common, self.below(offset, self.constant(WINDOW)));
        if !event.narrow {
            let narrow = self.below(event.bits, self.constant(1 << (64 - VALUE_AT)));
            common = builder.and(common, narrow);
        }
        let (here, otherwise) = builder.ways(common, before);

        builder.go_before(here);
        let word = builder.load(int64, builder.offset(met, offset_of!(Met, word) as u64));
        let offset = builder.shift_left(offset, self.constant(OFFSET_AT.into()));
        let value = builder.shift_left(event.bits, self.constant(VALUE_AT.into()));
        self.put(builder.or(builder.or(word, offset), value), next, 0);
        if let Some((more, _)) = event.more {
            // Written in any case: there is room, and what is not needed does not count.
            self.put(more, next, 1);
        }
        let after = builder.add(next, length);
        builder.store_in_order(after, next_at);
        let index = left.map_or_else(|| self.index(), |left| left.index);
        let index = builder.add(index, self.module.module.constant32(1));
        builder.store_in_order(index, self.slot(offset_of!(CallSlots, index)));
        self.mark(index);
        let mask = self.slot(offset_of!(CallSlots, shadow_mask));
        let mask = builder.load(self.module.module.int32, mask);
        let shadow = builder.and(index, mask);

        builder.go_before(otherwise);
        self.mark(self.index());
        let hooked = hook(self, met);
        let builder = &self.module.builder;
        let pointer = self.module.module.pointer;
        let cursor = builder.load(pointer, self.slot(offset_of!(CallSlots, cursor)));
        let next_at = builder.offset(cursor, offset_of!(Cursor, next) as u64);
        let next = builder.load_in_order(int64, next_at);
        let counted = self.index();
        let shadow = self.either((shadow, here), (hooked, otherwise), before);
        let next = self.either((after, here), (next, otherwise), before);
        let index = self.either((index, here), (counted, otherwise), before);
        self.left = Some(Left { next, index });
        shadow
    }

    /// Defines a term by these words, if `fits`, or has `hook` called for it; gives its shadow. The
    /// builder is right before the end of its block, and is there again afterwards.
    pub(crate) fn define(
        &mut self,
        words: &[Value],
        fits: Option<Value>,
        hook: impl FnOnce(&mut Self) -> Value,
    ) -> Value {
        let Some(before) = self.module.builder.terminator() else { return hook(self) };
        let builder = &self.module.builder;
        let (int32, int64) = (self.module.module.int32, self.module.module.int64);
        let (next_at, next, mut common) = self.begin(None);
        if let Some(fits) = fits {
            common = builder.and(common, fits);
        }
        let (here, otherwise) = builder.ways(common, before);

        builder.go_before(here);
        for (at, &word) in words.iter().enumerate() {
            self.put(word, next, at as u64);
        }
        let length = self.constant(8 * words.len() as u64);
        builder.store_in_order(builder.add(next, length), next_at);
        let between = offset_of!(Cursor, terms) - offset_of!(Cursor, next);
        let terms_at = builder.offset(next_at, between as u64);
        let number = builder.load(int64, terms_at);
        builder.store_in_order(builder.add(number, self.constant(1)), terms_at);
        self.mark(self.index());
        let mark = self.module.module.constant32(record::TERM_SHADOW);
        let shadow = builder.or(builder.integer_cast(number, int32, false), mark);

        builder.go_before(otherwise);
        self.mark(self.index());
        let hooked = hook(self);
        self.either((shadow, here), (hooked, otherwise), before)
    }
}
