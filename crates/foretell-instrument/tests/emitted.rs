//! What instrumented programs report, in the words of the printing runtime: `r1` is what the first
//! read returned, and so on.

mod common;

use common::{Mode, assert_in_order, assert_none, hooks, hooks_cxx};

const LEVELS: [&str; 3] = ["-O0", "-O1", "-O2"];

#[test]
fn a_write_carries_the_expression_of_its_value() {
    let code = "int counter = 4;\nint main(void) {\n  counter = counter * 3;\n  return 0;\n}\n";
    for level in LEVELS {
        let printed = hooks(code, level, Mode::Symbolic);
        assert_eq!(
            printed,
            [
                "enter main depth 1 line 2",
                "load counter 4 = 4 r1 line 3",
                "store counter 4 = 12 (mul r1 3) line 3",
                "exit"
            ],
            "{level}"
        );
    }
}

#[test]
fn concrete_mode_has_accesses_calls_and_paths_only() {
    let code = "int x = 4, y;\nint main(void) {\n  if (x > 3) y = x + 1;\n  return 0;\n}\n";
    let printed = hooks(code, "-O0", Mode::Concrete);
    assert_eq!(
        printed,
        [
            "enter main depth 1 line 2",
            "load x 4 = 4 line 3",
            "path 1 line 3",
            "load x 4 = 4 line 3",
            "store y 4 = 5 line 3",
            "exit"
        ]
    );
}

#[test]
fn branches_on_reads_are_path_conditions() {
    let code = "volatile unsigned x = 4; volatile int y;
int main(void) {
  if (x > 3) y = 1;
  while (x < 6) x++;
  for (int i = 0; i < 3; i++) y = i;
  return 0;
}
";
    for level in LEVELS {
        let printed = hooks(code, level, Mode::Symbolic);
        let branches: Vec<&String> =
            printed.iter().filter(|line| line.starts_with("branch")).collect();
        assert_eq!(branches.len(), 4, "{level}: the loop over i has none\n{}", printed.join("\n"));
        assert!(branches[0].contains("r1 "), "{}", branches[0]);
    }
}

#[test]
fn the_path_has_all_branches_and_switches() {
    let code = "volatile int y; int x = 2;
int main(void) {
  for (int i = 0; i < 3; i++) y = i;
  switch (y) { case 2: y = 5; case 3: break; }
  if (x == 2) y = 3;
  return 0;
}
";
    let printed = hooks(code, "-O0", Mode::Symbolic);
    let path: Vec<&str> =
        printed.iter().map(String::as_str).filter(|line| line.starts_with("path")).collect();
    assert_eq!(
        path,
        [
            "path 1 line 3",
            "path 1 line 3",
            "path 1 line 3",
            "path 0 line 3",
            "path_switch 2 of 2 line 4",
            "path 1 line 5"
        ]
    );
}

#[test]
fn a_switch_names_its_cases() {
    let code = "int x = 7, y;
int main(void) {
  switch (x) { case 1: y = 4; break; case 7: y = 40; break; case 90: y = x; break; }
  return 0;
}
";
    let printed = hooks(code, "-O0", Mode::Symbolic);
    assert_in_order(&printed, &["load x", "switch r1 7 of 1 7 90 line 3", "store y 4 = 40 line 3"]);
}

#[test]
fn a_choice_is_an_expression_not_a_branch() {
    let code = "int x = 7, y = 9, least;
int main(void) {
  int a = x, b = y;
  least = a < b ? a : b;
  return 0;
}
";
    let printed = hooks(code, "-O2", Mode::Symbolic);
    assert_in_order(&printed, &["store least 4 = 7 (ite (slt r1 r2) r1 r2)"]);
    assert_none(&printed, "branch");
}

#[test]
fn variables_whose_address_stays_home_are_no_events() {
    let code = "int x = 2, y;
int main(void) {
  int a[4] = {0};
  for (int i = 0; i < 4; i++) a[i] = x + i;
  int scalar = a[3];
  y = scalar;
  return 0;
}
";
    let mut printed = hooks(code, "-O0", Mode::Symbolic);
    printed.retain(|line| !line.starts_with("path"));
    assert_eq!(
        printed,
        [
            "enter main depth 1 line 2",
            "load x 4 = 2 r1 line 4",
            "load x 4 = 2 r2 line 4",
            "load x 4 = 2 r3 line 4",
            "load x 4 = 2 r4 line 4",
            "store y 4 = 5 (add r4 3) line 6",
            "exit"
        ]
    );
}

