//! RAPID's STD format and the counts of `trace info`.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use foretell_testing::{Random, arbitrary};
use foretell_trace::format::{binary, rapid};
use foretell_trace::info::{OpKind, TraceInfo};
use foretell_trace::{Format, ObjectKind, Op, ReadError, Trace, read_path, write_path};
use proptest::prelude::*;

const SMALL: &str = "\
T0|w(V0)|5
T0|fork(T1)|6
T1|begin|7
T1|acq(L0)|8
T1|r(V0)|9
T1|rel(L0)|10
T1|end|11
T0|join(T1)|12
";

fn read(text: &str) -> Result<Trace, ReadError> {
    rapid::read(text.as_bytes())
}

fn write(trace: &Trace) -> String {
    let mut text = Vec::new();
    rapid::check(trace).expect("the format can carry it");
    rapid::write(trace, &mut text).expect("a vector takes everything");
    String::from_utf8(text).expect("names are text")
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).expect("a vector takes everything");
    encoder.finish().expect("a vector takes everything")
}

#[test]
fn every_operation_is_read_and_written() {
    let trace = read(SMALL).expect("well-formed");
    assert_eq!(write(&trace), SMALL);
    assert!(!trace.metadata.symbolic && trace.metadata.observed_order);
    assert_eq!(trace.threads[0].path, [0u32; 0]);
    assert_eq!(trace.threads[1].path, [0]);
    let sites: Vec<u32> =
        trace.events.iter().map(|event| trace.sites[event.site.unwrap().index()].line).collect();
    assert_eq!(sites, [5, 6, 7, 8, 9, 10, 11, 12]);
    assert_eq!(trace.events[2].op, Op::RegionBegin("".into()));
    assert_eq!(rapid::read(gzip(SMALL.as_bytes()).as_slice()), Ok(trace));
}

#[test]
fn what_rapid_allows_is_read() {
    let trace = read("A|begin(f)|1\r\n\n  \nA|end of f|007").expect("well-formed");
    assert_eq!(trace.events[0].op, Op::RegionBegin("f".into()));
    assert_eq!(trace.sites[1].line, 7);
    let nested = "A|acq(m)|0\nA|acq(m)|0\nA|rel(m)|0\nA|rel(m)|0\nB|acq(m)|0\n";
    assert_eq!(read(nested).unwrap().objects[0].kind, ObjectKind::RecursiveMutex);
    assert_eq!(read(""), Ok(Trace { metadata: trace.metadata, ..Trace::new() }));
}

#[test]
fn a_malformed_line_is_named_with_its_column() {
    for (line, column, what) in [
        ("T0", 1, "no `|` after the thread"),
        ("|r(x)|1", 1, "no thread before the `|`"),
        ("T0|r(x)", 7, "the location is not an integer below 2^32"),
        ("T0|12", 6, "no `|` after the operation"),
        ("T0|r(x)|", 9, "no location after the `|`"),
        ("T0|r(x)|1x", 10, "the location is not an integer below 2^32"),
        ("T0|r(x)|4294967296", 9, "the location is not an integer below 2^32"),
        ("T0|r(x)|99999999999", 9, "the location is not an integer below 2^32"),
        ("T0|read(x)|1", 4, "unknown operation"),
        ("Tü|w[x]|1", 4, "unknown operation"),
        ("T0|r()|1", 6, "no name between the parentheses"),
        ("T0|acq(x|1", 9, "no `)` after the name"),
        ("T0|r(|1", 6, "no `)` after the name"),
    ] {
        let error = read(&format!("T0|r(x)|1\n{line}\n")).expect_err(line);
        let expected = format!("2:{column}: {what}; a line looks like `T0|r(V1)|12`");
        assert_eq!(error.to_string(), expected, "{line}");
    }
    let error = rapid::read(&b"T0|r(\xff)|1\n"[..]).expect_err("not text");
    assert_eq!(error.to_string(), "1:1: a name is not utf-8");
    let error = rapid::read(std::io::repeat(b'x')).expect_err("no line end ever comes");
    assert!(error.to_string().contains("longer than 65536 bytes"), "{error}");
}

