//! The binary format: everything round-trips, a killed recorder leaves a readable file, damage is
//! found, and version 1 stays readable.

use foretell_testing::{Random, arbitrary};
use foretell_trace::format::binary::{
    self, ChunkEncoder, ChunkSealer, Compression, FILE_HEADER, Name, Record, Records, Step,
};
use foretell_trace::term::ArrayValue;
use foretell_trace::{
    Access, ChannelKind, Condition, Event, EventId, Guarded, Indexer, LockMode, LockStep,
    MemoryOrder, MemoryRange, ObjectId, ObjectKind, Op, Operator, Position, Rational,
    ReadModifyWrite, ScalarSort, Scope, Site, SiteId, Sort, SyncOp, ThreadId, Trace, Transition,
    Value, Variable, VariableId,
};
use proptest::prelude::*;

fn file(trace: &Trace) -> Vec<u8> {
    let mut file = Vec::new();
    binary::write(trace, &mut file).expect("a vector takes everything");
    file
}

proptest! {
    #[test]
    fn every_trace_round_trips(seed: u64, size in 0usize..200) {
        let trace = arbitrary::trace(seed, size);
        prop_assert_eq!(binary::read(&file(&trace)), Ok(trace));
    }

    #[test]
    fn a_flipped_byte_is_found(seed: u64, size in 0usize..60, at: prop::sample::Index, flip in 1u8..) {
        let mut bytes = file(&arbitrary::trace(seed, size));
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        let error = binary::read(&bytes).expect_err("a checksum covers every byte");
        prop_assert!(matches!(error.position, Position::Byte(offset) if offset <= at as u64));
    }

    /// A prefix of the file gives a prefix of the run and says so.
    #[test]
    fn a_cut_file_gives_a_prefix(seed: u64, size in 0usize..400, at: prop::sample::Index) {
        let trace = arbitrary::trace(seed, size);
        let bytes = small_chunks(&trace);
        let cut = 16 + at.index(bytes.len() - 16);
        let read = binary::read(&bytes[..cut]).expect("the end may be missing");
        let said = |gap: &str| gap.contains("cut off") || gap.contains("no end mark");
        prop_assert!(read.metadata.gaps.iter().any(|gap| said(gap)), "{:?}", read.metadata.gaps);
        prop_assert!(trace.events.starts_with(&read.events));
    }

    /// Damage that has the right checksums (or none to check) is refused or gives some trace.
    #[test]
    fn hostile_records_do_no_harm(seed: u64, size in 0usize..60, changes in 1usize..20) {
        let mut random = Random::new(seed);
        let mut content = records(&arbitrary::trace(seed, size));
        for _ in 0..changes {
            let at = random.below(content.len());
            match random.below(3) {
                0 => content[at] = random.bits() as u8,
                1 => { content.remove(at); }
                _ => content.insert(at, [0, 1, 0x7f, 0x80, 0xff][random.below(5)]),
            }
            if content.is_empty() {
                break;
            }
        }
        let mut decoded = 0;
        for record in Records::new(&forged(&content, size as u32, 3)).expect("the header is good") {
            decoded += 1;
            prop_assert!(decoded <= content.len() + 1, "every record takes a byte");
            if record.is_err() {
                break;
            }
        }
        if let Ok(trace) = binary::read(&with_true_counts(&content)) {
            prop_assert_eq!(binary::read(&file(&trace)), Ok(trace));
        }
    }
}

fn define_tables(trace: &Trace, encoder: &mut ChunkEncoder, records: &mut Vec<u8>) {
    encoder.metadata(&trace.metadata, records);
    for (id, thread) in trace.threads.iter().enumerate() {
        encoder.thread(ThreadId::from(id), &thread.name, &thread.path, records);
    }
    for (id, v) in trace.variables.iter().enumerate() {
        let id = VariableId::from(id);
        encoder.variable(id, &v.name, v.sort, v.scope, v.memory, v.initial.as_ref(), records);
    }
    for (id, object) in trace.objects.iter().enumerate() {
        encoder.object(id.into(), object, records);
    }
    for (id, s) in trace.sites.iter().enumerate() {
        encoder.site(SiteId::from(id), &s.file, s.line, s.column, &s.function, records);
    }
    for id in 0..trace.terms.len() {
        encoder.term(id.into(), &trace.terms, records);
    }
    if let Some(precondition) = trace.precondition {
        encoder.precondition(precondition, records);
    }
}

