//! Every run of a program is the same run, whatever its arguments, environment and folder.

use crate::common::{Answer, Workshop, source, tested};

/// No run that was to follow a schedule did anything else.
#[track_caller]
fn follows(answer: Answer) -> Answer {
    let report = answer.report.to_string();
    assert!(!report.contains("left the schedule"), "{:#}", answer.report);
    answer
}

/// An assertion was seen to fail.
#[track_caller]
fn fails(answer: Answer) -> Answer {
    let answer = follows(answer.ends_with(10));
    assert!(!answer.confirmed("assertion").is_empty(), "{:#}", answer.report);
    answer
}

#[test]
fn arguments_lie_at_the_same_place_in_every_run() {
    for argument in ["", "h", "hello", "a much longer argument than that"] {
        fails(tested("world/arglen.c", &[], &[argument]));
    }
    fails(tested("world/av.c", &[], &[]));
}

#[test]
fn a_stream_buffer_belongs_to_nobody() {
    for options in [&[][..], &["-DPRE"][..]] {
        let answer = follows(tested("world/e1.c", options, &[]).ends_with(10));
        assert!(!answer.confirmed("crash").is_empty(), "{options:?}: {:#}", answer.report);
    }
}

#[test]
fn variable_length_arrays_compile() {
    let workshop = Workshop::new();
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        workshop.build(&source("world/sw5.c"), &[level, "-c"]);
    }
}

#[test]
fn a_printed_stack_address_is_the_same_in_every_run() {
    let answer = follows(tested("world/sp2.c", &[], &[]).ends_with(10));
    for finding in answer.findings() {
        assert_eq!(finding["kind"], "race", "{:#}", answer.report);
        assert_ne!(finding["effect"], "output", "{:#}", answer.report);
    }
}

/// Two threads lose an update, after `main` has looked at its arguments or environment.
fn losing_after(look: &str) -> String {
    format!(
        "#define _GNU_SOURCE\n#include <assert.h>\n#include <ctype.h>\n#include <pthread.h>\n\
         #include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
         char buffer[4096]; int x;\n\
         struct odd {{ char c[13]; }} there[64];\n\
         static int before(const void *a, const void *b) {{\n\
           return strcmp(*(char **)a, *(char **)b);\n}}\n\
         void *add(void *_) {{ int s = x; x = s + 1; return 0; }}\n\
         int main(int count, char **words, char **variables) {{\n\
           {{ {look} }}\n\
           pthread_t a, b;\n\
           pthread_create(&a, 0, add, 0); pthread_create(&b, 0, add, 0);\n\
           pthread_join(a, 0); pthread_join(b, 0);\n\
           assert(x == 2);\n\
           return 0;\n}}\n"
    )
}

#[test]
fn what_main_is_given_moves_nothing() {
    let looks = [
        ("length", "buffer[0] = strlen(words[0]) + strlen(words[1]);"),
        ("copy", "strcpy(buffer, words[0]); strcpy(buffer + 1001, words[1]);"),
        ("compare", "buffer[0] = strcmp(words[0], words[1]);"),
        ("bytes", "memcpy(buffer + 1, words[1], strlen(words[1]) + 1);"),
        (
            "environment",
            "memcpy(buffer, getenv(\"OF_ANY_LENGTH\"), strlen(getenv(\"OF_ANY_LENGTH\")));",
        ),
        ("all", "for (char **v = variables; *v; v++) buffer[1] += strlen(*v);"),
        ("duplicate", "char *own = strdup(words[1]); own[0] = toupper(own[0]); free(own);"),
        ("print", "snprintf(buffer, sizeof buffer, \"%s %s\", words[0], words[1]);"),
        ("letters", "for (char *c = words[1]; *c; c++) buffer[*c & 63]++;"),
        (
            "stack",
            "char on_stack[strlen(words[1]) + 9]; memmove(on_stack + 3, words[1], strlen(words[1]));\n\
             memset(on_stack, 0, 3); memcpy(buffer, on_stack, 5);",
        ),
        ("sort", "qsort(words, count, sizeof *words, before);"),
        (
            "parse",
            "there[1] = *(struct odd *)(words[1] - 1); buffer[3] = atoi(words[1]) + strtod(words[1], 0);",
        ),
    ];
    let workshop = Workshop::new();
    for (number, (name, look)) in looks.iter().enumerate() {
        let program = workshop.build_text(name, &losing_after(look));
        let argument = "argument".repeat(number % 3 + 1);
        let output = workshop
            .foretell()
            .env("OF_ANY_LENGTH", "v".repeat(1 + 37 * number))
            .args(["--format", "json", "test", "--jobs", "2"])
            .arg(&program)
            .arg(&argument[number % 8..])
            .output()
            .expect("foretell runs");
        println!("{name}");
        fails(crate::common::answer(&output));
    }
}