#[test]
fn variables_whose_address_is_given_away_are_events() {
    let code = "__attribute__((noinline)) void set(int *p) { *p = 5; }
int y;
int main(void) {
  int mine = 1;
  set(&mine);
  y = mine;
  return 0;
}
";
    let printed = hooks(code, "-O0", Mode::Symbolic);
    assert_in_order(
        &printed,
        &["store ? 4 = 1 line 4", "store ? 4 = 5 line 1", "load ? 4 = 5 r1 line 6"],
    );
}

#[test]
fn a_local_array_does_not_inherit_shadows_from_an_earlier_call() {
    let code = "int x = 2, y, z;
__attribute__((noinline)) void first(int k) { int a[2]; a[k] = x; y = a[k]; }
__attribute__((noinline)) void second(int k) { int a[2]; volatile int i = k; a[i] = 4; z = a[i]; }
int main(void) {
  first(0); first(1);
  second(0); second(1);
  return 0;
}
";
    let printed = hooks(code, "-O0", Mode::Symbolic);
    assert_in_order(&printed, &["store y 4 = 2 r1", "store y 4 = 2 r2"]);
    let stores: Vec<&String> = printed.iter().filter(|l| l.starts_with("store z")).collect();
    assert_eq!(stores, ["store z 4 = 4 line 3"; 2]);
}

#[test]
fn constants_are_no_events() {
    let code = "static const int table[3] = {1, 2, 3}; int x = 1, y;
int main(void) { y = table[x]; return 0; }
";
    let printed = hooks(code, "-O0", Mode::Symbolic);
    assert_eq!(printed.iter().filter(|line| line.starts_with("load")).count(), 1);
    assert_in_order(&printed, &["pin (address ? 4 * sext32 r1) ", "store y 4 = 2 line 2"]);
}

#[test]
fn shadows_go_through_calls_and_returns() {
    let code = "int x = 3; volatile int y;
struct pair { long a, b; };
__attribute__((noinline)) int triple(int n) { return n * 3; }
__attribute__((noinline)) struct pair split(long n) { struct pair p = {n, 7}; return p; }
static int (*indirect)(int) = triple;
int main(void) {
  y = triple(x);
  y = indirect(x);
  struct pair p = split(x);
  y = (int)p.a;
  y = (int)p.b;
  return 0;
}
";
    for level in ["-O0", "-O1"] {
        let printed = hooks(code, level, Mode::Symbolic);
        assert_in_order(
            &printed,
            &["load x 4 = 3 r1", "enter triple", "store y 4 = 9 (mul r1 3) volatile line 7"],
        );
        assert_in_order(&printed, &["store y 4 = 3 ", "store y 4 = 7 volatile line 11"]);
        let split = printed.iter().find(|line| line.starts_with("store y 4 = 3"));
        assert!(split.is_some_and(|line| line.contains("(sext64 r")), "{}", printed.join("\n"));
    }
}

#[test]
fn a_result_does_not_come_from_an_inner_call() {
    let code = "int x = 3, y;
__attribute__((noinline)) int down(int n) { if (n == 0) return x; down(n - 1); return 8; }
int main(void) { y = down(2); return 0; }
";
    let printed = hooks(code, "-O0", Mode::Symbolic);
    assert_in_order(&printed, &["store y 4 = 8 line 3"]);
}

