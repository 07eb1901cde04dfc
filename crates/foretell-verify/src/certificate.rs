//! The file that holds a proof of a C program: what was proved of which program, under which
//! assumptions, and the invariant by source line.
//!
//! ```text
//! foretell-states 2
//! program lazy01_safe.c
//! ir sha256 5feceb66...
//! compiler Debian clang version 22.1.2
//! target x86_64-pc-linux-gnu
//! overflow is a violation
//! property assertion
//! assume creating a thread succeeds
//! race lazy01_safe.c:13 with lazy01_safe.c:20
//! at lazy01_safe.c:25 in thread3: data in {0, 1, 2, 3}
//! end sha256 6b86b273...
//! ```
//!
//! `ir` is the hash of the IR without the lines that name folders, so that a proof may travel. The
//! last line has the hash of all bytes before it: a file that was cut or changed is refused before
//! anything else is looked at. Nothing in the file is trusted: [`crate::checker`] computes the states
//! again, and the invariant has to hold in all of them and to speak of every place that they come to.

use std::collections::BTreeSet;
use std::fmt;

use foretell_guard::sha256;

use crate::ir::Module;

const FIRST_LINE: &str = "foretell-states 2";

/// What is proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Property {
    /// Nothing fails.
    Assertion,
    /// Nobody waits for ever.
    Deadlock,
}

impl Property {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Property::Assertion => "assertion",
            Property::Deadlock => "deadlock",
        }
    }

    /// What a violation of it is. `overflow`: signed overflow is one.
    pub fn definition(self, overflow: bool) -> &'static str {
        match (self, overflow) {
            (Property::Assertion, true) => {
                "a failed assertion, reach_error(), abort(), signed overflow, a division by zero, an \
                 access outside of memory"
            }
            (Property::Assertion, false) => {
                "a failed assertion, reach_error(), abort(), a division by zero, an access outside of \
                 memory (signed overflow wraps)"
            }
            (Property::Deadlock, _) => {
                "no thread can go on, or threads wait for one another in a circle of mutexes and joins \
                 while others run; a thread that spins can go on"
            }
        }
    }
}

/// What a proof assumes, beside what C, POSIX and the compiler say.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Assumption {
    /// `argc` is 1.
    NoArguments,
    /// `pthread_create` does not fail.
    ThreadsAreCreated,
    /// `malloc` does not fail.
    MemoryIsAllocated,
    /// `abort` is no violation.
    QuietAbort,
    /// `__VERIFIER_atomic_` is one step.
    AtomicSections,
    /// `__VERIFIER_nondet_` gives everything.
    Inputs,
    /// `pthread_rwlock_rdlock` does not wait for a writer that waits.
    ReadersFirst,
    /// `strcmp` gives 1, -1 or a difference.
    Comparisons,
    /// A start function of another type than `void *(void *)` is called as the machine calls it.
    StartFunctions,
    /// Who locks a default mutex again waits for ever.
    LockedAgain,
    /// Deadlocks: a wait for a condition ends by a signal, by luck only where that is worse.
    WaitsNeedSignals,
    /// Two places race; both as `file:line`, the smaller first.
    SequentialConsistency(String, String),
}

impl Assumption {
    const PLAIN: [Assumption; 11] = [
        Assumption::NoArguments,
        Assumption::ThreadsAreCreated,
        Assumption::MemoryIsAllocated,
        Assumption::QuietAbort,
        Assumption::AtomicSections,
        Assumption::Inputs,
        Assumption::ReadersFirst,
        Assumption::Comparisons,
        Assumption::StartFunctions,
        Assumption::LockedAgain,
        Assumption::WaitsNeedSignals,
    ];

    /// Of two places that race.
    pub fn race(a: String, b: String) -> Self {
        if a <= b {
            Assumption::SequentialConsistency(a, b)
        } else {
            Assumption::SequentialConsistency(b, a)
        }
    }
}

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Assumption::NoArguments => "the program is started without arguments",
            Assumption::ThreadsAreCreated => "creating a thread succeeds",
            Assumption::MemoryIsAllocated => "allocating memory succeeds",
            Assumption::QuietAbort => {
                "abort() ends an execution and violates nothing, as in SV-COMP"
            }
            Assumption::AtomicSections => {
                "what the program marks as atomic (__VERIFIER_atomic_) is one step"
            }
            Assumption::Inputs => "__VERIFIER_nondet_*, rand, random and time return any value of their type",
            Assumption::ReadersFirst => {
                "a reader gets a reader-writer lock while a writer waits for it, as in the C library's \
                 default kind"
            }
            Assumption::Comparisons => {
                "strcmp, strncmp and memcmp return 0, 1, -1 or the difference of the first bytes that \
                 differ"
            }
            Assumption::StartFunctions => {
                "a start function of another type than void *(void *) ignores its argument, or has no \
                 result"
            }
            Assumption::LockedAgain => {
                "a thread that locks a mutex of the default kind again waits for ever, as in the C \
                 library"
            }
            Assumption::WaitsNeedSignals => {
                "a wait for a condition that nobody signals does not end by itself (deadlock only; for \
                 assertions it may)"
            }
            Assumption::SequentialConsistency(a, b) => {
                return write!(
                    f,
                    "memory is sequentially consistent and compiled as written: {a} and {b} race"
                );
            }
        })
    }
}

