//! Definition records: threads, variables, objects, places, terms, and what is said about the whole
//! trace.

use super::{ChunkEncoder, flag, put_text, put_value};
use crate::format::binary::codes::{code, definition, operator_number, term_kind};
use crate::format::binary::decode::Properties;
use crate::format::binary::varint::{SHORT, Short, put, put_wide, zigzag_wide};
use crate::id::{ObjectId, SiteId, TermId, ThreadId, VariableId};
use crate::term::{Operator, ScalarSort, Sort, Term, TermStore, Value};
use crate::trace::{MemoryRange, Metadata, Object, ObjectKind, Scope};

impl ChunkEncoder {
    #[inline]
    fn define(&mut self, kind: u8, out: &mut Vec<u8>) {
        self.definitions = self.definitions.saturating_add(1);
        out.extend_from_slice(&[code::DEFINITION, kind]);
    }

    /// Defines a thread; see [`crate::Thread`].
    pub fn thread(&mut self, id: ThreadId, name: &str, path: &[u32], out: &mut Vec<u8>) {
        self.define(definition::THREAD, out);
        put(out, u64::from(id.0));
        put_text(name, out);
        put(out, path.len() as u64);
        for &part in path {
            put(out, u64::from(part));
        }
    }

    /// Defines a variable; see [`crate::Variable`].
    #[allow(clippy::too_many_arguments)] // borrowed parts: building a `Variable` would allocate
    pub fn variable(
        &mut self,
        id: VariableId,
        name: &str,
        sort: Sort,
        scope: Scope,
        memory: Option<MemoryRange>,
        initial: Option<&Value>,
        out: &mut Vec<u8>,
    ) {
        self.define(definition::VARIABLE, out);
        put(out, u64::from(id.0));
        put_text(name, out);
        put_sort(sort, out);
        match scope {
            Scope::Shared => put(out, 0),
            Scope::Local(thread) => put(out, 1 + u64::from(thread.0)),
        }
        match memory {
            None => put(out, 0),
            Some(range) => {
                put(out, 1 + u64::from(range.size));
                put(out, range.address);
                put(out, u64::from(range.generation));
            }
        }
        out.push(initial.is_some().into());
        if let Some(value) = initial {
            put_value(value, out);
        }
    }

    /// Defines a synchronisation object; see [`crate::Object`].
    pub fn object(&mut self, id: ObjectId, object: &Object, out: &mut Vec<u8>) {
        self.define(definition::OBJECT, out);
        put(out, u64::from(id.0));
        put_text(&object.name, out);
        let (kind, amount) = match object.kind {
            ObjectKind::Mutex => (0, None),
            ObjectKind::RecursiveMutex => (1, None),
            ObjectKind::ErrorCheckingMutex => (2, None),
            ObjectKind::ReaderWriterLock => (3, None),
            ObjectKind::Condition => (4, None),
            ObjectKind::Semaphore { initial } => (5, Some(initial)),
            ObjectKind::Barrier { parties } => (6, Some(parties)),
            ObjectKind::Channel(kind) => (7, Some(kind as u32)),
        };
        out.push(kind | if object.address.is_some() { definition::OBJECT_HAS_ADDRESS } else { 0 });
        for number in amount.map(u64::from).into_iter().chain(object.address) {
            put(out, number);
        }
    }

    /// Defines a source position; see [`crate::Site`].
    pub fn site(
        &mut self,
        id: SiteId,
        file: &str,
        line: u32,
        column: u32,
        function: &str,
        out: &mut Vec<u8>,
    ) {
        self.define(definition::SITE, out);
        put(out, u64::from(id.0));
        put_text(file, out);
        put(out, u64::from(line));
        put(out, u64::from(column));
        put_text(function, out);
    }