/// The trace as a recorder with a small buffer for each thread writes it.
fn small_chunks(trace: &Trace) -> Vec<u8> {
    let mut sealer = ChunkSealer::new(Compression::Lz4);
    let mut encoder = ChunkEncoder::new();
    let mut records = Vec::new();
    let mut whole = FILE_HEADER.to_vec();
    define_tables(trace, &mut encoder, &mut records);
    whole.extend_from_slice(sealer.seal(&mut encoder, &mut records));
    let mut buffers = vec![(ChunkEncoder::new(), Vec::new()); trace.threads.len()];
    for (place, event) in trace.events.iter().enumerate() {
        let (encoder, records) = &mut buffers[event.thread.index()];
        encoder.event(place as u64, event, records);
        if records.len() > 50 {
            whole.extend_from_slice(sealer.seal(encoder, records));
        }
    }
    for (encoder, records) in &mut buffers {
        whole.extend_from_slice(sealer.seal(encoder, records));
    }
    for &(first, second) in &trace.orders {
        encoder.order(first.0.into(), second.0.into(), &mut records);
    }
    for &(first, last) in &trace.atomic_sections {
        encoder.atomic_section(first.0.into(), last.0.into(), &mut records);
    }
    for (event, label) in &trace.labels {
        encoder.label(event.0.into(), label, &mut records);
    }
    encoder.end(trace.events.len() as u64, &mut records);
    whole.extend_from_slice(sealer.seal(&mut encoder, &mut records));
    whole
}

proptest! {
    #[test]
    fn chunks_of_many_threads_come_back_in_order(seed: u64, size in 0usize..400) {
        let trace = arbitrary::trace(seed, size);
        prop_assert_eq!(binary::read(&small_chunks(&trace)), Ok(trace));
    }
}

/// The records of a whole trace, without file and chunk headers.
fn records(trace: &Trace) -> Vec<u8> {
    let mut encoder = ChunkEncoder::new();
    let mut records = Vec::new();
    define_tables(trace, &mut encoder, &mut records);
    for (place, event) in trace.events.iter().enumerate() {
        encoder.event(place as u64, event, &mut records);
    }
    records
}

/// A file with one stored chunk of this content; the checksums are right, the counts are claims.
fn forged(content: &[u8], events: u32, definitions: u32) -> Vec<u8> {
    forged_range(content, events, definitions, 0, 0)
}

fn forged_range(content: &[u8], events: u32, definitions: u32, first: u64, last: u64) -> Vec<u8> {
    let mut file = FILE_HEADER.to_vec();
    let mut header = b"FTCK\0\0\0\0".to_vec();
    for field in [content.len() as u32, content.len() as u32, events, definitions] {
        header.extend_from_slice(&field.to_le_bytes());
    }
    header.extend_from_slice(&first.to_le_bytes());
    header.extend_from_slice(&last.to_le_bytes());
    header.extend_from_slice(&crc32fast::hash(content).to_le_bytes());
    let checksum = crc32fast::hash(&header);
    header.extend_from_slice(&checksum.to_le_bytes());
    file.extend_from_slice(&header);
    file.extend_from_slice(content);
    file
}

