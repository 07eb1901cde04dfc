//! Records that are events.

use foretell_trace::format::binary::{Name, Step};
use foretell_trace::{
    Access, AwaitMark, Condition, Event, LockMode, LockStep, MemoryOrder, MemoryRange, ObjectId,
    Op, Operator, ReadModifyWrite, Scope, SiteId, Sort, SyncOp, ThreadId, Value, Variable,
    VariableId,
};
use foretell_wire::again::Short;
use foretell_wire::record::{self, Words};
use foretell_wire::{BY_TRY, Kind, ZEROED, access, await_mark, channel, lock, wait};

use crate::convert::Converter;
use crate::convert::terms::width_of;
use crate::memory::Location;
use crate::output::Output;
use crate::words::text;

/// A record that has a short form, see `foretell_wire::again`.
pub(super) struct Recurring {
    kind: Kind,
    detail: u8,
    place: u64,
    address: u64,
    value: u64,
    /// The word more that it has; else 0.
    more: u64,
}

impl<O: Output> Converter<O> {
    /// Reads a record that has a short form, in whichever form it is.
    #[inline]
    pub(super) fn recurring(&mut self, first: u64, words: &mut Words<'_>) -> Option<Recurring> {
        let (head, address, value) = match Short::from_word(first) {
            Some(short) => {
                let (head, address) = self.again.long(short)?;
                let value = match short.value() {
                    Some(value) => value,
                    None => words.next()?,
                };
                (head, address, value)
            }
            None => {
                let (address, value) = (words.next()?, words.next()?);
                self.again.enter(first, address);
                (first, address, value)
            }
        };
        let detail = (head >> 8) as u8;
        let more = if detail & access::MORE != 0 { words.next()? } else { 0 };
        let kind = Kind::from_code(head as u8)?;
        Some(Recurring { kind, detail, place: head >> 16, address, value, more })
    }

    #[inline]
    pub(super) fn recurring_event(&mut self, step: Recurring) -> Option<()> {
        let Recurring { kind, detail, place, address, value, more } = step;
        if kind == Kind::Branch {
            let term = self.terms.optional(&mut self.output, value as u32, 1)?;
            let condition = Condition { term, outcome: detail & 1 == 1 };
            let site = self.site(place);
            let at = self.next_step(site, "branch")?;
            self.output.branch(at, condition);
            return Some(());
        }
        let size = size_of(detail)?;
        let shadows = match kind {
            Kind::Read => more << 32,
            Kind::WriteShadow => more,
            _ => 0,
        };
        let (mut term, mut address_term) = (None, None);
        if shadows != 0 {
            term = self.terms.optional(&mut self.output, shadows as u32, u16::from(size) * 8)?;
            address_term = self.terms.optional(&mut self.output, (shadows >> 32) as u32, 64)?;
        }
        let site = self.site(place);
        let reads = kind == Kind::Read;
        if self.is_rust {
            self.memory.touch(address, size, self.current);
        }
        // Mostly it is memory that was accessed in the same way before.
        let variable = match reads {
            true => self.memory.read_again(address, size, value),
            false => self.memory.written_again(address, size, value),
        };
        let variable = match variable {
            Some(variable) => VariableId(variable),
            None if reads => {
                self.memory.found(address, size, value);
                self.variable(address, size)
            }
            None => {
                if kind == Kind::Write && detail & access::MORE != 0 {
                    self.memory.know(address, &more.to_le_bytes()[..size.into()]);
                }
                let variable = self.variable(address, size);
                self.memory.left(address, size, value);
                variable
            }
        };
        let at = self.next_step(site, if reads { "read" } else { "write" })?;
        let order = order_of(detail)?;
        let access = Access { variable, value: Some(value), term, address: address_term, order };
        match reads {
            true => self.output.read(at, access),
            false => self.output.write(at, access),
        }
        Some(())
    }

    /// The place of the running thread's next event, which has this keyword.
    #[inline]
    fn next_step(&mut self, site: Option<SiteId>, keyword: &str) -> Option<Step> {
        let thread = ThreadId(self.current);
        let state = self.threads.get_mut(thread.index())?;
        let index = state.index;
        state.index += 1;
        if let Some(schedule) = &mut self.schedule {
            schedule.event(thread, index, keyword, site.map(SiteId::index));
        }
        Some(Step { sequence: self.output.events(), thread, index, site })
    }

