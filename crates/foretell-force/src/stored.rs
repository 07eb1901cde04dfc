//! Runs that are kept from one session to the next: what was forced, and all that came of it.
//!
//! A run is asked for by its schedule, its policy and its limit of scheduling points, and by how many
//! times the same was asked for before in this session: who runs a program twice to see whether it does
//! the same gets two runs. What depends on the clock or on us (a run that was ended by the time limit,
//! or because foretell had to end; a policy of the operating system's) is not kept.
//!
//! With a store, a run that is made is handed out as it is read back from it. So a session that goes on
//! sees exactly what the one before it saw.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use foretell_record::{
    Awaited, Blocked, Cause, Crash, ExecutionPath, LeftSchedule, Outside, Piece, Policy, RunEnd,
    Sentence, Times,
};
use foretell_store::{Kind, Reader, Store, Writer};
use foretell_trace::format::binary;
use foretell_trace::schedule::{CreationPath, Step};
use foretell_trace::{Site, Trace};

use crate::run::{Limits, Run, Written};

/// How runs are written. Those that an older foretell wrote otherwise have other names, and are made again.
const ENCODING: u64 = 2;

/// The runs in a store.
#[derive(Debug)]
pub(crate) struct StoredRuns {
    store: Arc<Store>,
    /// How often each run was asked for.
    asked: Mutex<HashMap<Vec<u8>, u64>>,
}

impl StoredRuns {
    pub fn new(store: Arc<Store>) -> Self {
        Self { store, asked: Mutex::new(HashMap::new()) }
    }

    /// The name of the run that is asked for; `None` if such runs are not kept.
    pub fn key(&self, steps: &[Step], policy: &Policy, limits: Limits) -> Option<Vec<u8>> {
        if *policy == Policy::Os {
            return None;
        }
        let mut writer = Writer::default();
        writer.number(ENCODING);
        writer.text(&policy.to_string());
        writer.number(limits.points);
        writer.list(steps.iter(), |writer, step| {
            // Where it stands follows from the program.
            put_thread(writer, &step.thread);
            writer.number(step.index.into());
            writer.text(&step.operation);
        });
        let mut key = lz4_flex::compress(&writer.finish());
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let times = asked.entry(key.clone()).or_default();
        key.extend(times.to_le_bytes());
        *times += 1;
        Some(key)
    }

    /// The run as the store has it, as the run with this number.
    pub fn get(&self, key: &[u8], number: usize) -> Option<Run> {
        read_run(&self.store.get(Kind::Run, key)?, number)
    }

    /// Keeps a run, and gives it as it is kept.
    pub fn put(&self, key: &[u8], run: Run) -> Run {
        if matches!(run.end, RunEnd::Hang | RunEnd::Stopped) {
            return run;
        }
        match run_bytes(&run).and_then(|bytes| Some((read_run(&bytes, run.before)?, bytes))) {
            Some((same, bytes)) => {
                self.store.put(Kind::Run, key, &bytes);
                same
            }
            None => run,
        }
    }
}

fn trace_bytes(trace: &Trace) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    binary::write(trace, &mut bytes).ok().map(|()| bytes)
}

/// A run as bytes; `None` where its trace cannot be written.
fn run_bytes(run: &Run) -> Option<Vec<u8>> {
    let mut out = Writer::default();
    put_end(&mut out, &run.end)?;
    out.option(run.crash.as_ref(), |out, crash| {
        out.number(number_of(crash.signal));
        put_site(out, &crash.site);
        out.number(crash.address);
    });
    out.list(run.outside.iter(), |out, outside| {
        out.number(outside.cause as u64);
        out.text(&outside.thread);
        out.text(&outside.subject);
        out.option(outside.site.as_ref(), put_site);
        out.flag(outside.awaited);
        out.number(outside.times);
    });
    out.number(run.steps_taken as u64);
    let traces = std::iter::once(&run.trace).chain(&run.cuts).map(trace_bytes);
    let traces = traces.collect::<Option<Vec<_>>>()?;
    out.list(traces.iter(), |out, trace| out.bytes(trace));
    let (numbers, sites) = run.path.to_numbers();
    out.list(numbers.iter(), |out, &number| out.number(number));
    out.list(sites.iter(), |out, (place, site)| {
        out.number(*place);
        put_site(out, site);
    });
    out.bytes(&run.written.stdout);
    out.bytes(&run.written.stderr);
    out.list(run.written.files.iter(), |out, file| {
        out.option(file.as_deref(), Writer::bytes);
    });
    out.number(run.time.as_micros() as u64);
    Some(out.finish())
}

