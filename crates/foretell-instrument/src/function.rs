//! A function: what it does on entry and exit, and the walk over its instructions.
//!
//! Blocks are visited in reverse post-order, so that an operand's shadow exists before it is used;
//! shadows of phis are made first and filled last. Shadows are SSA values of 32 bits beside the
//! values they belong to; a value without an entry is concrete.

use crate::append::Left;
use crate::awaits::Awaits;
use crate::llvm::{Block, Description, Opcode, Value};
use crate::locals::{Local, Locals};
use crate::module::{Mode, ModuleContext};
use crate::pins::Position;
use crate::rust_channels;
use crate::symbolic::MaySymbolic;
use foretell_abi::{ARGUMENT_SLOTS, CallSlots, Hook, PinReason, Unseen};
use std::collections::{HashMap, HashSet};
use std::mem::offset_of;

/// A function while it is instrumented.
pub struct FunctionContext<'m> {
    /// The module's state.
    pub module: &'m mut ModuleContext,
    /// The function.
    pub function: Value,
    /// Its local variables.
    pub locals: Locals,
    /// Its loops that wait.
    pub awaits: Awaits,
    /// Values that may have a shadow.
    pub may: MaySymbolic,
    /// Where in the function as it was the values are used that are asked about.
    position: Position,
    /// Of which values it was told, at the current instruction, that they had to be what they were.
    told: HashSet<Value>,
    /// The thread's `CallSlots`.
    pub slots: Value,
    /// The frame's address, by which the runtime knows calls that were left without a return.
    pub frame: Value,
    /// Shadows of scalars.
    shadows: HashMap<Value, Value>,
    /// Shadows of the members of flat structs.
    parts: HashMap<Value, Vec<Value>>,
    /// Stack variables that hold the shadows of scalar local variables.
    pub local_shadows: HashMap<Value, Value>,
    /// The function that is not instrumented and called this one back, or 0; absent where nothing has shadows,
    /// and in functions of the language's library.
    pub called_back_by: Option<Value>,
    /// What the last event left behind.
    pub left: Option<Left>,
}

/// Instruments a function.
pub fn instrument(module: &mut ModuleContext, function: Value) {
    for block in function.reachable_blocks() {
        if let Some(end) = block.terminator().filter(|t| t.opcode() == Opcode::LLVMInvoke) {
            end.after_invoke();
        }
    }
    let mut blocks = function.reachable_blocks();
    let Some(entry) = blocks.first() else { return };
    let Some(start) = gather_allocas(module, entry.instructions()) else { return };
    let locals = Locals::find(blocks.iter().flat_map(|block| block.instructions()));
    // Without expressions no branch is known to depend on what was read.
    let waits = module.mode == Mode::Symbolic && !rust_channels::never_waits(function);
    let find = |blocks: &[Block]| match waits {
        true => Awaits::find(blocks, &locals, &module.looking),
        false => Awaits::default(),
    };
    let mut awaits = find(&blocks);
    if !awaits.switches.is_empty() {
        for &(switch, round) in &awaits.switches {
            switch.test_before_switch(round);
        }
        blocks = function.reachable_blocks();
        awaits = find(&blocks);
    }
    let instructions: Vec<Value> = blocks.iter().flat_map(|b| b.instructions()).collect();
    let may = match module.mode {
        Mode::Symbolic => {
            MaySymbolic::find(function, &blocks, &instructions, &locals, &module.module)
        }
        Mode::Concrete => MaySymbolic::nothing(),
    };

    module.builder.place_before(start);
    let site = module.function_site(function);
    let (int32, pointer) = (module.module.int32, module.module.pointer);
    let frame_address = module.module.function("llvm.frameaddress.p0", pointer, &[int32]);
    let frame = module.builder.call(frame_address, &[module.module.constant32(0)]);
    let slots = if function.is_of_library() {
        // What it does belongs to the line of the program that called it.
        let return_address = module.module.function("llvm.returnaddress", pointer, &[int32]);
        let caller = module.builder.call(return_address, &[module.module.constant32(0)]);
        module.hook(Hook::EnterLibrary, &[frame, caller])
    } else {
        module.hook(Hook::Enter, &[site, frame])
    };

    let mut context = FunctionContext {
        module,
        function,
        locals,
        awaits,
        may,
        position: Position::default(),
        told: HashSet::new(),
        slots,
        frame,
        shadows: HashMap::new(),
        parts: HashMap::new(),
        local_shadows: HashMap::new(),
        called_back_by: None,
        left: None,
    };
    context.describe_locals(&instructions);
    context.take_arguments();
    context.prepare_locals();
    context.mark_awaits();
    let phis = context.make_phis(&instructions);
    for &instruction in &instructions {
        context.instruction(instruction);
    }
    for &phi in instructions.iter().filter(|i| i.opcode() == Opcode::LLVMPHI) {
        context.pin_incoming(phi);
    }
    for (phi, shadow) in phis {
        for (value, block) in phi.incoming() {
            let flowing = context.flowing_shadow(value, block);
            shadow.add_incoming(flowing, block);
        }
    }
}

