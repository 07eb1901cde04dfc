//! Every trace goes through the text format and back; damaged texts never do harm.

use foretell_testing::{Random, arbitrary};
use foretell_trace::format::{ctrc, text};
use foretell_trace::{Scope, Trace};

fn printed(trace: &Trace) -> String {
    let mut bytes = Vec::new();
    text::write(trace, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn every_trace_round_trips() {
    for seed in 0..300 {
        let trace = arbitrary::trace(seed, 60);
        let written = printed(&trace);
        let back =
            text::read(&written).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{written}"));
        assert!(back.says_the_same_as(&trace), "seed {seed}\n{written}\n{}", printed(&back));
    }
}

#[test]
fn what_ctrc_can_carry_round_trips_through_ctrc() {
    let mut carried = 0;
    for seed in 0..300 {
        let mut trace = arbitrary::abstracted(seed, 12);
        // Names that CTRC cannot spell, and locals, which the generator uses in every thread.
        trace.labels.clear();
        for (number, thread) in trace.threads.iter_mut().enumerate() {
            thread.name = format!("thread{number}_").into();
        }
        for (number, variable) in trace.variables.iter_mut().enumerate() {
            variable.name = format!("v{number}").into();
            variable.scope = Scope::Shared;
        }
        let Ok(written) = ctrc::write(&trace) else { continue };
        carried += 1;
        let once =
            ctrc::read(&written).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{written}"));
        let again = ctrc::write(&once).unwrap();
        let twice = ctrc::read(&again).unwrap_or_else(|error| panic!("{seed}: {error}\n{again}"));
        assert!(twice.says_the_same_as(&once), "seed {seed}\n{written}\n{again}");
        assert_eq!(once.events.len(), trace.events.len(), "seed {seed}");
    }
    assert!(carried > 250, "only {carried} of 300 were carried");
}

/// Changes, removes or repeats some bytes; the result is text again.
fn damage(random: &mut Random, source: &str) -> String {
    let mut bytes = source.as_bytes().to_vec();
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len() + 1);
        match random.below(5) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            2 if at < bytes.len() => {
                bytes.remove(at);
            }
            3 => bytes.insert(at, b"()|\"'$#:=,.@%0 \n"[random.below(16)]),
            _ => {
                let end = (at + random.below(40)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                let to = random.below(bytes.len() + 1);
                bytes.splice(to..to, piece);
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn damaged_texts_give_an_error_or_a_trace_that_can_be_written() {
    let mut random = Random::new(7);
    for seed in 0..60 {
        let source = printed(&arbitrary::trace(seed, 30));
        for _ in 0..20 {
            let damaged = damage(&mut random, &source);
            if let Ok(trace) = text::read(&damaged) {
                let written = printed(&trace);
                let back = text::read(&written)
                    .unwrap_or_else(|error| panic!("{error}\n{written}\n{damaged}"));
                assert!(back.says_the_same_as(&trace), "{damaged}\n{written}");
            }
        }
    }
}

#[test]
fn damaged_ctrc_gives_an_error_or_a_trace() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ctrc");
    let mut random = Random::new(8);
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        for _ in 0..100 {
            let damaged = damage(&mut random, &source);
            if let Ok(trace) = ctrc::read(&damaged)
                && let Ok(written) = ctrc::write(&trace)
            {
                let back = ctrc::read(&written)
                    .unwrap_or_else(|error| panic!("{error}\n{written}\n{damaged}"));
                assert!(back.says_the_same_as(&trace), "{damaged}\n{written}");
            }
        }
    }
}