/// Like [`forged`], but with the counts that the content turns out to have.
fn with_true_counts(content: &[u8]) -> Vec<u8> {
    let claimed = forged(content, 0, 0);
    let (mut events, mut definitions, mut range) = (0, 0, None);
    for record in Records::new(&claimed).expect("the header is good") {
        match record {
            Ok(Record::Event(sequence, _)) => {
                events += 1;
                let (first, last) = range.unwrap_or((sequence, sequence));
                range = Some((sequence.min(first), sequence.max(last)));
            }
            Ok(_) => definitions += 1,
            Err(_) => break,
        }
    }
    let (first, last) = range.unwrap_or((0, 0));
    forged_range(content, events, definitions, first, last)
}

fn write(thread: u32, index: u32, value: u64) -> Event {
    let op = Op::Write(Access {
        variable: VariableId(0),
        value: Some(value),
        term: None,
        address: None,
        order: None,
    });
    Event { thread: ThreadId(thread), index, site: None, op }
}

#[test]
fn events_after_a_lost_one_are_left_out_and_the_gap_is_named() {
    let mut encoder = ChunkEncoder::new();
    let mut sealer = ChunkSealer::new(Compression::Stored);
    let mut records = Vec::new();
    let mut file = FILE_HEADER.to_vec();
    encoder.thread(ThreadId(0), "main", &[], &mut records);
    encoder.thread(ThreadId(1), "worker", &[0], &mut records);
    let (sort, id) = (Sort::bit_vec(32), VariableId(0));
    encoder.variable(id, "x", sort, Scope::Shared, None, None, &mut records);
    encoder.event(0, &write(0, 0, 1), &mut records);
    encoder.event(1, &write(0, 1, 2), &mut records);
    file.extend_from_slice(sealer.seal(&mut encoder, &mut records));
    // Number 2 was in the buffer of the main thread when the process was killed.
    encoder.event(3, &write(1, 0, 4), &mut records);
    file.extend_from_slice(sealer.seal(&mut encoder, &mut records));

    let trace = binary::read(&file).expect("readable after kill -9");
    assert_eq!(trace.events, [write(0, 0, 1), write(0, 1, 2)]);
    let gaps: Vec<&str> = trace.metadata.gaps.iter().map(|gap| &**gap).collect();
    assert_eq!(
        gaps,
        [
            "the recording has no end mark: the last events may be missing",
            "event 2 was not written, so the 1 events after it were left out",
        ]
    );
}

#[test]
fn an_event_whose_variable_was_never_written_ends_the_prefix() {
    let mut encoder = ChunkEncoder::new();
    let mut sealer = ChunkSealer::new(Compression::Stored);
    let mut records = Vec::new();
    encoder.thread(ThreadId(0), "main", &[], &mut records);
    let begin = Event { thread: ThreadId(0), index: 0, site: None, op: Op::ThreadBegin };
    encoder.event(0, &begin, &mut records);
    encoder.event(1, &write(0, 1, 1), &mut records);
    let mut file = FILE_HEADER.to_vec();
    file.extend_from_slice(sealer.seal(&mut encoder, &mut records));
    let trace = binary::read(&file).expect("readable after kill -9");
    assert_eq!(trace.events, [begin]);
    assert_eq!(
        &*trace.metadata.gaps[1],
        "the events from number 1 on were left out: variable 0 is not defined in what was written"
    );

    encoder.end(2, &mut records);
    file.extend_from_slice(sealer.seal(&mut encoder, &mut records));
    let error = binary::read(&file).expect_err("the recorder finished, so the file is wrong");
    assert_eq!(error.to_string(), "event 1 refers to variable 0, which is not defined");
}

#[test]
fn names_are_written_once_in_a_chunk() {
    let mut encoder = ChunkEncoder::new();
    let mut records = Vec::new();
    let name = Name { key: 0x5555_1234, text: "a_function_with_a_long_name" };
    for index in 0..100 {
        let at = Step { sequence: index.into(), thread: ThreadId(0), index, site: None };
        encoder.call(at, name, &mut records);
    }
    assert!(records.len() < 100 * 4 + name.text.len(), "{} bytes", records.len());
}

