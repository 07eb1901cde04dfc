//! What a user of an outside model checker would do: the same program in Promela, checked by Spin.
//!
//! The program of joined edges becomes one process per thread; an edge is one indivisible step. Spin
//! enumerates values, so what the environment chooses is bounded ([`INPUTS`]), and a program whose
//! variables grow for ever has no end for it. A violation that Spin finds is one of the program; that
//! it finds none holds within the bounds only. Spin computes with 32 bits: that a sum leaves them is
//! seen by a program's own check only as far as the sum itself does not.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::{Command, Stdio};

use foretell_trace::{Operator, Term, TermId, Value};
use foretell_verify::Program;
use foretell_verify::program::Edge;

/// Values of what the environment chooses.
pub const INPUTS: RangeInclusive<i128> = -2..=4;

/// Inputs of one step that are enumerated.
const MOST_INPUTS: usize = 2;

/// What Spin says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It found a violation.
    Violated,
    /// There is none, of any length; `bounded`: for the enumerated inputs.
    None {
        /// Inputs were bounded.
        bounded: bool,
    },
    /// It did not come to an end; why.
    GaveUp(&'static str),
    /// The program cannot be said in Promela; why.
    NotTranslated(String),
}

impl Answer {
    /// For the table.
    pub fn shown(&self) -> String {
        match self {
            Answer::Violated => "violated".into(),
            Answer::None { bounded: false } => "none".into(),
            Answer::None { bounded: true } => {
                format!("none for {}..{}", INPUTS.start(), INPUTS.end())
            }
            Answer::GaveUp(why) => format!("gave up: {why}"),
            Answer::NotTranslated(why) => format!("no: {why}"),
        }
    }
}

