//! A recorder with several threads is killed in the middle of writing: the file must be readable
//! and give a true prefix of the run.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use foretell_trace::format::binary::{self, ChunkEncoder, ChunkSealer, Compression, FILE_HEADER};
use foretell_trace::{Access, Event, Op, Scope, Sort, ThreadId, VariableId};

/// Set in the process that records and is killed: the file to write.
const FILE_VARIABLE: &str = "FORETELL_TEST_RECORD_TO";
const THREADS: u32 = 4;
/// Events that each thread records before it waits for the others.
const ROUND: u32 = 500;
/// Enough for the killer to come in time; an orphan must not fill the disk.
const EVENTS: u32 = 2000 * ROUND;

/// Records and then waits to be killed. Every event writes its own sequence number, so that the reader can check it.
fn record(path: &Path) -> ! {
    let mut file = OpenOptions::new().append(true).create(true).open(path).expect("a new file");
    file.write_all(&FILE_HEADER).expect("room on the disk");
    let sequence = AtomicU64::new(0);
    let round = Barrier::new(THREADS as usize);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let file = file.try_clone().expect("a descriptor");
            let (sequence, round) = (&sequence, &round);
            scope.spawn(move || record_thread(ThreadId(thread), file, sequence, round));
        }
    });
    std::thread::sleep(Duration::from_secs(60));
    panic!("nobody came to kill the recorder")
}

fn record_thread(thread: ThreadId, mut file: File, sequence: &AtomicU64, round: &Barrier) {
    let mut encoder = ChunkEncoder::new();
    let mut sealer = ChunkSealer::new(Compression::Lz4);
    let mut records = Vec::new();
    encoder.thread(thread, "worker", &[thread.0], &mut records);
    let variable = VariableId(0);
    encoder.variable(variable, "x", Sort::bit_vec(64), Scope::Shared, None, None, &mut records);
    for index in 0..EVENTS {
        let sequence = sequence.fetch_add(1, Ordering::SeqCst);
        let access =
            Access { variable, value: Some(sequence), term: None, address: None, order: None };
        let event = Event { thread, index, site: None, op: Op::Write(access) };
        encoder.event(sequence, &event, &mut records);
        let round_over = index % ROUND == ROUND - 1;
        if records.len() > 1000 || round_over {
            let chunk = sealer.seal(&mut encoder, &mut records);
            assert_eq!(file.write(chunk).expect("room on the disk"), chunk.len());
        }
        if round_over {
            round.wait();
        }
    }
}

#[test]
fn what_a_killed_recorder_wrote_is_a_prefix_of_the_run() {
    if let Some(path) = std::env::var_os(FILE_VARIABLE) {
        record(Path::new(&path));
    }
    let path = std::env::temp_dir().join(format!("foretell-killed-{}.ftrace", std::process::id()));
    let _ = std::fs::remove_file(&path); // of an earlier process with our number
    let this = std::env::current_exe().expect("this test");
    let mut recorder = Command::new(this)
        .env(FILE_VARIABLE, &path)
        .args(["--exact", "what_a_killed_recorder_wrote_is_a_prefix_of_the_run"])
        .stdout(Stdio::null())
        .spawn()
        .expect("this test runs again");
    while std::fs::metadata(&path).map_or(0, |metadata| metadata.len()) < 200_000 {
        assert!(recorder.try_wait().expect("a child").is_none(), "the recorder ended by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    recorder.kill().expect("SIGKILL is always delivered");
    recorder.wait().expect("a dead child");
    let file = std::fs::read(&path).expect("the file is there");
    let _ = std::fs::remove_file(&path);

    let trace = binary::read(&file).expect("readable after kill -9");
    assert!(!trace.metadata.gaps.is_empty(), "there was no end record");
    // All rounds but the last are whole.
    assert!(trace.events.len() > 5_000, "{} events", trace.events.len());
    let mut next_index = [0; THREADS as usize];
    for (place, event) in trace.events.iter().enumerate() {
        let Op::Write(access) = &event.op else { panic!("only writes were recorded") };
        assert_eq!(access.value, Some(place as u64));
        let next = &mut next_index[event.thread.index()];
        assert_eq!(event.index, *next);
        *next += 1;
    }
}