/// Loops over arrays, a lock, and a counter: what a recorded run looks like to the format.
#[test]
fn a_recorded_run_takes_at_most_16_bytes_an_event() {
    let mut random = Random::new(7);
    let mut bytes = 0;
    let mut events = 0;
    for seed in 0..20 {
        let mut trace = arbitrary::recorded(3 * seed + 1, 4000);
        trace.metadata.symbolic = false;
        trace.terms = Default::default();
        for event in &mut trace.events {
            match &mut event.op {
                Op::Read(access) | Op::Write(access) => {
                    (access.term, access.address) = (None, None);
                    access.value = Some(random.bits()); // the worst that values can be
                }
                Op::ReadModifyWrite(update) => (update.term, update.address) = (None, None),
                Op::Branch(condition) | Op::Assert(condition) => condition.term = None,
                _ => {}
            }
        }
        assert_eq!(trace.events.len(), 4000, "the simulated run does not stall");
        events += trace.events.len();
        bytes += file(&trace).len();
    }
    assert!(bytes <= 16 * events, "{} bytes an event", bytes as f64 / events as f64);
}

/// A trace with every operation, every kind of definition and every operator; written down here so
/// that it does not change when generators do.
fn everything() -> Trace {
    let mut trace = Trace::new();
    trace.metadata.command = vec!["./prog".into(), "é".into()];
    trace.metadata.build_id = Some("c0ffee".into());
    trace.metadata.symbolic = true;
    trace.metadata.observed_order = true;
    trace.metadata.gaps = vec!["libm was not instrumented".into()];
    let main = trace.add_thread("main", vec![]);
    let worker = trace.add_thread("worker", vec![0, 7]);
    let int = ScalarSort::Int;
    let map = Sort::Array { index: int, element: ScalarSort::Bool };
    let ones = ArrayValue::constant(int, Value::Bool(true));
    let array = Value::Array(Box::new(ones.store(Value::Int(-3), Value::Bool(false))));
    let third = Value::Real(Rational::new(-1, 3).expect("three is not zero"));
    let range = MemoryRange { address: 0x7fff_0000_1000, size: 8, generation: 2 };
    for (name, sort, scope, memory, initial) in [
        ("x", Sort::bit_vec(64), Scope::Shared, Some(range), Some(Value::bit_vec(64, u64::MAX))),
        ("i", Sort::INT, Scope::Local(worker), None, Some(Value::Int(i128::MIN))),
        ("r", Sort::REAL, Scope::Shared, None, Some(third)),
        ("b", Sort::BOOL, Scope::Shared, None, None),
        ("a", map, Scope::Shared, None, Some(array)),
    ] {
        trace.add_variable(Variable { name: name.into(), sort, scope, memory, initial });
    }
    let kinds = [
        ObjectKind::Mutex,
        ObjectKind::RecursiveMutex,
        ObjectKind::ErrorCheckingMutex,
        ObjectKind::ReaderWriterLock,
        ObjectKind::Condition,
        ObjectKind::Semaphore { initial: 3 },
        ObjectKind::Barrier { parties: 2 },
    ];
    let objects: Vec<ObjectId> =
        kinds.iter().map(|&kind| trace.add_object("object", kind)).collect();
    let (file, function) = ("main.c".into(), "main".into());
    let site = Some(trace.add_site(Site { file, line: 10, column: 3, function }));

    let terms = &mut trace.terms;
    let [x, i, r, b, a] = [0, 1, 2, 3, 4].map(VariableId);
    let x = [terms.variable(x, Sort::bit_vec(64)), terms.read_value(main, 4, Sort::bit_vec(64))];
    let i = [terms.variable(i, Sort::INT), terms.primed(i, Sort::INT)];
    let r = [terms.variable(r, Sort::REAL), terms.primed(r, Sort::REAL)];
    let b = [terms.variable(b, Sort::BOOL), terms.primed(b, Sort::BOOL)];
    let a = terms.variable(a, map);
    let symbol = terms.fresh_symbol("choice", Sort::BOOL);
    let order = terms.before(EventId(0), EventId(3));
    use Operator::*;
    for operator in [And, Or, Xor, Implies, Eq] {
        terms.build(operator, &b);
    }
    for operator in [Add, Sub, Mul, IntDiv, Mod, Lt, Le] {
        terms.build(operator, &i);
    }
    for operator in [
        BvAnd, BvOr, BvXor, BvAdd, BvSub, BvMul, BvUdiv, BvUrem, BvSdiv, BvSrem, BvShl, BvLshr,
        BvAshr, BvUlt, BvUle, BvSlt, BvSle,
    ] {
        terms.build(operator, &x);
    }
    terms.build(RealDiv, &r);
    for (operator, argument) in
        [(Neg, i[0]), (Abs, i[0]), (ToReal, i[0]), (ToInt, r[0]), (BvNot, x[0]), (BvNeg, x[0])]
    {
        terms.build(operator, &[argument]);
    }
    let low = terms.build(Extract { high: 15, low: 8 }, &[x[0]]);
    terms.build(ZeroExtend(8), &[low]);
    terms.build(SignExtend(24), &[low]);
    terms.build(Concat, &[low, low]);
    terms.build(Select, &[a, i[0]]);
    terms.build(Store, &[a, i[0], symbol]);
    let choice = terms.build(Ite, &[symbol, i[0], i[1]]);
    let not = terms.build(Not, &[order]);
    trace.precondition = Some(not);

    let variable = VariableId(0);
    let (term, address) = (Some(x[1]), Some(x[0]));
    let plain = Access { variable, value: Some(5), term: None, address: None, order: None };
    let bare = Access { value: None, ..plain.clone() };
    let condition = Condition { term: Some(not), outcome: true };
    let orders = [
        MemoryOrder::Relaxed,
        MemoryOrder::Acquire,
        MemoryOrder::Release,
        MemoryOrder::AcquireRelease,
        MemoryOrder::SequentiallyConsistent,
    ];
    let update = |order, old, new| {
        Op::ReadModifyWrite(Box::new(ReadModifyWrite { variable, old, new, term, address, order }))
    };
    let lock = |mode, by_try| LockStep { mode, by_try };
    let (mutex, shared) = (objects[0], objects[3]);
    let wait = objects[4];
    let mut ops = vec![
        Op::ThreadBegin,
        Op::Fork(worker),
        Op::Call("f".into()),
        Op::RegionBegin("transfer".into()),
        Op::Read(plain.clone()),
        Op::Read(bare.clone()),
        Op::Write(Access { term, address, order: Some(MemoryOrder::Release), ..plain }),
        Op::Write(bare),
        update(MemoryOrder::AcquireRelease, Some(5), Some(u64::MAX)),
        update(MemoryOrder::Relaxed, None, None),
        Op::Sync(mutex, SyncOp::Acquire(lock(LockMode::Exclusive, false))),
        Op::Sync(shared, SyncOp::Acquire(lock(LockMode::Shared, true))),
        Op::Sync(objects[1], SyncOp::AcquireFailed(lock(LockMode::Exclusive, true))),
        Op::Sync(shared, SyncOp::Release(lock(LockMode::Shared, false))),
        Op::Sync(wait, SyncOp::WaitBegin { mutex }),
        Op::Sync(wait, SyncOp::WaitEnd { mutex, timed_out: true, timed: false }),
        Op::Sync(wait, SyncOp::WaitEnd { mutex, timed_out: false, timed: false }),
        Op::Sync(wait, SyncOp::Signal),
        Op::Sync(wait, SyncOp::Broadcast),
        Op::Sync(objects[5], SyncOp::SemaphoreWait { by_try: false }),
        Op::Sync(objects[5], SyncOp::SemaphoreWaitFailed),
        Op::Sync(objects[5], SyncOp::SemaphorePost),
        Op::Sync(objects[6], SyncOp::BarrierArrive),
        Op::Sync(objects[6], SyncOp::BarrierLeave),
        Op::Branch(condition),
        Op::Assert(Condition { term: None, outcome: false }),
        Op::Alloc { address: u64::MAX, size: 0 },
        Op::Free { address: u64::MAX },
        Op::Input { source: "read".into(), value: 1 << 63 },
        Op::Guarded(Box::new(Guarded { guard: b[0], assignments: vec![(VariableId(1), choice)] })),
        Op::Transition(Box::new(Transition { predicate: b[1], changed: vec![VariableId(3)] })),
        Op::RegionEnd,
        Op::Return,
        Op::Join(worker),
        Op::ThreadEnd,
    ];
    ops.extend(orders.map(Op::Fence));
    let mut indexer = Indexer::default();
    for (place, op) in ops.into_iter().enumerate() {
        let thread = if place % 5 == 4 { worker } else { main };
        let event = indexer.event(thread, if place % 3 == 0 { site } else { None }, op);
        trace.push(event);
    }
    trace.orders = vec![(EventId(1), EventId(4))];
    trace.atomic_sections = vec![(EventId(5), EventId(7))];
    trace.labels.insert(EventId(6), "w1".into());
    trace
}