/// Whether the instruction is an `alloca` of constant size.
fn is_static(instruction: &Value) -> bool {
    instruction.opcode() == Opcode::LLVMAlloca && instruction.operand(0).is_constant()
}

/// Moves the entry block's variables of constant size to its front, because code inserted between
/// them would make the later ones dynamic; gives the first instruction after them.
fn gather_allocas(module: &ModuleContext, entry: Vec<Value>) -> Option<Value> {
    let start = *entry.iter().find(|i| !is_static(i))?;
    module.builder.place_before(start);
    let late = entry.iter().skip_while(|i| **i != start).filter(|i| is_static(i));
    late.for_each(|alloca| module.builder.move_here(*alloca));
    Some(start)
}

impl FunctionContext<'_> {
    /// The constant shadow of concrete values.
    pub fn concrete(&self) -> Value {
        self.module.module.constant32(0)
    }

    /// The value's shadow where it is used by the current instruction.
    pub fn shadow(&self, value: Value) -> Value {
        match self.shadows.get(&value) {
            Some(shadow) if !self.may.is_held(value, self.position) => *shadow,
            _ => self.concrete(),
        }
    }

    /// Whether the value has a shadow that is not known to be 0.
    pub fn has_shadow(&self, value: Value) -> bool {
        self.shadows.contains_key(&value) && !self.may.is_held(value, self.position)
    }

    /// The shadow of a value that flows into a phi from a block.
    fn flowing_shadow(&mut self, value: Value, block: Block) -> Value {
        match self.may.flow().end(block) {
            Some(end) => {
                self.position = end;
                self.shadow(value)
            }
            None => self.concrete(),
        }
    }

    /// Gives the value a shadow.
    pub fn set_shadow(&mut self, value: Value, shadow: Value) {
        if shadow != self.concrete() {
            self.shadows.insert(value, shadow);
        }
    }

    /// Shadows of the members of a flat struct.
    pub fn parts(&self, value: Value) -> Option<&Vec<Value>> {
        self.parts.get(&value)
    }

    /// Gives the members of a flat struct their shadows.
    pub fn set_parts(&mut self, value: Value, parts: Vec<Value>) {
        if parts.iter().any(|part| *part != self.concrete()) {
            self.parts.insert(value, parts);
        }
    }

    /// The site of an instruction.
    pub fn site(&mut self, instruction: Value) -> Value {
        self.module.site(instruction, self.function)
    }

    /// Goes to the place right after an instruction, as far as debug information is concerned still
    /// in it. Gives the instruction before which code is inserted; `None` after a terminator.
    pub fn place_after(&self, instruction: Value) -> Option<Value> {
        let next = instruction.next()?;
        self.module.builder.place_before(next);
        self.module.builder.take_debug_location(instruction);
        Some(next)
    }

    /// Builds an expression where at least one of the shadows is not 0; else the result is 0. The
    /// builder is before `before`, and is there again afterwards.
    pub fn guarded(
        &mut self,
        shadows: &[Value],
        before: Value,
        build: impl FnOnce(&mut Self) -> Value,
    ) -> Value {
        let concrete = self.concrete();
        let Some(any) = self.any_shadow(shadows) else { return concrete };
        let head = before.block();
        let builder = &self.module.builder;
        let condition = builder.differ(any, concrete);
        let end = builder.place_in_if(condition, before, false);
        let result = build(self);
        self.module.builder.place_before(before);
        let phi = self.module.builder.phi(self.module.module.int32);
        phi.add_incoming(result, end.block());
        phi.add_incoming(concrete, head);
        phi
    }

    /// Does something where at least one of the shadows is not 0.
    pub fn if_symbolic(&mut self, shadows: &[Value], before: Value, build: impl FnOnce(&mut Self)) {
        let concrete = self.concrete();
        let Some(any) = self.any_shadow(shadows) else { return };
        let condition = self.module.builder.differ(any, concrete);
        self.module.builder.place_in_if(condition, before, false);
        build(self);
        self.module.builder.place_before(before);
    }

    /// A number that is 0 if and only if all shadows are; `None` if that is known.
    fn any_shadow(&self, shadows: &[Value]) -> Option<Value> {
        let concrete = self.concrete();
        let mut unknown: Vec<Value> = Vec::new();
        for &shadow in shadows {
            if shadow != concrete && !unknown.contains(&shadow) {
                unknown.push(shadow);
            }
        }
        unknown.into_iter().reduce(|a, b| self.module.builder.or(a, b))
    }

    /// Tells the runtime that from here on the value is taken as the constant it is. The builder is
    /// before `before`.
    pub fn pin(&mut self, value: Value, reason: PinReason, site: Value, before: Value) {
        let Some(width) = value.ty().scalar_width() else { return };
        self.tell_held(value);
        let shadow = self.shadow(value);
        self.if_symbolic(&[shadow], before, |me| {
            let bits = me.module.builder.widen(value);
            let constants = &me.module.module;
            let arguments = [
                shadow,
                constants.constant32(width),
                bits,
                constants.constant32(reason as u32),
                site,
            ];
            me.module.hook(Hook::Pin, &arguments);
        });
    }

    /// Notes that the code for the current instruction holds the value at what it was.
    pub fn tell_held(&mut self, value: Value) {
        self.told.insert(value);
    }

    /// Whether the code for the instruction holds all that `pins` takes for held by it.
    fn tells_what_it_holds(&self, instruction: Value) -> bool {
        let held = self.may.held_by(instruction, &self.locals);
        held.into_iter().all(|value| !self.has_shadow(value) || self.told.contains(&value))
    }

    /// The address of a member of the thread's `CallSlots`.
    pub fn slot(&self, offset: usize) -> Value {
        self.module.builder.offset(self.slots, offset as u64)
    }

    /// The shadow of an argument by its position.
    pub fn argument_slot(&self, position: usize) -> Value {
        self.slot(offset_of!(CallSlots, arguments) + 4 * position)
    }

    /// Says what the variables are called that others can see.
    fn describe_locals(&mut self, instructions: &[Value]) {
        if self.module.is_rust {
            return;
        }
        let shared = instructions.iter().filter(|i| is_static(i) && self.locals.get(**i).is_none());
        for alloca in shared.copied().collect::<Vec<Value>>() {
            let Some(description) = alloca.local_description() else { continue };
            let count = alloca.operand(0).constant_unsigned().unwrap_or(1);
            let size = self.module.module.stride(alloca.allocated_type()).saturating_mul(count);
            self.describe(alloca, &description, size);
        }
    }

    /// Says what a piece of memory is called.
    pub fn describe(&mut self, address: Value, description: &Description, size: u64) {
        let described = self.module.described(description, size);
        self.module.hook(Hook::Describe, &[address, described]);
    }

    /// Takes the shadows that the caller left, and says that they are taken.
    fn take_arguments(&mut self) {
        if self.module.mode == Mode::Concrete {
            return;
        }
        let builder = &self.module.builder;
        let int64 = self.module.module.int64;
        let callee = self.slot(offset_of!(CallSlots, callee));
        let parameters: Vec<(usize, Value)> = self
            .function
            .parameters()
            .into_iter()
            .enumerate()
            .take(ARGUMENT_SLOTS)
            .filter(|(_, p)| p.is_used() && self.may.contains(*p))
            .collect();
        let tag = builder.load(int64, callee);
        let own = builder.widen(self.function);
        let meant = builder.equal(tag, own);
        let mut taken = Vec::new();
        for (position, parameter) in parameters {
            let shadow = builder.load(self.module.module.int32, self.argument_slot(position));
            taken.push((parameter, builder.select(meant, shadow, self.concrete())));
        }
        let nobody = self.module.module.constant64(0);
        builder.store(nobody, callee);
        let outside = builder.load(int64, self.slot(offset_of!(CallSlots, outside)));
        // What a library hands to its own compiled part is left alone, as all that goes on there.
        if !self.function.is_of_library() {
            self.called_back_by = Some(builder.select(meant, nobody, outside));
        }
        for (parameter, shadow) in taken {
            self.set_shadow(parameter, shadow);
        }
    }

    /// Makes a place for the shadows of local variables, empty at first.
    fn prepare_locals(&mut self) {
        let variables: Vec<(Value, Local)> =
            self.locals.iter().filter(|(alloca, _)| self.may.contains(*alloca)).collect();
        for (alloca, kind) in variables {
            let Some(next) = alloca.next() else { continue };
            match kind {
                Local::Scalar => {
                    self.module.builder.place_before(alloca);
                    let shadow = self.module.builder.alloca(self.module.module.int32);
                    self.local_shadows.insert(alloca, shadow);
                    self.place_after_allocas(next);
                    self.module.builder.store(self.concrete(), shadow);
                }
                Local::Memory => self.clear_local_memory(alloca, next),
            }
        }
    }

    /// Goes before `next`, but never in front of a static `alloca` or of the call of `enter`.
    fn place_after_allocas(&self, next: Value) -> Value {
        let mut place = next;
        let in_entry = next.block() == self.slots.block();
        while in_entry && place.opcode() == Opcode::LLVMAlloca {
            match place.next() {
                Some(after) => place = after,
                None => break,
            }
        }
        self.module.builder.place_before(place);
        place
    }

    /// A new variable must not inherit the shadows of one that used the same stack before.
    fn clear_local_memory(&mut self, alloca: Value, next: Value) {
        // A variable-length array exists only from its `alloca` on, also in the entry block.
        let before = if is_static(&alloca) && alloca.block() == self.slots.block() {
            let Some(after_enter) = self.slots.next() else { return };
            self.module.builder.place_before(after_enter);
            after_enter
        } else {
            self.module.builder.place_before(next);
            next
        };
        let int64 = self.module.module.int64;
        let builder = &self.module.builder;
        let count =
            builder.load(self.module.module.int32, self.slot(offset_of!(CallSlots, local_shadows)));
        let elements = builder.integer_cast(alloca.operand(0), int64, false);
        let stride = self.module.module.stride(alloca.allocated_type());
        let size = builder.mul(elements, self.module.module.constant64(stride));
        self.if_symbolic(&[count], before, |me| {
            let arguments = [alloca, size, me.concrete()];
            me.module.hook(Hook::LocalStore, &arguments);
        });
    }

    /// Reports where rounds of loops that wait begin.
    fn mark_awaits(&mut self) {
        let constants = self.module.module;
        for look in self.awaits.looks.clone() {
            self.module.builder.place_before(look.call);
            let arguments = [
                constants.constant32(look.comparison),
                constants.constant64(look.constant as u64),
                constants.constant32(look.compared().into()),
                constants.constant32(look.alone.into()),
            ];
            self.module.hook(Hook::AwaitLook, &arguments);
        }
        for (header, entries) in self.awaits.loops.clone() {
            for end in entries.into_iter().filter_map(Block::terminator) {
                self.module.builder.place_before(end);
                self.module.hook(Hook::AwaitEnter, &[]);
            }
            if let Some(first) = header.first_insertion_point() {
                let site = self.site(first);
                self.module.builder.place_before(first);
                self.module.hook(Hook::AwaitRound, &[site]);
            }
        }
    }

    fn make_phis(&mut self, instructions: &[Value]) -> Vec<(Value, Value)> {
        let mut phis = Vec::new();
        for &phi in instructions.iter().filter(|i| i.opcode() == Opcode::LLVMPHI) {
            if self.may.contains(phi) {
                self.module.builder.place_before(phi);
                let shadow = self.module.builder.phi(self.module.module.int32);
                self.set_shadow(phi, shadow);
                phis.push((phi, shadow));
            }
        }
        phis
    }

    fn instruction(&mut self, instruction: Value) {
        use Opcode::*;
        self.position = self.may.flow().position(instruction);
        self.told.clear();
        if self.module.hidden.contains(&instruction) {
            return self.pin_operands(instruction, instruction);
        }
        if self.module.clocks.contains(&instruction) {
            self.say_unseen(instruction, Unseen::Clock, "a comparison with a clock");
        }
        match instruction.opcode() {
            LLVMLoad => self.load(instruction),
            LLVMStore => self.store(instruction),
            LLVMAtomicRMW => self.read_modify_write(instruction),
            LLVMAtomicCmpXchg => self.compare_exchange(instruction),
            LLVMFence => self.fence(instruction),
            LLVMCall | LLVMInvoke | LLVMCallBr => self.call(instruction),
            LLVMBr => self.branch(instruction),
            LLVMSwitch => self.switch(instruction),
            LLVMRet => self.leave(instruction),
            LLVMResume => self.pass_on_exception(instruction),
            LLVMLandingPad => self.landing_pad(instruction),
            LLVMPHI | LLVMUnreachable => {}
            _ => self.expression(instruction),
        }
        debug_assert!(self.tells_what_it_holds(instruction), "{:?}", instruction.opcode());
    }
}