/// The run that the bytes say, as the run with this number; `None` where they say none.
pub fn read_run(bytes: &[u8], number: usize) -> Option<Run> {
    let mut from = Reader::new(bytes);
    let from = &mut from;
    let mut run = Run {
        end: take_end(from)?,
        is_test: false,
        crash: from.option(|from| {
            Some(Crash {
                signal: take_signed(from)?,
                site: take_site(from)?,
                address: from.number()?,
            })
        })?,
        outside: from.list(|from| {
            Some(Outside {
                cause: Cause::from_code(from.narrow()?)?,
                thread: from.text()?.into(),
                subject: from.text()?.into(),
                site: from.option(take_site)?,
                awaited: from.flag()?,
                times: from.number()?,
            })
        })?,
        steps_taken: from.narrow()?,
        trace: Trace::default(),
        cuts: from.list(|from| binary::read(from.bytes()?).ok())?,
        path: {
            let numbers = from.list(Reader::number)?;
            let sites = from.list(|from| Some((from.number()?, take_site(from)?)))?;
            ExecutionPath::from_numbers(&numbers, sites)?
        },
        written: Written {
            stdout: from.bytes()?.to_vec(),
            stderr: from.bytes()?.to_vec(),
            files: from.list(|from| from.option(|from| from.bytes().map(<[u8]>::to_vec)))?,
        },
        time: Duration::from_micros(from.number()?),
        times: Times::default(),
        before: number,
    };
    if run.cuts.is_empty() || !from.is_empty() {
        return None;
    }
    run.trace = run.cuts.remove(0);
    Some(run)
}

/// `None`: such a run is not kept.
fn put_end(out: &mut Writer, end: &RunEnd) -> Option<()> {
    let (code, said): (u64, &str) = match end {
        RunEnd::Exit(status) => {
            out.number(0);
            out.number(number_of(*status));
            return Some(());
        }
        RunEnd::Signal(signal) => {
            out.number(1);
            out.number(number_of(*signal));
            return Some(());
        }
        RunEnd::LeftSchedule(divergence) => {
            out.number(2);
            out.option(divergence.step, |out, step| out.number(step as u64));
            out.option(divergence.expected.as_ref(), put_step);
            out.option(divergence.found.as_ref(), put_step);
            put_sentence(out, &divergence.reason);
            return Some(());
        }
        RunEnd::Deadlock(threads) | RunEnd::Livelock(threads) => {
            out.number(if matches!(end, RunEnd::Deadlock(_)) { 3 } else { 4 });
            out.list(threads.iter(), put_blocked);
            return Some(());
        }
        RunEnd::Refused(why) => (5, why),
        RunEnd::Hang | RunEnd::Stopped => return None,
    };
    out.number(code);
    out.text(said);
    Some(())
}

fn take_end(from: &mut Reader<'_>) -> Option<RunEnd> {
    Some(match from.number()? {
        0 => RunEnd::Exit(take_signed(from)?),
        1 => RunEnd::Signal(take_signed(from)?),
        2 => RunEnd::LeftSchedule(Box::new(LeftSchedule {
            step: from.option(Reader::narrow)?,
            expected: from.option(take_step)?,
            found: from.option(take_step)?,
            reason: take_sentence(from)?,
        })),
        3 => RunEnd::Deadlock(from.list(take_blocked)?),
        4 => RunEnd::Livelock(from.list(take_blocked)?),
        5 => RunEnd::Refused(from.text()?.into()),
        _ => return None,
    })
}

fn put_blocked(out: &mut Writer, blocked: &Blocked) {
    let Blocked { thread, event, on, name, holder, came } = blocked;
    put_thread(out, thread);
    out.number((*event).into());
    out.number((*on as u32).into());
    out.text(name);
    out.option(holder.as_ref(), put_thread);
    out.option(*came, |out, (came, all)| {
        out.number(came.into());
        out.number(all.into());
    });
}

fn take_blocked(from: &mut Reader<'_>) -> Option<Blocked> {
    Some(Blocked {
        thread: take_thread(from)?,
        event: from.narrow()?,
        on: Awaited::from_code(from.narrow()?)?,
        name: from.text()?.into(),
        holder: from.option(take_thread)?,
        came: from.option(|from| Some((from.narrow()?, from.narrow()?)))?,
    })
}

fn put_sentence(out: &mut Writer, sentence: &Sentence) {
    out.list(sentence.0.iter(), |out, piece| match piece {
        Piece::Text(text) => {
            out.number(0);
            out.text(text);
        }
        Piece::Thread(path) => {
            out.number(1);
            put_thread(out, &CreationPath(path.clone()));
        }
        Piece::Address(address) => {
            out.number(2);
            out.number(*address);
        }
    });
}

fn take_sentence(from: &mut Reader<'_>) -> Option<Sentence> {
    let piece = |from: &mut Reader<'_>| {
        Some(match from.number()? {
            0 => Piece::Text(from.text()?.into()),
            1 => Piece::Thread(take_thread(from)?.0),
            2 => Piece::Address(from.number()?),
            _ => return None,
        })
    };
    from.list(piece).map(Sentence)
}

fn number_of(signed: i32) -> u64 {
    u64::from(signed as u32)
}

fn take_signed(from: &mut Reader<'_>) -> Option<i32> {
    Some(from.narrow::<u32>()? as i32)
}

fn put_thread(out: &mut Writer, thread: &CreationPath) {
    out.list(thread.0.iter(), |out, &child| out.number(child.into()));
}

fn take_thread(from: &mut Reader<'_>) -> Option<CreationPath> {
    from.list(Reader::narrow).map(CreationPath)
}

