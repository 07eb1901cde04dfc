//! Loads, stores, atomics and memory intrinsics. Hooks come right after the access, because then
//! the value is known and the scheduling point lies between two accesses (see `foretell-abi`).

use crate::append::Event;
use crate::function::FunctionContext;
use crate::llvm::{Opcode, Type, TypeKind, Value};
use crate::locals::{Local, Locals};
use crate::module::{Mode, Recurring, shape};
use foretell_abi::{
    AccessInfo, BinaryOp, COPY_SYMBOLIC, CallSlots, CastOp, Hook, LOCAL_DESTINATION, LOCAL_SOURCE,
    PinReason, RESULT_SLOTS,
};
use std::mem::offset_of;

/// What a pointer points to.
pub enum Place {
    /// A local variable, by its `alloca`.
    Local(Value, Local),
    /// A constant.
    Constant,
    /// Another address space, such as a segment register: not reported.
    Foreign,
    /// Anything that another thread may see.
    Shared,
}

/// Where the pointer points, as far as its own derivation tells.
pub fn place(pointer: Value, locals: &Locals) -> Place {
    if pointer.ty().scalar_width().is_none() {
        return Place::Foreign;
    }
    if let Some((alloca, kind)) = locals.get(pointer) {
        return Place::Local(alloca, kind);
    }
    let mut base = pointer;
    while let Some(Opcode::LLVMGetElementPtr | Opcode::LLVMBitCast | Opcode::LLVMFreeze) =
        base.instruction_opcode().or_else(|| base.constant_expression_opcode())
    {
        base = base.operand(0);
    }
    if base.is_constant_global() { Place::Constant } else { Place::Shared }
}

/// What reads and writes.
const BOTH: [Hook; 2] = [Hook::ReadRange, Hook::WriteRange];

