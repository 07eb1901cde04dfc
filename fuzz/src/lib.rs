//! What is fuzzed: every parser of something that comes from outside, with what must hold of its
//! answer. [`TARGETS`] lists them; the libFuzzer binaries and a test of `make test` (which mutates the
//! corpus in a way of its own, on any toolchain) both take them from here.
//!
//! A reader gives an error or a trace; it never panics, hangs or takes memory out of proportion to
//! its input. A trace that was read can be validated, written, and read again as the same.

use foretell_predict::planner::goal::Formula;
use foretell_predict::planner::{CompiledGoal, PlanOptions, Planner};
use foretell_report::terminal::Look;
use foretell_report::{Report, html, junit, perfetto, sarif, terminal};
use foretell_trace::format::{binary, ctrc, rapid, text};
use foretell_trace::schedule::Schedule;
use foretell_trace::sexpr::{Atom, Comments, Refusal, Scope, TermReader, Tree, print_term};
use foretell_trace::validate::validate;
use foretell_trace::{ScalarSort, Sort, Term, TermId, TermStore, Trace, VariableId};

/// A target and the name of its corpus.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: [Target; 22] = [
    ("text", text),
    ("ctrc", ctrc),
    ("std", std),
    ("binary", binary),
    ("log", log),
    ("schedule", schedule),
    ("sexpr", sexpr),
    ("cmd", cmd),
    ("goal", goal),
    ("proof", proof),
    ("sync_log", sync_log),
    ("turns", turns),
    ("traffic", traffic),
    ("solver", solver),
    ("planner", planner),
    ("result", result),
    ("suppressions", suppressions),
    ("configuration", configuration),
    ("digest", digest),
    ("ir", ir),
    ("source", source),
    ("store", store),
];

/// A trace that goals and plans speak about.
const SUBJECT: &str = "foretell-trace 1\nobserved\nthread main, alice, bob\nvar balance = 100\n\
    main fork alice\nmain fork bob\nalice read balance = 100\nalice write balance = 110\n\
    bob read balance = 110\nbob write balance = 130\nmain join alice\nmain join bob\n";

/// The file from which an exploration goes on, and the runs in it.
pub fn store(data: &[u8]) {
    if let Some((_, end)) = foretell_store::check(data) {
        assert!(end <= data.len() as u64);
        // What counts of a store is a store.
        let whole = usize::try_from(end).expect("the length of a slice");
        assert_eq!(foretell_store::check(&data[..whole]).map(|(_, end)| end), Some(end));
    }
    let _ = foretell_force::stored::read_run(data, 0);
}

/// C and C++ that a patch is to be put into.
pub fn source(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Some(source) = foretell_patch::source::Source::new(text.to_owned()) else { return };
    let Some(body) = source.body("deposit", None) else { return };
    for at in body.clone().take(64) {
        let _ = source.statements_around(&body, at, body.end.saturating_sub(1));
        let _ = source.loop_around(&body, body.start, at);
        let _ = source.tokens_of_line(&body, at as u32);
    }
    let _ = (source.leaves(&body), source.waits(&body), source.calls(&body, "f"));
    assert!(source.squeezed(&body).len() <= text.len());
}

/// LLVM IR, as clang writes it: what is read can be explored, for a few states.
pub fn ir(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let Ok(module) = foretell_verify::ir::read("fuzz.c", source) else { return };
    let few = foretell_verify::explore::search::Options {
        deadlocks: true,
        states: 200,
        bytes: 1 << 24,
        ..Default::default()
    };
    let _ = foretell_verify::explore::search::explore(&module, &few);
}

/// Programs of guarded commands.
pub fn cmd(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let _ = foretell_verify::text::parse("fuzz.cmd", source);
}

/// Goals in temporal logic: what is read can be compiled for a trace.
pub fn goal(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let Ok(formula) = Formula::parse(source) else { return };
    let trace = text::read(SUBJECT).expect("the subject is a trace");
    let _ = CompiledGoal::new(&trace, &formula);
}

/// Written proofs, of guarded commands and of C programs.
pub fn proof(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let _ = foretell_verify::certificate::Certificate::parse(source);
    let Ok(proof) = foretell_verify::proof::Proof::parse(source) else { return };
    let _ = foretell_verify::proof::Proof::parse(&proof.print());
}

/// Logs of `record --sync-only`, also with the magic word in its place.
pub fn sync_log(data: &[u8]) {
    use foretell_wire::sync_log::{MAGIC, MAGIC_1, parse};
    let mut words: Vec<u64> = data
        .chunks_exact(8)
        .map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
        .collect();
    let _ = parse(&words);
    for magic in [MAGIC, MAGIC_1] {
        if let Some(first) = words.first_mut() {
            *first = magic;
            let _ = parse(&words);
        }
    }
}

