//! The rows of `docs/src/posix.md`, each shown by a small correct program: what is understood hides nothing
//! (all of its paths may be more than are explored), what is passed through is said with its cause, and nothing is found in any of them.

use crate::common::{Answer, Workshop, source, tested};

/// What shows a row of the table.
enum Shown {
    /// These of [`ROWS`].
    Programs(&'static [&'static str]),
    /// A test of its own.
    By(fn()),
}
use Shown::{By, Programs};

/// The rows of the table by their first words, each with what shows it.
const SHOWN: [(&str, Shown); 46] = [
    ("threads, join, detach", By(threads_are_understood)),
    ("deferred cancellation", By(crate::carried::states_of_the_process_are_found_or_said)),
    ("asynchronous cancellation", Programs(&["cancel"])),
    ("mutexes: normal", Programs(&["recursive", "inherit"])),
    ("semaphores near", By(crate::kernel::that_there_may_be_no_room_is_said)),
    (
        "names of sockets",
        By(crate::kernel::timers_signals_and_waits_that_the_kernel_decides_are_said),
    ),
    (
        "memory that the C library keeps",
        By(crate::kernel::what_the_library_keeps_can_be_freed_too_early),
    ),
    ("atomic objects of 16 bytes", By(crate::kernel::wide_atomic_objects_are_atomic)),
    ("`timerfd`", By(crate::kernel::timers_signals_and_waits_that_the_kernel_decides_are_said)),
    ("`kill`", By(crate::kernel::timers_signals_and_waits_that_the_kernel_decides_are_said)),
    ("robust mutexes", Programs(&["robust"])),
    ("semaphores, mutexes, reader-writer locks", Programs(&["pshared", "named", "sharedrwlock"])),
    (
        "conditions and barriers that are process-shared",
        Programs(&["sharedcondition", "sharedbarrier", "foreigncondition", "foreignbarrier"]),
    ),
    ("spin locks", Programs(&["spin", "condition", "rwlock"])),
    ("barriers", Programs(&["barrier"])),
    ("flags of descriptors", By(crate::carried::states_of_the_process_are_found_or_said)),
    ("files that are mapped", By(crate::carried::states_of_the_process_are_found_or_said)),
    ("functions of the C library", By(crate::carried::states_of_the_process_are_found_or_said)),
    ("`pthread_once`", Programs(&["once"])),
    ("tries and time limits", By(tries_and_limits_are_varied)),
    ("pipes, sockets, eventfd", By(descriptors_are_understood)),
    ("`futex` by `syscall`", Programs(&["futex"])),
    ("message queues", Programs(&["mq", "msg", "mqnotify"])),
    ("System V semaphores", Programs(&["semop"])),
    ("`flock`", Programs(&["flock", "ofd"])),
    ("`lockf`", Programs(&["lockf", "fcntl"])),
    ("signals that are waited for", By(crate::process::signals_are_an_order_whoever_sends_them)),
    ("signal handlers", By(handlers_run_and_interrupt)),
    (
        "descriptors that several threads use",
        By(crate::process::descriptors_of_others_are_said_and_own_ones_are_clear),
    ),
    ("`inotify`", By(crate::process::state_of_the_process_is_said)),
    ("system calls by `syscall`", By(crate::process::tasks_by_other_ways_are_said)),
    ("anonymous memory", By(crate::process::memory_that_is_unmapped_is_gone)),
    ("`alarm`", Programs(&["itimer", "timer"])),
    ("`timer_create` and `aio_*`", Programs(&["notify", "aio"])),
    ("`sleep`", Programs(&["sleep"])),
    ("`fork`, `vfork`, `clone`", By(children_are_said)),
    ("`posix_spawn`", Programs(&["spawn", "system", "popen"])),
    ("`exec*`", Programs(&["execl", "execfails"])),
    ("OpenMP by", By(crate::world::openmp_is_seen)),
    ("OpenMP of another", By(crate::world::openmp_of_a_library_runs_and_is_said)),
    (
        "any other call that blocks",
        By(crate::world::a_thread_blocked_in_a_call_that_is_not_wrapped_loses_the_turn),
    ),
    ("code that spins", By(spinning_is_said)),
    ("process and thread ids", By(ids_are_said)),
    ("files of `/proc`", By(files_that_change_are_said)),
    ("memory and system calls in inline", By(assembler_is_said)),
    ("statically linked programs", By(programs_without_the_runtime_are_refused)),
];