#[test]
fn arguments_of_foreign_functions_are_pinned() {
    let code = "#include <stdlib.h>
#include <stdio.h>
int x = 3, y;
int main(void) {
  y = (int)random() + (srandom(x), 1);
  free(malloc(x));
  printf(\"%d\\n\", x);
  return 0;
}
";
    for level in LEVELS {
        let printed = hooks(code, level, Mode::Symbolic);
        assert_in_order(&printed, &["pin r1 3 external line 5", "store y 4"]);
        assert_none(&printed, "store y 4 = 1 ");
        let at_print =
            printed.iter().filter(|l| l.starts_with("pin") && l.ends_with("line 7")).count();
        assert_eq!(at_print, 0, "what is only printed is not pinned");
    }
}

#[test]
fn floats_are_moved_with_their_shadow_and_pinned_when_computed_with() {
    let code = "double x = 2.5, y; int n;
int main(void) { y = x; n = x > 1.0; return 0; }
";
    let printed = hooks(code, "-O0", Mode::Symbolic);
    assert_in_order(
        &printed,
        &["load x 8 = 4612811918334230528 r1", "store y 8 = 4612811918334230528 r1", "load x 8"],
    );
    assert_in_order(&printed, &["pin r2 4612811918334230528 float", "store n 4 = 1 line 2"]);
}

#[test]
fn struct_copies_keep_their_shadows() {
    let code = "struct four { int v[4]; } from = {{1, 2, 3, 4}}, to; int y;
int main(void) {
  struct four mine = from;
  struct four other = mine;
  y = other.v[2];
  to = other;
  return 0;
}
";
    let printed = hooks(code, "-O0", Mode::Symbolic);
    assert_in_order(
        &printed,
        &["memcpy local from 16 line 3", "store y 4 = 3 r3 line 5", "memcpy to local 16 line 6"],
    );
}

#[test]
fn addresses_carry_their_expression() {
    let code = "struct node { int value; struct node *next; };
struct node last = {5, 0}, first = {4, &last}; int y, i = 1, a[3];
int main(void) { y = first.next->value; a[i] = 9; return 0; }
";
    let printed = hooks(code, "-O1", Mode::Symbolic);
    assert_in_order(&printed, &["load first+8 8", "load last 4 = 5 r2 at", "store y 4 = 5 r2"]);
    let store = printed.iter().find(|line| line.starts_with("store a+4")).expect("store to a");
    assert!(store.contains(" at (address a 4 * sext32 r3) line"), "{store}");
}

#[test]
fn an_address_with_one_index_is_one_expression() {
    let code = "struct row { char pad[8]; short cells[16]; } rows[4]; char bytes[8];
int i = 1; unsigned u = 2; long l = 3; volatile int k = 2; int *p = &i;
int main(void) {
  rows[i].cells[5] = 1;
  rows[3].cells[u] = 1;
  bytes[l] = 1;
  bytes[k > 1] = 1;
  rows[k].cells[k] = 1;
  p[k - 2] = 1;
  return 0;
}
";
    let printed = hooks(code, "-O1", Mode::Symbolic);
    let stores: Vec<&str> = printed
        .iter()
        .filter(|l| l.starts_with("store"))
        .filter_map(|l| l.split(" at ").nth(1))
        .collect();
    assert_eq!(stores[0], "(add (address rows 40 * sext32 r1) 18) line 4");
    assert_eq!(stores[1], "(address rows+128 2 * zext32 r2) line 5");
    assert_eq!(stores[2], "(address bytes 1 * sext64 r3) line 6");
    assert_eq!(stores[3], "(address bytes 1 * zext1 (sgt r4 1)) line 7");
    // Two indices, or a base that was read itself, are added up.
    assert!(
        stores[4].starts_with("(add ") && stores[4].contains("(mul (sext64 r"),
        "{}",
        stores[4]
    );
    assert!(stores[5].starts_with("(add "), "{}", stores[5]);
}

#[test]
fn an_extended_index_that_is_used_otherwise_is_also_an_expression() {
    let code = "int i = 1, a[4]; long y;
int main(void) { long k = i; y = k * 5; a[k] = 1; return 0; }
";
    let printed = hooks(code, "-O1", Mode::Symbolic);
    assert_in_order(&printed, &["load i", "store y 8 = 5 (mul (sext64 r1) 5) line 2"]);
    assert_in_order(&printed, &["store a+4 4 = 1 at (address a 4 * sext32 r1) line 2"]);
}

#[test]
fn atomics_have_kind_order_and_expression() {
    let code = "#include <stdatomic.h>
_Atomic int a = 5; int y;
int main(void) {
  int n = atomic_fetch_sub_explicit(&a, 2, memory_order_acq_rel);
  y = n;
  int expected = 3;
  if (atomic_compare_exchange_strong_explicit(&a, &expected, y, memory_order_seq_cst, memory_order_relaxed)) y = 1;
  atomic_thread_fence(memory_order_release);
  atomic_store_explicit(&a, 1, memory_order_release);
  y = atomic_load_explicit(&a, memory_order_relaxed);
  return 0;
}
";
    for level in LEVELS {
        let printed = hooks(code, level, Mode::Symbolic);
        assert_in_order(
            &printed,
            &["rmw a 4 sub old 5 r1 operand 2 acq_rel line 4", "store y 4 = 5 r1 line 5"],
        );
        assert_in_order(&printed, &["cmpxchg a 4 old 3 r", "branch (eq r", "fence release line 8"]);
        assert_in_order(&printed, &["store a 4 = 1 release line 9", "load a 4 = 1 r"]);
        let load = printed.iter().rfind(|line| line.starts_with("load a")).expect("load");
        assert!(load.contains(" relaxed line 10"), "{load}");
    }
}

#[test]
fn reaching_a_failure_under_a_condition_is_an_assertion() {
    let code = "#include <assert.h>
#include <stdlib.h>
int x = 3;
int main(void) {
  assert(x == 3);
  if (x > 10) abort();
  if (!x) __builtin_trap();
  return 0;
}
";
    for level in LEVELS {
        let printed = hooks(code, level, Mode::Symbolic);
        let asserts: Vec<&String> =
            printed.iter().filter(|line| line.starts_with("assert")).collect();
        assert!(!asserts.is_empty(), "{level}\n{}", printed.join("\n"));
        assert!(asserts[0].starts_with("assert (eq r1 3) is 1 line 5"), "{level}: {}", asserts[0]);
        if level == "-O0" {
            assert_eq!(asserts.len(), 3);
            assert!(asserts[1].ends_with(" is 0 line 6"), "{}", asserts[1]);
        }
    }
}

#[test]
fn marked_regions_know_where_they_are() {
    let header = concat!(env!("CARGO_MANIFEST_DIR"), "/../foretell-build/include/foretell.h");
    let code = format!(
        "#define __FORETELL__ 1\n#include \"{header}\"\nint x;\nint main(void) {{\n  \
         FORETELL_ATOMIC_BEGIN(\"both\");\n  x++;\n  FORETELL_ATOMIC_END();\n  return 0;\n}}\n"
    );
    let printed = hooks(&code, "-O1", Mode::Symbolic);
    assert_in_order(&printed, &["begin both line 5", "load x", "store x", "end line 7"]);

    let code = format!(
        "#define __FORETELL__ 1\n#include \"{header}\"\nint x;\nint main() {{\n  \
         ForetellAtomic region(\"scope\");\n  x++;\n}}\n"
    );
    for level in LEVELS {
        let printed = hooks_cxx(&code, level, Mode::Symbolic);
        assert_in_order(&printed, &["begin scope line 5", "load x", "store x", "end line 7"]);
        assert_none(&printed, "enter ForetellAtomic");
    }
}

#[test]
fn exceptions_and_longjmp_end_the_calls_they_leave() {
    let code = "#include <setjmp.h>
int x;
struct Cleaner { ~Cleaner() { x++; } };
void thrower() { throw 1; }
void middle() { Cleaner c; thrower(); }
void outer() { middle(); }
jmp_buf place;
void jumper() { longjmp(place, 1); }
void after() {}
int main() {
  try { outer(); } catch (int) { x = 7; }
  if (!setjmp(place)) jumper();
  after();
  return 0;
}
";
    for level in ["-O0", "-O1"] {
        let printed = hooks_cxx(code, level, Mode::Symbolic);
        assert_in_order(&printed, &["unwind depth 1", "store x 4 = 7", "unwind depth 1"]);
        assert_eq!(printed.last().map(String::as_str), Some("exit"), "{level}");
    }
    let printed = hooks_cxx(code, "-O0", Mode::Symbolic);
    assert_in_order(
        &printed,
        &[
            "enter outer() depth 2 line 6",
            "enter middle() depth 3",
            "enter thrower() depth 4",
            "unwind depth 3",
            "enter Cleaner::~Cleaner() depth 4 line 3",
            "unwind depth 1",
            "store x 4 = 7",
            "enter jumper() depth 2",
            "unwind depth 1",
            "enter after() depth 2",
        ],
    );
}

#[test]
fn calls_of_functions_of_the_c_library_are_told_before_or_after() {
    let code = "#include <stdio.h>
#include <string.h>
char a[20] = \"foretell\", b[20] = \"fork\", c[20]; int n;
int main(int count, char **arguments) {
  n = (int)strlen(a);
  n = strcmp(a, b) < 0;
  n = memcmp(a, b, 10 + count) == 0;
  strcpy(c, b);
  n = (int)fread(c, 2, 3, fopen(arguments[0], \"r\"));
  return 0;
}
";
    for level in ["-O0", "-O1"] {
        let printed = hooks(code, level, Mode::Symbolic);
        assert_in_order(
            &printed,
            &[
                "library after a symbolic line 5",
                "library before a symbolic line 6",
                "library before a symbolic line 7",
                "library after c symbolic line 8",
                "library after c symbolic line 9",
            ],
        );
    }
}

#[test]
fn what_is_put_into_a_stream_is_not_pinned() {
    let code = "#include <iostream>
int x = 4;
int main() {
  std::cout << \"x is \" << x << std::endl;
  return 0;
}
";
    let printed = hooks_cxx(code, "-O1", Mode::Symbolic);
    assert_in_order(&printed, &["load x 4 = 4 r1 line 4"]);
    assert_none(&printed, "pin r1");
}

#[test]
fn globals_have_the_names_of_the_source() {
    let code = "namespace bank { struct Account { int a, b; }; static Account account; }
int count() { static int calls; return ++calls; }
int main() { bank::account.b = 1; count(); return 0; }
";
    let printed = hooks_cxx(code, "-O0", Mode::Concrete);
    assert_in_order(&printed, &["store bank::account+4 4 = 1", "load count()::calls 4 = 0"]);
}

#[test]
fn booleans_in_memory_are_bytes() {
    let code = "#include <stdbool.h>
bool a = true, b; int n;
int main(void) { bool c = !a; b = c; if (b) n = 1; return 0; }
";
    for level in LEVELS {
        let printed = hooks(code, level, Mode::Symbolic);
        assert_in_order(&printed, &["load a 1 = 1 r1", "store b 1 = 0 ("]);
        assert!(printed.iter().any(|line| line.starts_with("branch")), "{level}");
    }
}

/// `k` is read, used as an index where `flag` is set, and then computed with.
fn index_under_a_flag(flag: u32) -> Vec<String> {
    let code = format!(
        "int i = 2, a[4], y; volatile int flag = {flag};
int main(void) {{
  int k = i;
  if (flag) a[k] = 9;
  y = 3 * k;
  return 0;
}}
"
    );
    hooks(&code, "-O1", Mode::Symbolic)
}

#[test]
fn an_index_is_a_constant_after_an_access_through_it() {
    let code = "int i = 2, a[4], y, z; volatile int v;
int main(void) {
  int k = i;
  a[k + 1] = 9;
  y = 3 * k;
  if (k > 1) v = 7;
  z = a[k];
  return 0;
}
";
    let printed = hooks(code, "-O1", Mode::Symbolic);
    assert_in_order(&printed, &["load i 4 = 2 r1 line 3", "store a+12 4 = 9 at ("]);
    assert_in_order(&printed, &["store y 4 = 6 line 5", "store v 4 = 7 volatile line 6"]);
    assert_in_order(&printed, &["load a+8 4 = 0 r2 line 7", "store z 4 = 0 r2 line 7"]);
    assert_none(&printed, "branch");
}

#[test]
fn an_index_keeps_its_expression_where_the_access_is_on_some_ways_only() {
    for flag in [0, 1] {
        let printed = index_under_a_flag(flag);
        assert_in_order(&printed, &["load i 4 = 2 r1", "store y 4 = 6 (mul r1 3) line 5"]);
    }
}

#[test]
fn what_is_read_again_is_not_held() {
    let code = "volatile int i = 2; int a[4], y;
int main(void) { a[i] = 9; y = i + 1; return 0; }
";
    let printed = hooks(code, "-O1", Mode::Symbolic);
    assert_in_order(&printed, &["load i 4 = 2 r1", "load i 4 = 2 r2", "store y 4 = 3 (add r2 1)"]);
}

#[test]
fn only_an_index_that_the_address_tells_is_held() {
    // Two indices have one address where a bit is masked out, where the product wraps around (an
    // index of 64 bits times 4), or where two reads are added.
    for (ty, index, expression) in [
        ("int", "k & 3", "(mul r1 3)"),
        ("int", "k / 2", "(mul r1 3)"),
        ("long", "k", "(mul r1 3)"),
        ("int", "(long)k + other", "(mul r1 3)"),
    ] {
        let code = format!(
            "{ty} i = 2, y; int a[8]; volatile int other = 1;
int main(void) {{ {ty} k = i; a[{index}] = 9; y = 3 * k; return 0; }}
"
        );
        let printed = hooks(&code, "-O1", Mode::Symbolic);
        let store = printed.iter().find(|line| line.starts_with("store y")).expect("store to y");
        assert!(store.contains(expression), "{ty} {index}: {store}");
    }
    // Bytes are not scaled, and an index of 32 bits cannot wrap around.
    for (ty, element, index) in
        [("long", "char", "k"), ("unsigned", "int", "k"), ("short", "int", "7 - k")]
    {
        let code = format!(
            "{ty} i = 2, y; {element} a[8];
int main(void) {{ {ty} k = i; a[{index}] = 9; y = 3 * k; return 0; }}
"
        );
        let printed = hooks(&code, "-O1", Mode::Symbolic);
        assert_in_order(&printed, &["load i", "store a+", "store y"]);
        let store = printed.iter().find(|line| line.starts_with("store y")).expect("store to y");
        assert!(store.ends_with("= 6 line 2"), "{ty} {element} {index}: {store}");
    }
}

#[test]
fn a_pinned_value_is_a_constant_afterwards() {
    let code = "#include <unistd.h>
int x = 3, y; double d = 2.5, e; volatile int n;
int main(void) {
  int k = x;
  double f = d;
  usleep(k);
  y = k + 1;
  n = f > 1.0;
  e = f;
  return 0;
}
";
    let printed = hooks(code, "-O1", Mode::Symbolic);
    assert_in_order(&printed, &["pin r1 3 external line 6", "store y 4 = 4 line 7"]);
    assert_in_order(&printed, &["pin r2 4612811918334230528 float line 8", "store n 4 = 1"]);
    assert_in_order(&printed, &["store e 8 = 4612811918334230528 line 9"]);
}

#[test]
fn a_heap_is_sifted_with_one_address_a_level() {
    let code = "int heap[15] = {1, 20, 30, 18, 17, 29, 28, 9, 8, 7, 6, 5, 27, 3, 2};
__attribute__((noinline)) void sift(int at, int length) {
  for (int child; (child = 2 * at + 1) < length; at = child) {
    if (child + 1 < length && heap[child + 1] > heap[child])
      child++;
    if (heap[at] >= heap[child])
      return;
    int moved = heap[at];
    heap[at] = heap[child];
    heap[child] = moved;
  }
}
int main(void) { sift(0, 15); return heap[0] != 30; }
";
    let printed = hooks(code, "-O1", Mode::Symbolic);
    let with_address: Vec<&String> = printed.iter().filter(|l| l.contains(" at (")).collect();
    assert_eq!(with_address.len(), 3, "one a level: {}", printed.join("\n"));
    assert!(with_address.iter().all(|line| line.ends_with("line 6")), "{with_address:?}");
    // Line 13 says whether `main` returns 0.
    let elsewhere = |line: &String| !line.ends_with("line 6") && !line.ends_with("line 13");
    let inner = printed.iter().filter(|line| line.starts_with("branch") && elsewhere(line));
    let inner: Vec<&String> = inner.collect();
    assert!(inner.is_empty(), "where the loop goes is known: {inner:?}");
    // The last level's index does not remember the levels above.
    let length = |line: &String| line.split_once(" at ").map_or(0, |(_, term)| term.len());
    assert!(length(with_address[2]) < length(with_address[0]) + 8, "{with_address:?}");
}

#[test]
fn variables_are_described_as_in_the_source() {
    let code = "#include <pthread.h>
#include <mutex>
#include <vector>
struct Pair { int a; int b[2]; };
struct Node { Pair pair; Node *next; std::mutex mutex; std::vector<int> items; };
void *keep;
int main() {
  Node node;
  keep = &node;
  keep = new Pair;
  return 0;
}
";
    for level in ["-O0", "-O1"] {
        let printed = hooks_cxx(code, level, Mode::Symbolic);
        let pair = "{0:a=;4:b=[4:];}";
        let members = format!("{{0:pair={pair};16:next=;24:mutex=;64:items=(std::vector);}}");
        let node = format!("describe node in 'main' as '{members}', 88 bytes");
        let made = format!("describe Pair in '' as '{pair}', 0 bytes");
        assert_in_order(&printed, &[&node, &made]);
    }
}