#[test]
fn chains_of_forks_do_not_fill_the_memory() {
    let text: String = (0..300).map(|n| format!("T{n}|fork(T{})|1\n", n + 1)).collect();
    let error = read(&text).expect_err("deep");
    assert_eq!(error.to_string(), "257:1: threads create threads more than 256 deep");
}

#[test]
fn what_the_format_cannot_say_is_refused_by_name() {
    let mut trace = read(SMALL).expect("well-formed");
    trace.events[3].op = Op::Return;
    assert_eq!(
        rapid::check(&trace).expect_err("no calls").to_string(),
        "the STD format cannot carry event T1#1: an operation other than r, w, acq, rel, fork, \
         join, begin, end; choose text or binary"
    );
    trace = read(SMALL).expect("well-formed");
    trace.threads[1].name = "a|b".into();
    let error = rapid::check(&trace).expect_err("RAPID would see another field");
    assert!(error.to_string().contains("event T0#1: its names"), "{error}");
    trace = read(SMALL).expect("well-formed");
    trace.sites[0].file = "Main.java".into();
    let error = rapid::check(&trace).expect_err("no files");
    assert!(error.to_string().contains("files, columns and functions"), "{error}");
}

/// A well-formed STD text with odd names, which is not a sensible run.
fn random_text(random: &mut Random, lines: usize) -> String {
    let names = ["x", "V12.3", "a-b", "ключ", "[I@1f", "a_very_long_name_of_some_variable"];
    let operations = ["r", "w", "acq", "rel", "fork", "join"];
    (0..lines)
        .map(|_| {
            let thread = names[random.below(6)];
            let location = random.bits() as u32 >> random.below(33).min(31);
            match random.below(8) {
                0 => format!("{thread}|begin|{location}\n"),
                1 => format!("{thread}|end|{location}\n"),
                _ => {
                    let (operation, name) = (operations[random.below(6)], names[random.below(6)]);
                    format!("{thread}|{operation}({name})|{location}\n")
                }
            }
        })
        .collect()
}

proptest! {
    #[test]
    fn text_round_trips(seed: u64, lines in 0usize..200) {
        let text = random_text(&mut Random::new(seed), lines);
        prop_assert_eq!(write(&read(&text).expect("well-formed")), text);
    }

    #[test]
    fn every_trace_can_be_projected(seed: u64, size in 0usize..200) {
        let projected = rapid::project(&arbitrary::trace(seed, size));
        prop_assert_eq!(read(&write(&projected)), Ok(projected));
    }

    #[test]
    fn random_bytes_end_in_an_error_or_a_trace(seed: u64, lines in 1usize..40, changes in 1usize..6) {
        let mut random = Random::new(seed);
        let text = random_text(&mut random, lines).into_bytes();
        for mut bytes in [text.clone(), gzip(&text)] {
            for _ in 0..changes {
                let at = random.below(bytes.len());
                match random.below(4) {
                    0 => bytes[at] = random.bits() as u8,
                    1 => bytes[at] = b"|()\n0a"[random.below(6)],
                    2 => bytes[at] ^= 1 << random.below(8),
                    _ => bytes.truncate(at.max(1)),
                }
            }
            let info = TraceInfo::of_std(bytes.as_slice());
            match rapid::read(bytes.as_slice()) {
                Ok(trace) => prop_assert_eq!(info, Ok(TraceInfo::of(&trace))),
                Err(error) => prop_assert!(!error.message.is_empty()),
            }
        }
    }

    /// The streaming counts are those of the whole trace.
    #[test]
    fn info_of_a_stream_is_info_of_the_trace(seed: u64, size in 0usize..300) {
        let trace = arbitrary::trace(seed, size);
        let mut bytes = Vec::new();
        binary::write(&trace, &mut bytes).expect("a vector takes everything");
        prop_assert_eq!(TraceInfo::of_binary(&bytes), Ok(TraceInfo::of(&trace)));
        let projected = rapid::project(&trace);
        let info = TraceInfo::of_std(write(&projected).as_bytes());
        prop_assert_eq!(info, Ok(TraceInfo::of(&projected)));
    }
}