#[test]
fn every_row_of_the_table_has_a_test() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/posix.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let rows: Vec<&str> = rows.filter(|row| !row.starts_with('|')).collect(); // without the head
    assert!(rows.len() > 20, "{rows:?}");
    for row in &rows {
        let found = SHOWN.iter().filter(|(words, _)| row.starts_with(words)).count();
        assert_eq!(found, 1, "tests of the row `{row}`");
    }
    let mut made = std::collections::BTreeSet::new();
    for (words, by) in &SHOWN {
        assert!(rows.iter().any(|row| row.starts_with(words)), "no row `{words}`");
        match by {
            Programs(programs) => {
                let known = |name: &&str| ROWS.iter().any(|(row, ..)| row == name);
                assert!(!programs.is_empty() && programs.iter().all(known), "{words}");
            }
            By(test) if made.insert(*test as usize) => test(),
            By(_) => {} // it shows several rows
        }
    }
}

/// Whether the report says this cause.
fn says(answer: &Answer, cause: &str) -> bool {
    let outside = answer.report["trace"]["outside"].as_array();
    outside.is_some_and(|all| all.iter().any(|one| one["cause"] == cause))
}

/// Tests a program whose second thread does this.
fn doing(what: &str) -> Answer {
    let code = format!(
        "#define _GNU_SOURCE\n#include <fcntl.h>\n#include <pthread.h>\n#include <stdio.h>\n\
         #include <unistd.h>\nint x;\nvoid *f(void *_) {{ {what} return 0; }}\n\
         int main(void) {{ pthread_t t; pthread_create(&t, 0, f, 0); pthread_join(t, 0); return 0; }}\n"
    );
    let workshop = Workshop::new();
    let program = workshop.build_text("doing", &code);
    workshop.test(&program, &[], &[])
}

/// Everything that can come out of tries and waits with a time limit is looked at.
fn tries_and_limits_are_varied() {
    let workshop = Workshop::new();
    let program = workshop.build_text(
        "limits",
        "#include <pthread.h>\n#include <semaphore.h>\n#include <time.h>\n\
         pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; pthread_rwlock_t r = PTHREAD_RWLOCK_INITIALIZER;\n\
         pthread_cond_t c = PTHREAD_COND_INITIALIZER; sem_t s; _Atomic int got;\n\
         const struct timespec late = {4000000000, 0};\n\
         void *one(void *_) {\n\
         if (!pthread_mutex_timedlock(&m, &late)) { got++; pthread_cond_timedwait(&c, &m, &late); pthread_mutex_unlock(&m); }\n\
         if (!sem_timedwait(&s, &late)) got++;\n\
         if (!pthread_rwlock_tryrdlock(&r)) { got++; pthread_rwlock_unlock(&r); } return 0; }\n\
         void *two(void *_) {\n\
         if (!pthread_mutex_trylock(&m)) { got++; pthread_cond_signal(&c); pthread_mutex_unlock(&m); }\n\
         if (!pthread_rwlock_timedwrlock(&r, &late)) { got++; sem_post(&s); pthread_rwlock_unlock(&r); } return 0; }\n\
         int main(void) { pthread_t t[2]; sem_init(&s, 0, 0); pthread_create(&t[0], 0, one, 0);\n\
         pthread_create(&t[1], 0, two, 0); pthread_join(t[0], 0); pthread_join(t[1], 0); return 0; }\n",
    );
    let answer = workshop.test(&program, &[], &[]);
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    let explored = &answer.report["exploration"];
    assert_eq!(explored["covered"], true, "{explored}");
    assert!(explored["classes"].as_u64() > Some(4), "{explored}");
}

