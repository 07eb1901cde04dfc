//! Primitives on small traces, and the text that becomes of the source.

use std::path::{Path, PathBuf};

use foretell_neighbourhood::{Primitive, Region};
use foretell_patch::{Patch, Sources, patch};
use foretell_trace::{EventId, Trace};

/// A source file in a folder of its own.
struct File(PathBuf);

impl File {
    fn new(test: &str, text: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("patch-{test}"));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("prog.c"), text).expect("a file");
        Self(folder)
    }

    fn patch(&self, trace: &Trace, primitives: &[Primitive]) -> Patch {
        patch(trace, primitives, &Sources { directories: vec![self.0.clone()] })
    }
}

fn trace(declarations: &str, events: &str) -> Trace {
    let text = format!("foretell-trace 1\nsymbolic\nobserved\n{declarations}\n{events}\n");
    foretell_trace::format::text::read(&text).expect("valid text")
}

fn lock(regions: &[(usize, usize, usize)]) -> Primitive {
    let region = |&(thread, first, last): &(usize, usize, usize)| Region {
        thread,
        first: EventId::from(first),
        last: EventId::from(last),
    };
    Primitive::Lock { regions: regions.iter().map(region).collect() }
}

/// The lines that come and go.
fn changes(patch: &Patch) -> Vec<String> {
    let changed = |line: &&str| {
        line.starts_with(['+', '-']) && !line.starts_with("+++") && !line.starts_with("---")
    };
    let diffs: Vec<String> = patch.files.iter().map(|file| file.diff()).collect();
    diffs.iter().flat_map(|diff| diff.lines()).filter(changed).map(str::to_string).collect()
}

const COUNTER: &str =
    "#include <stdio.h>\n\nint x;\n\nvoid add(void) {\n  int t = x;\n  t++;\n  x = t;\n}\n";
const TWO_ADDS: &str = "T1 read x = 0 @ prog.c:6 add\nT1 write x = 1 @ prog.c:8 add\n\
                        T2 read x = 1 @ prog.c:6 add\nT2 write x = 2 @ prog.c:8 add";

#[test]
fn a_region_gets_a_new_mutex_with_declaration_and_include() {
    let file = File::new("new", COUNTER);
    let trace = trace("thread T1, T2\nvar x = 0", TWO_ADDS);
    let patch = file.patch(&trace, &[lock(&[(0, 0, 1), (1, 2, 3)])]);
    assert_eq!(patch.refused, []);
    assert_eq!(
        changes(&patch),
        [
            "+#include <pthread.h>",
            "+",
            "+static pthread_mutex_t foretell_lock = PTHREAD_MUTEX_INITIALIZER;",
            "+  pthread_mutex_lock(&foretell_lock);",
            "+  pthread_mutex_unlock(&foretell_lock);",
        ]
    );
    let new = &patch.files[0].new;
    assert!(new.contains("  pthread_mutex_lock(&foretell_lock);\n  int t = x;\n"), "{new}");
    assert!(new.contains("  x = t;\n  pthread_mutex_unlock(&foretell_lock);\n}"), "{new}");
}

#[test]
fn a_region_that_returns_in_between_is_refused_with_the_reason() {
    let file = File::new("return", &COUNTER.replace("t++;", "if (t) return;"));
    let trace = trace("thread T1, T2\nvar x = 0", TWO_ADDS);
    let patch = file.patch(&trace, &[lock(&[(0, 0, 1), (1, 2, 3)])]);
    assert_eq!(patch.refused, [(0, "`return` leaves the region in `add`".to_string())]);
    assert!(patch.files.is_empty());
}

#[test]
fn a_region_that_waits_is_refused_because_the_lock_would_be_held() {
    let file = File::new("waits", &COUNTER.replace("t++;", "pthread_cond_wait(&c, &m);"));
    let trace = trace("thread T1, T2\nvar x = 0", TWO_ADDS);
    let patch = file.patch(&trace, &[lock(&[(0, 0, 1), (1, 2, 3)])]);
    let reason = "`pthread_cond_wait` inside the region would wait with the lock held";
    assert_eq!(patch.refused, [(0, reason.to_string())]);
}