/// Is there a Spin on this machine, and a C compiler for what it writes?
pub fn installed() -> bool {
    let runs = |program: &str, option: &str| {
        let mut command = Command::new(program);
        command.arg(option).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    runs("spin", "-V") && runs("gcc", "--version")
}

/// Translates a program and checks it.
pub fn check(program: &Program, folder: &Path) -> Result<Answer, String> {
    match promela(program) {
        Ok((model, bounded)) => check_model(&program.file, &model, bounded, folder),
        Err(why) => Ok(Answer::NotTranslated(why)),
    }
}

/// Compiles and checks a model in a folder; a minute and half a gigabyte at most.
pub fn check_model(
    name: &str,
    model: &str,
    bounded: bool,
    folder: &Path,
) -> Result<Answer, String> {
    let failed = |what: &str, said: &[u8]| {
        format!("{what} fails on {name}: {}", String::from_utf8_lossy(said))
    };
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    std::fs::write(folder.join("model.pml"), model)
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    let run = |words: &[&str]| {
        let output = Command::new(words[0]).args(&words[1..]).current_dir(folder).output();
        output.map_err(|error| format!("cannot run {}: {error}", words[0]))
    };
    let written = run(&["spin", "-a", "model.pml"])?;
    if !written.status.success() {
        return Err(failed("spin", &written.stdout));
    }
    let options = ["-O2", "-w", "-DSAFETY", "-DNOCLAIM", "-DMEMLIM=512", "-DVECTORSZ=4096"];
    let compiled = run(&[&["gcc"], &options[..], &["-o", "pan", "pan.c"]].concat())?;
    if !compiled.status.success() {
        return Err(failed("gcc", &compiled.stderr));
    }
    // no complaint about threads that wait for ever; a deep stack; a minute
    let checked = run(&["./pan", "-E", "-m1000000", "-Q1"])?;
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    let has = |text: &str| said.contains(text);
    Ok(if has("assertion violated") {
        Answer::Violated
    } else if has("memory") && has("reached -DMEMLIM") || has("out of memory") {
        Answer::GaveUp("memory")
    } else if has("time limit") || has("-Q") || has("timeout") {
        Answer::GaveUp("time")
    } else if has("max search depth too small") {
        Answer::GaveUp("depth")
    } else if has("errors: 0") {
        Answer::None { bounded }
    } else {
        return Err(failed("pan", said.as_bytes()));
    })
}

/// The program in Promela, and whether inputs were bounded; or why it has no translation.
fn promela(program: &Program) -> Result<(String, bool), String> {
    let mut program = program.in_large_blocks();
    let mut text = String::from("bool begun = false;\nbyte alone = 0;\n");
    let mut bounded = false;
    for thread in 0..program.threads.len() {
        let _ = writeln!(text, "bool started{thread} = false, ended{thread} = false;");
    }
    for (index, variable) in program.variables.iter().enumerate() {
        if variable.local_of.is_none() || variable.initial.is_none() {
            let first = variable.initial.unwrap_or(0);
            let _ = writeln!(text, "int v{index} = {}; /* {} */", number(first)?, variable.name);
        }
    }
    for index in 0..program.threads.len() {
        let thread = program.threads[index].clone();
        let _ = writeln!(text, "active proctype T{index}() {{ /* {} */", thread.name);
        for (place, variable) in program.variables.iter().enumerate() {
            if let (Some(owner), Some(first)) = (variable.local_of, variable.initial)
                && owner == index
            {
                let _ =
                    writeln!(text, "  int v{place} = {}; /* {} */", number(first)?, variable.name);
            }
        }
        let widest = thread.outgoing.iter().flatten();
        let widest = widest.map(|&edge| program.edges[edge].assignments.len()).max().unwrap_or(0);
        for temporary in 0..widest {
            let _ = writeln!(text, "  int t{temporary} = 0;");
        }
        let _ = writeln!(
            text,
            "  (begun && {});",
            if thread.initial { "true".into() } else { format!("started{index}") }
        );
        let _ = writeln!(text, "  goto L{};", thread.entry);
        for location in 0..thread.locations {
            if thread.outgoing[location].is_empty() {
                let ends = if location == thread.exit {
                    format!("ended{index} = true")
                } else {
                    "skip".into()
                };
                let _ = writeln!(text, "L{location}: {ends}; goto over;");
                continue;
            }
            let _ = writeln!(text, "L{location}: if");
            for &edge in &thread.outgoing[location] {
                let edge = program.edges[edge].clone();
                if edge.inputs.len() > MOST_INPUTS {
                    return Err(format!("{} inputs in a step", edge.inputs.len()));
                }
                bounded |= !edge.inputs.is_empty();
                for inputs in choices(edge.inputs.len()) {
                    alternative(&mut program, index, &edge, &inputs, &mut text)?;
                }
            }
            text.push_str("  fi;\n");
        }
        text.push_str("over: skip\n}\n");
    }
    text.push_str("init { atomic {\n");
    for (index, variable) in program.variables.iter().enumerate() {
        if variable.initial.is_none() {
            bounded = true;
            text.push_str("  if");
            for value in INPUTS {
                let _ = write!(text, " :: v{index} = {value}");
            }
            text.push_str(" fi;\n");
        }
    }
    let initially = expression(&program, program.initially)?;
    let _ = writeln!(text, "  {initially} -> begun = true }} }}");
    Ok((text, bounded))
}

/// All ways to choose so many inputs.
fn choices(inputs: usize) -> Vec<Vec<i128>> {
    (0..inputs).fold(vec![Vec::new()], |chosen, _| {
        chosen
            .iter()
            .flat_map(|before| INPUTS.map(move |value| [before.as_slice(), &[value]].concat()))
            .collect()
    })
}

/// One edge with chosen inputs, as an alternative of its location.
fn alternative(
    program: &mut Program,
    index: usize,
    edge: &Edge,
    inputs: &[i128],
    text: &mut String,
) -> Result<(), String> {
    let mut given: HashMap<TermId, TermId> = HashMap::new();
    for (&input, &value) in edge.inputs.iter().zip(inputs) {
        given.insert(input, program.terms.int(value));
    }
    let mut known = |program: &mut Program, term: TermId| {
        program.terms.substitute(term, &mut given, &mut |_, _| None)
    };
    let guard = known(program, edge.guard);
    if program.terms.is_false(guard) {
        return Ok(());
    }
    let mut guards =
        vec![expression(program, guard)?, format!("(alone == 0 || alone == {})", index + 1)];
    if let Some(other) = edge.awaits {
        guards.push(format!("ended{other}"));
    }
    let _ = write!(text, "  :: d_step {{ ({}) -> ", guards.join(" && "));
    let thread = &program.threads[index];
    if edge.to == thread.error {
        text.push_str("assert(false) }; goto over;\n");
        return Ok(());
    }
    let alone = if thread.atomic[edge.to] { index + 1 } else { 0 };
    for (place, &(_, value)) in edge.assignments.iter().enumerate() {
        let value = known(program, value);
        let _ = write!(text, "t{place} = {}; ", expression(program, value)?);
    }
    for (place, &(variable, _)) in edge.assignments.iter().enumerate() {
        let _ = write!(text, "v{} = t{place}; t{place} = 0; ", variable.index());
    }
    if let Some(started) = edge.starts {
        let _ = write!(text, "started{started} = true; ");
    }
    let _ = writeln!(text, "alone = {alone} }}; goto L{};", edge.to);
    Ok(())
}

fn number(value: i128) -> Result<String, String> {
    match i32::try_from(value) {
        Ok(i32::MIN) => Ok("(-2147483647-1)".into()),
        Ok(value) => Ok(format!("({value})")),
        Err(_) => Err("a number of more than 32 bits".into()),
    }
}

fn expression(program: &Program, term: TermId) -> Result<String, String> {
    let terms = &program.terms;
    if let Some(value) = terms.constant_value(term) {
        return match value {
            Value::Int(value) => number(*value),
            Value::Bool(value) => Ok(value.to_string()),
            _ => Err("a value that is no integer".into()),
        };
    }
    let (operator, parts) = match terms.term(term) {
        Term::Variable(variable) => return Ok(format!("v{}", variable.index())),
        Term::Apply(operator, parts) => (operator, parts),
        _ => return Err("a value that is nowhere".into()),
    };
    let parts: Vec<String> =
        parts.iter().map(|&part| expression(program, part)).collect::<Result<_, _>>()?;
    let joined = |sign: &str| format!("({})", parts.join(sign));
    Ok(match (operator, parts.as_slice()) {
        (Operator::Not, [one]) => format!("(!{one})"),
        (Operator::And, _) => joined(" && "),
        (Operator::Or, _) => joined(" || "),
        (Operator::Implies, [one, other]) => format!("(!{one} || {other})"),
        (Operator::Ite, [condition, yes, no]) => format!("({condition} -> {yes} : {no})"),
        (Operator::Eq, [_, _]) => joined(" == "),
        (Operator::Le, [_, _]) => joined(" <= "),
        (Operator::Lt, [_, _]) => joined(" < "),
        (Operator::Add, _) => joined(" + "),
        (Operator::Sub, _) => joined(" - "),
        (Operator::Neg, [one]) => format!("(-{one})"),
        (Operator::Mul, _) => joined(" * "),
        (Operator::Mod, [one, size]) => format!("((({one} % {size}) + {size}) % {size})"),
        (other, _) => return Err(format!("the operator {other:?}")),
    })
}
