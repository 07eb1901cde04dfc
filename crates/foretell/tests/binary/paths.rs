//! How many conditional branches a binary executes, held against two others who know: a program that was
//! written to have so many, and QEMU's own list of the instructions that it executed, of which the binutils say
//! which are conditional branches.

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

use foretell_record::{Policy, RecordOptions, RunEnd, record};

use crate::{Platform, Workshop, is_there, platforms, source_of};

/// Branches of a run, by our plugin.
fn branches(workshop: &Workshop, program: &Path, arguments: &[&str]) -> u64 {
    let mut options = RecordOptions::new(program, workshop.0.path().join("paths.ftrace"));
    options.arguments = arguments.iter().map(Into::into).collect();
    (options.binary, options.path, options.policy) = (true, true, Policy::AFTER);
    let outcome = record(&options).expect("a recording");
    assert_eq!(outcome.end, RunEnd::Exit(0), "{}", program.display());
    outcome.path.branches()
}

/// Goes round as often as its argument says, in each of two threads.
const ROUNDS: &str = r#"
#include <pthread.h>
#include <stdlib.h>
static void *work(void *rounds) {
  long n = (long)rounds;
#if defined __x86_64__
  __asm__ volatile("1: dec %0\njnz 1b" : "+r"(n));
#elif defined __aarch64__
  __asm__ volatile("1: sub %0, %0, #1\ncbnz %0, 1b" : "+r"(n));
#else
  __asm__ volatile("1: subs %0, %0, #1\nbne 1b" : "+r"(n) :: "cc");
#endif
  return 0; }
int main(int count, char **words) {
  pthread_t a, b; void *n = (void *)atol(words[count - 1]);
  pthread_create(&a, 0, work, n); pthread_create(&b, 0, work, n);
  pthread_join(a, 0); pthread_join(b, 0);
  return 0; }
"#;

#[test]
fn every_round_of_a_loop_is_a_branch() {
    for platform in platforms() {
        let workshop = Workshop::new();
        let program = workshop.build(platform, &workshop.source("rounds.c", ROUNDS), &["-g"]);
        let [few, many] = ["1000", "51234"].map(|count| branches(&workshop, &program, &[count]));
        assert_eq!(many - few, 2 * 50_234, "{}", platform.name);
    }
}

/// Whether the binutils call this a conditional branch.
fn is_conditional(platform: Platform, mnemonic: &str, operands: &str) -> bool {
    const CONDITIONS: [&str; 16] = [
        "eq", "ne", "cs", "hs", "cc", "lo", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt",
        "le",
    ];
    let plain = mnemonic.trim_end_matches(".n").trim_end_matches(".w");
    match platform.name {
        "x86-64" => plain.starts_with('j') && plain != "jmp" || plain.starts_with("loop"),
        "AArch64" => plain.starts_with("b.") || ["cbz", "cbnz", "tbz", "tbnz"].contains(&plain),
        _ => {
            let goes = |begin: &str| {
                plain.strip_prefix(begin).is_some_and(|condition| CONDITIONS.contains(&condition))
            };
            let to_pc = operands.starts_with("pc") || operands.contains("pc}");
            ["cbz", "cbnz"].contains(&plain)
                || ["b", "bl", "bx", "blx"].iter().any(|begin| goes(begin))
                || to_pc && ["pop", "ldr", "ldm", "ldmia", "mov"].iter().any(|begin| goes(begin))
        }
    }
}

/// The addresses of the conditional branches in the program's own code.
fn conditional_branches(platform: Platform, program: &Path) -> HashSet<u64> {
    let sections = ["-j", ".init", "-j", ".text", "-j", ".fini"];
    let listing = Command::new(platform.compiler.replace("gcc", "objdump"))
        .args(["-d", "--no-show-raw-insn"])
        .args(sections)
        .arg(program)
        .output()
        .expect("objdump");
    let listing = String::from_utf8_lossy(&listing.stdout).into_owned();
    // 32-bit ARM divides by functions of the compiler's library, which are not the program's.
    let mut of_compiler = false;
    let found = listing.lines().filter_map(|line| {
        let label = line.strip_suffix(">:").and_then(|line| line.split_once('<'));
        if let Some((_, name)) = label.filter(|(_, name)| !name.starts_with('.')) {
            of_compiler =
                ["__aeabi_", "__div", "__udiv"].iter().any(|begin| name.starts_with(begin));
        }
        if of_compiler {
            return None;
        }
        let (address, code) = line.trim_start().split_once(':')?;
        let address = u64::from_str_radix(address, 16).ok()?;
        let code = code.trim();
        let code = code.strip_prefix("bnd ").unwrap_or(code);
        let (mnemonic, operands) = code.split_once(char::is_whitespace)?;
        is_conditional(platform, mnemonic, operands.trim()).then_some(address)
    });
    found.collect()
}

#[test]
fn branches_are_those_that_qemu_executes() {
    for platform in platforms() {
        let objdump = platform.compiler.replace("gcc", "objdump");
        if !is_there(&objdump) {
            println!("SKIPPED: branches on {}: there is no {objdump}", platform.name);
            continue;
        }
        for (example, size) in [("ok_fft", "16"), ("ok_lu", "4")] {
            let workshop = Workshop::new();
            // Where it is linked is where it lies.
            let options = ["-g", "-lm", "-no-pie"];
            let program = workshop.build(platform, &source_of(example), &options);
            let list = workshop.0.path().join("list");
            let ran = Command::new(platform.emulator)
                .args(["-L", platform.prefix, "-singlestep", "-d", "exec,nochain", "-D"])
                .args([&list, &program])
                .arg(size)
                .output()
                .expect("QEMU");
            assert!(ran.status.success(), "{}: {ran:?}", platform.name);
            let known = conditional_branches(platform, &program);
            assert!(known.len() > 10, "{}: {known:?}", platform.name);
            // Trace 0: 0x7f... [flags/address/flags/flags] function
            let text = std::fs::read_to_string(&list).expect("a list");
            let executed = text.lines().filter(|line| {
                let address = line.split('/').nth(1);
                let address = address.and_then(|address| u64::from_str_radix(address, 16).ok());
                address.is_some_and(|address| known.contains(&address))
            });
            let at = format!("{example} on {}", platform.name);
            assert_eq!(branches(&workshop, &program, &[size]), executed.count() as u64, "{at}");
        }
    }
}