    /// A record that is an event and has no short form.
    pub(super) fn event(
        &mut self,
        kind: Kind,
        detail: u8,
        place: u64,
        words: &mut Words<'_>,
    ) -> Option<()> {
        let site = self.site(place);
        let op = match kind {
            Kind::ReadModifyWrite => {
                let record::ReadModifyWrite { address, old, new, shadow, address_shadow } =
                    record::ReadModifyWrite::from_words(detail, words)?;
                let size = size_of(detail)?;
                if self.is_rust {
                    self.memory.touch(address, size, self.current);
                }
                self.memory.found(address, size, old);
                let variable = self.variable(address, size);
                self.memory.left(address, size, new);
                Op::ReadModifyWrite(Box::new(ReadModifyWrite {
                    variable,
                    old: Some(old),
                    new: Some(new),
                    term: self.terms.optional(&mut self.output, shadow, u16::from(size) * 8)?,
                    address: self.terms.optional(&mut self.output, address_shadow, 64)?,
                    order: order_of(detail)?.unwrap_or(MemoryOrder::SequentiallyConsistent),
                }))
            }
            Kind::Acquire => {
                let record::Acquire { object, flags } = record::Acquire::from_words(detail, words)?;
                Op::Sync(ObjectId(object), SyncOp::Acquire(lock_step(flags)))
            }
            Kind::AcquireFailed => {
                let record::AcquireFailed { object, flags } =
                    record::AcquireFailed::from_words(detail, words)?;
                Op::Sync(ObjectId(object), SyncOp::AcquireFailed(lock_step(flags)))
            }
            Kind::Release => {
                let record::Release { object, flags } = record::Release::from_words(detail, words)?;
                Op::Sync(ObjectId(object), SyncOp::Release(lock_step(flags)))
            }
            Kind::ReleaseFailed => {
                let record::ReleaseFailed { object, flags } =
                    record::ReleaseFailed::from_words(detail, words)?;
                Op::Sync(ObjectId(object), SyncOp::ReleaseFailed(lock_step(flags)))
            }
            Kind::WaitBegin => {
                let record::WaitBegin { condition, mutex } =
                    record::WaitBegin::from_words(detail, words)?;
                Op::Sync(ObjectId(condition), SyncOp::WaitBegin { mutex: ObjectId(mutex) })
            }
            Kind::WaitEnd => {
                let record::WaitEnd { condition, mutex } =
                    record::WaitEnd::from_words(detail, words)?;
                let step = SyncOp::WaitEnd {
                    mutex: ObjectId(mutex),
                    timed_out: detail & wait::TIMED_OUT != 0,
                    timed: detail & wait::TIMED != 0,
                };
                Op::Sync(ObjectId(condition), step)
            }
            Kind::Signal => {
                let record::Signal { condition } = record::Signal::from_words(detail, words)?;
                Op::Sync(ObjectId(condition), SyncOp::Signal)
            }
            Kind::Broadcast => {
                let record::Broadcast { condition } = record::Broadcast::from_words(detail, words)?;
                Op::Sync(ObjectId(condition), SyncOp::Broadcast)
            }
            Kind::SemaphoreWait => {
                let record::SemaphoreWait { semaphore } =
                    record::SemaphoreWait::from_words(detail, words)?;
                let by_try = detail == BY_TRY;
                Op::Sync(ObjectId(semaphore), SyncOp::SemaphoreWait { by_try })
            }
            Kind::SemaphoreWaitFailed => {
                let record::SemaphoreWaitFailed { semaphore } =
                    record::SemaphoreWaitFailed::from_words(detail, words)?;
                Op::Sync(ObjectId(semaphore), SyncOp::SemaphoreWaitFailed)
            }
            Kind::SemaphorePost => {
                let record::SemaphorePost { semaphore } =
                    record::SemaphorePost::from_words(detail, words)?;
                Op::Sync(ObjectId(semaphore), SyncOp::SemaphorePost)
            }
            Kind::BarrierArrive => {
                let record::BarrierArrive { barrier } =
                    record::BarrierArrive::from_words(detail, words)?;
                Op::Sync(ObjectId(barrier), SyncOp::BarrierArrive)
            }
            Kind::BarrierLeave => {
                let record::BarrierLeave { barrier } =
                    record::BarrierLeave::from_words(detail, words)?;
                Op::Sync(ObjectId(barrier), SyncOp::BarrierLeave)
            }
            Kind::Send => {
                let record::Send { channel, amount, content } =
                    record::Send::from_words(detail, words)?;
                Op::Sync(ObjectId(channel), SyncOp::Send { amount, content })
            }
            Kind::Receive => {
                let record::Receive { channel, amount } =
                    record::Receive::from_words(detail, words)?;
                let step = SyncOp::Receive {
                    amount,
                    drained: detail & channel::DRAINED != 0,
                    by_try: detail & channel::BY_TRY != 0,
                };
                Op::Sync(ObjectId(channel), step)
            }
            Kind::Poll => {
                let record::Poll { channel } = record::Poll::from_words(detail, words)?;
                Op::Sync(ObjectId(channel), SyncOp::Poll { ready: detail == 1 })
            }
            Kind::Destroy => {
                let record::Destroy { object } = record::Destroy::from_words(detail, words)?;
                Op::Sync(ObjectId(object), SyncOp::Destroy)
            }
            Kind::Fence => Op::Fence(memory_order(detail)?),
            Kind::Assert => {
                let record::Assert { shadow } = record::Assert::from_words(detail, words)?;
                let mut term = self.terms.optional(&mut self.output, shadow, 1)?;
                if detail & 2 != 0 {
                    term =
                        term.map(|term| self.terms.apply(&mut self.output, Operator::Not, &[term]));
                }
                Op::Assert(Condition { term, outcome: detail & 1 == 1 })
            }
            Kind::Pin => {
                let record::Pin { shadow, value } = record::Pin::from_words(detail, words)?;
                let width = width_of(detail.into())?;
                let term = self.terms.operand(&mut self.output, shadow, width, value)?;
                let value = self.terms.constant(&mut self.output, width, value);
                let term = self.terms.apply(&mut self.output, Operator::Eq, &[term, value]);
                Op::Branch(Condition { term: Some(term), outcome: true })
            }
            Kind::RegionBegin => {
                let record::RegionBegin { name } = record::RegionBegin::from_words(words)?;
                Op::RegionBegin(text(name).into())
            }
            Kind::RegionEnd => Op::RegionEnd,
            Kind::Call => {
                let at = self.next_step(site, "call")?;
                let name = Name { key: place, text: self.names.function(place) };
                self.output.call(at, name);
                return Some(());
            }
            Kind::Return => Op::Return,
            Kind::Await => Op::Await(match detail {
                await_mark::ROUND => AwaitMark::Round,
                await_mark::TEST => AwaitMark::Test,
                await_mark::FAILED => AwaitMark::Failed,
                await_mark::AGAIN => AwaitMark::Again,
                _ => return None,
            }),
            Kind::Alloc => {
                let record::Alloc { address, size } = record::Alloc::from_words(detail, words)?;
                self.memory.free(address, size);
                if detail & ZEROED != 0 {
                    self.memory.know_zeros(address, size);
                }
                self.names.allocated(address, size, site);
                Op::Alloc { address, size }
            }
            Kind::Free => {
                let record::Free { address } = record::Free::from_words(detail, words)?;
                if let Some(size) = self.names.freed(address) {
                    self.memory.free(address, size);
                }
                Op::Free { address }
            }
            Kind::Input => {
                let record::Input { value, source } = record::Input::from_words(words)?;
                Op::Input { source: text(source).into(), value }
            }
            Kind::ThreadBegin => Op::ThreadBegin,
            Kind::ThreadEnd => Op::ThreadEnd,
            Kind::Fork => Op::Fork(ThreadId(record::Fork::from_words(detail, words)?.thread)),
            Kind::Join => Op::Join(ThreadId(record::Join::from_words(detail, words)?.thread)),
            _ => return None,
        };
        let at = self.next_step(site, op.keyword())?;
        self.output.event(at.sequence, Event { thread: at.thread, index: at.index, site, op });
        Some(())
    }

