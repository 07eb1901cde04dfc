//! Inputs that differ from run to run are the same in every run of a test, or are said; looks at files that
//! could have come out otherwise are said.

use crate::common::{Answer, Workshop};

/// Two threads print and branch on what `value` gives. No interleaving makes the assertion fail.
fn branching_on(value: &str) -> String {
    format!(
        "#define _GNU_SOURCE\n#include <assert.h>\n#include <fcntl.h>\n#include <pthread.h>\n\
         #include <sched.h>\n#include <signal.h>\n#include <stdint.h>\n#include <stdio.h>\n\
         #include <stdlib.h>\n#include <string.h>\n#include <sys/random.h>\n#include <sys/resource.h>\n\
         #include <sys/syscall.h>\n#include <sys/times.h>\n#include <time.h>\n#include <unistd.h>\n\
         #include <x86intrin.h>\n\
         int x; pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
         static uint64_t value(void) {{ {value} }}\n\
         void *add(void *_) {{\n\
           uint64_t v = value();\n\
           pthread_mutex_lock(&m); x++; if (v >> 9 & 1) x++; pthread_mutex_unlock(&m);\n\
           printf(\"%llx\\n\", (unsigned long long)v);\n\
           return 0;\n}}\n\
         int main(void) {{\n\
           pthread_t a, b;\n\
           pthread_create(&a, 0, add, 0); pthread_create(&b, 0, add, 0);\n\
           pthread_join(a, 0); pthread_join(b, 0);\n\
           assert(x >= 2 && x <= 4);\n\
           return 0;\n}}\n"
    )
}

/// Builds it for a processor with these instructions, and tests it.
fn tested(workshop: &Workshop, name: &str, code: &str) -> (std::path::PathBuf, Answer) {
    let source = workshop.path().join(name).with_extension("c");
    std::fs::write(&source, code).expect("a file");
    let program = workshop.build(&source, &["-O1", "-w", "-mrdrnd", "-mrdseed"]);
    let answer = workshop.test(&program, &[], &[]);
    (program, answer)
}

/// What a recording prints.
fn printed(workshop: &Workshop, program: &std::path::Path) -> String {
    let output = workshop
        .foretell()
        .args(["record", "--schedule", "round-robin:3", "-o", "run.ftrace", "--"])
        .arg(program)
        .output()
        .expect("foretell runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn what_is_replayed_is_the_same_in_every_run() {
    let sources = [
        ("rdrand", "unsigned long long v; return _rdrand64_step(&v) ? v : 1;"),
        ("rdrand16", "unsigned short v; return _rdrand16_step(&v) ? v : 1;"),
        ("rdseed", "unsigned v; return _rdseed32_step(&v) ? v : 1;"),
        ("rdtsc", "return __rdtsc();"),
        ("rdtscp", "unsigned p; uint64_t v = __rdtscp(&p); return v + p;"),
        ("counter", "return __builtin_readcyclecounter();"),
        ("clock", "return clock();"),
        ("usage", "struct rusage u; getrusage(RUSAGE_SELF, &u); return u.ru_utime.tv_usec;"),
        (
            "process",
            "struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_nsec;",
        ),
        (
            "thread",
            "struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_nsec;",
        ),
        (
            "named",
            "clockid_t c; pthread_getcpuclockid(pthread_self(), &c); struct timespec t; clock_gettime(c, &t); return t.tv_nsec;",
        ),
        ("ticks", "struct tms t; return times(&t);"),
        ("now", "struct timespec t; timespec_get(&t, TIME_UTC); return t.tv_nsec;"),
        ("seconds", "return time(0);"),
        ("handle", "return (uintptr_t)pthread_self();"),
        ("processor", "return sched_getcpu();"),
        ("random", "uint64_t v; getrandom(&v, 8, 0); return v;"),
        (
            "device",
            "uint64_t v; int f = open(\"/dev/urandom\", O_RDONLY); read(f, &v, 8); close(f); return v;",
        ),
        (
            "uuid",
            "char t[40] = \"\"; int f = open(\"/proc/sys/kernel/random/uuid\", O_RDONLY); read(f, t, 36); close(f); return strtoul(t, 0, 16);",
        ),
    ];
    let workshop = Workshop::new();
    for (name, value) in sources {
        let (program, answer) = tested(&workshop, name, &branching_on(value));
        // 12 only where an interleaving reads the clock at another time, and is said to be open.
        assert!(matches!(answer.code, Some(0 | 12)), "{name}: {:?} {}", answer.code, answer.stderr);
        assert!(answer.findings().is_empty(), "{name}: {:#}", answer.report);
        assert_eq!(printed(&workshop, &program), printed(&workshop, &program), "{name}");
    }
}

/// The report names the cause and the subject, and the exit code is 12.
#[track_caller]
fn says(answer: &Answer, cause: &str, subject: &str) {
    let outside = answer.report["trace"]["outside"].as_array().cloned().unwrap_or_default();
    let said = outside.iter().any(|one| {
        one["cause"] == cause && one["subject"].as_str().is_some_and(|text| text.contains(subject))
    });
    assert!(said && answer.code == Some(12), "{subject}: {:?} {outside:?}", answer.code);
    assert!(answer.findings().is_empty(), "{subject}: {:#}", answer.report);
}

#[test]
fn what_is_not_replayed_is_said() {
    let sources = [
        ("varying-input", "getpid", "return getpid();"),
        ("varying-input", "getppid", "return getppid() * 2;"),
        ("varying-input", "gettid", "return gettid();"),
        ("varying-input", "syscall", "return syscall(SYS_gettid);"),
        (
            "varying-input",
            "rdtsc",
            "unsigned a, d; __asm__ volatile(\"rdtsc\" : \"=a\"(a), \"=d\"(d)); return a;",
        ),
        (
            "varying-input",
            "rdrand",
            "uint64_t v; __asm__ volatile(\"rdrand %0\" : \"=r\"(v)); return v;",
        ),
        (
            "varying-input",
            "/proc/uptime",
            "char t[64] = \"\"; FILE *f = fopen(\"/proc/uptime\", \"r\"); fgets(t, 64, f); fclose(f); return t[0];",
        ),
        (
            "varying-input",
            "/proc/self/stat",
            "char t[64] = \"\"; int f = open(\"/proc/self/stat\", O_RDONLY); read(f, t, 63); close(f); return t[0];",
        ),
        (
            "assembler",
            "memory",
            "static int n; __asm__ volatile(\"lock; incl %0\" : \"+m\"(n)); return 0;",
        ),
        (
            "assembler",
            "memory",
            "static int n; __asm__ volatile(\"incl (%0)\" :: \"r\"(&n) : \"memory\"); return 0;",
        ),
        (
            "assembler",
            "system call",
            "long r; __asm__ volatile(\"syscall\" : \"=a\"(r) : \"a\"(39) : \"rcx\", \"r11\", \"memory\"); return 0;",
        ),
    ];
    let workshop = Workshop::new();
    for (cause, subject, value) in sources {
        let (_, answer) = tested(&workshop, "said", &branching_on(value));
        says(&answer, cause, subject);
    }
}

#[test]
fn what_does_not_matter_is_not_said() {
    let sources = [
        "signal(SIGUSR1, SIG_IGN); kill(getpid(), SIGUSR1); return 2;",
        "fprintf(stderr, \"[%d]\\n\", gettid()); return 2;",
        "setpriority(PRIO_PROCESS, gettid(), 5); return 2;",
        "__asm__ volatile(\"mfence; lock; addl $0,0(%%rsp)\" ::: \"memory\"); __asm__ volatile(\"\" ::: \"memory\"); return 2;",
        "__asm__ volatile(\"pause\"); return 2;",
    ];
    let workshop = Workshop::new();
    for value in sources {
        let (_, answer) = tested(&workshop, "unsaid", &branching_on(value));
        answer.ends_with(0);
    }
}

/// A thread makes a file that another one looks for; `between` orders them, or does not.
fn looking(look: &str, between: &str) -> String {
    format!(
        "#include <assert.h>\n#include <fcntl.h>\n#include <pthread.h>\n#include <stdio.h>\n\
         #include <stdlib.h>\n#include <sys/stat.h>\n#include <unistd.h>\n\
         char folder[] = \"lookXXXXXX\", file[40];\n\
         void *make(void *_) {{ int f = open(file, O_CREAT | O_WRONLY, 0600); write(f, \"x\", 1); close(f); return 0; }}\n\
         void *look(void *_) {{ {look} return 0; }}\n\
         int main(void) {{\n\
           pthread_t a, b;\n\
           assert(mkdtemp(folder)); sprintf(file, \"%s/f\", folder);\n\
           pthread_create(&a, 0, make, 0); {between}\n\
           pthread_create(&b, 0, look, 0); {}\n\
           pthread_join(b, 0);\n\
           unlink(file); rmdir(folder);\n\
           return 0;\n}}\n",
        if between.is_empty() { "pthread_join(a, 0);" } else { "" }
    )
}

#[test]
fn a_look_at_a_file_that_could_have_come_too_early_is_said() {
    let looks = [
        ("access", "assert(access(file, F_OK) == 0);"),
        ("stat", "struct stat s; assert(stat(file, &s) == 0);"),
        ("open", "int f = open(file, O_RDONLY); assert(f >= 0); close(f);"),
        ("fopen", "FILE *f = fopen(file, \"r\"); assert(f); fclose(f);"),
        ("unlink", "assert(unlink(file) == 0);"),
    ];
    let workshop = Workshop::new();
    for (name, look) in looks {
        let program = workshop.build_text(name, &looking(look, ""));
        let answer = workshop.test(&program, &[], &[]);
        // Found, or said: that the look comes first is possible.
        let unseen = answer.report["unseen"].to_string();
        let said = answer.code == Some(12) && unseen.contains("recorded order");
        assert!(said || answer.code == Some(10), "{name}: {:?} {unseen}", answer.code);
        if name == "unlink" {
            continue;
        }
        let program = workshop.build_text(name, &looking(look, "pthread_join(a, 0);"));
        workshop.test(&program, &[], &[]).ends_with(0);
    }
}
