//! The event table as a Parquet file (feature `parquet`), to ask questions of a trace in DuckDB,
//! Polars and the like. Export only: the tables that events refer to are written as text.
//!
//! ```sql
//! select function, line, count(*) from 'trace.parquet' where op = 'write' group by all;
//! ```
//!
//! | column | |
//! |---|---|
//! | `event`, `thread`, `thread_name`, `index` | place in the trace, thread, place in the thread |
//! | `op` | the name of the [`OpKind`] |
//! | `variable` | what is accessed |
//! | `object` | the lock (or condition, semaphore, barrier), forked or joined thread, region, function called, or source of input |
//! | `value` | read or written, or input; 1 or 0 for a condition; the address for alloc and free |
//! | `term` | the expression in SMT-LIB's syntax, reads as `(read thread index)` |
//! | `file`, `line`, `column`, `function` | where in the source |
//!
//! What an event does not have is null.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::event::{Event, Op};
use crate::id::{ObjectId, TermId, ThreadId, VariableId};
use crate::info::OpKind;
use crate::sexpr::print_term;
use crate::term::Term;
use crate::trace::Trace;

const SCHEMA: &str = "
    message event {
        required int64 event (integer(64, false));
        required int32 thread (integer(32, false));
        required binary thread_name (string);
        required int32 index (integer(32, false));
        required binary op (string);
        optional binary variable (string);
        optional binary object (string);
        optional int64 value (integer(64, false));
        optional binary term (string);
        optional binary file (string);
        optional int32 line (integer(32, false));
        optional int32 column (integer(32, false));
        optional binary function (string);
    }";

/// Events in a row group: what is held in memory besides the trace.
const ROW_GROUP: usize = 1 << 17;

/// Terms share parts; written out in full, a part that would take more nodes than this is replaced
/// by its number.
const MAX_TERM_NODES: u64 = 10_000;

/// Writes the events of the trace.
pub fn write(trace: &Trace, out: impl Write + Send) -> io::Result<()> {
    write_file(trace, out).map_err(io::Error::other)
}

fn write_file(trace: &Trace, out: impl Write + Send) -> Result<(), ParquetError> {
    let properties = WriterProperties::builder().set_compression(Compression::LZ4_RAW).build();
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let mut file = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
    let table = Table::new(trace);
    for (group, events) in trace.events.chunks(ROW_GROUP).enumerate() {
        let mut columns = Columns { group: file.next_row_group()?, events };
        let first = (group * ROW_GROUP) as i64;
        let numbers: Vec<i64> = (first..first + events.len() as i64).collect();
        columns.add::<Int64Type>(&numbers, None)?;
        columns.required::<Int32Type>(|event| event.thread.0 as i32)?;
        columns.required::<ByteArrayType>(|event| table.threads[event.thread.index()].clone())?;
        columns.required::<Int32Type>(|event| event.index as i32)?;
        columns.required::<ByteArrayType>(|event| {
            table.kinds[OpKind::of(&event.op).index()].clone()
        })?;
        columns.optional::<ByteArrayType>(|event| table.variable(event))?;
        columns.optional::<ByteArrayType>(|event| table.object(event))?;
        columns.optional::<Int64Type>(|event| value(event).map(|value| value as i64))?;
        columns.optional::<ByteArrayType>(|event| table.term(event))?;
        let site = |event: &Event| event.site.map(|site| &table.sites[site.index()]);
        columns.optional::<ByteArrayType>(|event| site(event)?.file.clone())?;
        columns.optional::<Int32Type>(|event| known(site(event)?.line))?;
        columns.optional::<Int32Type>(|event| known(site(event)?.column))?;
        columns.optional::<ByteArrayType>(|event| site(event)?.function.clone())?;
        columns.group.close()?;
    }
    file.close()?;
    Ok(())
}

/// Lines and columns count from 1.
fn known(number: u32) -> Option<i32> {
    (number != 0).then_some(number as i32)
}

/// Writes the columns of a row group one after the other.
struct Columns<'a, W: Write> {
    group: SerializedRowGroupWriter<'a, W>,
    events: &'a [Event],
}

impl<W: Write + Send> Columns<'_, W> {
    fn required<T: DataType>(
        &mut self,
        field: impl FnMut(&Event) -> T::T,
    ) -> Result<(), ParquetError> {
        let values: Vec<T::T> = self.events.iter().map(field).collect();
        self.add::<T>(&values, None)
    }

    fn optional<T: DataType>(
        &mut self,
        field: impl FnMut(&Event) -> Option<T::T>,
    ) -> Result<(), ParquetError> {
        let fields: Vec<Option<T::T>> = self.events.iter().map(field).collect();
        let present: Vec<i16> = fields.iter().map(|field| i16::from(field.is_some())).collect();
        let values: Vec<T::T> = fields.into_iter().flatten().collect();
        self.add::<T>(&values, Some(&present))
    }

    fn add<T: DataType>(
        &mut self,
        values: &[T::T],
        present: Option<&[i16]>,
    ) -> Result<(), ParquetError> {
        let column = self.group.next_column()?;
        let mut column =
            column.ok_or_else(|| ParquetError::General("more columns than the schema".into()))?;
        column.typed::<T>().write_batch(values, present, None)?;
        column.close()
    }
}