#[test]
fn a_truncated_gzip_file_is_an_error_with_a_line() {
    let bytes = gzip(SMALL.as_bytes());
    let error = rapid::read(&bytes[..bytes.len() - 9]).expect_err("the end is missing");
    assert!(error.to_string().contains("reading fails here"), "{error}");
}

#[test]
fn info_counts_what_is_there() {
    let info = TraceInfo::of_std(SMALL.as_bytes()).expect("well-formed");
    assert_eq!((info.events, info.variables, info.locks, info.sites), (8, 1, 1, 8));
    let threads: Vec<(&str, u64)> =
        info.threads.iter().map(|thread| (&*thread.name, thread.events)).collect();
    assert_eq!(threads, [("T0", 3), ("T1", 5)]);
    assert_eq!(info.kinds.iter().find(|(kind, _)| *kind == OpKind::Read), Some(&(OpKind::Read, 1)));
}

#[test]
fn kinds_are_in_order_and_have_different_names() {
    for (place, kind) in OpKind::all().enumerate() {
        assert_eq!(kind.index(), place);
    }
    let names: HashSet<&str> = OpKind::all().map(OpKind::name).collect();
    assert_eq!(names.len(), OpKind::COUNT);
}

#[test]
fn files_are_read_by_path_and_written_whole() {
    let directory = std::env::temp_dir().join(format!("foretell-rapid-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let trace = read(SMALL).expect("well-formed");
    for (name, format) in
        [("a.std", Format::Std), ("a.std.gz", Format::Std), ("a.ftrace", Format::Binary)]
    {
        let path = directory.join(name);
        write_path(&trace, &path, format).expect("the format can carry it");
        assert_eq!(read_path(&path).as_ref(), Ok(&trace), "{name}");
        assert_eq!(TraceInfo::of_path(&path), Ok((format, TraceInfo::of(&trace))), "{name}");
    }
    let mut first = [0; 2];
    std::fs::File::open(directory.join("a.std.gz")).unwrap().read_exact(&mut first).unwrap();
    assert_eq!(first, [0x1f, 0x8b]);
    std::fs::write(directory.join("empty.std"), "").unwrap();
    let error = TraceInfo::of_path(&directory.join("empty.std")).expect_err("empty");
    assert!(error.to_string().contains("the file is empty"), "{error}");
    let _ = std::fs::remove_dir_all(&directory);
}

/// The traces of Java programs that lie beside the project on our machines.
#[test]
fn traces_of_java_programs_are_read() {
    let directory = Path::new("/work/shared/data/std");
    let Ok(files) = std::fs::read_dir(directory) else {
        eprintln!("SKIPPED: {} is not on this machine", directory.display());
        return;
    };
    let mut events = 0;
    for file in files {
        let path = file.expect("readable").path();
        let (format, info) = TraceInfo::of_path(&path).expect("well-formed");
        assert_eq!(format, Format::Std);
        let trace = read_path(&path).expect("well-formed");
        assert_eq!(info, TraceInfo::of(&trace), "{}", path.display());
        let paths: HashSet<&[u32]> = trace.threads.iter().map(|thread| &*thread.path).collect();
        assert_eq!(paths.len(), trace.threads.len(), "{}", path.display());
        assert_eq!(read(&write(&trace)).as_ref(), Ok(&trace), "{}", path.display());
        events += info.events;
    }
    assert_eq!(events, 171_764);
}
