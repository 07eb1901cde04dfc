//! Functions of the C library that read and write the program's memory: each of the table in `foretell-abi` is
//! called on memory that two threads write. Where the order of the threads decides, the other order is found;
//! where it does not, all behaviours are covered and everything was seen.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use foretell_abi::summaries::SUMMARIES;

/// Functions that another row stands for: the same function by another name, or one that other tests have.
const ELSEWHERE: &[&str] = &[
    "__getdelim",
    "__isoc23_strtol",
    "__isoc23_strtoll",
    "__isoc23_strtoul",
    "__isoc23_strtoull",
    "__isoc23_strtoimax",
    "__isoc23_strtoumax",
    "__isoc23_sscanf",
    "__isoc99_sscanf",
    "__isoc23_fscanf",
    "__isoc23_scanf",
    "__isoc99_fscanf",
    "__isoc99_scanf",
    "__snprintf_chk",
    "__sprintf_chk",
    "__strcat_chk",
    "__strcpy_chk",
    "__strncat_chk",
    "__strncpy_chk",
    "__strtok_r",
    // What gives memory: `kernel` in the tests `repro`.
    "getcwd",
    "realpath",
    "tempnam",
    "wcsdup",
    // What is only shown decides nothing: see `what_is_shown_is_read`.
    "fprintf",
    "fputs",
    "fwrite",
    "printf",
    "puts",
    // As `sscanf`, from a stream.
    "fscanf",
    "scanf",
    // Names of files and variables are texts like others.
    "access",
    "fopen",
    "getenv",
    "mkdir",
    "open",
    "remove",
    "rename",
    "rmdir",
    "unlink",
    // `pipes_and_sockets_order_what_they_carry` of the suite `repro`.
    "getpeername",
    "getsockname",
    // Output of freed memory: `freed` of the suite `repro`; to a pipe: `what_goes_through_a_pipe_is_held`.
    "pwrite",
    "pwrite64",
    "send",
    "sendto",
    "write",
    // Structures that say what to wait for, and texts of exceptions: `carried` of the suite `repro`.
    "clock_nanosleep",
    "cnd_timedwait",
    "epoll_ctl",
    "mtx_timedlock",
    "nanosleep",
    "poll",
    "ppoll",
    "pselect",
    "select",
    "pthread_cond_clockwait",
    "pthread_cond_timedwait",
    "pthread_mutex_clocklock",
    "pthread_mutex_timedlock",
    "pthread_rwlock_timedrdlock",
    "pthread_rwlock_timedwrlock",
    "putenv",
    "rand_r",
    "sem_timedwait",
    "semop",
    "setenv",
    "setitimer",
    "thrd_sleep",
    "timerfd_settime",
    "unsetenv",
    "_ZNSt13runtime_errorC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
    "_ZNSt13runtime_errorC1EPKc",
    "_ZNSt13runtime_errorC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
    "_ZNSt13runtime_errorC2EPKc",
    "_ZNSt11logic_errorC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
    "_ZNSt11logic_errorC1EPKc",
    "_ZNSt11logic_errorC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
    "_ZNSt11logic_errorC2EPKc",
    "_ZNSt16invalid_argumentC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
    "_ZNSt16invalid_argumentC1EPKc",
    "_ZNSt16invalid_argumentC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
    "_ZNSt16invalid_argumentC2EPKc",
    "_ZNSt12out_of_rangeC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
    "_ZNSt12out_of_rangeC1EPKc",
    "_ZNSt12out_of_rangeC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
    "_ZNSt12out_of_rangeC2EPKc",
    "_ZNSt12domain_errorC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
    "_ZNSt12domain_errorC1EPKc",
    "_ZNSt12domain_errorC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
    "_ZNSt12domain_errorC2EPKc",
    "_ZNSt12length_errorC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
    "_ZNSt12length_errorC1EPKc",
    "_ZNSt12length_errorC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
    "_ZNSt12length_errorC2EPKc",
    "_ZNSt11range_errorC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
    "_ZNSt11range_errorC1EPKc",
    "_ZNSt11range_errorC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
    "_ZNSt11range_errorC2EPKc",
    "_ZNSt14overflow_errorC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
    "_ZNSt14overflow_errorC1EPKc",
    "_ZNSt14overflow_errorC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
    "_ZNSt14overflow_errorC2EPKc",
    "_ZNSt15underflow_errorC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
    "_ZNSt15underflow_errorC1EPKc",
    "_ZNSt15underflow_errorC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
    "_ZNSt15underflow_errorC2EPKc",
    "_ZNSo5writeEPKcl",
    "_ZSt16__ostream_insertIcSt11char_traitsIcEERSt13basic_ostreamIT_T0_ES6_PKS3_l",
    "_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc",
    // As `printf` and `fprintf`.
    "__fprintf_chk",
    "__printf_chk",
    // `what_the_cxx_library_makes_of_a_text_counts` of the suite `repro`.
    "_ZSt11_Hash_bytesPKvmm",
    "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE",
    "_ZNSt6thread6detachEv",
];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/libc/functions.c")
}