    /// The site of a place for the running thread.
    #[inline]
    fn site(&mut self, place: u64) -> Option<SiteId> {
        let callers =
            self.threads.get(self.current as usize).map_or(&[][..], |thread| &thread.library);
        let (output, schedule) = (&mut self.output, &mut self.schedule);
        self.names.site(place, callers, |id, site| {
            output.site(id, site);
            if let Some(schedule) = schedule {
                schedule.site(site);
            }
        })
    }

    fn variable(&mut self, address: u64, size: u8) -> VariableId {
        let next = self.variables;
        let mut made = None;
        let number = self.memory.variable(address, size, |location| {
            made = Some(location);
            next
        });
        if let Some(Location { generation, initial }) = made {
            self.variables += 1;
            let name = self.names.of_memory(address);
            let width = u16::from(size) * 8;
            let memory = Some(MemoryRange { address, size, generation });
            let initial = initial.map(|bits| Value::bit_vec(width, bits));
            let scope = Scope::Shared;
            let sort = Sort::bit_vec(width);
            let variable = Variable { name: name.into(), sort, scope, memory, initial };
            self.output.variable(VariableId(number), variable);
        }
        VariableId(number)
    }
}

fn lock_step(flags: u32) -> LockStep {
    let shared = flags & lock::SHARED != 0;
    LockStep {
        mode: if shared { LockMode::Shared } else { LockMode::Exclusive },
        by_try: flags & lock::BY_TRY != 0,
    }
}

fn size_of(detail: u8) -> Option<u8> {
    let size = access::size(detail);
    (1..=8).contains(&size).then_some(size)
}

fn order_of(detail: u8) -> Option<Option<MemoryOrder>> {
    match access::order(detail) {
        0 => Some(None),
        code => memory_order(code).map(Some),
    }
}

fn memory_order(code: u8) -> Option<MemoryOrder> {
    use foretell_abi::Order;
    Some(match Order::from_code(code.into())? {
        Order::Relaxed => MemoryOrder::Relaxed,
        Order::Acquire => MemoryOrder::Acquire,
        Order::Release => MemoryOrder::Release,
        Order::AcquireRelease => MemoryOrder::AcquireRelease,
        Order::SequentiallyConsistent => MemoryOrder::SequentiallyConsistent,
    })
}
