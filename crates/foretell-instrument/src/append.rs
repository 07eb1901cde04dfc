//! Accesses that instrumented code records by itself, without a call (see `foretell-abi`): the common
//! case takes some twenty instructions, everything else calls the hook.

use crate::function::FunctionContext;
use crate::llvm::{Predicate, Value};
use crate::module::Accesses;
use foretell_abi::{AccessInfo, CallSlots, Cursor, Met, OFFSET_AT, VALUE_AT, WINDOW};
use std::mem::offset_of;

/// An access of shared memory.
pub struct Access {
    /// What it does.
    pub accesses: Accesses,
    /// Its packed description.
    pub info: u32,
    /// Where.
    pub address: Value,
    /// What was read or written, as 64 bits.
    pub bits: Value,
    /// Its place in the source.
    pub site: Value,
}

impl FunctionContext<'_> {
    /// Records an access whose `shadows` must be 0 for the common case; `hook` is given its `Met` and
    /// calls the hook. Gives the shadow of what was read. The builder is before `before`, and is
    /// there again afterwards.
    pub(crate) fn append(
        &mut self,
        access: &Access,
        shadows: &[Value],
        before: Value,
        hook: impl FnOnce(&mut Self, Value) -> Value,
    ) -> Value {
        let info = AccessInfo(access.info);
        let met = self.module.met(access.site, access.accesses, info);
        let concrete = self.concrete();
        let any_shadow = self.any_shadow(shadows);
        let (int32, int64, pointer) =
            (self.module.module.int32, self.module.module.int64, self.module.module.pointer);
        let constant = |value: u64| self.module.module.constant64(value);
        let builder = &self.module.builder;
        let below = |left, right| builder.compare(Predicate::LLVMIntULT, left, right);

        let cursor = builder.load(pointer, self.slot(offset_of!(CallSlots, cursor)));
        let next_at = builder.offset(cursor, offset_of!(Cursor, next) as u64);
        let next = builder.load(int64, next_at);
        let limit = builder.load(int64, builder.offset(cursor, offset_of!(Cursor, limit) as u64));
        let begin = builder.load(int64, builder.offset(met, offset_of!(Met, begin) as u64));
        let offset = builder.sub(builder.widen(access.address), begin);
        let mut common = builder.and(below(next, limit), below(offset, constant(WINDOW)));
        if info.size() == 8 {
            common = builder.and(common, below(access.bits, constant(1 << (64 - VALUE_AT))));
        }
        if let Some(any) = any_shadow {
            common = builder.and(common, builder.equal(any, concrete));
        }
        let (here, otherwise) = builder.ways(common, before);

        builder.go_before(here);
        let index_at = self.slot(offset_of!(CallSlots, index));
        let index = builder.add(builder.load(int32, index_at), self.module.module.constant32(1));
        builder.store_in_order(index, self.slot(offset_of!(CallSlots, entered)));
        let word = builder.load(int64, builder.offset(met, offset_of!(Met, word) as u64));
        let offset = builder.shift_left(offset, constant(OFFSET_AT.into()));
        let value = builder.shift_left(access.bits, constant(VALUE_AT.into()));
        let word = builder.or(builder.or(word, offset), value);
        builder.store_in_order(word, builder.to_pointer(next, pointer));
        builder.store_in_order(builder.add(next, constant(8)), next_at);
        builder.store_in_order(index, index_at);
        let mask = builder.load(int32, self.slot(offset_of!(CallSlots, shadow_mask)));
        let shadow = builder.and(index, mask);

        builder.go_before(otherwise);
        let hooked = hook(self, met);
        let builder = &self.module.builder;
        builder.go_before(before);
        let phi = builder.phi(int32);
        phi.add_incoming(shadow, here.block());
        phi.add_incoming(hooked, otherwise.block());
        phi
    }
}
