//! Runs a small C-like program, one step at a time in the order the caller chooses, and writes the
//! trace that a recorder would: values, symbolic terms, sites.

use std::collections::HashMap;

use foretell_trace::{
    Access, Condition, Indexer, LockMode, LockStep, MemoryOrder, ObjectId, ObjectKind, Op,
    Operator, ReadModifyWrite, Scope, Site, SiteId, Sort, SyncOp, Term, TermId, ThreadId, Trace,
    Value, Variable, VariableId,
};

/// The width of the programs' integers.
const WIDTH: u16 = 32;

/// A program that is run and recorded at the same time.
#[derive(Debug)]
pub struct Program {
    trace: Trace,
    indexer: Indexer,
    file: Box<str>,
    sites: HashMap<u32, SiteId>,
    line: Option<u32>,
    memory: Vec<u64>,
    reads: HashMap<(ThreadId, u32), u64>,
}

impl Program {
    /// A program with its main thread, which has begun.
    pub fn new(file: &str) -> Self {
        let mut trace = Trace::new();
        trace.metadata.symbolic = true;
        trace.metadata.observed_order = true;
        trace.metadata.command = vec![file.into()];
        trace.add_thread("main", Vec::new());
        let mut program = Self {
            trace,
            indexer: Indexer::default(),
            file: file.into(),
            sites: HashMap::new(),
            line: None,
            memory: Vec::new(),
            reads: HashMap::new(),
        };
        program.push(Program::MAIN, Op::ThreadBegin);
        program
    }

    /// The main thread.
    pub const MAIN: ThreadId = ThreadId(0);

    /// Ends the main thread and gives the trace.
    pub fn finish(mut self) -> Trace {
        self.push(Program::MAIN, Op::ThreadEnd);
        self.trace
    }

    /// How many events there are so far.
    pub fn len(&self) -> usize {
        self.trace.events.len()
    }

    /// Never: the main thread has begun.
    pub fn is_empty(&self) -> bool {
        self.trace.events.is_empty()
    }

    /// The source line of the steps that follow.
    pub fn at(&mut self, line: u32) -> &mut Self {
        self.line = Some(line);
        self
    }

    /// A shared integer.
    pub fn integer(&mut self, name: &str, initial: u64) -> VariableId {
        self.memory.push(initial);
        self.trace.add_variable(Variable {
            name: name.into(),
            sort: Sort::bit_vec(WIDTH),
            scope: Scope::Shared,
            memory: None,
            initial: Some(Value::bit_vec(WIDTH, initial)),
        })
    }

    /// A mutex.
    pub fn mutex(&mut self, name: &str) -> ObjectId {
        self.trace.add_object(name, ObjectKind::Mutex)
    }

    /// A condition variable.
    pub fn condition(&mut self, name: &str) -> ObjectId {
        self.trace.add_object(name, ObjectKind::Condition)
    }

    /// A step that needs nothing computed.
    pub fn push(&mut self, thread: ThreadId, op: Op) {
        let site = self.line.map(|line| {
            let (trace, file) = (&mut self.trace, &self.file);
            *self.sites.entry(line).or_insert_with(|| {
                trace.add_site(Site { file: file.clone(), line, column: 1, function: "".into() })
            })
        });
        let event = self.indexer.event(thread, site, op);
        self.trace.push(event);
    }

    /// Main creates a thread, which begins.
    pub fn fork(&mut self, name: &str) -> ThreadId {
        let number = self.trace.threads.len() as u32 - 1;
        let child = self.trace.add_thread(name, vec![number]);
        self.push(Program::MAIN, Op::Fork(child));
        self.push(child, Op::ThreadBegin);
        child
    }

    /// The thread ends and main joins it.
    pub fn end(&mut self, thread: ThreadId) {
        self.push(thread, Op::ThreadEnd);
    }

    /// Main waits for the thread's end.
    pub fn join(&mut self, thread: ThreadId) {
        self.push(Program::MAIN, Op::Join(thread));
    }

    /// Takes the mutex.
    pub fn lock(&mut self, thread: ThreadId, lock: ObjectId) {
        self.push(thread, Op::Sync(lock, SyncOp::Acquire(exclusive())));
    }

    /// Gives the mutex back.
    pub fn unlock(&mut self, thread: ThreadId, lock: ObjectId) {
        self.push(thread, Op::Sync(lock, SyncOp::Release(exclusive())));
    }