    /// Defines a term that is an operator and its arguments; those must have smaller ids. It need
    /// not be simplified: the reader does that.
    #[inline]
    pub fn apply_term(
        &mut self,
        id: TermId,
        operator: Operator,
        arguments: &[TermId],
        out: &mut Vec<u8>,
    ) {
        self.definitions = self.definitions.saturating_add(1);
        out.extend_from_slice(&[0; SHORT]);
        let Some(mut short) = Short::at_end(out) else { return };
        short.byte(code::DEFINITION);
        short.byte(definition::TERM);
        short.put(u64::from(id.0));
        match operator {
            Operator::Extract { high, low } => {
                short.byte(term_kind::EXTRACT);
                short.put(u64::from(high));
                short.put(u64::from(low));
            }
            Operator::ZeroExtend(by) => {
                short.byte(term_kind::ZERO_EXTEND);
                short.put(u64::from(by));
            }
            Operator::SignExtend(by) => {
                short.byte(term_kind::SIGN_EXTEND);
                short.put(u64::from(by));
            }
            plain => short.byte(operator_number(plain).unwrap_or_default()),
        }
        short.put(arguments.len() as u64);
        let (at_hand, more) = arguments.split_at(arguments.len().min(3));
        for argument in at_hand {
            short.put(u64::from(id.0.wrapping_sub(argument.0)));
        }
        let unused = SHORT - short.length();
        out.truncate(out.len() - unused);
        for argument in more {
            put(out, u64::from(id.0.wrapping_sub(argument.0)));
        }
    }

    /// Defines the term for what a read returned.
    #[inline]
    pub fn read_value_term(
        &mut self,
        id: TermId,
        thread: ThreadId,
        index: u32,
        sort: Sort,
        out: &mut Vec<u8>,
    ) {
        self.leaf(id, term_kind::READ_VALUE, out);
        put(out, u64::from(thread.0));
        put(out, u64::from(index));
        put_sort(sort, out);
    }

    /// Defines a constant term.
    #[inline]
    pub fn constant_term(&mut self, id: TermId, value: &Value, out: &mut Vec<u8>) {
        self.leaf(id, term_kind::CONSTANT, out);
        put_value(value, out);
    }

    /// Defines the term `id` of a store in which events are numbered by sequence number.
    pub fn term(&mut self, id: TermId, terms: &TermStore, out: &mut Vec<u8>) {
        let sort = terms.sort(id);
        match terms.term(id) {
            Term::Apply(operator, arguments) => self.apply_term(id, *operator, arguments, out),
            Term::Constant(value) => self.constant_term(id, value, out),
            Term::ReadValue(thread, index) => self.read_value_term(id, *thread, *index, sort, out),
            Term::Variable(variable) => {
                self.leaf(id, term_kind::VARIABLE, out);
                put(out, u64::from(variable.0));
                put_sort(sort, out);
            }
            Term::Primed(variable) => {
                self.leaf(id, term_kind::PRIMED, out);
                put(out, u64::from(variable.0));
                put_sort(sort, out);
            }
            Term::Before(first, second) => {
                self.leaf(id, term_kind::BEFORE, out);
                put(out, u64::from(first.0));
                put(out, u64::from(second.0));
            }
            Term::Symbol(symbol) => {
                self.leaf(id, term_kind::SYMBOL, out);
                put_text(&terms.symbol(*symbol).name, out);
                put_sort(sort, out);
            }
        }
    }

    #[inline]
    fn leaf(&mut self, id: TermId, kind: u8, out: &mut Vec<u8>) {
        self.define(definition::TERM, out);
        put(out, u64::from(id.0));
        out.push(kind);
    }