impl FunctionContext<'_> {
    fn symbolic(&self) -> bool {
        self.module.mode == Mode::Symbolic
    }

    /// The packed description of an access, `None` if the type is not a scalar of 1, 2, 4, 8 bytes.
    fn access_info(&self, instruction: Value, ty: Type) -> Option<u32> {
        ty.scalar_width()?;
        let size = self.module.module.store_size(ty);
        if !matches!(size, 1 | 2 | 4 | 8) {
            return None;
        }
        let mut info = size as u32;
        info |= instruction.ordering().map_or(0, |order| order as u32) << 8;
        if instruction.is_volatile() {
            info |= AccessInfo::VOLATILE;
        }
        if ty.is_scalar_float() {
            info |= AccessInfo::FLOAT;
        }
        Some(info)
    }

    fn constant32(&self, value: u32) -> Value {
        self.module.module.constant32(value)
    }

    fn constant64(&self, value: u64) -> Value {
        self.module.module.constant64(value)
    }

    fn local_shadow_count(&self) -> Value {
        let address = self.slot(offset_of!(CallSlots, local_shadows));
        self.module.builder.load(self.module.module.int32, address)
    }

    pub(crate) fn load(&mut self, load: Value) {
        let Some(next) = self.place_after(load) else { return };
        let pointer = load.operand(0);
        let place = place(pointer, &self.locals);
        if matches!(place, Place::Foreign) {
            return;
        }
        if matches!(place, Place::Constant) {
            return self.pin_address(pointer, load, next);
        }
        if let Some(members) = self.members(load, load.ty(), pointer) {
            // A struct in registers is read member by member.
            let mut parts = Vec::new();
            for (index, address, shadow) in members {
                let member = self.module.builder.extract(load, index);
                parts.push(self.load_scalar(load, member, (address, shadow), &place, next));
            }
            return self.set_parts(load, parts);
        }
        let shadow = self.load_scalar(load, load, (pointer, self.shadow(pointer)), &place, next);
        self.set_shadow(load, shadow);
    }

    /// Members of a flat struct that is accessed whole: index, address, and the address's shadow.
    /// (A struct's address is pinned if it has one, so that the members' are concrete.)
    fn members(
        &mut self,
        instruction: Value,
        ty: Type,
        pointer: Value,
    ) -> Option<Vec<(u32, Value, Value)>> {
        let members = ty.flat_members(RESULT_SLOTS)?;
        if members.iter().any(|member| self.access_info(instruction, *member).is_none()) {
            return None;
        }
        if let Some(next) = instruction.next() {
            self.pin_address(pointer, instruction, next);
        }
        let addresses = (0..members.len() as u32).map(|index| {
            let offset = self.module.module.member_offset(ty, index);
            (index, self.module.builder.offset(pointer, offset), self.concrete())
        });
        Some(addresses.collect())
    }

    /// Reports a load of `value` from an address with its shadow; gives the value's shadow.
    fn load_scalar(
        &mut self,
        load: Value,
        value: Value,
        address: (Value, Value),
        place: &Place,
        next: Value,
    ) -> Value {
        match place {
            Place::Local(alloca, kind) => {
                self.pin_address(address.0, load, next);
                self.load_local(load, value, address.0, (*alloca, *kind), next)
            }
            _ => self.load_shared(load, value, address, next),
        }
    }

    fn load_shared(
        &mut self,
        load: Value,
        value: Value,
        address: (Value, Value),
        next: Value,
    ) -> Value {
        let site = self.site(load);
        let Some(mut info) = self.access_info(load, value.ty()) else {
            self.pin_address(address.0, load, next);
            self.wide(load, address.0, value.ty(), &[Hook::ReadRange], next);
            return self.concrete();
        };
        let wants_shadow = self.symbolic() && load.is_used();
        if wants_shadow {
            info |= AccessInfo::SYMBOLIC;
        }
        self.tell_held(address.0);
        let bits = self.module.builder.widen(value);
        let more = self.packed(address.1, self.concrete());
        let event = self.access(Recurring::Read, site, info, (address.0, bits), more);
        let shadow = self.append(&event, next, |me, met| {
            let arguments = [address.0, me.constant32(info), bits, address.1, site, met];
            me.module.hook(Hook::Load, &arguments)
        });
        if !wants_shadow {
            return self.concrete();
        }
        self.narrow_to_value(shadow, value.ty(), next)
    }

    /// Two shadows in one word; `None` if both are known to be 0.
    fn packed(&self, low: Value, high: Value) -> Option<Value> {
        let none = low == self.concrete() && high == self.concrete();
        (!none).then(|| self.pair(low, high))
    }

    /// An access at a site of a value at an address.
    fn access(
        &mut self,
        what: fn(u32, bool) -> Recurring,
        site: Value,
        info: u32,
        (address, bits): (Value, Value),
        more: Option<Value>,
    ) -> Event {
        let shape = shape(info);
        let met = self.module.met(site, what(shape, false));
        Event {
            met,
            address: self.module.builder.widen(address),
            bits,
            narrow: AccessInfo(info).size() < 8,
            more: more.map(|more| (more, self.module.met(site, what(shape, true)))),
        }
    }

    fn load_local(
        &mut self,
        load: Value,
        value: Value,
        address: Value,
        (alloca, kind): (Value, Local),
        next: Value,
    ) -> Value {
        if !self.may.contains(alloca) {
            return self.concrete();
        }
        match (kind, self.access_info(load, value.ty())) {
            (Local::Scalar, _) => match self.local_shadows.get(&alloca) {
                Some(variable) => self.module.builder.load(self.module.module.int32, *variable),
                None => self.concrete(),
            },
            (Local::Memory, Some(info)) => {
                let count = self.local_shadow_count();
                let shadow = self.guarded(&[count], next, |me| {
                    let size = me.constant32(AccessInfo(info).size());
                    let bits = me.module.builder.widen(value);
                    me.module.hook(Hook::LocalLoad, &[address, size, bits])
                });
                self.narrow_to_value(shadow, value.ty(), next)
            }
            (Local::Memory, None) => {
                let count = self.local_shadow_count();
                let site = self.site(load);
                let size = self.module.module.store_size(value.ty());
                self.if_symbolic(&[count], next, |me| me.pin_local(address, size, site));
                self.concrete()
            }
        }
    }

    /// Pins whatever shadows lie in the bytes of local memory that are read as a vector or the like.
    fn pin_local(&mut self, pointer: Value, size: u64, site: Value) {
        let mut offset = 0;
        while offset < size {
            let step = [8, 4, 2, 1].into_iter().find(|s| offset + s <= size).unwrap_or(1);
            let builder = &self.module.builder;
            let address = builder.offset(pointer, offset);
            let ty = self.module.module.integer(8 * step as u32);
            let bits = builder.widen(builder.load(ty, address));
            let arguments = [address, self.constant32(step as u32), bits];
            let shadow = self.module.hook(Hook::LocalLoad, &arguments);
            let arguments = [
                shadow,
                self.constant32(8 * step as u32),
                bits,
                self.constant32(PinReason::Wide as u32),
                site,
            ];
            self.module.hook(Hook::Pin, &arguments);
            offset += step;
        }
    }

    pub(crate) fn store(&mut self, store: Value) {
        let Some(next) = self.place_after(store) else { return };
        let (value, pointer) = (store.operand(0), store.operand(1));
        let place = place(pointer, &self.locals);
        if matches!(place, Place::Foreign | Place::Constant) {
            return self.pin_address(pointer, store, next);
        }
        let Some(members) = self.members(store, value.ty(), pointer) else {
            let shadow = self.shadow(value);
            let address = (pointer, self.shadow(pointer));
            self.pin_parts(store, PinReason::Wide, next);
            return self.store_scalar(store, (value, shadow), address, &place, next);
        };
        let parts = self.parts(value).cloned();
        for (index, address, address_shadow) in members {
            let member = self.module.builder.extract(value, index);
            let part = parts.as_ref().and_then(|parts| parts.get(index as usize).copied());
            let shadow = part.unwrap_or_else(|| self.concrete());
            self.store_scalar(store, (member, shadow), (address, address_shadow), &place, next);
        }
    }

    /// Reports a store of a value to an address, each with its shadow.
    fn store_scalar(
        &mut self,
        store: Value,
        value: (Value, Value),
        address: (Value, Value),
        place: &Place,
        next: Value,
    ) {
        if let Place::Local(alloca, kind) = place {
            self.pin_address(address.0, store, next);
            return self.store_local(value, address.0, (*alloca, *kind), next);
        }
        let site = self.site(store);
        let Some(info) = self.access_info(store, value.0.ty()) else {
            self.pin_address(address.0, store, next);
            return self.wide(store, address.0, value.0.ty(), &[Hook::WriteRange], next);
        };
        self.tell_held(address.0);
        let shadow = self.widen_to_memory(value.1, value.0.ty(), next);
        let bits = self.module.builder.widen(value.0);
        let more = self.packed(shadow, address.1);
        let event = self.access(Recurring::Write, site, info, (address.0, bits), more);
        self.append(&event, next, |me, met| {
            let info = me.constant32(info);
            let arguments = [address.0, info, bits, shadow, address.1, site, met];
            me.module.hook(Hook::Store, &arguments);
            me.concrete()
        });
    }

    fn store_local(
        &mut self,
        (value, shadow): (Value, Value),
        address: Value,
        (alloca, kind): (Value, Local),
        next: Value,
    ) {
        if !self.may.contains(alloca) {
            return;
        }
        match kind {
            Local::Scalar => {
                let Some(&variable) = self.local_shadows.get(&alloca) else { return };
                self.module.builder.store(shadow, variable);
            }
            Local::Memory => {
                let size = self.module.module.store_size(value.ty());
                let shadow = self.widen_to_memory(shadow, value.ty(), next);
                let count = self.local_shadow_count();
                self.if_symbolic(&[count, shadow], next, |me| {
                    let arguments = [address, me.constant64(size), shadow];
                    me.module.hook(Hook::LocalStore, &arguments);
                });
            }
        }
    }

    pub(crate) fn read_modify_write(&mut self, rmw: Value) {
        let Some(next) = self.place_after(rmw) else { return };
        let (pointer, operand) = (rmw.operand(0), rmw.operand(1));
        let site = self.site(rmw);
        let Some(mut info) = self.access_info(rmw, operand.ty()) else {
            self.pin_address(pointer, rmw, next);
            return self.wide(rmw, pointer, operand.ty(), &BOTH, next);
        };
        self.tell_held(pointer);
        info |= (rmw.rmw_kind() as u32) << 24;
        if self.symbolic() {
            info |= AccessInfo::SYMBOLIC;
        }
        let builder = &self.module.builder;
        let arguments = [
            pointer,
            self.constant32(info),
            builder.widen(rmw),
            builder.widen(operand),
            self.shadow(operand),
            self.shadow(pointer),
            site,
        ];
        let shadow = self.module.hook(Hook::Rmw, &arguments);
        if self.symbolic() {
            self.set_shadow(rmw, shadow);
        }
    }

    pub(crate) fn compare_exchange(&mut self, exchange: Value) {
        let Some(next) = self.place_after(exchange) else { return };
        let (pointer, expected, desired) =
            (exchange.operand(0), exchange.operand(1), exchange.operand(2));
        let site = self.site(exchange);
        let Some(mut info) = self.access_info(exchange, expected.ty()) else {
            self.pin_address(pointer, exchange, next);
            return self.wide(exchange, pointer, expected.ty(), &BOTH, next);
        };
        self.tell_held(pointer);
        if self.symbolic() {
            info |= AccessInfo::SYMBOLIC;
        }
        let int32 = self.module.module.int32;
        let builder = &self.module.builder;
        let old_bits = builder.widen(builder.extract(exchange, 0));
        let expected_bits = builder.widen(expected);
        let success = builder.integer_cast(builder.extract(exchange, 1), int32, false);
        let arguments = [
            pointer,
            self.constant32(info),
            old_bits,
            expected_bits,
            builder.widen(desired),
            success,
            self.shadow(expected),
            self.shadow(desired),
            self.shadow(pointer),
            site,
        ];
        let old = self.module.hook(Hook::Cmpxchg, &arguments);
        if !self.symbolic() {
            return;
        }
        let width = expected.ty().scalar_width().unwrap_or(64);
        let wanted = self.shadow(expected);
        let succeeded = self.guarded(&[old, wanted], next, |me| {
            me.binary_hook(BinaryOp::Eq, width, (old, old_bits), (wanted, expected_bits))
        });
        self.set_parts(exchange, vec![old, succeeded]);
    }

    pub(crate) fn fence(&mut self, fence: Value) {
        if self.place_after(fence).is_none() {
            return;
        }
        let site = self.site(fence);
        let order = self.constant32(fence.ordering().map_or(0, |order| order as u32));
        self.module.hook(Hook::Fence, &[order, site]);
    }

    /// `memcpy` or `memmove`, as an intrinsic or by name.
    pub(crate) fn copy(&mut self, call: Value) {
        let Some(next) = self.place_after(call) else { return };
        let (to, from) = (call.operand(0), call.operand(1));
        let mut flags = if self.symbolic() { COPY_SYMBOLIC } else { 0 };
        let (mut shadows_matter, mut events) = (false, false);
        match place(to, &self.locals) {
            Place::Local(alloca, _) => {
                flags |= LOCAL_DESTINATION;
                shadows_matter |= self.may.contains(alloca);
            }
            Place::Foreign => return,
            Place::Constant | Place::Shared => events = true,
        }
        match place(from, &self.locals) {
            Place::Local(alloca, _) => {
                flags |= LOCAL_SOURCE;
                shadows_matter |= self.may.contains(alloca);
            }
            Place::Foreign => return,
            Place::Constant => flags |= LOCAL_SOURCE,
            Place::Shared => events = true,
        }
        self.bytes(call, next, shadows_matter, events, |me, site, length| {
            let arguments = [to, from, length, me.constant32(flags), site];
            me.module.hook(Hook::Memcpy, &arguments);
        });
    }

    /// `memset`, as an intrinsic or by name.
    pub(crate) fn fill(&mut self, call: Value) {
        let Some(next) = self.place_after(call) else { return };
        let (to, byte) = (call.operand(0), call.operand(1));
        let mut flags = if self.symbolic() { COPY_SYMBOLIC } else { 0 };
        let (shadows_matter, events) = match place(to, &self.locals) {
            Place::Local(alloca, _) => {
                flags |= LOCAL_DESTINATION;
                (self.may.contains(alloca), false)
            }
            Place::Foreign => return,
            Place::Constant | Place::Shared => (false, true),
        };
        let width = byte.ty().scalar_width().unwrap_or(8);
        let whole = self.shadow(byte);
        let shadow = if width == 8 {
            whole
        } else {
            self.guarded(&[whole], next, |me| me.cast_hook(CastOp::Truncate, width, 8, whole))
        };
        // A symbolic byte makes local memory symbolic that was not before.
        let always = events || shadow != self.concrete();
        self.bytes(call, next, shadows_matter, always, |me, site, length| {
            let value = me.module.builder.integer_cast(byte, me.module.module.int32, false);
            let arguments = [to, value, shadow, length, me.constant32(flags), site];
            me.module.hook(Hook::Memset, &arguments);
        });
    }

    /// Reports a memory intrinsic: always, or only while there are shadows in local memory.
    fn bytes(
        &mut self,
        call: Value,
        next: Value,
        shadows_matter: bool,
        always: bool,
        report: impl FnOnce(&mut Self, Value, Value),
    ) {
        let site = self.site(call);
        for operand in 0..3 {
            let value = call.operand(operand);
            if value.ty().kind() == TypeKind::LLVMPointerTypeKind || operand == 2 {
                self.pin(value, PinReason::Address, site, next);
            }
        }
        let length =
            self.module.builder.integer_cast(call.operand(2), self.module.module.int64, false);
        if always {
            report(self, site, length);
        } else if shadows_matter {
            let count = self.local_shadow_count();
            self.if_symbolic(&[count], next, |me| report(me, site, length));
        }
    }

    /// An access that keeps no shadows. If it is atomic, it is one step nevertheless: what it reads is told before it.
    fn wide(&mut self, access: Value, pointer: Value, ty: Type, told: &[Hook], next: Value) {
        let site = self.site(access);
        let size = self.constant64(self.module.module.store_size(ty));
        let is_atomic = access.ordering().is_some();
        let mark = |me: &mut Self, begins: u32| {
            let begins = me.constant32(begins);
            me.module.hook(Hook::WideAtomic, &[pointer, begins, site]);
        };
        if is_atomic {
            self.module.builder.place_before(access);
            mark(self, 1);
        }
        for &hook in told {
            let reads = hook == Hook::ReadRange;
            if !(is_atomic && reads) {
                self.module.builder.place_before(next);
                self.module.builder.take_debug_location(access);
            }
            self.range_of(hook, pointer, size, site, reads);
        }
        if is_atomic {
            self.module.builder.place_before(next);
            self.module.builder.take_debug_location(access);
            mark(self, 0);
        }
    }

    /// An access of `size` bytes that keeps no shadows.
    pub(crate) fn range_of(
        &mut self,
        hook: Hook,
        pointer: Value,
        size: Value,
        site: Value,
        read: bool,
    ) {
        let mut arguments = vec![pointer, size];
        if read {
            arguments.push(self.constant32(u32::from(self.symbolic())));
        }
        arguments.push(site);
        self.module.hook(hook, &arguments);
    }

    fn pin_address(&mut self, pointer: Value, instruction: Value, before: Value) {
        if self.has_shadow(pointer) {
            let site = self.site(instruction);
            self.pin(pointer, PinReason::Address, site, before);
        }
    }

    /// Memory holds whole bytes; a Boolean in a register has one bit.
    fn narrow_to_value(&mut self, shadow: Value, ty: Type, before: Value) -> Value {
        let (stored, width) = self.widths(ty);
        if stored == width {
            return shadow;
        }
        self.guarded(&[shadow], before, |me| me.cast_hook(CastOp::Truncate, stored, width, shadow))
    }

    fn widen_to_memory(&mut self, shadow: Value, ty: Type, before: Value) -> Value {
        let (stored, width) = self.widths(ty);
        if stored == width {
            return shadow;
        }
        self.guarded(&[shadow], before, |me| {
            me.cast_hook(CastOp::ZeroExtend, width, stored, shadow)
        })
    }

    fn widths(&self, ty: Type) -> (u32, u32) {
        let stored = 8 * self.module.module.store_size(ty) as u32;
        (stored, ty.scalar_width().unwrap_or(stored))
    }
}