/// The first thread prepares what the second needs, after both have used a function of the library
/// that allocates something for itself when it is first used.
fn early_after(use_library: &str) -> String {
    format!(
        "#define _GNU_SOURCE\n#include <assert.h>\n#include <dirent.h>\n#include <dlfcn.h>\n\
         #include <errno.h>\n#include <grp.h>\n#include <locale.h>\n#include <netdb.h>\n\
         #include <pthread.h>\n#include <pwd.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
         #include <string.h>\n#include <time.h>\n#include <wchar.h>\n\
         int ready; pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
         static int before(const void *a, const void *b) {{ return *(char *)a - *(char *)b; }}\n\
         static void use(void) {{ char local[8192] = \"abc\"; {use_library}; }}\n\
         static void set(int v) {{ pthread_mutex_lock(&m); ready = v; pthread_mutex_unlock(&m); }}\n\
         static int get(void) {{ pthread_mutex_lock(&m); int v = ready; pthread_mutex_unlock(&m); return v; }}\n\
         void *first(void *_) {{ use(); set(1); return 0; }}\n\
         void *second(void *_) {{ use(); assert(get()); return 0; }}\n\
         int main(void) {{\n\
           pthread_t a, b;\n\
           pthread_create(&a, 0, first, 0); pthread_create(&b, 0, second, 0);\n\
           pthread_join(a, 0); pthread_join(b, 0);\n\
           return before == 0;\n}}\n"
    )
}

#[test]
fn memory_of_the_c_library_is_no_step() {
    let uses = [
        ("print", "printf(\"%d\\n\", 3)"),
        ("input", "getchar()"),
        ("file", "FILE *f = fopen(\"/dev/null\", \"w\"); fprintf(f, \"%s\", local); fclose(f)"),
        ("locale", "setlocale(LC_ALL, \"C.UTF-8\"); mbstowcs((wchar_t *)(local + 64), local, 3)"),
        (
            "date",
            "time_t t = 0; struct tm tm; tzset(); localtime_r(&t, &tm); strftime(local, 64, \"%c %Z\", &tm)",
        ),
        ("user", "getpwnam(\"root\")"),
        ("group", "getgrgid(0)"),
        ("library", "dlsym(dlopen(\"libm.so.6\", RTLD_NOW), \"cos\")"),
        ("sort", "qsort(local, 30, 40, before)"),
        ("error", "strerror(12345)"),
        ("folder", "DIR *d = opendir(\"/\"); readdir(d); closedir(d)"),
        ("text", "char *t; asprintf(&t, \"%f\", 3.0); free(t)"),
        (
            "memory",
            "char *t; size_t n; FILE *f = open_memstream(&t, &n); fputs(local, f); fclose(f); free(t)",
        ),
        ("variable", "setenv(local, local, 1)"),
        ("message", "perror(local)"),
    ];
    let workshop = Workshop::new();
    for (name, use_library) in uses {
        println!("{name}");
        let program = workshop.build_text(name, &early_after(use_library));
        fails(workshop.test(&program, &[], &[]));
    }
}

/// Three threads that each print something of which the order of the threads must not matter.
fn telling(what: &str) -> String {
    format!(
        "#define _GNU_SOURCE\n#include <fcntl.h>\n#include <pthread.h>\n#include <stdint.h>\n\
         #include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <sys/random.h>\n\
         #include <time.h>\n#include <unistd.h>\n\
         int shared; static __thread int own; pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
         void *tell(void *name) {{\n\
           uint64_t n = 0; int local = 0; (void)local; (void)own;\n\
           for (int i = 0; i < 3; i++) {{\n\
             pthread_mutex_lock(&m); shared++; pthread_mutex_unlock(&m);\n\
             {what};\n\
             printf(\"%s %d %llx\\n\", (char *)name, i, (unsigned long long)n);\n\
           }}\n\
           return 0;\n}}\n\
         int main(void) {{\n\
           pthread_t t[3];\n\
           char *names[] = {{\"a\", \"b\", \"c\"}};\n\
           for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, tell, names[i]);\n\
           for (int i = 0; i < 3; i++) pthread_join(t[i], 0);\n\
           return 0;\n}}\n"
    )
}

#[test]
fn addresses_and_random_numbers_do_not_depend_on_the_interleaving() {
    let tellings = [
        ("block", "n = (uintptr_t)malloc(40)"),
        ("reused", "char *p = malloc(100 + i); free(p); n = (uintptr_t)malloc(100 + i)"),
        ("grown", "char *p = realloc(malloc(10), 5000); n = (uintptr_t)p"),
        ("large", "char *p = calloc(1, 300000); n = (uintptr_t)p; if (i == 1) free(p)"),
        ("aligned", "void *p; posix_memalign(&p, 256, 100); n = (uintptr_t)p"),
        ("text", "n = (uintptr_t)strdup((char *)name)"),
        ("stack", "n = (uintptr_t)&local"),
        ("variable", "n = (uintptr_t)&own"),
        ("handle", "n = pthread_self()"),
        ("random", "getrandom(&n, 8, 0)"),
        ("entropy", "getentropy(&n, 8)"),
        ("file", "int f = open(\"/dev/urandom\", O_RDONLY); read(f, &n, 8); close(f)"),
        ("number", "n = arc4random_uniform(1000000)"),
    ];
    let workshop = Workshop::new();
    for (name, what) in tellings {
        let program = workshop.build_text(name, &telling(what));
        let told = |policy: &str| {
            let output = workshop
                .foretell()
                .args(["record", "--schedule", policy, "-o", "run.ftrace", "--"])
                .arg(&program)
                .output()
                .expect("foretell runs");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort_unstable();
            assert_eq!(lines.len(), 9, "{name}: {}", String::from_utf8_lossy(&output.stderr));
            lines
        };
        let first = told("round-robin:1");
        for policy in ["round-robin:50", "random:1:3", "random:2:10"] {
            assert_eq!(told(policy), first, "{name} under {policy}");
        }
    }
}

#[test]
fn a_run_has_the_processors_that_the_program_was_started_with() {
    let workshop = Workshop::new();
    // How many processors libc, the kernel and another program say there are; then the program chooses one.
    let code = "#define _GNU_SOURCE\n#include <pthread.h>\n#include <sched.h>\n#include <stdio.h>\n\
        #include <stdlib.h>\n#include <unistd.h>\n\
        int x; void *add(void *_) { int s = x; x = s + 1; return 0; }\n\
        int main(void) { cpu_set_t all, one, again; int first = 0;\n\
        pthread_t a, b; pthread_create(&a, 0, add, 0); pthread_create(&b, 0, add, 0);\n\
        pthread_join(a, 0); pthread_join(b, 0);\n\
        sched_getaffinity(0, sizeof all, &all);\n\
        pthread_getaffinity_np(pthread_self(), sizeof again, &again);\n\
        char other[100] = \"\"; FILE *nproc = popen(\"nproc\", \"r\");\n\
        if (!nproc || !fgets(other, sizeof other, nproc)) return 3; pclose(nproc);\n\
        while (!CPU_ISSET(first, &all)) first++;\n\
        CPU_ZERO(&one); CPU_SET(first, &one); sched_setaffinity(0, sizeof one, &one);\n\
        sched_getaffinity(0, sizeof one, &one);\n\
        if (x == 2) return 0;\n\
        fprintf(stderr, \"processors %d %d %d %d\\n\", CPU_COUNT(&all), CPU_COUNT(&again),\n\
          atoi(other), CPU_COUNT(&one));\n\
        return 7; }";
    let program = workshop.build_text("processors", code);
    let answer = workshop.test(&program, &[], &[]).ends_with(10);
    let given = std::thread::available_parallelism().expect("a number").get();
    let expected = format!("processors {given} {given} {given} 1");
    assert!(answer.report.to_string().contains(&expected), "{expected}: {:#}", answer.report);
}