fn threads_are_understood() {
    let workshop = Workshop::new();
    let program = workshop.build_text(
        "threads",
        "#include <assert.h>\n#include <pthread.h>\n#include <semaphore.h>\nsem_t done, never; int cleaned;\n\
         void clean(void *_) { cleaned = 1; }\n\
         void *detached(void *_) { sem_post(&done); return 0; }\n\
         void *cancelled(void *_) { pthread_cleanup_push(clean, 0); sem_wait(&never); pthread_cleanup_pop(0); return 0; }\n\
         void *plain(void *a) { return a; }\n\
         int main(void) { pthread_t t; void *r; sem_init(&done, 0, 0); sem_init(&never, 0, 0);\n\
         pthread_create(&t, 0, detached, 0); pthread_detach(t); sem_wait(&done);\n\
         pthread_create(&t, 0, plain, &t); pthread_join(t, &r); assert(r == &t);\n\
         return 0; }\n",
    );
    let answer = workshop.test(&program, &["--runs", "30"], &[]);
    assert!(matches!(answer.code, Some(0 | 12)), "{:?} {}", answer.code, answer.stderr);
    assert!(answer.findings().is_empty(), "{:#}", answer.report);
    let outside = answer.report["trace"]["outside"].as_array().is_none_or(Vec::is_empty);
    assert!(outside, "{}", answer.report["trace"]["outside"]);
}

/// A handler by `raise` is one of [`ROWS`]; one that another thread causes could run anywhere.
fn handlers_run_and_interrupt() {
    assert!(ROWS.iter().any(|(row, _, cause)| *row == "raise" && cause.is_none()));
    crate::process::where_a_handler_interrupts_is_said();
}

/// Those by `fork` are one of [`ROWS`].
fn children_are_said() {
    assert!(ROWS.iter().any(|(row, _, cause)| *row == "fork" && *cause == Some("process")));
    crate::process::tasks_by_other_ways_are_said();
}

fn descriptors_are_understood() {
    for way in ["p", "s", "e", "t"] {
        tested("world/pipesync.c", &["-w"], &[way]).ends_with(0);
    }
}

fn spinning_is_said() {
    let workshop = Workshop::new();
    let program = workshop.build(&source("world/othersync.c"), &["-O1", "-w"]);
    let answer = workshop.test(&program, &["--run-limit", "20"], &["asm"]);
    assert!(says(&answer, "spinning"), "{}", answer.report["trace"]["outside"]);
}

fn ids_are_said() {
    let answer = doing("x = getpid();").ends_with(12);
    assert!(says(&answer, "varying-input"), "{}", answer.report["trace"]["outside"]);
    doing("printf(\"%d\\n\", gettid());").ends_with(0);
}

fn files_that_change_are_said() {
    let answer = doing("close(open(\"/proc/loadavg\", O_RDONLY));").ends_with(12);
    assert!(says(&answer, "varying-input"), "{}", answer.report["trace"]["outside"]);
    doing("close(open(\"/proc/self/cmdline\", O_RDONLY));").ends_with(0);
}

fn assembler_is_said() {
    let answer = doing("__asm__ volatile(\"incl %0\" : \"+m\"(x));").ends_with(12);
    assert!(says(&answer, "assembler"), "{}", answer.report["trace"]["outside"]);
}