fn foretell(folder: &Path, words: &[&str]) -> Output {
    // Cargo leaves the plugin and the runtime beside the test.
    let test = std::env::current_exe().expect("path of the test");
    Command::new(env!("CARGO_BIN_EXE_foretell"))
        .args(words)
        .current_dir(folder)
        .env("FORETELL_LIB_DIR", test.parent().expect("a folder"))
        .output()
        .expect("foretell runs")
}

/// The rows of the program.
fn rows() -> Vec<String> {
    let text = std::fs::read_to_string(source()).expect("the program");
    let starts = ["  READS(", "  WRITES(", "  TIMES(", "  CASE("];
    let name = |line: &str| {
        let rest = starts.iter().find_map(|start| line.strip_prefix(start))?;
        rest.split(',').next().map(str::to_owned)
    };
    text.lines().filter_map(name).collect()
}

#[test]
fn every_function_of_the_table_has_a_row() {
    let rows = rows();
    for summary in SUMMARIES {
        let has = rows.iter().any(|row| row == summary.name) || ELSEWHERE.contains(&summary.name);
        assert!(has, "{} has no row in {}", summary.name, source().display());
    }
}

#[test]
fn what_functions_read_and_write_is_seen() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libc");
    _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let source = source().display().to_string();
    let built = foretell(
        &folder,
        &[
            "cc",
            "--as-written",
            "-O1",
            "-g",
            "-fno-builtin",
            "-pthread",
            &source,
            "-o",
            "functions",
        ],
    );
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let mut wrong = Vec::new();
    for row in rows() {
        for (ordered, expected) in [(false, 10), (true, 0)] {
            let mut words = vec!["test", "--jobs", "1", "./functions", row.as_str()];
            words.extend(ordered.then_some("ordered"));
            let tested = foretell(&folder, &words);
            let said = String::from_utf8_lossy(&tested.stdout).into_owned();
            let recorded = said.contains("the recorded run itself");
            if tested.status.code() != Some(expected) || recorded {
                let last = said.lines().rev().take(6).collect::<Vec<_>>().join(" | ");
                wrong.push(format!(
                    "{row} (ordered: {ordered}): {:?}: {last}",
                    tested.status.code()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn code_that_is_not_instrumented_and_is_given_memory_is_said() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libc-foreign");
    _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("written");
    write("library.c", "int is_two(int *value) { return *value == 2; }\n");
    write(
        "main.c",
        "#include <assert.h>\n#include <pthread.h>\n\
         int is_two(int *value);\n\
         static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;\n\
         static int value;\n\
         static void *twice(void *unused) {\n\
           pthread_mutex_lock(&mutex); value *= 2; pthread_mutex_unlock(&mutex); return unused;\n\
         }\n\
         int main(void) {\n\
           pthread_t other;\n\
           pthread_create(&other, 0, twice, 0);\n\
           pthread_mutex_lock(&mutex); value += 1; pthread_mutex_unlock(&mutex);\n\
           pthread_join(other, 0);\n\
           assert(is_two(&value));\n\
         }\n",
    );
    let plain = Command::new("cc").args(["-c", "library.c"]).current_dir(&folder).status();
    assert!(plain.expect("a compiler").success());
    let built =
        foretell(&folder, &["cc", "-g", "-O1", "-pthread", "main.c", "library.o", "-o", "main"]);
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    // In the other order the assertion fails, and only the library looks at the value.
    let tested = foretell(&folder, &["test", "./main"]);
    let said = String::from_utf8_lossy(&tested.stdout);
    assert_eq!(tested.status.code(), Some(12), "{said}");
    assert!(said.contains("is_two (main) is not instrumented"), "{said}");
    let looked_at = foretell(&folder, &["doctor", "./main"]);
    let said = String::from_utf8_lossy(&looked_at.stdout);
    assert_eq!(looked_at.status.code(), Some(12), "{said}");
    assert!(said.contains("1 calls of is_two (main): not instrumented"), "{said}");
}

/// Two threads without an order between what shows a text and what frees it.
fn shown(show: &str) -> String {
    format!(
        "#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
         static char *text;\n\
         static void *shows(void *unused) {{ {show}; return unused; }}\n\
         static void *frees(void *unused) {{ free(text); return unused; }}\n\
         int main(void) {{\n\
           pthread_t a, b;\n\
           text = strdup(\"shown\");\n\
           pthread_create(&a, 0, shows, 0);\n\
           pthread_create(&b, 0, frees, 0);\n\
           pthread_join(a, 0);\n\
           pthread_join(b, 0);\n\
         }}\n"
    )
}

#[test]
fn what_is_shown_is_read() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libc-shown");
    _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    for show in [
        "printf(\"%d: %s\\n\", 7, text)",
        "printf(\"%.3s\\n\", text)",
        "puts(text)",
        "fputs(text, stdout)",
        "fprintf(stderr, \"%s\\n\", text)",
    ] {
        std::fs::write(folder.join("shown.c"), shown(show)).expect("a file");
        let tested = foretell(&folder, &["test", "shown.c"]);
        let said = String::from_utf8_lossy(&tested.stdout);
        assert_eq!(tested.status.code(), Some(10), "{show}: {said}");
        assert!(said.contains("frees") && said.contains("shown.c:6"), "{show}: {said}");
    }
}

#[test]
fn what_goes_through_a_pipe_is_held() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libc-pipe");
    _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    for (name, open, call) in [
        ("write", "pipe(fd)", "write(fd[1], &y, sizeof y)"),
        ("send", "socketpair(AF_UNIX, SOCK_STREAM, 0, fd)", "send(fd[1], &y, sizeof y, 0)"),
        (
            "sendto",
            "socketpair(AF_UNIX, SOCK_DGRAM, 0, fd)",
            "sendto(fd[1], &y, sizeof y, 0, 0, 0)",
        ),
    ] {
        let code = format!(
            "#include <assert.h>\n#include <pthread.h>\n#include <sys/socket.h>\n#include <unistd.h>\n\
             static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static int x, fd[2];\n\
             static void *w(void *p) {{ pthread_mutex_lock(&m); int y = x; pthread_mutex_unlock(&m);\n\
             return {call} == sizeof y ? p : p; }}\n\
             static void *s(void *p) {{ pthread_mutex_lock(&m); x = 1; pthread_mutex_unlock(&m); return p; }}\n\
             int main(void) {{ int got = 0; if ({open}) return 0; pthread_t a, b; pthread_create(&a, 0, w, 0);\n\
             pthread_create(&b, 0, s, 0); assert(read(fd[0], &got, sizeof got) == sizeof got);\n\
             pthread_join(a, 0); pthread_join(b, 0); assert(got == 0); return 0; }}\n"
        );
        std::fs::write(folder.join(format!("{name}.c")), code).expect("a file");
        let tested = foretell(&folder, &["test", &format!("{name}.c")]);
        let said = String::from_utf8_lossy(&tested.stdout).into_owned();
        assert_eq!(tested.status.code(), Some(10), "{name}: {said}");
    }
}
