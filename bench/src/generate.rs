//! STD traces of any length in the shape that RAPID's figures were measured on: eight threads, 32
//! locks, each guarding 64 variables, and 256 variables of each thread's own. A transaction is
//! `begin acq (r|w)* rel end`, so a clean trace is race-free and serialisable and no analysis can
//! stop early.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use foretell_testing::Random;

const THREADS: usize = 8;
const LOCKS: usize = 32;
const GUARDED: usize = 64;
const LOCAL: usize = 256;

/// Whether every access of a shared variable is guarded by a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All are.
    Clean,
    /// One access in 2000 is not.
    Racy,
}

/// Writes a trace of about `events` events (a few more where that is less than the shape needs);
/// returns how many.
pub fn std_file(path: &Path, events: u64, mode: Mode) -> io::Result<u64> {
    let mut out = Lines { out: BufWriter::with_capacity(1 << 20, File::create(path)?), count: 0 };
    let mut random = Random::new(42);
    for lock in 0..LOCKS {
        for variable in 0..GUARDED {
            out.add(0, format_args!("w(V{lock}.{variable})"), 1)?;
        }
    }
    for thread in 1..=THREADS {
        out.add(0, format_args!("fork(T{thread})"), 2)?;
    }
    // The lock that each thread holds, and how many accesses it has yet to make.
    let mut open: [Option<(usize, usize)>; THREADS + 1] = [None; THREADS + 1];
    let mut held = [false; LOCKS];
    let (mut thread, mut burst) = (1, 0);
    while out.count + 4 * (THREADS as u64) < events {
        if burst == 0 {
            thread = 1 + random.below(THREADS);
            burst = 1 + random.below(12);
        }
        burst -= 1;
        match open[thread] {
            None => {
                let lock = random.below(LOCKS);
                if held[lock] {
                    burst = 0;
                    continue;
                }
                held[lock] = true;
                open[thread] = Some((lock, 6 + random.below(10)));
                out.add(thread, format_args!("begin"), 100 + lock)?;
                out.add(thread, format_args!("acq(L{lock})"), 200 + lock)?;
            }
            Some((lock, 0)) => {
                out.add(thread, format_args!("rel(L{lock})"), 300 + lock)?;
                out.add(thread, format_args!("end"), 400 + lock)?;
                held[lock] = false;
                open[thread] = None;
            }
            Some((lock, left)) => {
                open[thread] = Some((lock, left - 1));
                let mut read_or_write = |percent| if random.percent(percent) { "r" } else { "w" };
                let (reads_60, reads_70) = (read_or_write(60), read_or_write(70));
                if mode == Mode::Racy && random.below(2000) == 0 {
                    let variable = random.below(64);
                    out.add(thread, format_args!("{reads_60}(S{variable})"), 500)?;
                } else if random.percent(35) {
                    let variable = random.below(LOCAL);
                    out.add(thread, format_args!("{reads_60}(P{thread}.{variable})"), 600)?;
                } else {
                    let variable = random.below(GUARDED);
                    let location = 700 + random.below(200);
                    out.add(thread, format_args!("{reads_70}(V{lock}.{variable})"), location)?;
                }
            }
        }
    }
    for (thread, open) in open.iter().enumerate() {
        if let Some((lock, _)) = open {
            out.add(thread, format_args!("rel(L{lock})"), 301)?;
            out.add(thread, format_args!("end"), 401)?;
        }
    }
    for thread in 1..=THREADS {
        out.add(0, format_args!("join(T{thread})"), 3)?;
    }
    out.out.flush()?;
    Ok(out.count)
}

struct Lines {
    out: BufWriter<File>,
    count: u64,
}

impl Lines {
    fn add(
        &mut self,
        thread: usize,
        operation: std::fmt::Arguments<'_>,
        location: usize,
    ) -> io::Result<()> {
        self.count += 1;
        writeln!(self.out, "T{thread}|{operation}|{location}")
    }
}