fn programs_without_the_runtime_are_refused() {
    let workshop = Workshop::new();
    let path = workshop.path().join("plain.c");
    std::fs::write(&path, "int main(void) { return 0; }\n").expect("a file");
    let refused = |program: &str| {
        let answer = workshop.test(&workshop.path().join(program), &[], &[]).ends_with(2);
        assert!(answer.stderr.contains("ran without the runtime"), "{}", answer.stderr);
    };
    let compile = |options: &[&str], program: &str| {
        let mut command = std::process::Command::new("clang-22");
        command.args(options).arg(&path).arg("-o").arg(workshop.path().join(program));
        assert!(command.status().expect("clang").success());
    };
    compile(&["-static"], "static");
    refused("static");
    // Set to another user, which only root can do.
    compile(&[], "other");
    let other = workshop.path().join("other");
    if std::os::unix::fs::chown(&other, Some(1), None).is_ok() {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::Permissions::from_mode(0o4755);
        std::fs::set_permissions(&other, mode).expect("the mode");
        refused("other");
    } else {
        eprintln!("SKIPPED: only root can make a set-user-id program of another user");
    }
    let mut linked = workshop.foretell();
    linked.args(["cc", "-static"]).arg(&path).args(["-o", "linked"]);
    let output = linked.output().expect("foretell runs");
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The program, what it prints, and the cause that has to be said; none where it is understood.
const ROWS: [(&str, &str, Option<&str>); 37] = [
    ("recursive", "ok\n", None),
    ("inherit", "ok\n", None),
    ("pshared", "ok\n", None),
    ("robust", "ok\n", None),
    ("named", "ok\n", None),
    ("raise", "ok\n", None),
    ("sleep", "ok\n", None),
    ("execfails", "ok\n", None),
    ("cancel", "ok\n", Some("asynchronous-cancellation")),
    ("itimer", "ok\n", Some("signal")),
    ("timer", "ok\n", Some("timer")),
    ("fork", "ok\n", Some("process")),
    ("spawn", "ok\n", Some("process")),
    ("system", "ok\n", Some("process")),
    ("popen", "ok\n", Some("process")),
    ("execl", "a b c d e f\n", Some("exec")),
    ("flock", "ok\n", None),
    ("ofd", "ok\n", None),
    ("fcntl", "ok\n", None),
    ("lockf", "ok\n", None),
    ("semop", "ok\n", None),
    ("msg", "ok\n", None),
    ("mq", "ok\n", None),
    ("mqnotify", "ok\n", Some("passed-call")),
    ("futex", "ok\n", None),
    ("spin", "ok\n", None),
    ("once", "ok\n", None),
    ("condition", "ok\n", None),
    ("barrier", "ok\n", None),
    ("rwlock", "ok\n", None),
    ("sharedrwlock", "ok\n", None),
    ("sharedcondition", "ok\n", None),
    ("sharedbarrier", "ok\n", None),
    ("foreigncondition", "ok\n", Some("shared-object")),
    ("foreignbarrier", "ok\n", Some("shared-object")),
    ("aio", "ok\n", Some("aio")),
    ("notify", "ok\n", Some("timer")),
];

#[test]
fn every_row_of_the_table_is_as_it_says() {
    let workshop = Workshop::new();
    let program = workshop.build(&source("world/posix.c"), &["-O1", "-w"]);
    let mut wrong = Vec::new();
    for (row, prints, cause) in ROWS {
        // A loop around a wait has paths without end.
        let answer = workshop.test(&program, &["--runs", "30"], &[row]);
        let outside = answer.report["trace"]["outside"].as_array().cloned().unwrap_or_default();
        let said = |cause: &str| outside.iter().any(|one| one["cause"] == cause);
        let as_it_says = match cause {
            Some(cause) => answer.code == Some(12) && said(cause),
            None => {
                let seen = answer.report["unseen"].as_array().is_some_and(Vec::is_empty);
                answer.code == Some(0) || answer.code == Some(12) && seen && outside.is_empty()
            }
        };
        if !as_it_says || !answer.findings().is_empty() {
            wrong.push(format!("{row}: {:?} {outside:?} {}", answer.code, answer.report["unseen"]));
        }
        let output = workshop
            .foretell()
            .args(["record", "-o", "row.ftrace", "--"])
            .arg(&program)
            .arg(row)
            .output()
            .expect("foretell runs");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        if printed != prints {
            wrong.push(format!("{row}: printed {printed:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
