//! What is fuzzed: every parser of foretell-trace and the reader of logs, with what must hold of its
//! answer.
//!
//! A reader gives an error or a trace; it never panics, hangs or takes memory out of proportion to
//! its input. A trace that was read can be validated, written, and read again as the same.

use foretell_trace::format::{binary, ctrc, rapid, text};
use foretell_trace::schedule::Schedule;
use foretell_trace::sexpr::{Atom, Comments, Refusal, Scope, TermReader, Tree, print_term};
use foretell_trace::validate::validate;
use foretell_trace::{ScalarSort, Sort, Term, TermId, TermStore, Trace, VariableId};

fn as_text(trace: &Trace) -> String {
    let mut bytes = Vec::new();
    text::write(trace, &mut bytes).expect("a vector takes everything");
    String::from_utf8(bytes).expect("text is UTF-8")
}

/// The text format.
pub fn text(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let Ok(trace) = text::read(source) else { return };
    validate(&trace);
    let written = as_text(&trace);
    match text::read(&written) {
        Ok(back) => assert!(back.says_the_same_as(&trace), "{written}"),
        Err(error) => panic!("{error}\n{written}"),
    }
}

/// CTRC.
pub fn ctrc(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let Ok(trace) = ctrc::read(source) else { return };
    validate(&trace);
    let Ok(written) = ctrc::write(&trace) else { return };
    match ctrc::read(&written) {
        Ok(back) => assert!(back.says_the_same_as(&trace), "{written}"),
        Err(error) => panic!("{error}\n{written}"),
    }
}

/// RAPID's STD, plain and compressed.
pub fn std(data: &[u8]) {
    if let Ok(trace) = rapid::read(data) {
        validate(&trace);
    }
}

/// The binary format.
pub fn binary(data: &[u8]) {
    let Ok(trace) = binary::read(data) else { return };
    validate(&trace);
    let mut written = Vec::new();
    binary::write(&trace, &mut written).expect("a vector takes everything");
    let back = binary::read(&written).expect("what was written is read");
    assert!(back.says_the_same_as(&trace));
}

/// A recording's log.
pub fn log(data: &[u8]) {
    // The checksums keep most mutants out, so the same chunks are also tried with right ones.
    for log in [data.to_vec(), with_checksums(data)] {
        let Ok(trace) = foretell_record::read_log(&log) else { continue };
        validate(&trace);
        as_text(&trace);
    }
}

/// The log with the checksums that its headers and chunks should have.
fn with_checksums(data: &[u8]) -> Vec<u8> {
    const FILE_HEADER: usize = 16;
    const CHUNK_HEADER: usize = 24;
    let mut log = data.to_vec();
    let seal = |log: &mut [u8], sealed: std::ops::Range<usize>, at: usize| {
        let checksum = crc32(&log[sealed]);
        log[at..at + 4].copy_from_slice(&checksum.to_le_bytes());
    };
    if log.len() >= FILE_HEADER {
        seal(&mut log, 0..12, 12);
    }
    let mut at = FILE_HEADER;
    while at + CHUNK_HEADER <= log.len() {
        let words = u32::from_le_bytes(log[at + 8..at + 12].try_into().expect("four bytes"));
        let begin = at + CHUNK_HEADER;
        let end = begin.saturating_add(words as usize * 8).min(log.len());
        seal(&mut log, begin..end, at + 12);
        seal(&mut log, at..at + 16, at + 16);
        at = end;
    }
    log
}

/// The schedule file.
pub fn schedule(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    // The checksum keeps most mutants out, so what stands above it is also tried with a right one.
    let _ = Schedule::parse(source);
    if let Ok(schedule) = Schedule::parse(&with_checksum(source)) {
        assert_eq!(Schedule::parse(&schedule.to_string()), Ok(schedule));
    }
}

/// The lines before `end`, closed with the number of steps and the checksum.
fn with_checksum(source: &str) -> String {
    let above: String = source
        .lines()
        .take_while(|line| !line.trim_start().starts_with("end"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let steps = above.lines().filter(|line| line.trim_start().starts_with("step")).count();
    let checksum = crc32(above.as_bytes());
    format!("{above}end {steps} {checksum:08x}\n")
}

/// CRC-32 as in gzip, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc: u32, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

/// Variables `i`, `j` (integers), `p`, `q` (Booleans), `r`, `s` (reals), `u`, `v` (32 bits), `a`
/// (an array), and the same with a dot.
struct Alphabet;

const NAMES: [&str; 9] = ["i", "j", "p", "q", "r", "s", "u", "v", "a"];

impl Scope for Alphabet {
    fn name(&mut self, terms: &mut TermStore, atom: &Atom<'_>) -> Result<TermId, Refusal> {
        let (name, primed) = match atom.name.strip_suffix('.') {
            Some(name) => (name, true),
            None => (atom.name.as_ref(), false),
        };
        let number = NAMES.iter().position(|known| *known == name).ok_or_else(|| Refusal {
            message: "unknown".into(),
            help: "use a known name".into(),
        })?;
        let sorts = [Sort::INT, Sort::BOOL, Sort::REAL, Sort::bit_vec(32)];
        let array = Sort::Array { index: ScalarSort::Int, element: ScalarSort::Int };
        let sort = sorts.get(number / 2).copied().unwrap_or(array);
        let variable = VariableId::from(number);
        Ok(if primed { terms.primed(variable, sort) } else { terms.variable(variable, sort) })
    }
}

/// Terms: what is printed reads as the same term.
pub fn sexpr(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let Ok(tree) = Tree::read(source, &mut 0, Comments::Anywhere) else { return };
    let mut terms = TermStore::default();
    let mut reader = TermReader::default();
    let root = tree.roots()[0];
    let Ok(term) = reader.term(&mut terms, &mut Alphabet, &tree, root) else { return };
    let written = print_term(&terms, term, &mut |id| match terms.term(id) {
        Term::Variable(variable) => Some(NAMES[variable.index()].into()),
        Term::Primed(variable) => Some(format!("{}.", NAMES[variable.index()])),
        _ => None,
    });
    if written.len() > 100_000 {
        return; // shared parts are spelled out each time
    }
    let again = Tree::read(&written, &mut 0, Comments::Anywhere).expect("it was printed");
    let root = again.roots()[0];
    let back = TermReader::default().term(&mut terms, &mut Alphabet, &again, root);
    assert_eq!(back.ok(), Some(term), "{written}");
}