#[test]
fn two_sections_of_one_lock_become_one() {
    let text = "#include <pthread.h>\npthread_mutex_t m;\nint x;\nvoid add(void) {\n  \
                pthread_mutex_lock(&m);\n  int t = x;\n  pthread_mutex_unlock(&m);\n  t++;\n  \
                pthread_mutex_lock(&m);\n  x = t;\n  pthread_mutex_unlock(&m);\n}\n";
    let events = |thread: &str| {
        format!(
            "{thread} acquire m @ prog.c:5 add\n{thread} read x @ prog.c:6 add\n\
             {thread} release m @ prog.c:7 add\n{thread} acquire m @ prog.c:9 add\n\
             {thread} write x = 1 @ prog.c:10 add\n{thread} release m @ prog.c:11 add\n"
        )
    };
    let events = (events("T1") + &events("T2")).replacen("read x", "read x = 0", 1);
    let events = events.replace("read x @", "read x = 1 @");
    let file = File::new("widen", text);
    let trace = trace("thread T1, T2\nvar x = 0\nmutex m", &events);
    let patch = file.patch(&trace, &[lock(&[(0, 0, 5), (1, 6, 11)])]);
    assert_eq!(patch.refused, []);
    assert_eq!(
        changes(&patch),
        ["-  pthread_mutex_unlock(&m);", "-  pthread_mutex_lock(&m);"],
        "the lock is held on"
    );
}

#[test]
fn a_lock_that_one_side_holds_is_taken_by_the_other() {
    let text = "#include <pthread.h>\npthread_mutex_t m;\nint x;\nvoid one(void) {\n  \
                pthread_mutex_lock(&m);\n  x = 1;\n  pthread_mutex_unlock(&m);\n}\n\
                void two(void) {\n  x = 2;\n}\n";
    let file = File::new("held", text);
    let trace = trace(
        "thread T1, T2\nvar x = 0\nmutex m",
        "T1 acquire m @ prog.c:5 one\nT1 write x = 1 @ prog.c:6 one\nT1 release m @ prog.c:7 one\n\
         T2 write x = 2 @ prog.c:10 two",
    );
    let patch = file.patch(&trace, &[lock(&[(0, 1, 1), (1, 3, 3)])]);
    assert_eq!(patch.refused, []);
    assert_eq!(
        changes(&patch),
        ["+  pthread_mutex_lock(&m);", "+  pthread_mutex_unlock(&m);"],
        "no new lock"
    );
    assert!(patch.files[0].new.ends_with("(&m);\n  x = 2;\n  pthread_mutex_unlock(&m);\n}\n"));
}

#[test]
fn a_wait_gets_a_condition() {
    let text = "int config;\nvoid init(void) {\n  config = 7;\n}\nint use(void) {\n  int c = config;\n  return c;\n}\n";
    let file = File::new("wait", text);
    let trace = trace(
        "thread T1, T2\nvar config = 0",
        "T1 write config = 7 @ prog.c:3 init\nT2 read config = 7 @ prog.c:6 use",
    );
    let primitive = Primitive::WaitNotify { waiter: EventId(1), notifier: EventId(0) };
    let patch = file.patch(&trace, &[primitive]);
    assert_eq!(patch.refused, []);
    let new = &patch.files[0].new;
    assert!(
        new.contains("pthread_cond_wait(&foretell_order_done, &foretell_order_lock);"),
        "{new}"
    );
    assert!(new.contains(
        "  config = 7;\n  pthread_mutex_lock(&foretell_order_lock);\n  foretell_order_is_done = 1;"
    ));
}

#[test]
fn a_source_that_is_not_there_is_said() {
    let trace = trace("thread T1, T2\nvar x = 0", TWO_ADDS);
    let sources = Sources { directories: vec!["/nonexistent".into()] };
    let patch = patch(&trace, &[lock(&[(0, 0, 1), (1, 2, 3)])], &sources);
    assert!(patch.refused[0].1.contains("`prog.c` was not found"), "{patch:?}");
}