    fn next_index(&self, thread: ThreadId) -> u32 {
        self.indexer.next_index(thread)
    }

    /// Reads and gives the value as a term.
    pub fn read(&mut self, thread: ThreadId, variable: VariableId) -> TermId {
        let index = self.next_index(thread);
        let value = self.memory[variable.index()];
        self.reads.insert((thread, index), value);
        self.push(
            thread,
            Op::Read(Access {
                variable,
                value: Some(value),
                term: None,
                address: None,
                order: None,
            }),
        );
        self.trace.terms.read_value(thread, index, Sort::bit_vec(WIDTH))
    }

    /// Writes.
    pub fn write(&mut self, thread: ThreadId, variable: VariableId, value: TermId) {
        let bits = self.bits(value);
        self.memory[variable.index()] = bits;
        let term = self.symbolic(value);
        self.push(
            thread,
            Op::Write(Access { variable, value: Some(bits), term, address: None, order: None }),
        );
    }

    /// `variable += amount` in two steps.
    pub fn add(&mut self, thread: ThreadId, variable: VariableId, amount: u64) {
        let value = self.read(thread, variable);
        let sum = self.plus(value, amount);
        self.write(thread, variable, sum);
    }

    /// Compare-and-swap from 0; gives what was there before.
    pub fn claim(&mut self, thread: ThreadId, variable: VariableId, value: u64) -> TermId {
        let index = self.next_index(thread);
        let old = self.memory[variable.index()];
        self.reads.insert((thread, index), old);
        let seen = self.trace.terms.read_value(thread, index, Sort::bit_vec(WIDTH));
        let free = self.is(seen, 0);
        let wanted = self.constant(value);
        let term = self.trace.terms.ite(free, wanted, seen);
        let new = self.bits(term);
        self.memory[variable.index()] = new;
        self.push(
            thread,
            Op::ReadModifyWrite(Box::new(ReadModifyWrite {
                variable,
                old: Some(old),
                new: Some(new),
                term: Some(term),
                address: None,
                order: MemoryOrder::SequentiallyConsistent,
            })),
        );
        seen
    }

    /// The path goes on as the condition says.
    pub fn branch(&mut self, thread: ThreadId, condition: TermId) -> bool {
        let outcome = self.holds(condition);
        let term = self.symbolic(condition);
        self.push(thread, Op::Branch(Condition { term, outcome }));
        outcome
    }

    /// The program asserts the condition.
    pub fn assert(&mut self, thread: ThreadId, condition: TermId) {
        let outcome = self.holds(condition);
        let term = self.symbolic(condition);
        self.push(thread, Op::Assert(Condition { term, outcome }));
    }

    /// A constant.
    pub fn constant(&mut self, value: u64) -> TermId {
        self.trace.terms.bit_vec(WIDTH, value)
    }

    /// `term + amount`.
    pub fn plus(&mut self, term: TermId, amount: u64) -> TermId {
        let amount = self.constant(amount);
        self.sum(term, amount)
    }

    /// `a + b`.
    pub fn sum(&mut self, a: TermId, b: TermId) -> TermId {
        self.trace.terms.build(Operator::BvAdd, &[a, b])
    }

    /// `term == value`.
    pub fn is(&mut self, term: TermId, value: u64) -> TermId {
        let value = self.constant(value);
        self.trace.terms.build(Operator::Eq, &[term, value])
    }

    fn symbolic(&self, term: TermId) -> Option<TermId> {
        self.trace.terms.constant_value(term).is_none().then_some(term)
    }

    fn evaluate(&self, term: TermId) -> Value {
        let environment = |leaf: &Term| match leaf {
            Term::ReadValue(thread, index) => {
                Some(Value::bit_vec(WIDTH, self.reads[&(*thread, *index)]))
            }
            _ => None,
        };
        self.trace.terms.evaluate(term, &environment).expect("only reads and total operators")
    }

    fn bits(&self, term: TermId) -> u64 {
        match self.evaluate(term) {
            Value::BitVec { bits, .. } => bits,
            other => unreachable!("integers are bit-vectors, not {other:?}"),
        }
    }

    fn holds(&self, condition: TermId) -> bool {
        self.evaluate(condition) == Value::Bool(true)
    }
}

fn exclusive() -> LockStep {
    LockStep { mode: LockMode::Exclusive, by_try: false }
}