/// A proof as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The file that was verified, without its folder; for people.
    pub program: String,
    /// [`Module::hash`].
    pub hash: String,
    /// [`Module::compiler`].
    pub compiler: String,
    /// [`Module::target`].
    pub target: String,
    /// Signed overflow is a violation.
    pub overflow: bool,
    /// What is proved.
    pub properties: BTreeSet<Property>,
    /// What is assumed.
    pub assumptions: BTreeSet<Assumption>,
    /// Lines `at ...`: the invariant.
    pub claims: String,
}

impl Certificate {
    /// Of a program.
    pub fn new(
        module: &Module,
        properties: BTreeSet<Property>,
        assumptions: BTreeSet<Assumption>,
        claims: String,
    ) -> Self {
        Self {
            program: module.file_name(0).to_owned(),
            hash: module.hash.clone(),
            compiler: module.compiler.clone(),
            target: module.target.clone(),
            overflow: module.overflow,
            properties,
            assumptions,
            claims,
        }
    }

    /// The file.
    pub fn print(&self) -> String {
        let overflow = if self.overflow { "is a violation" } else { "wraps" };
        let mut text = format!(
            "{FIRST_LINE}\nprogram {}\nir sha256 {}\ncompiler {}\ntarget {}\noverflow {overflow}\n",
            self.program, self.hash, self.compiler, self.target
        );
        for property in &self.properties {
            text.push_str(&format!("property {}\n", property.name()));
        }
        for assumption in &self.assumptions {
            text.push_str(&match assumption {
                Assumption::SequentialConsistency(a, b) => format!("race {a} with {b}\n"),
                plain => format!("assume {plain}\n"),
            });
        }
        text.push_str(&self.claims);
        let hash = sha256::hex(text.as_bytes());
        text.push_str(&format!("end sha256 {hash}\n"));
        text
    }

    /// Reads what [`Certificate::print`] wrote; otherwise why it is no proof.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.lines().next() {
            Some(FIRST_LINE) => {}
            Some("foretell-states 1") => {
                return Err("a proof of an older version of foretell; verify again".into());
            }
            _ => return Err(format!("this is not a proof: its first line is not `{FIRST_LINE}`")),
        }
        let cut = "the proof is incomplete: its last line, `end sha256 ...`, is missing";
        let body = text.strip_suffix('\n').ok_or(cut)?;
        let last = body.rfind('\n').ok_or(cut)? + 1;
        let hash = body[last..].strip_prefix("end sha256 ").ok_or(cut)?;
        if hash != sha256::hex(&text.as_bytes()[..last]) {
            return Err(
                "the proof was changed after it was written: its hash does not match".into()
            );
        }
        let mut lines = text[..last].lines().skip(1).peekable();
        let mut field = |name: &str| {
            let line = lines.next_if(|line| line.starts_with(name));
            let value = line.and_then(|line| line[name.len()..].strip_prefix(' '));
            value.map(str::to_owned).ok_or_else(|| format!("the proof does not name its {name}"))
        };
        let mut read = Self {
            program: field("program")?,
            hash: field("ir sha256")?,
            compiler: field("compiler")?,
            target: field("target")?,
            overflow: match field("overflow")?.as_str() {
                "is a violation" => true,
                "wraps" => false,
                other => {
                    return Err(format!(
                        "the proof says something unknown about overflow: {other}"
                    ));
                }
            },
            properties: BTreeSet::new(),
            assumptions: BTreeSet::new(),
            claims: String::new(),
        };
        while let Some(name) = lines.next_if_map(|line| line.strip_prefix("property ").ok_or(line))
        {
            let known = [Property::Assertion, Property::Deadlock];
            let property = known.into_iter().find(|property| property.name() == name);
            read.properties
                .insert(property.ok_or_else(|| format!("the property {name} is not known"))?);
        }
        if read.properties.is_empty() {
            return Err("the proof names no property".into());
        }
        while let Some(line) =
            lines.next_if(|line| line.starts_with("assume ") || line.starts_with("race "))
        {
            let known = Assumption::PLAIN.into_iter().find(|plain| {
                line.strip_prefix("assume ").is_some_and(|text| text == plain.to_string())
            });
            let race = line.strip_prefix("race ").and_then(|race| race.split_once(" with "));
            let race = race.map(|(a, b)| Assumption::race(a.into(), b.into()));
            let assumption = known.or(race);
            read.assumptions
                .insert(assumption.ok_or_else(|| format!("an unknown assumption: {line}"))?);
        }
        for line in lines {
            read.claims.push_str(line);
            read.claims.push('\n');
        }
        match read.claims.is_empty() {
            true => Err("the proof has no invariant: no line begins with `at`".into()),
            false => Ok(read),
        }
    }

    /// Is it a proof of this program, compiled in this way?
    pub fn fits(&self, module: &Module) -> Result<(), String> {
        let differs = |what: &str, here: &str, there: &str| {
            Err(format!(
                "the proof is for {there}, but this is {here}: a different {what}; verify again"
            ))
        };
        if self.overflow != module.overflow {
            return Err(match self.overflow {
                true => "the proof takes signed overflow for a violation: leave out --no-overflow",
                false => "the proof lets signed overflow wrap: add --no-overflow",
            }
            .into());
        }
        if self.compiler != module.compiler {
            return differs("compiler", &module.compiler, &self.compiler);
        }
        if self.target != module.target {
            return differs("target", &module.target, &self.target);
        }
        if self.hash != module.hash {
            return Err(format!(
                "the proof is for another program ({}), or of this one before it was changed: the hash \
                 of its IR is {}, and here it is {}; verify again",
                self.program, self.hash, module.hash
            ));
        }
        Ok(())
    }
}