/// The golden file was written by the first version (`FORETELL_BLESS=1 cargo test -p foretell-trace
/// --test binary` writes it anew, only for a trace that says more): later ones must still read it.
#[test]
fn version_1_stays_readable() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/version-1.ftrace");
    if std::env::var_os("FORETELL_BLESS").is_some() {
        std::fs::write(golden, file(&everything())).expect("the tests' own directory");
    }
    let golden = std::fs::read(golden).expect("the golden file is in the repository");
    assert_eq!(binary::read(&golden), Ok(everything()));
}

#[test]
fn other_versions_and_other_files_are_refused() {
    let error = binary::read(b"T0|r(V1)|12\n").expect_err("not binary");
    assert_eq!(error.to_string(), "byte 0: not a binary trace of foretell");
    let mut next = FILE_HEADER;
    next[8] = 2;
    let checksum = crc32fast::hash(&next[..12]);
    next[12..].copy_from_slice(&checksum.to_le_bytes());
    let error = binary::read(&next).expect_err("from the future");
    assert_eq!(
        error.to_string(),
        "byte 8: version 2 of the binary format is not known; this foretell reads version 1; \
         use a newer one"
    );
}

#[test]
fn operations_behind_the_escape_tag_come_back() {
    let mut trace = Trace::new();
    let main = trace.add_thread("main", Vec::new());
    let kinds = [ChannelKind::Queue, ChannelKind::State, ChannelKind::Interrupt];
    let [queue, state, interrupt] =
        kinds.map(|kind| trace.add_object("channel", ObjectKind::Channel(kind)));
    let lock = trace.add_object("m", ObjectKind::Mutex);
    let site = Site { file: "a.c".into(), line: 1, column: 0, function: "f".into() };
    let site = Some(trace.add_site(site));
    let step = LockStep { mode: LockMode::Exclusive, by_try: true };
    let mut indexer = Indexer::default();
    for (op, site) in [
        (Op::Sync(queue, SyncOp::Send { amount: u64::MAX, content: 0 }), None),
        (Op::Sync(state, SyncOp::Send { amount: 0, content: u64::MAX }), site),
        (Op::Sync(queue, SyncOp::Receive { amount: 8, drained: true, by_try: false }), None),
        (Op::Sync(interrupt, SyncOp::Receive { amount: 0, drained: false, by_try: true }), site),
        (Op::Sync(state, SyncOp::Poll { ready: true }), site),
        (Op::Sync(state, SyncOp::Poll { ready: false }), None),
        (Op::Sync(lock, SyncOp::ReleaseFailed(step)), site),
        (Op::Sync(lock, SyncOp::Destroy), None),
        (Op::Return, None),
    ] {
        trace.push(indexer.event(main, site, op));
    }
    assert_eq!(binary::read(&file(&trace)[..]), Ok(trace));
}