/// The texts that events refer to; clones share their bytes.
struct Table<'a> {
    trace: &'a Trace,
    kinds: Vec<ByteArray>,
    threads: Vec<ByteArray>,
    variables: Vec<ByteArray>,
    objects: Vec<ByteArray>,
    sites: Vec<SiteTexts>,
    /// How many nodes each term has when it is written out as a tree.
    nodes: Vec<u64>,
}

struct SiteTexts {
    file: Option<ByteArray>,
    line: u32,
    column: u32,
    function: Option<ByteArray>,
}

impl<'a> Table<'a> {
    fn new(trace: &'a Trace) -> Self {
        let mut nodes: Vec<u64> = Vec::with_capacity(trace.terms.len());
        for id in 0..trace.terms.len() {
            nodes.push(match trace.terms.term(TermId::from(id)) {
                Term::Apply(_, arguments) => arguments
                    .iter()
                    .fold(1, |sum: u64, argument| sum.saturating_add(nodes[argument.index()])),
                _ => 1,
            });
        }
        let site_text = |text: &str| (!text.is_empty()).then(|| ByteArray::from(text));
        Self {
            trace,
            kinds: OpKind::all().map(|kind| ByteArray::from(kind.name())).collect(),
            threads: trace.threads.iter().map(|thread| ByteArray::from(&*thread.name)).collect(),
            variables: trace.variables.iter().map(|v| ByteArray::from(&*v.name)).collect(),
            objects: trace.objects.iter().map(|object| ByteArray::from(&*object.name)).collect(),
            sites: trace
                .sites
                .iter()
                .map(|site| SiteTexts {
                    file: site_text(&site.file),
                    line: site.line,
                    column: site.column,
                    function: site_text(&site.function),
                })
                .collect(),
            nodes,
        }
    }

    fn variable(&self, event: &Event) -> Option<ByteArray> {
        let variable = match &event.op {
            Op::Read(access) | Op::Write(access) => access.variable,
            Op::ReadModifyWrite(update) => update.variable,
            _ => return None,
        };
        Some(self.variables[variable.index()].clone())
    }

    fn object(&self, event: &Event) -> Option<ByteArray> {
        let thread = |thread: &ThreadId| self.threads[thread.index()].clone();
        let object = |object: &ObjectId| self.objects[object.index()].clone();
        Some(match &event.op {
            Op::Fork(child) | Op::Join(child) => thread(child),
            Op::Sync(id, _) => object(id),
            Op::RegionBegin(name) | Op::Call(name) | Op::Input { source: name, .. } => {
                ByteArray::from(&**name)
            }
            _ => return None,
        })
    }

    fn term(&self, event: &Event) -> Option<ByteArray> {
        let text = match &event.op {
            Op::Write(access) => self.print(access.term?),
            Op::ReadModifyWrite(update) => self.print(update.term?),
            Op::Branch(condition) | Op::Assert(condition) => self.print(condition.term?),
            Op::Guarded(guarded) => {
                let mut text = format!("(assume {})", self.print(guarded.guard));
                for &(variable, term) in &guarded.assignments {
                    let name = self.name(variable);
                    text.push_str(&format!(" (:= {name} {})", self.print(term)));
                }
                text
            }
            Op::Transition(transition) => self.print(transition.predicate),
            _ => return None,
        };
        Some(ByteArray::from(text.as_str()))
    }

    fn name(&self, variable: VariableId) -> &str {
        &self.trace.variables[variable.index()].name
    }

    fn print(&self, root: TermId) -> String {
        let thread = |thread: ThreadId| &*self.trace.threads[thread.index()].name;
        let mut left = MAX_TERM_NODES;
        print_term(&self.trace.terms, root, &mut |id| {
            let nodes = self.nodes[id.index()];
            if nodes > MAX_TERM_NODES && id != root || left == 0 {
                return Some(format!("{id:?}"));
            }
            left -= 1;
            match self.trace.terms.term(id) {
                Term::Variable(variable) => Some(self.name(*variable).to_owned()),
                Term::Primed(variable) => Some(format!("{}'", self.name(*variable))),
                Term::ReadValue(reader, index) => {
                    Some(format!("(read {} {index})", thread(*reader)))
                }
                Term::Before(first, second) => {
                    let (first, second) =
                        (self.trace.event_name(*first), self.trace.event_name(*second));
                    Some(format!("(before {first} {second})"))
                }
                Term::Symbol(symbol) => Some(self.trace.terms.symbol(*symbol).name.to_string()),
                Term::Constant(_) | Term::Apply(..) => None,
            }
        })
    }
}

fn value(event: &Event) -> Option<u64> {
    match &event.op {
        Op::Read(access) | Op::Write(access) => access.value,
        Op::ReadModifyWrite(update) => update.new,
        Op::Branch(condition) | Op::Assert(condition) => Some(condition.outcome.into()),
        Op::Input { value, .. } => Some(*value),
        Op::Alloc { address, .. } | Op::Free { address } => Some(*address),
        _ => None,
    }
}
