//! What the kernel and the C library keep for a program: room in pipes and sockets, streams, memory that a function
//! gives, names of sockets, processes. All of these programs fail in some interleaving, or could: that is found, or it
//! is said that it was not looked for.

use crate::common::{Workshop, source};

#[track_caller]
fn all_end_with(code: i32, names: &[&str]) {
    let workshop = Workshop::new();
    for name in names {
        let program = workshop.build(&source(&format!("kernel/{name}.c")), &["-O1", "-w"]);
        let answer = workshop.test(&program, &["--time-limit", "30"], &[]);
        assert_eq!(answer.code, Some(code), "{name}: {:#}\n{}", answer.report, answer.stderr);
    }
}

/// The C library allocates it, the program frees it.
#[test]
fn memory_that_a_function_gives_can_be_used_after_it_is_freed() {
    all_end_with(
        10,
        &[
            "libc_alloc_uaf_asprintf",
            "libc_alloc_uaf_getcwd",
            "libc_alloc_uaf_getline",
            "libc_alloc_uaf_realpath",
            "libc_alloc_uaf_scanfm",
            "libc_alloc_uaf_tempnam",
            "libc_alloc_uaf_wcsdup",
        ],
    );
}

#[test]
fn that_a_stream_is_closed_is_said() {
    all_end_with(12, &["fclose_then_fprintf", "fclose_then_fputs", "fclose_twice"]);
}

#[test]
pub fn that_there_may_be_no_room_is_said() {
    all_end_with(
        12,
        &[
            "eventfd_overflow",
            "mq_full_deadlock",
            "pipe_full_deadlock",
            "pipe_nonblock_eagain",
            "pipe_partial_write",
            "so_rcvtimeo",
            "so_sndtimeo",
            "socket_dontwait_eagain",
            "sysv_queue_full_deadlock",
            "sem_overflow",
            "emfile",
        ],
    );
}

/// The C library uses it after the call that got it; a named semaphore is unmapped by its last close.
#[test]
pub fn what_the_library_keeps_can_be_freed_too_early() {
    all_end_with(10, &["setvbuf_freed", "putenv_freed", "sem_close_then_wait"]);
}

#[test]
pub fn timers_signals_and_waits_that_the_kernel_decides_are_said() {
    all_end_with(
        12,
        &[
            "alarm_fires",
            "itimer_fires",
            "timerfd_coalesced",
            "sendto_before_bind",
            "read_blocked_close",
            "sigterm_to_worker",
        ],
    );
}

/// To free memory is an access of it, which C11 has to order after the others.
#[test]
fn memory_that_is_freed_after_weak_atomic_operations_is_said() {
    all_end_with(
        12,
        &["relaxed_flag_free", "relaxed_refcount_free", "relaxed_refcount_mutex_free"],
    );
}

#[test]
fn what_is_used_in_order_is_covered() {
    all_end_with(0, &["refcount_free_ok", "kept_ok"]);
}

/// An atomic access of 16 bytes is one step.
#[test]
pub fn wide_atomic_objects_are_atomic() {
    let workshop = Workshop::new();
    let file = source("kernel/wide_atomic_ok.c");
    for options in [["-O1", "-w", "-latomic"], ["-O1", "-w", "-mcx16"]] {
        let program = workshop.build(&file, &options);
        workshop.test(&program, &["--time-limit", "60"], &[]).ends_with(0);
    }
}

#[test]
fn names_of_sockets_processes_times_and_statuses_are_said() {
    all_end_with(
        12,
        &[
            "atfork",
            "bind_eaddrinuse",
            "clock_in_global_array",
            "connect_before_bind_unix",
            "connect_before_listen_tcp",
            "daemon",
            "exit_status_last",
            "exit_status_order",
        ],
    );
}

/// That a count changed while it was to be taken is no reason to sleep.
#[test]
fn a_semaphore_of_cpp_does_not_hang() {
    let workshop = Workshop::new();
    let file = source("kernel/counting_semaphore.cpp");
    let program = workshop.build(&file, &["-O0", "-std=c++20", "-w"]);
    workshop.test(&program, &[], &[]).ends_with(0);
}

/// Waits and wakes by the system call itself: a wake that comes too early, or never, is found, and what is right is
/// covered.
#[test]
fn futexes_are_understood() {
    let workshop = Workshop::new();
    let programs = [
        ("bug_cv", 10),
        ("bug_cvseq", 10),
        ("bug_lock", 10),
        ("bug_nowake", 10),
        ("bug_two", 10),
        ("ok_cvseq", 0),
        ("ok_flag", 0),
        ("ok_lock2", 0),
        ("ok_two", 0),
    ];
    for (name, code) in programs {
        let program = workshop.build(&source(&format!("futex/{name}.c")), &["-O1", "-w"]);
        let answer = workshop.test(&program, &["--time-limit", "60"], &[]);
        assert_eq!(answer.code, Some(code), "{name}: {:#}\n{}", answer.report, answer.stderr);
        let hangs = answer.findings().iter().any(|finding| finding["effect"] == "hang");
        assert_eq!(hangs, code == 10, "{name}: {:#}", answer.report);
    }
}