/// The turns of a forced run.
pub fn turns(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let Ok(turns) = foretell_wire::parse_turns(source) else { return };
    assert_eq!(foretell_wire::parse_turns(&foretell_wire::format_turns(&turns)), Ok(turns));
}

/// What clients do, as it was seen and as a script.
pub fn traffic(data: &[u8]) {
    use foretell_wire::traffic::{Script, Seen, script};
    let Ok(source) = std::str::from_utf8(data) else { return };
    let seen: Vec<Seen> = source.lines().filter_map(Seen::parse).collect();
    let made = script(&seen, &[1, 2], 15);
    assert_eq!(Script::parse(&made.to_string()), Ok(made));
    let Ok(script) = Script::parse(source) else { return };
    assert_eq!(Script::parse(&script.to_string()), Ok(script));
}

/// What a solver prints, and the values in it.
pub fn solver(data: &[u8]) {
    let Ok(replies) = foretell_solve::reply::parse_replies(data) else { return };
    let array = Sort::Array { index: ScalarSort::Int, element: ScalarSort::Int };
    for reply in &replies {
        for part in reply.list().unwrap_or_default().iter().chain([reply]) {
            for sort in [Sort::INT, Sort::BOOL, Sort::REAL, Sort::bit_vec(32), array] {
                let _ = foretell_solve::parse_value(sort, part);
            }
        }
        let _ = reply.to_string();
    }
}

/// What a planner leaves.
pub fn planner(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let trace = text::read(SUBJECT).expect("the subject is a trace");
    let formula = Formula::parse("order(bob#0, alice#1)").expect("a goal");
    let goal = CompiledGoal::new(&trace, &formula).expect("a goal of the subject");
    let planner = Planner::new(&trace).expect("the subject can be planned");
    let problem = planner.pddl(&goal, &PlanOptions::default()).expect("a problem");
    let _ = problem.text.parse_plan(source);
}

/// Saved results: whatever is read can be shown in every format.
pub fn result(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let Ok(report) = Report::from_json(source) else { return };
    let mut shown = Vec::new();
    terminal::render(&mut shown, Look::default(), &report).expect("a vector takes everything");
    let dangerous = foretell_guard::text::is_dangerous;
    let shown = String::from_utf8(shown).expect("text is UTF-8");
    assert!(!shown.contains(dangerous), "{shown:?}");
    let mut out = Vec::new();
    html::render(&mut out, &report).expect("a vector takes everything");
    sarif::render(&mut out, &report).expect("a vector takes everything");
    junit::render(&mut out, &report).expect("a vector takes everything");
    perfetto::render(&mut out, &report).expect("a vector takes everything");
}

/// Suppression files.
pub fn suppressions(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let _ = foretell_report::suppress::Suppressions::parse(source);
}

/// `foretell.toml`.
pub fn configuration(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let _ = foretell::check_configuration(source);
}

/// Digests of inputs and policies, as they stand in schedules and on command lines.
pub fn digest(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let _ = source.parse::<foretell_force::program::InputDigest>();
    if let Ok(policy) = source.parse::<foretell_record::Policy>() {
        assert_eq!(policy.to_string().parse(), Ok(policy));
    }
}

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
    // The checksums keep most mutants out, so the same chunks are also tried with right ones.
    for file in [data.to_vec(), resealed(data)] {
        let Ok(trace) = binary::read(&file) else { continue };
        validate(&trace);
        let mut written = Vec::new();
        binary::write(&trace, &mut written).expect("a vector takes everything");
        let back = binary::read(&written).expect("what was written is read");
        assert!(back.says_the_same_as(&trace));
    }
}

/// The binary file with the lengths and checksums that its chunks should have.
fn resealed(data: &[u8]) -> Vec<u8> {
    const HEADER: usize = 48;
    let mut file = binary::FILE_HEADER.to_vec();
    let mut at = binary::FILE_HEADER.len();
    while at + HEADER <= data.len() {
        let number = |from: usize| {
            u32::from_le_bytes(data[at + from..at + from + 4].try_into().expect("four bytes"))
                as usize
        };
        let begin = at + HEADER;
        let end = begin.saturating_add(number(8)).min(data.len());
        let mut header = data[at..begin].to_vec();
        let payload = &data[begin..end];
        header[..4].copy_from_slice(b"FTCK");
        header[4..8].copy_from_slice(&[data[at + 4] & 1, 0, 0, 0]);
        header[8..12].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        if header[4] == 0 {
            header[12..16].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        }
        header[40..44].copy_from_slice(&crc32(payload).to_le_bytes());
        let checksum = crc32(&header[..44]);
        header[44..].copy_from_slice(&checksum.to_le_bytes());
        file.extend(header);
        file.extend(payload);
        at = end.max(begin);
    }
    file
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
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
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