fn put_step(out: &mut Writer, step: &Step) {
    put_thread(out, &step.thread);
    out.number(step.index.into());
    out.text(&step.operation);
    out.option(step.site.as_ref(), put_site);
}

fn take_step(from: &mut Reader<'_>) -> Option<Step> {
    Some(Step {
        thread: take_thread(from)?,
        index: from.narrow()?,
        operation: from.text()?.into(),
        site: from.option(take_site)?,
    })
}

fn put_site(out: &mut Writer, site: &Site) {
    out.text(&site.file);
    out.text(&site.function);
    out.number(site.line.into());
    out.number(site.column.into());
}

fn take_site(from: &mut Reader<'_>) -> Option<Site> {
    let (file, function) = (from.text()?.into(), from.text()?.into());
    Some(Site { file, function, line: from.narrow()?, column: from.narrow()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use foretell_trace::format::text;

    fn site(line: u32) -> Site {
        Site { file: "a.c".into(), line, column: 3, function: "f".into() }
    }

    fn run(end: RunEnd) -> Run {
        let text = "foretell-trace 1\nsymbolic\nobserved\nthread main, worker\nvar x = 1\n\
            main fork worker\nmain a = read x = 1 @ a.c:1\nworker write x = 2 := 2 @ a.c:2\n";
        let trace = text::read(text).unwrap_or_else(|error| panic!("{error}"));
        Run {
            end,
            is_test: false,
            crash: Some(Crash { signal: 11, site: site(7), address: u64::MAX }),
            outside: vec![Outside {
                cause: Cause::HeldOutcome,
                thread: "0.1".into(),
                subject: "sem_timedwait".into(),
                site: Some(site(8)),
                awaited: true,
                times: 3,
            }],
            steps_taken: 2,
            cuts: vec![trace.clone(), Trace::default()],
            trace,
            path: ExecutionPath::default(),
            written: Written {
                stdout: b"out\xff".to_vec(),
                stderr: Vec::new(),
                files: vec![None, Some(b"file".to_vec())],
            },
            time: Duration::from_micros(1_234),
            times: Times::default(),
            before: 5,
        }
    }

    fn step() -> Step {
        let (thread, operation) = (CreationPath(vec![0, 2]), "read".into());
        Step { thread, index: 9, operation, site: Some(site(4)) }
    }

    fn blocked(holder: Option<CreationPath>, came: Option<(u32, u32)>) -> Blocked {
        let thread = CreationPath(vec![0, 1]);
        Blocked { thread, event: 9, on: Awaited::Mutex, name: "m".into(), holder, came }
    }

    #[test]
    fn a_run_survives_its_bytes() {
        let diverged = LeftSchedule {
            step: Some(4),
            expected: Some(step()),
            found: None,
            reason: Sentence::default().thread(&[0]).text(" ended at ").address(16),
        };
        for end in [
            RunEnd::Exit(-1),
            RunEnd::Signal(6),
            RunEnd::Deadlock(vec![blocked(Some(CreationPath(vec![])), None)]),
            RunEnd::Livelock(vec![blocked(None, Some((1, 2)))]),
            RunEnd::Refused("no".into()),
            RunEnd::LeftSchedule(Box::new(diverged)),
        ] {
            let run = run(end);
            let bytes = run_bytes(&run).expect("it is kept");
            let back = read_run(&bytes, 5).expect("a run");
            assert_eq!((&back.trace, &back.cuts), (&run.trace, &run.cuts));
            let rest = |run: &Run| {
                let (trace, cuts) = (Trace::default(), Vec::new());
                format!("{:?}", Run { trace, cuts, ..run.clone() })
            };
            assert_eq!(rest(&back), rest(&run));
            for end in 0..bytes.len() {
                assert!(read_run(&bytes[..end], 0).is_none(), "{end} bytes");
            }
        }
        assert_eq!(run_bytes(&run(RunEnd::Hang)), None);
    }

    #[test]
    fn who_asks_twice_gets_two_runs() {
        let folder = foretell_guard::PrivateFolder::new().expect("a folder");
        let store = Arc::new(Store::open(folder.path(), &[]).expect("a store"));
        let limits = Limits { time: Duration::ZERO, points: 10 };
        let policy = Policy::RoundRobin { quantum: 3 };
        let names = || {
            let runs = StoredRuns::new(Arc::clone(&store));
            let key = |policy: &Policy| runs.key(&[step()], policy, limits);
            assert_eq!(key(&Policy::Os), None);
            let keys = [key(&policy).expect("a name"), key(&policy).expect("a name")];
            (runs, keys)
        };
        let (runs, [first, second]) = names();
        assert_ne!(first, second);
        runs.put(&first, run(RunEnd::Exit(1)));
        runs.put(&second, run(RunEnd::Exit(2)));
        let (later, keys) = names();
        assert_eq!(keys, [first, second]);
        let ends = keys.map(|key| later.get(&key, 0).expect("it was kept").end);
        assert_eq!(ends, [RunEnd::Exit(1), RunEnd::Exit(2)]);
    }
}