    /// The program and its arguments.
    pub fn command<'a>(
        &mut self,
        command: impl ExactSizeIterator<Item = &'a str>,
        out: &mut Vec<u8>,
    ) {
        self.define(definition::COMMAND, out);
        put(out, command.len() as u64);
        for part in command {
            put_text(part, out);
        }
    }

    /// The program's build id in hexadecimal.
    pub fn build_id(&mut self, build_id: &str, out: &mut Vec<u8>) {
        self.define(definition::BUILD_ID, out);
        put_text(build_id, out);
    }

    /// Says what the trace has. All are false in a file that does not say.
    pub fn properties(&mut self, has: Properties, out: &mut Vec<u8>) {
        self.define(definition::PROPERTIES, out);
        let Properties { symbolic, observed_order, machine_code, unseen } = has;
        let [library, locks, freed] = unseen.flags();
        let unseen = flag(library, 8) | flag(locks, 16) | flag(freed, 32);
        out.push(flag(symbolic, 1) | flag(observed_order, 2) | flag(machine_code, 4) | unseen);
    }

    /// Something that was not seen, in one sentence.
    pub fn gap(&mut self, sentence: &str, out: &mut Vec<u8>) {
        self.define(definition::GAP, out);
        put_text(sentence, out);
    }

    /// Something that was held at its recorded value, in one sentence.
    pub fn restriction(&mut self, sentence: &str, out: &mut Vec<u8>) {
        self.define(definition::RESTRICTION, out);
        put_text(sentence, out);
    }

    /// All of the metadata.
    pub fn metadata(&mut self, metadata: &Metadata, out: &mut Vec<u8>) {
        let &Metadata { symbolic, observed_order, machine_code, unseen, .. } = metadata;
        self.properties(Properties { symbolic, observed_order, machine_code, unseen }, out);
        if !metadata.command.is_empty() {
            self.command(metadata.command.iter().map(|part| &**part), out);
        }
        if let Some(build_id) = &metadata.build_id {
            self.build_id(build_id, out);
        }
        for gap in &metadata.gaps {
            self.gap(gap, out);
        }
        for restriction in &metadata.restrictions {
            self.restriction(restriction, out);
        }
    }

    /// Holds of the initial values.
    pub fn precondition(&mut self, term: TermId, out: &mut Vec<u8>) {
        self.define(definition::PRECONDITION, out);
        put(out, u64::from(term.0));
    }

    /// The event with sequence number `first` comes before `second` in every interleaving.
    pub fn order(&mut self, first: u64, second: u64, out: &mut Vec<u8>) {
        self.define(definition::ORDER, out);
        put(out, first);
        put(out, second);
    }

    /// The events of one thread from `first` to `last` run without interruption.
    pub fn atomic_section(&mut self, first: u64, last: u64, out: &mut Vec<u8>) {
        self.define(definition::ATOMIC_SECTION, out);
        put(out, first);
        put(out, last);
    }

    /// What a person calls the event with this sequence number.
    pub fn label(&mut self, sequence: u64, label: &str, out: &mut Vec<u8>) {
        self.define(definition::LABEL, out);
        put(out, sequence);
        put_text(label, out);
    }

    /// The recording is complete and has this many events. Write it in the last chunk; a file
    /// without it is taken for one whose recorder was killed.
    pub fn end(&mut self, events: u64, out: &mut Vec<u8>) {
        self.define(definition::END, out);
        put(out, events);
    }
}

#[inline]
fn put_scalar_sort(sort: ScalarSort, out: &mut Vec<u8>) {
    out.push(match sort {
        ScalarSort::Bool => 65,
        ScalarSort::Int => 66,
        ScalarSort::Real => 67,
        ScalarSort::BitVec(width) => width.min(64) as u8,
    });
}

/// A scalar sort is one byte: the width of a bit-vector, or 65 to 67. An array is 68 and two.
#[inline]
pub(super) fn put_sort(sort: Sort, out: &mut Vec<u8>) {
    match sort {
        Sort::Scalar(scalar) => put_scalar_sort(scalar, out),
        Sort::Array { index, element } => {
            out.push(68);
            put_scalar_sort(index, out);
            put_scalar_sort(element, out);
        }
    }
}

pub(super) fn put_content(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Bool(value) => out.push((*value).into()),
        Value::Int(value) => put_wide(out, zigzag_wide(*value)),
        Value::Real(value) => {
            put_wide(out, zigzag_wide(value.numerator()));
            put_wide(out, zigzag_wide(value.denominator()));
        }
        Value::BitVec { bits, .. } => put(out, *bits),
        Value::Array(array) => {
            put_content(array.default_element(), out);
            put(out, array.entries().count() as u64);
            for (index, element) in array.entries() {
                put_content(index, out);
                put_content(element, out);
            }
        }
    }
}
