//! Every parser against mutations of its corpus: the targets of `fuzz/`, with a mutator that needs no
//! coverage and no special toolchain. The number of mutants is fixed, so that a failure comes again;
//! `FORETELL_MUTANTS` sets another one. `fuzz/run.sh` searches with coverage.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

#[path = "../../../../fuzz/src/lib.rs"]
#[allow(dead_code)]
mod targets;

/// Mutants of each target: some seconds on a slow machine.
const MUTANTS: u64 = 3_000;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// Changes bytes, numbers, lines and the length; takes parts of another input.
fn mutate(random: &mut Random, input: &mut Vec<u8>, other: &[u8]) {
    const NUMBERS: [&str; 8] = [
        "0",
        "-1",
        "4294967296",
        "18446744073709551615",
        "99999999999999999999",
        "1e9",
        "",
        "\u{1b}[2J",
    ];
    for _ in 0..1 + random.below(4) {
        let at = random.below(input.len());
        match random.below(9) {
            _ if input.is_empty() => input.extend_from_slice(other),
            0 => input[at] ^= 1 << random.below(8),
            1 => input[at] = random.next() as u8,
            2 => input[at] = *b"()[]{}\"'\\ \n\0|;:=,.-0".get(random.below(20)).unwrap_or(&0),
            3 => input.truncate(at),
            4 => drop(input.remove(at)),
            5 => {
                let number = NUMBERS[random.below(NUMBERS.len())].bytes();
                let digits = input[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                input.splice(at..at + digits, number);
            }
            6 => {
                let from = random.below(other.len());
                let part = &other[from..(from + random.below(64)).min(other.len())];
                input.splice(at..at, part.iter().copied());
            }
            7 => {
                let end = (at + random.below(64)).min(input.len());
                let part = input[at..end].to_vec();
                for _ in 0..1 + random.below(20) {
                    input.splice(at..at, part.iter().copied());
                }
            }
            _ => {
                let line = |text: &[u8], at: usize| {
                    let begin =
                        text[..at].iter().rposition(|&byte| byte == b'\n').map_or(0, |p| p + 1);
                    let end = text[at..].iter().position(|&byte| byte == b'\n');
                    begin..end.map_or(text.len(), |end| at + end + 1)
                };
                let here = line(input, at);
                let there = match other.is_empty() {
                    true => 0..0,
                    false => line(other, random.below(other.len())),
                };
                input.splice(here, other[there].iter().copied());
            }
        }
        input.truncate(1 << 16);
    }
}

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let entries = folder.read_dir().unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).expect("a file")).collect()
}

/// A few mutants of each target in its own test, so that they run side by side.
fn holds(name: &str) {
    let (_, target) = targets::TARGETS.iter().find(|(known, _)| *known == name).expect("a target");
    let corpus = corpus(name);
    assert!(!corpus.is_empty(), "{name} has a corpus");
    for input in &corpus {
        target(input);
    }
    let mutants = std::env::var("FORETELL_MUTANTS").ok().and_then(|number| number.parse().ok());
    for seed in 0..mutants.unwrap_or(MUTANTS) {
        let mut random = Random(seed);
        let mut input = corpus[random.below(corpus.len())].clone();
        let other = &corpus[random.below(corpus.len())];
        mutate(&mut random, &mut input, other);
        if catch_unwind(AssertUnwindSafe(|| target(&input))).is_err() {
            panic!("{name}, seed {seed}: {:?}", String::from_utf8_lossy(&input));
        }
    }
}

macro_rules! targets {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            holds(stringify!($name));
        })*

        #[test]
        fn every_target_is_tried() {
            assert_eq!(targets::TARGETS.map(|(name, _)| name), [$(stringify!($name)),*]);
        }
    };
}

targets! {
    text ctrc std binary log schedule sexpr cmd goal proof sync_log turns traffic solver planner result
    suppressions configuration digest ir source store
}
