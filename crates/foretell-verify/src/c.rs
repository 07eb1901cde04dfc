//! C with pthreads, read through clang's syntax tree (`clang -ast-dump=json`).
//!
//! *Meaning.* Sequential consistency; each read or write of a shared variable is one step, as is each
//! call of the threads library; what touches locals only is part of the step before it. Functions
//! are inlined. A failed `__VERIFIER_assume` ends the execution, as do `abort`, `exit` and the return
//! of `main`. `pthread_cond_wait` may wake up at any time (POSIX allows it). Signed arithmetic that
//! leaves its type is a violation (undefined in C; [`Options::overflow`] assumes that there is none),
//! unsigned arithmetic and conversions wrap, an index outside an array is a violation.
//!
//! What is not listed here is refused with its line: recursion, pointers other than to hand
//! variables to functions and threads, structures, floating point, bit operations, products of two
//! variables, and threads created in loops whose number of turns is not constant.

use std::collections::{HashMap, HashSet};
use std::process::{Command, Stdio};

use foretell_trace::{Operator, Term, TermId, TermStore, Value, VariableId};
use serde_json::Value as Json;

use crate::program::{Builder, Location, Place, Program, Visible, less};
use crate::text::{InputError, binary, cell, number, truth};

/// The compiler whose syntax tree is read.
pub const CLANG: &str = "clang-22";

/// Calls inside calls, and turns of a loop that creates threads.
const DEPTH: usize = 64;

/// How C is understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Signed overflow is a violation; otherwise executions with overflow are not looked at.
    pub overflow: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { overflow: true }
    }
}

/// Reads a C file.
pub fn parse(file: &str, source: &str, options: Options) -> Result<Program, InputError> {
    let at_start = |message: String| InputError { file: file.into(), line: 1, message };
    let output = Command::new(CLANG)
        .args(["-x", "c", "-w", "-fsyntax-only", "-Xclang", "-ast-dump=json", file])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| {
            at_start(format!("cannot run {CLANG}: {error}; scripts/setup.sh installs it"))
        })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let first = said.lines().find(|line| line.contains("error:")).unwrap_or("it fails");
        return Err(at_start(format!("{CLANG} refuses the file: {first}")));
    }
    let tree: Json = serde_json::from_slice(&output.stdout)
        .map_err(|error| at_start(format!("{CLANG}'s tree cannot be read: {error}")))?;
    let mut line_starts = vec![0];
    line_starts.extend(source.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i + 1));
    let mut reader = Reader {
        file,
        source,
        line_starts,
        options,
        builder: Builder::new(file),
        functions: HashMap::new(),
        enumerators: HashMap::new(),
        addressed: HashSet::new(),
        meanings: HashMap::new(),
        handles: HashMap::new(),
        pending: Vec::new(),
        thread: 0,
        at: 0,
        temporaries: HashMap::new(),
        used: 0,
        base: 0,
        frames: Vec::new(),
        looping: 0,
        place: Place::default(),
    };
    reader.unit(&tree)?;
    Ok(reader.builder.finish())
}

/// What a declaration stands for.
#[derive(Clone, Debug)]
enum Meaning {
    /// Cells of an array, or one variable.
    Memory { cells: Vec<TermId>, array: bool, kind: Integer },
    /// A value that never changes while it is in scope.
    Constant(TermId),
    /// A pointer that always points here.
    Pointer(Memory),
}

/// Something that can be read and assigned.
#[derive(Clone, Debug)]
struct Memory {
    cells: Vec<TermId>,
    index: Option<TermId>,
    kind: Integer,
    shared: bool,
}

/// An integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Integer {
    bits: u32,
    signed: bool,
}

impl Integer {
    const INT: Integer = Integer { bits: 32, signed: true };

    fn range(self) -> (i128, i128) {
        match self.signed {
            true => (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1),
            false => (0, (1 << self.bits) - 1),
        }
    }

    fn named(text: &str) -> Option<Integer> {
        let words: Vec<&str> = text
            .split_whitespace()
            .filter(|word| !matches!(*word, "const" | "volatile" | "static" | "register"))
            .collect();
        let integer = |bits, signed| Some(Integer { bits, signed });
        match words.join(" ").as_str() {
            "int" | "signed int" | "int32_t" => integer(32, true),
            "unsigned int" | "unsigned" | "uint32_t" => integer(32, false),
            "short" | "short int" | "int16_t" => integer(16, true),
            "unsigned short" | "uint16_t" => integer(16, false),
            "char" | "signed char" | "int8_t" => integer(8, true),
            "unsigned char" | "uint8_t" => integer(8, false),
            "_Bool" | "bool" => integer(1, false),
            "long" | "long long" | "int64_t" | "intptr_t" | "ssize_t" => integer(64, true),
            "unsigned long" | "unsigned long long" | "size_t" | "uint64_t" | "uintptr_t"
            | "pthread_t" => integer(64, false),
            _ => None,
        }
    }
}

/// A function that is being inlined.
struct Frame {
    name: String,
    /// Where it returns to.
    exit: Location,
    /// Where its result goes.
    result: Option<TermId>,
    /// Atomic sections open when it was entered.
    atomic: usize,
    /// Where `break` and `continue` go, with the atomic sections open there.
    breaks: Vec<(Location, usize)>,
    continues: Vec<(Location, usize)>,
    labels: HashMap<String, Location>,
}

struct Reader<'a> {
    file: &'a str,
    source: &'a str,
    line_starts: Vec<usize>,
    options: Options,
    builder: Builder,
    functions: HashMap<String, &'a Json>,
    enumerators: HashMap<String, i128>,
    /// Locals whose address is taken: others may see them.
    addressed: HashSet<String>,
    /// By declaration and thread (`None` for globals).
    meanings: HashMap<(Option<usize>, String), Meaning>,
    /// Which thread a `pthread_t` holds, by its cell.
    handles: HashMap<TermId, usize>,
    /// Threads whose bodies are still to be read.
    pending: Vec<(usize, &'a Json, Option<Meaning>)>,
    thread: usize,
    at: Location,
    temporaries: HashMap<(usize, usize), TermId>,
    used: usize,
    /// Temporaries of statements around the one that is read.
    base: usize,
    frames: Vec<Frame>,
    /// Loops around us that are not unrolled.
    looping: usize,
    place: Place,
}

type Read<T> = Result<T, InputError>;

fn kind(node: &Json) -> &str {
    node["kind"].as_str().unwrap_or_default()
}

fn inner(node: &Json) -> &[Json] {
    node["inner"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn type_of(node: &Json) -> &str {
    let ty = &node["type"];
    ty["desugaredQualType"].as_str().or(ty["qualType"].as_str()).unwrap_or_default()
}

/// The expression without parentheses and casts that change nothing.
fn bare(node: &Json) -> &Json {
    let transparent = match kind(node) {
        "ParenExpr" | "ConstantExpr" => true,
        "ImplicitCastExpr" | "CStyleCastExpr" => matches!(
            node["castKind"].as_str(),
            Some(
                "NoOp"
                    | "BitCast"
                    | "FunctionToPointerDecay"
                    | "ArrayToPointerDecay"
                    | "IntegralToPointer"
                    | "PointerToIntegral"
            )
        ),
        _ => false,
    };
    match (transparent, inner(node)) {
        (true, [only]) => bare(only),
        _ => node,
    }
}

impl<'a> Reader<'a> {
    fn error<T>(&self, message: impl Into<String>) -> Read<T> {
        let line = self.place.line.max(1);
        Err(InputError { file: self.file.into(), line, message: message.into() })
    }

    /// Remembers where the node stands.
    fn locate(&mut self, node: &Json) {
        let begin = &node["range"]["begin"];
        let begin = if begin["expansionLoc"].is_object() { &begin["expansionLoc"] } else { begin };
        let Some(offset) = begin["offset"].as_u64() else { return };
        let offset = offset as usize;
        let line = self.line_starts.partition_point(|&start| start <= offset);
        let column = offset - self.line_starts.get(line.wrapping_sub(1)).copied().unwrap_or(0) + 1;
        self.place = Place { line: line as u32, column: column as u32 };
    }

    /// The text of the node in the source.
    fn said(&self, node: &Json) -> String {
        let side = |side: &Json| {
            let place = if side["expansionLoc"].is_object() { &side["expansionLoc"] } else { side };
            Some((place["offset"].as_u64()? as usize, place["tokLen"].as_u64()? as usize))
        };
        let range = &node["range"];
        let (Some((from, _)), Some((to, length))) = (side(&range["begin"]), side(&range["end"]))
        else {
            return String::new();
        };
        // a macro's call ends at its closing parenthesis
        let mut end = (to + length).min(self.source.len());
        if range["end"]["expansionLoc"].is_object()
            && let Some(line) = self.source.get(from..).and_then(|rest| rest.split(';').next())
        {
            end = end.max(from + line.len());
        }
        let text = self.source.get(from..end).unwrap_or_default();
        let text: Vec<&str> = text.split_whitespace().collect();
        text.join(" ").chars().take(80).collect()
    }

    fn unit(&mut self, tree: &'a Json) -> Read<()> {
        for declaration in inner(tree) {
            let elsewhere = declaration["loc"]["includedFrom"].is_object()
                || declaration["loc"]["spellingLoc"]["includedFrom"].is_object()
                || declaration["isImplicit"].as_bool() == Some(true);
            match kind(declaration) {
                "FunctionDecl" if !elsewhere => {
                    let body = inner(declaration).iter().any(|part| kind(part) == "CompoundStmt");
                    if body && let Some(name) = declaration["name"].as_str() {
                        self.functions.insert(name.to_string(), declaration);
                        self.find_addressed(declaration);
                    }
                }
                "VarDecl" if !elsewhere => {
                    self.locate(declaration);
                    self.variable(declaration, None)?;
                }
                "EnumDecl" => {
                    let mut next = 0;
                    for constant in inner(declaration) {
                        let given = inner(constant).first().and_then(|v| v["value"].as_str());
                        let value = given.and_then(|v| v.parse().ok()).unwrap_or(next);
                        next = value + 1;
                        if let Some(id) = constant["id"].as_str() {
                            self.enumerators.insert(id.to_string(), value);
                        }
                    }
                }
                _ => {}
            }
        }
        let Some(&main) = self.functions.get("main") else {
            return self.error("there is no `main`");
        };
        let thread = self.builder.thread("main", true);
        self.pending.push((thread, main, None));
        while let Some((thread, function, argument)) = self.pending.pop() {
            self.body(thread, function, argument)?;
        }
        Ok(())
    }

    /// Notes whose address is taken, other than of the threads library's objects.
    fn find_addressed(&mut self, node: &Json) {
        if kind(node) == "UnaryOperator"
            && node["opcode"].as_str() == Some("&")
            && let Some(operand) = inner(node).first()
        {
            let mut target = bare(operand);
            if kind(target) == "ArraySubscriptExpr" {
                target = inner(target).first().map_or(target, bare);
            }
            if let Some(id) = target["referencedDecl"]["id"].as_str() {
                self.addressed.insert(id.to_string());
            }
        }
        // an array that is handed over is an address as well
        if kind(node) == "CallExpr" {
            for argument in inner(node).iter().skip(1) {
                let target = bare(argument);
                if type_of(target).ends_with(']')
                    && let Some(id) = target["referencedDecl"]["id"].as_str()
                {
                    self.addressed.insert(id.to_string());
                }
            }
        }
        for part in inner(node) {
            self.find_addressed(part);
        }
    }

    /// The body of a thread.
    fn body(&mut self, thread: usize, function: &'a Json, argument: Option<Meaning>) -> Read<()> {
        let automaton = &self.builder.program.threads[thread];
        let (entry, exit) = (automaton.entry, automaton.exit);
        self.thread = thread;
        self.at = entry;
        let parameter = inner(function).iter().find(|part| kind(part) == "ParmVarDecl");
        if let (Some(parameter), Some(meaning)) = (parameter, argument)
            && let Some(id) = parameter["id"].as_str()
        {
            self.meanings.insert((Some(thread), id.to_string()), meaning);
        }
        let name = function["name"].as_str().unwrap_or_default().to_string();
        let main = name == "main";
        let exit = if main { self.builder.dead(thread) } else { exit };
        self.enter(name, exit, None);
        let body = inner(function).iter().find(|part| kind(part) == "CompoundStmt");
        self.statement(body.expect("only functions with a body are kept"))?;
        self.go(exit);
        self.frames.pop();
        match self.builder.atomic_depth() {
            0 => Ok(()),
            _ => self.error("an atomic section is not closed where the thread ends"),
        }
    }

    fn enter(&mut self, name: String, exit: Location, result: Option<TermId>) {
        let atomic = self.builder.atomic_depth();
        self.frames.push(Frame {
            name,
            exit,
            result,
            atomic,
            breaks: Vec::new(),
            continues: Vec::new(),
            labels: HashMap::new(),
        });
    }

    fn frame(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("statements stand in functions")
    }

    /// A silent edge to the location; what follows cannot be reached.
    fn go(&mut self, to: Location) {
        self.builder.edge(self.thread, self.at, to, self.place);
        self.at = self.builder.location(self.thread);
    }

    /// Continue at a location.
    fn resume(&mut self, at: Location) {
        self.at = at;
    }

    fn fresh(&mut self) -> Location {
        self.builder.location(self.thread)
    }

    /// One step of the current thread.
    fn step(
        &mut self,
        guard: Option<TermId>,
        assignments: Vec<(TermId, TermId)>,
        visible: Visible,
        text: impl Into<Box<str>>,
    ) {
        let to = self.fresh();
        let assignments = assignments
            .into_iter()
            .map(|(target, value)| (variable_id(&self.builder.program, target), value))
            .collect();
        let edge = self.builder.edge(self.thread, self.at, to, self.place);
        if let Some(guard) = guard {
            edge.guard = guard;
        }
        edge.assignments = assignments;
        edge.visible = visible;
        edge.text = text.into();
        self.at = to;
    }

    /// Goes on where the condition holds and to `otherwise` where it does not.
    fn branch(&mut self, condition: TermId, otherwise: Location, text: &str) {
        let to = self.fresh();
        let fails = self.builder.terms().not(condition);
        for (to, guard, said) in [(to, condition, ""), (otherwise, fails, text)] {
            let edge = self.builder.edge(self.thread, self.at, to, self.place);
            edge.guard = guard;
            edge.text = said.into();
        }
        self.at = to;
    }

    fn error_location(&self) -> Location {
        self.builder.program.threads[self.thread].error
    }

    fn new_variable(
        &mut self,
        name: &str,
        local_of: Option<usize>,
        initial: Option<i128>,
    ) -> Read<TermId> {
        match self.builder.variable(name, local_of, initial) {
            Some(variable) => Ok(variable),
            None => self.error(format!(
                "more than {} variables (every cell of an array is one, as is every local of \
                 every thread)",
                crate::program::VARIABLES
            )),
        }
    }

    /// A local that holds what was read, until the statement ends.
    fn temporary(&mut self) -> Read<TermId> {
        let key = (self.thread, self.used);
        self.used += 1;
        if let Some(&term) = self.temporaries.get(&key) {
            return Ok(term);
        }
        let name = format!("{}.read{}", self.builder.program.threads[self.thread].name, key.1);
        let term = self.new_variable(&name, Some(self.thread), Some(0))?;
        self.temporaries.insert(key, term);
        Ok(term)
    }

    /// Declares a variable; globals get their first value, locals are assigned by their statement.
    fn variable(&mut self, declaration: &'a Json, thread: Option<usize>) -> Read<()> {
        let id = declaration["id"].as_str().unwrap_or_default().to_string();
        if self.meanings.contains_key(&(thread, id.clone())) {
            return Ok(());
        }
        let name = declaration["name"].as_str().unwrap_or_default();
        if declaration["tls"].is_string() {
            return self.error(format!("`{name}`: make thread-local variables locals"));
        }
        let text = declaration["type"]["qualType"].as_str().unwrap_or_default();
        let (element, size) = match text.split_once('[') {
            Some((element, size)) => {
                let size = size.trim_end_matches(']').parse::<usize>().ok();
                let Some(size) = size.filter(|size| (1..=64).contains(size)) else {
                    return self
                        .error(format!("`{name}`: arrays have one dimension, 1 to 64 cells"));
                };
                (element.trim(), Some(size))
            }
            None => (text, None),
        };
        let object = [
            "pthread_mutex_t",
            "pthread_cond_t",
            "sem_t",
            "pthread_attr_t",
            "pthread_mutexattr_t",
            "pthread_condattr_t",
        ]
        .contains(&element);
        let desugared = type_of(declaration).split('[').next().unwrap_or_default().trim();
        let integer = Integer::named(element).or_else(|| Integer::named(desugared));
        let integer = match (integer, object) {
            (Some(integer), _) => integer,
            (None, true) => Integer::INT,
            (None, false) => {
                return self.error(format!("`{name}` has type `{text}`, which is not supported"));
            }
        };
        let mut initial = vec![0; size.unwrap_or(1)];
        if thread.is_none()
            && !object
            && let Some(init) = inner(declaration).iter().find(|part| kind(part) != "FullComment")
        {
            self.initial_values(init, &mut initial)?;
        }
        let is_static = declaration["storageClass"].as_str() == Some("static");
        let (owner, prefix) = match thread {
            Some(thread) if !is_static && !object && !self.addressed.contains(&id) => {
                (Some(thread), format!("{}.", self.builder.program.threads[thread].name))
            }
            Some(thread) => (None, format!("{}.", self.builder.program.threads[thread].name)),
            None => (None, String::new()),
        };
        if thread.is_some() && is_static {
            return self.error(format!("`{name}`: make static locals global"));
        }
        let mut cells = Vec::new();
        for (place, &value) in initial.iter().enumerate() {
            let full = match size {
                Some(_) => format!("{prefix}{name}[{place}]"),
                None => format!("{prefix}{name}"),
            };
            cells.push(self.new_variable(&full, owner, Some(value))?);
        }
        let meaning = Meaning::Memory { cells, array: size.is_some(), kind: integer };
        self.meanings.insert((thread, id), meaning);
        Ok(())
    }

    fn initial_values(&mut self, init: &'a Json, values: &mut [i128]) -> Read<()> {
        if kind(init) == "InitListExpr" {
            let filled: Vec<&Json> = match init["array_filler"].as_array() {
                Some(parts) => {
                    parts.iter().filter(|part| kind(part) != "ImplicitValueInitExpr").collect()
                }
                None => inner(init).iter().collect(),
            };
            for (part, value) in filled.into_iter().zip(values) {
                self.initial_values(part, std::slice::from_mut(value))?;
            }
            return Ok(());
        }
        if kind(init) == "ImplicitValueInitExpr" {
            return Ok(());
        }
        let value = self.constant(init)?;
        values[0] = value;
        Ok(())
    }

    /// An expression whose value is known now.
    fn constant(&mut self, node: &'a Json) -> Read<i128> {
        let before = (self.at, self.builder.program.edges.len());
        let thread = self.builder.program.threads.len();
        if thread == 0 {
            // globals come before threads: only literals can stand here
            return match literal(node, &self.enumerators) {
                Some(value) => Ok(value),
                None => self.error("only constants may stand here"),
            };
        }
        let (term, _) = self.value(node)?;
        let known = match self.builder.program.terms.constant_value(term) {
            Some(Value::Int(value)) => Some(*value),
            _ => None,
        };
        match known {
            Some(value) if before == (self.at, self.builder.program.edges.len()) => Ok(value),
            _ => self.error("only constants may stand here"),
        }
    }

    fn statement(&mut self, node: &'a Json) -> Read<()> {
        self.locate(node);
        self.used = self.base;
        if self.builder.program.edges.len() > 20_000 {
            return self.error("the program is too large with its functions inlined");
        }
        match kind(node) {
            "CompoundStmt" => inner(node).iter().try_for_each(|part| self.statement(part)),
            "NullStmt" => Ok(()),
            "DeclStmt" => inner(node).iter().try_for_each(|part| self.declaration(part)),
            "IfStmt" => self.if_statement(node),
            "WhileStmt" | "DoStmt" | "ForStmt" => self.loop_statement(node),
            "LabelStmt" => {
                let label = self.label(node["declId"].as_str().unwrap_or_default())?;
                self.go(label);
                self.resume(label);
                inner(node).iter().try_for_each(|part| self.statement(part))
            }
            "GotoStmt" => {
                let label = self.label(node["targetLabelDeclId"].as_str().unwrap_or_default())?;
                self.go(label);
                Ok(())
            }
            "ReturnStmt" => {
                let result = self.frame().result;
                if let Some(value) = inner(node).first() {
                    match result {
                        Some(result) => {
                            let (value, _) = self.value(value)?;
                            let value = number(self.builder.terms(), value);
                            self.step(None, vec![(result, value)], Visible::No, "");
                        }
                        None if kind(bare(value)) == "CallExpr" => {
                            self.value(value)?;
                        }
                        None => {}
                    }
                }
                let (exit, atomic) = (self.frame().exit, self.frame().atomic);
                if self.builder.atomic_depth() != atomic {
                    return self.error("return from inside an atomic section; leave it first");
                }
                self.go(exit);
                Ok(())
            }
            "BreakStmt" | "ContinueStmt" => {
                let frame = self.frame();
                let target = match kind(node) {
                    "BreakStmt" => frame.breaks.last(),
                    _ => frame.continues.last(),
                };
                match target.copied() {
                    Some((target, depth)) if depth == self.builder.atomic_depth() => {
                        self.go(target);
                        Ok(())
                    }
                    Some(_) => self.error("it leaves an atomic section; leave it first"),
                    None => self
                        .error("it leaves a loop that creates threads or a switch: not supported"),
                }
            }
            "SwitchStmt" | "CaseStmt" | "DefaultStmt" => {
                self.error("`switch` is not supported; use `if`")
            }
            "GCCAsmStmt" => self.error("assembler is not supported"),
            _ => self.value(node).map(|_| ()),
        }
    }

    fn label(&mut self, name: &str) -> Read<Location> {
        if self.builder.atomic_depth() != self.frame().atomic {
            return self.error("`goto` and labels inside atomic sections are not supported");
        }
        if let Some(&location) = self.frame().labels.get(name) {
            return Ok(location);
        }
        let location = self.fresh();
        self.builder.loop_head(self.thread, location);
        self.frame().labels.insert(name.to_string(), location);
        Ok(location)
    }

    fn declaration(&mut self, node: &'a Json) -> Read<()> {
        self.locate(node);
        if kind(node) != "VarDecl" {
            return Ok(()); // types
        }
        let id = node["id"].as_str().unwrap_or_default().to_string();
        let text = node["type"]["qualType"].as_str().unwrap_or_default();
        let init = inner(node).iter().find(|part| !kind(part).ends_with("Comment"));
        if text.ends_with('*') {
            let Some(init) = init else {
                return self.error("a pointer must point somewhere from the beginning");
            };
            let meaning = self.pointer(init)?;
            self.meanings.insert((Some(self.thread), id), meaning);
            return Ok(());
        }
        self.variable(node, Some(self.thread))?;
        let Some(Meaning::Memory { cells, array, kind: integer }) =
            self.meanings.get(&(Some(self.thread), id)).cloned()
        else {
            return Ok(());
        };
        let said = self.said(node);
        let Some(init) = init else {
            if array || integer.bits == 64 {
                return Ok(());
            }
            // no value was given: any
            let value = self.any(integer);
            self.step(None, vec![(cells[0], value)], Visible::No, "");
            return Ok(());
        };
        if array {
            let mut values = vec![0; cells.len()];
            self.initial_values(init, &mut values)?;
            let assignments = cells
                .iter()
                .zip(values)
                .map(|(&cell, value)| (cell, self.builder.terms().int(value)))
                .collect();
            self.step(None, assignments, Visible::No, said);
            return Ok(());
        }
        let (value, _) = self.value(init)?;
        let value = number(self.builder.terms(), value);
        self.step(None, vec![(cells[0], value)], Visible::No, said);
        Ok(())
    }

    /// Any value of the type; the range is asserted where it is made.
    fn any(&mut self, integer: Integer) -> TermId {
        let input = self.builder.input();
        let (low, high) = integer.range();
        let terms = self.builder.terms();
        let (low, high) = (terms.int(low), terms.int(high));
        // clamped into the type: every value of the type is possible, and no other
        let below = less(terms, input, low);
        let above = less(terms, high, input);
        let inner = terms.ite(above, high, input);
        terms.ite(below, low, inner)
    }

    fn if_statement(&mut self, node: &'a Json) -> Read<()> {
        let parts = inner(node);
        let said = format!("if ({})", self.said(&parts[0]));
        let otherwise = self.fresh();
        self.condition(&parts[0], otherwise, &said)?;
        let atomic = self.builder.atomic_depth();
        self.statement(&parts[1])?;
        self.same_depth(atomic)?;
        let end = self.fresh();
        self.go(end);
        self.resume(otherwise);
        if let Some(branch) = parts.get(2) {
            self.statement(branch)?;
            self.same_depth(atomic)?;
        }
        self.go(end);
        self.resume(end);
        Ok(())
    }

    fn same_depth(&mut self, before: usize) -> Read<()> {
        match self.builder.atomic_depth() == before {
            true => Ok(()),
            false => self.error("an atomic section must begin and end in the same block"),
        }
    }

    /// Evaluates a condition and goes on where it holds.
    fn condition(&mut self, node: &'a Json, otherwise: Location, said: &str) -> Read<()> {
        self.locate(node);
        let node = match kind(node) {
            "ParenExpr" => &inner(node)[0],
            _ => node,
        };
        if kind(node) == "BinaryOperator" && node["opcode"].as_str() == Some("&&") {
            self.condition(&inner(node)[0], otherwise, said)?;
            return self.condition(&inner(node)[1], otherwise, said);
        }
        let (value, _) = self.value(node)?;
        let holds = truth(self.builder.terms(), value);
        self.branch(holds, otherwise, &format!("{said} is false"));
        Ok(())
    }

    fn loop_statement(&mut self, node: &'a Json) -> Read<()> {
        let parts = inner(node);
        let (init, condition, increment, body) = match (kind(node), parts) {
            ("WhileStmt", [condition, body]) => (None, Some(condition), None, body),
            ("DoStmt", [body, condition]) => (None, Some(condition), None, body),
            ("ForStmt", [init, _, condition, increment, body]) => {
                let present = |part: &'a Json| (!kind(part).is_empty()).then_some(part);
                (present(init), present(condition), present(increment), body)
            }
            _ => return self.error("this loop is not supported"),
        };
        if calls(body, &["pthread_create", "pthread_join"]) {
            return self.unroll(init, condition, increment, body);
        }
        if let Some(init) = init {
            self.statement(init)?;
        }
        let head = self.fresh();
        self.builder.loop_head(self.thread, head);
        self.go(head);
        self.resume(head);
        let (end, next) = (self.fresh(), self.fresh());
        let said = condition.map(|c| format!("while ({})", self.said(c))).unwrap_or_default();
        let first = kind(node) != "DoStmt";
        if first && let Some(condition) = condition {
            self.used = self.base;
            self.condition(condition, end, &said)?;
        }
        self.looping += 1;
        let atomic = self.builder.atomic_depth();
        let frame = self.frame();
        frame.breaks.push((end, atomic));
        frame.continues.push((next, atomic));
        self.statement(body)?;
        self.same_depth(atomic)?;
        let frame = self.frame();
        frame.breaks.pop();
        frame.continues.pop();
        self.looping -= 1;
        self.go(next);
        self.resume(next);
        if let Some(increment) = increment {
            self.statement(increment)?;
        }
        if !first && let Some(condition) = condition {
            self.used = self.base;
            self.condition(condition, end, &said)?;
        }
        self.go(head);
        self.resume(end);
        Ok(())
    }

    /// A loop with a constant number of turns, turn by turn: each thread it creates is another.
    fn unroll(
        &mut self,
        init: Option<&'a Json>,
        condition: Option<&'a Json>,
        increment: Option<&'a Json>,
        body: &'a Json,
    ) -> Read<()> {
        let why = "a loop that creates or joins threads must have the form \
                   `for (i = 0; i < CONSTANT; i++)` and not change `i`";
        let counter = init.and_then(|init| match kind(init) {
            "DeclStmt" => {
                let declared = inner(init).first()?;
                Some((declared["id"].as_str()?, inner(declared).first()?))
            }
            "BinaryOperator" if init["opcode"].as_str() == Some("=") => {
                let [target, value] = inner(init) else { return None };
                Some((target["referencedDecl"]["id"].as_str()?, value))
            }
            _ => None,
        });
        let (Some((id, first)), Some(condition)) = (counter, condition) else {
            return self.error(why);
        };
        let step = increment.and_then(|increment| match increment["opcode"].as_str()? {
            "++" => Some(1),
            "--" => Some(-1),
            _ => None,
        });
        let Some(step) = step else { return self.error(why) };
        let key = (Some(self.thread), id.to_string());
        let global = (None, id.to_string());
        if self.meanings.contains_key(&global) {
            return self.error(why);
        }
        let outer = self.meanings.get(&key).cloned();
        let mut value = self.constant(first)?;
        for turn in 0.. {
            if turn > DEPTH {
                return self
                    .error(format!("more than {DEPTH} turns of a loop that creates threads"));
            }
            let counter = self.builder.terms().int(value);
            self.meanings.insert(key.clone(), Meaning::Constant(counter));
            self.used = self.base;
            let (goes_on, _) = self.value(condition)?;
            let goes_on = truth(self.builder.terms(), goes_on);
            match self.builder.program.terms.constant_value(goes_on) {
                Some(Value::Bool(true)) => {}
                Some(_) => break,
                None => return self.error(why),
            }
            let mut none = (Vec::new(), Vec::new());
            std::mem::swap(&mut self.frame().breaks, &mut none.0);
            std::mem::swap(&mut self.frame().continues, &mut none.1);
            self.statement(body)?;
            let frame = self.frame();
            (frame.breaks, frame.continues) = none;
            value += step;
        }
        match outer {
            Some(Meaning::Memory { cells, array, kind }) => {
                // the variable keeps its last value behind the loop
                let last = self.builder.terms().int(value);
                self.step(None, vec![(cells[0], last)], Visible::No, "");
                self.meanings.insert(key, Meaning::Memory { cells, array, kind });
            }
            Some(other) => {
                self.meanings.insert(key, other);
            }
            None => {
                self.meanings.remove(&key);
            }
        }
        Ok(())
    }

    fn meaning(&self, id: &str) -> Option<Meaning> {
        let local = self.meanings.get(&(Some(self.thread), id.to_string()));
        local.or_else(|| self.meanings.get(&(None, id.to_string()))).cloned()
    }

    fn is_shared(&self, cells: &[TermId]) -> bool {
        cells.iter().any(|&cell| {
            let variable = variable_id(&self.builder.program, cell);
            self.builder.program.variables[variable.index()].local_of.is_none()
        })
    }

    /// What an expression that can be assigned stands for.
    fn lvalue(&mut self, node: &'a Json) -> Read<Memory> {
        let node = bare(node);
        match kind(node) {
            "DeclRefExpr" => {
                let id = node["referencedDecl"]["id"].as_str().unwrap_or_default();
                let name = node["referencedDecl"]["name"].as_str().unwrap_or("it");
                match self.meaning(id) {
                    Some(Meaning::Memory { cells, array: false, kind }) => {
                        let shared = self.is_shared(&cells);
                        Ok(Memory { cells, index: None, kind, shared })
                    }
                    Some(Meaning::Memory { .. }) => {
                        self.error(format!("the array `{name}` needs an index here"))
                    }
                    Some(Meaning::Constant(_)) => self.error(format!(
                        "`{name}` must not change here: it counts a loop that creates threads, or \
                         is a thread's argument"
                    )),
                    Some(Meaning::Pointer(_)) => {
                        self.error(format!("the pointer `{name}` must not change"))
                    }
                    None => self.error(format!("`{name}` is not supported here")),
                }
            }
            "ArraySubscriptExpr" => {
                let [array, index] = inner(node) else { return self.error("a strange index") };
                let base = bare(array);
                let base = match kind(base) {
                    "ImplicitCastExpr" => bare(&inner(base)[0]),
                    _ => base,
                };
                let id = base["referencedDecl"]["id"].as_str().unwrap_or_default();
                let (cells, integer) = match self.meaning(id) {
                    Some(Meaning::Memory { cells, array: true, kind }) => (cells, kind),
                    Some(Meaning::Pointer(place)) if place.index.is_none() => {
                        (place.cells, place.kind)
                    }
                    _ => return self.error("only arrays of constant size can be indexed"),
                };
                let said = self.said(node);
                let (index, _) = self.value(index)?;
                let index = number(self.builder.terms(), index);
                self.check_index(index, cells.len(), &said);
                let shared = self.is_shared(&cells);
                if let Some(Value::Int(constant)) = self.builder.program.terms.constant_value(index)
                    && let Some(&cell) = usize::try_from(*constant).ok().and_then(|i| cells.get(i))
                {
                    return Ok(Memory { cells: vec![cell], index: None, kind: integer, shared });
                }
                Ok(Memory { cells, index: Some(index), kind: integer, shared })
            }
            "UnaryOperator" if node["opcode"].as_str() == Some("*") => {
                match self.pointer(&inner(node)[0])? {
                    Meaning::Pointer(place) => Ok(place),
                    _ => self.error("this pointer does not point to a variable"),
                }
            }
            _ => self.error(format!("`{}` is not supported here", self.said(node))),
        }
    }

    fn check_index(&mut self, index: TermId, size: usize, said: &str) {
        let terms = self.builder.terms();
        let (zero, size) = (terms.int(0), terms.int(size as i128));
        let low = terms.build(Operator::Le, &[zero, index]);
        let high = less(terms, index, size);
        let inside = terms.and(&[low, high]);
        if !terms.is_true(inside) {
            let error = self.error_location();
            self.branch(inside, error, &format!("{said}: index outside the array"));
        }
    }

    /// Where a pointer expression points, or the number it holds (`(void *)3`).
    fn pointer(&mut self, node: &'a Json) -> Read<Meaning> {
        let node = bare(node);
        match kind(node) {
            "UnaryOperator" if node["opcode"].as_str() == Some("&") => {
                let place = self.lvalue(&inner(node)[0])?;
                Ok(Meaning::Pointer(place))
            }
            "ImplicitCastExpr" | "CStyleCastExpr" => match node["castKind"].as_str() {
                Some("LValueToRValue") => self.pointer(&inner(node)[0]),
                Some("NullToPointer") => Ok(Meaning::Constant(self.builder.terms().int(0))),
                _ => {
                    let (value, _) = self.value(node)?;
                    Ok(Meaning::Constant(number(self.builder.terms(), value)))
                }
            },
            "DeclRefExpr" => {
                let id = node["referencedDecl"]["id"].as_str().unwrap_or_default();
                match self.meaning(id) {
                    Some(meaning @ (Meaning::Pointer(_) | Meaning::Constant(_))) => Ok(meaning),
                    Some(Meaning::Memory { cells, array: true, kind }) => {
                        let shared = self.is_shared(&cells);
                        Ok(Meaning::Pointer(Memory { cells, index: None, kind, shared }))
                    }
                    Some(_) => {
                        let (value, _) = self.read(node)?;
                        Ok(Meaning::Constant(value))
                    }
                    None => self.error(format!("`{}` is not supported here", self.said(node))),
                }
            }
            _ => {
                let (value, _) = self.value(node)?;
                Ok(Meaning::Constant(number(self.builder.terms(), value)))
            }
        }
    }

    fn read(&mut self, node: &'a Json) -> Read<(TermId, Integer)> {
        let place = self.lvalue(node)?;
        if !place.shared {
            // nobody else changes it, and C forbids to change it elsewhere in the expression
            let value = match place.index {
                None => place.cells[0],
                Some(index) => cell(self.builder.terms(), &place.cells, index),
            };
            return Ok((value, place.kind));
        }
        let said = self.said(node);
        self.read_place(&place, &said)
    }

    fn read_place(&mut self, place: &Memory, said: &str) -> Read<(TermId, Integer)> {
        let value = match place.index {
            None => place.cells[0],
            Some(index) => cell(self.builder.terms(), &place.cells, index),
        };
        let temporary = self.temporary()?;
        let visible = if place.shared { Visible::Read } else { Visible::No };
        let text = if place.shared { format!("read {said}") } else { String::new() };
        self.step(None, vec![(temporary, value)], visible, text);
        Ok((temporary, place.kind))
    }

    fn write_place(&mut self, place: &Memory, value: TermId, said: String) {
        let assignments = match place.index {
            None => vec![(place.cells[0], value)],
            Some(index) => {
                let mut assignments = Vec::new();
                for (number, &cell) in place.cells.iter().enumerate() {
                    let terms = self.builder.terms();
                    let here = terms.int(number as i128);
                    let here = terms.eq(index, here);
                    assignments.push((cell, terms.ite(here, value, cell)));
                }
                assignments
            }
        };
        let visible = if place.shared { Visible::Write } else { Visible::No };
        self.step(None, assignments, visible, said);
    }

    /// The value of an expression, after the steps that it takes.
    fn value(&mut self, node: &'a Json) -> Read<(TermId, Integer)> {
        let own = Integer::named(type_of(node)).unwrap_or(Integer::INT);
        match kind(node) {
            "ParenExpr" | "ConstantExpr" | "ExprWithCleanups" => self.value(&inner(node)[0]),
            "IntegerLiteral" | "CharacterLiteral" => match literal(node, &self.enumerators) {
                Some(value) => Ok((self.builder.terms().int(value), own)),
                None => self.error("a number that is none"),
            },
            "ImplicitCastExpr" | "CStyleCastExpr" => self.cast(node, own),
            "DeclRefExpr" => {
                let id = node["referencedDecl"]["id"].as_str().unwrap_or_default();
                if let Some(&value) = self.enumerators.get(id) {
                    return Ok((self.builder.terms().int(value), own));
                }
                self.error(format!("`{}` is not supported here", self.said(node)))
            }
            "UnaryOperator" => self.unary(node, own),
            "BinaryOperator" | "CompoundAssignOperator" => self.binary(node, own),
            "ConditionalOperator" => {
                let [condition, yes, no] = inner(node) else {
                    return self.error("a strange choice");
                };
                let result = self.temporary()?;
                let (otherwise, end) = (self.fresh(), self.fresh());
                self.condition(condition, otherwise, "")?;
                for (place, branch) in [(None, yes), (Some(otherwise), no)] {
                    if let Some(place) = place {
                        self.resume(place);
                    }
                    let (value, _) = self.value(branch)?;
                    let value = number(self.builder.terms(), value);
                    self.step(None, vec![(result, value)], Visible::No, "");
                    self.go(end);
                }
                self.resume(end);
                Ok((result, own))
            }
            "StmtExpr" => {
                for statement in inner(node) {
                    self.inlined(statement)?;
                }
                Ok((self.builder.terms().int(0), own))
            }
            "CallExpr" => self.call(node, own),
            "UnaryExprOrTypeTraitExpr" => Ok((self.builder.terms().int(0), own)),
            other => {
                let said = self.said(node);
                self.error(format!("`{said}` ({other}) is not supported"))
            }
        }
    }

    fn cast(&mut self, node: &'a Json, own: Integer) -> Read<(TermId, Integer)> {
        let operand = &inner(node)[0];
        match node["castKind"].as_str().unwrap_or_default() {
            "LValueToRValue" => {
                if let Some(id) = bare(operand)["referencedDecl"]["id"].as_str()
                    && kind(bare(operand)) == "DeclRefExpr"
                    && let Some(Meaning::Constant(value)) = self.meaning(id)
                {
                    return Ok((value, own));
                }
                self.read(operand)
            }
            "ToVoid" => {
                if kind(bare(operand)) != "UnaryExprOrTypeTraitExpr" {
                    self.value(operand)?;
                }
                Ok((self.builder.terms().int(0), own))
            }
            "IntegralToBoolean" => {
                let (value, _) = self.value(operand)?;
                let value = truth(self.builder.terms(), value);
                Ok((value, own))
            }
            "IntegralCast" => {
                let (value, from) = self.value(operand)?;
                let value = number(self.builder.terms(), value);
                Ok((self.wrap(value, from, own), own))
            }
            "NullToPointer" => Ok((self.builder.terms().int(0), own)),
            "NoOp" | "BitCast" | "IntegralToPointer" | "PointerToIntegral" => {
                let (value, from) = self.value(operand)?;
                Ok((value, from))
            }
            other => {
                let said = self.said(node);
                self.error(format!("`{said}`: this conversion ({other}) is not supported"))
            }
        }
    }

    /// A value of one type in another.
    fn wrap(&mut self, value: TermId, from: Integer, to: Integer) -> TermId {
        let ((low, high), (from_low, from_high)) = (to.range(), from.range());
        if low <= from_low && from_high <= high {
            return value;
        }
        self.modulo(value, to)
    }

    /// The value of the type that is equal modulo its size.
    fn modulo(&mut self, value: TermId, to: Integer) -> TermId {
        let (low, high) = to.range();
        if let Some(Value::Int(known)) = self.builder.program.terms.constant_value(value)
            && (low..=high).contains(known)
        {
            return value;
        }
        let terms = self.builder.terms();
        let size = terms.int(1 << to.bits);
        let (low, high) = (terms.int(low), terms.int(high));
        let shifted = terms.build(Operator::Sub, &[value, low]);
        let rest = terms.build(Operator::Mod, &[shifted, size]);
        let wrapped = terms.build(Operator::Add, &[rest, low]);
        let above = less(terms, high, value);
        let below = less(terms, value, low);
        let outside = terms.or(&[above, below]);
        terms.ite(outside, wrapped, value)
    }

    /// The result of arithmetic: signed results must lie in their type, unsigned ones wrap. Values
    /// lie in their types, so a constant summand can leave them on one side only.
    fn arithmetic(&mut self, value: TermId, own: Integer, said: &str) -> TermId {
        // `++` of a small type computes with int, which it cannot leave, and converts
        match own.bits {
            1 => return self.as_bool(value),
            bits if bits < Integer::INT.bits || !own.signed => return self.modulo(value, own),
            _ => {}
        }
        let (low, high) = own.range();
        let terms = self.builder.terms();
        let (low, high) = (terms.int(low), terms.int(high));
        let above = terms.build(Operator::Le, &[low, value]);
        let below = terms.build(Operator::Le, &[value, high]);
        let inside = match grows(terms, value) {
            Some(true) => below,
            Some(false) => above,
            None => terms.and(&[above, below]),
        };
        if !terms.is_true(inside) {
            let otherwise = match self.options.overflow {
                true => self.error_location(),
                false => self.builder.dead(self.thread),
            };
            self.branch(inside, otherwise, &format!("{said}: signed overflow"));
        }
        value
    }

    fn unary(&mut self, node: &'a Json, own: Integer) -> Read<(TermId, Integer)> {
        let operand = &inner(node)[0];
        let said = self.said(node);
        match node["opcode"].as_str().unwrap_or_default() {
            "!" => {
                let (value, _) = self.value(operand)?;
                let terms = self.builder.terms();
                let value = truth(terms, value);
                Ok((terms.not(value), own))
            }
            "-" => {
                let (value, _) = self.value(operand)?;
                let value = number(self.builder.terms(), value);
                let value = self.builder.terms().build(Operator::Neg, &[value]);
                Ok((self.arithmetic(value, own, &said), own))
            }
            "+" | "__extension__" => self.value(operand),
            "*" => self.read(node),
            operator @ ("++" | "--") => {
                let place = self.lvalue(operand)?;
                let (old, integer) = self.read_place(&place, &self.said(operand))?;
                let terms = self.builder.terms();
                let one = terms.int(1);
                let change = if operator == "++" { Operator::Add } else { Operator::Sub };
                let new = terms.build(change, &[old, one]);
                let new = self.arithmetic(new, integer, &said);
                self.write_place(&place, new, said);
                let postfix = node["isPostfix"].as_bool() == Some(true);
                Ok((if postfix { old } else { new }, integer))
            }
            "&" => self.error("an address is supported as an argument only"),
            other => self.error(format!("the operator `{other}` is not supported")),
        }
    }

    fn binary(&mut self, node: &'a Json, own: Integer) -> Read<(TermId, Integer)> {
        let [left, right] = inner(node) else { return self.error("a strange operator") };
        let said = self.said(node);
        let operator = node["opcode"].as_str().unwrap_or_default();
        match operator {
            "," => {
                self.value(left)?;
                self.value(right)
            }
            "=" => {
                let (value, _) = self.value(right)?;
                let value = number(self.builder.terms(), value);
                let place = self.lvalue(left)?;
                let bool_target = place.kind.bits == 1;
                let value = if bool_target { self.as_bool(value) } else { value };
                self.write_place(&place, value, said);
                Ok((value, own))
            }
            "&&" | "||" => {
                let result = self.temporary()?;
                let (first, _) = self.value(left)?;
                let terms = self.builder.terms();
                let first = truth(terms, first);
                let decided = terms.int(i128::from(operator == "||"));
                let goes_on = if operator == "&&" { first } else { terms.not(first) };
                let (otherwise, end) = (self.fresh(), self.fresh());
                self.branch(goes_on, otherwise, "");
                let (second, _) = self.value(right)?;
                let terms = self.builder.terms();
                let second = truth(terms, second);
                let second = number(terms, second);
                self.step(None, vec![(result, second)], Visible::No, "");
                self.go(end);
                self.resume(otherwise);
                self.step(None, vec![(result, decided)], Visible::No, "");
                self.go(end);
                self.resume(end);
                Ok((result, Integer::INT))
            }
            _ => {
                if let Some(plain) = operator
                    .strip_suffix('=')
                    .filter(|plain| ["+", "-", "*", "/", "%"].contains(plain))
                {
                    let place = self.lvalue(left)?;
                    let (change, _) = self.value(right)?;
                    let (old, integer) = self.read_place(&place, &self.said(left))?;
                    let new = binary(self.builder.terms(), plain, old, change);
                    let new = new.or_else(|why| self.error(why))?;
                    let new = self.arithmetic(new, integer, &said);
                    self.write_place(&place, new, said);
                    return Ok((new, integer));
                }
                let (left, _) = self.value(left)?;
                let (right, _) = self.value(right)?;
                let result = binary(self.builder.terms(), operator, left, right);
                let result = result.or_else(|why| self.error(why))?;
                match operator {
                    "+" | "-" | "*" => Ok((self.arithmetic(result, own, &said), own)),
                    _ => Ok((result, own)),
                }
            }
        }
    }

    fn as_bool(&mut self, value: TermId) -> TermId {
        let terms = self.builder.terms();
        let value = truth(terms, value);
        number(terms, value)
    }

    fn call(&mut self, node: &'a Json, own: Integer) -> Read<(TermId, Integer)> {
        let parts = inner(node);
        let name =
            bare(&parts[0])["referencedDecl"]["name"].as_str().unwrap_or_default().to_string();
        let arguments = &parts[1..];
        let said = self.said(node);
        let zero = self.builder.terms().int(0);
        let done = Ok((zero, Integer::INT));
        let thread = self.thread;
        let mine = self.builder.terms().int(thread as i128 + 1);
        match name.as_str() {
            "reach_error" | "__VERIFIER_error" | "__assert_fail" => {
                let error = self.error_location();
                let said = match name.as_str() {
                    "__assert_fail" => "assertion fails".to_string(),
                    _ => said,
                };
                let edge = self.builder.edge(thread, self.at, error, self.place);
                edge.text = said.into();
                self.at = self.builder.location(thread);
                done
            }
            "abort" | "exit" | "_exit" | "quick_exit" => {
                let dead = self.builder.dead(thread);
                self.go(dead);
                done
            }
            "pthread_exit" => {
                let exit = self.builder.program.threads[thread].exit;
                if self.builder.atomic_depth() > 0 {
                    return self.error("a thread ends inside an atomic section");
                }
                self.go(exit);
                done
            }
            "__VERIFIER_assume" | "assume_abort_if_not" => {
                let dead = self.builder.dead(thread);
                self.condition(&arguments[0], dead, "")?;
                done
            }
            "__VERIFIER_atomic_begin" => {
                self.builder.begin_atomic();
                done
            }
            "__VERIFIER_atomic_end" => {
                if !self.builder.end_atomic() {
                    return self.error("no atomic section is open here");
                }
                self.step(None, Vec::new(), Visible::AtomicEnd, "");
                done
            }
            "pthread_mutex_lock" | "pthread_mutex_unlock" | "pthread_mutex_trylock" => {
                let Meaning::Pointer(mutex) = self.pointer(&arguments[0])? else {
                    return self.error("which mutex?");
                };
                if mutex.index.is_some() {
                    return self.error("the index of a mutex must be constant");
                }
                let cell = mutex.cells[0];
                let free = self.builder.terms().eq(cell, zero);
                match name.as_str() {
                    "pthread_mutex_lock" => {
                        self.step(Some(free), vec![(cell, mine)], Visible::Lock, said);
                        done
                    }
                    "pthread_mutex_unlock" => {
                        self.step(None, vec![(cell, zero)], Visible::Unlock, said);
                        done
                    }
                    _ => {
                        let result = self.temporary()?;
                        let terms = self.builder.terms();
                        let owner = terms.ite(free, mine, cell);
                        let busy = terms.int(16); // EBUSY
                        let status = terms.ite(free, zero, busy);
                        let assignments = vec![(cell, owner), (result, status)];
                        self.step(None, assignments, Visible::TryLock, said);
                        Ok((result, Integer::INT))
                    }
                }
            }
            "pthread_cond_wait" => {
                let Meaning::Pointer(mutex) = self.pointer(&arguments[1])? else {
                    return self.error("which mutex?");
                };
                let cell = mutex.cells[0];
                let free = self.builder.terms().eq(cell, zero);
                self.step(None, vec![(cell, zero)], Visible::WaitBegin, said.clone());
                self.step(
                    Some(free),
                    vec![(cell, mine)],
                    Visible::WaitEnd,
                    format!("{said} wakes up"),
                );
                done
            }
            "pthread_cond_signal" | "pthread_cond_broadcast" => {
                self.step(None, Vec::new(), Visible::Signal, said);
                done
            }
            "sem_init" => {
                let Meaning::Pointer(semaphore) = self.pointer(&arguments[0])? else {
                    return self.error("which semaphore?");
                };
                let (value, _) = self.value(&arguments[2])?;
                let value = number(self.builder.terms(), value);
                self.step(None, vec![(semaphore.cells[0], value)], Visible::No, said);
                done
            }
            "sem_wait" | "sem_post" => {
                let Meaning::Pointer(semaphore) = self.pointer(&arguments[0])? else {
                    return self.error("which semaphore?");
                };
                let cell = semaphore.cells[0];
                let terms = self.builder.terms();
                let one = terms.int(1);
                let (guard, change, visible) = match name.as_str() {
                    "sem_wait" => (less(terms, zero, cell), Operator::Sub, Visible::SemaphoreWait),
                    _ => (terms.bool(true), Operator::Add, Visible::SemaphorePost),
                };
                let value = terms.build(change, &[cell, one]);
                self.step(Some(guard), vec![(cell, value)], visible, said);
                done
            }
            "pthread_create" => self.create(arguments, said).and(done),
            "pthread_join" => {
                let handle = match kind(bare(&arguments[0])) {
                    "ImplicitCastExpr" => self.lvalue(&inner(bare(&arguments[0]))[0])?,
                    _ => self.lvalue(&arguments[0])?,
                };
                let other =
                    self.handles.get(&handle.cells[0]).copied().filter(|_| handle.index.is_none());
                let Some(other) = other else {
                    return self.error("which thread is joined must be known here");
                };
                let to = self.fresh();
                let edge = self.builder.edge(thread, self.at, to, self.place);
                edge.awaits = Some(other);
                edge.visible = Visible::Join;
                edge.text = said.into();
                self.at = to;
                done
            }
            "pthread_mutex_init"
            | "pthread_mutex_destroy"
            | "pthread_cond_init"
            | "pthread_cond_destroy"
            | "sem_destroy"
            | "pthread_attr_init"
            | "pthread_attr_destroy"
            | "pthread_detach"
            | "sched_yield"
            | "usleep"
            | "sleep"
            | "puts"
            | "fflush" => done,
            "printf" => {
                for argument in arguments.iter().skip(1) {
                    self.value(argument)?;
                }
                done
            }
            _ if name.starts_with("__VERIFIER_nondet_") => {
                let integer = match &name["__VERIFIER_nondet_".len()..] {
                    "int" => Integer::INT,
                    "uint" => Integer { bits: 32, signed: false },
                    "bool" | "_Bool" => Integer { bits: 1, signed: false },
                    "char" => Integer { bits: 8, signed: true },
                    "uchar" => Integer { bits: 8, signed: false },
                    "short" => Integer { bits: 16, signed: true },
                    "long" => Integer { bits: 64, signed: true },
                    _ => return self.error(format!("`{name}` is not supported")),
                };
                let result = self.temporary()?;
                let value = self.any(integer);
                self.step(None, vec![(result, value)], Visible::Input, said);
                Ok((result, integer))
            }
            _ => self.inline(&name, arguments, own),
        }
    }

    fn create(&mut self, arguments: &'a [Json], said: String) -> Read<()> {
        let [handle, _, function, argument] = arguments else {
            return self.error("pthread_create has four arguments");
        };
        if self.looping > 0 {
            return self.error(
                "a thread is created in a loop whose number of turns is not constant; write \
                 `for (i = 0; i < CONSTANT; i++)`",
            );
        }
        let Meaning::Pointer(handle) = self.pointer(handle)? else {
            return self.error("where does the thread's name go?");
        };
        let name = bare(function)["referencedDecl"]["name"].as_str().unwrap_or_default();
        let name = match bare(function) {
            node if kind(node) == "UnaryOperator" => {
                bare(&inner(node)[0])["referencedDecl"]["name"].as_str().unwrap_or_default()
            }
            _ => name,
        };
        let Some(&body) = self.functions.get(name) else {
            return self.error("the thread's function is not in this file");
        };
        let argument = match self.pointer(argument)? {
            Meaning::Constant(value)
                if self.builder.program.terms.constant_value(value).is_none() =>
            {
                return self.error("a thread's argument must be a constant or an address");
            }
            meaning => meaning,
        };
        let taken =
            self.builder.program.threads.iter().filter(|t| t.name.starts_with(name)).count();
        let shown = if taken == 0 { name.to_string() } else { format!("{name}#{}", taken + 1) };
        let new = self.builder.thread(shown, false);
        if handle.index.is_some() {
            return self.error("the index of a thread's name must be constant");
        }
        self.handles.insert(handle.cells[0], new);
        let to = self.fresh();
        let edge = self.builder.edge(self.thread, self.at, to, self.place);
        edge.starts = Some(new);
        edge.visible = Visible::Fork;
        edge.text = said.into();
        self.at = to;
        self.pending.push((new, body, Some(argument)));
        Ok(())
    }

    /// A statement inside an expression: the temporaries of the expression stay in use.
    fn inlined(&mut self, node: &'a Json) -> Read<()> {
        let (base, used) = (self.base, self.used);
        self.base = used;
        self.statement(node)?;
        (self.base, self.used) = (base, used);
        Ok(())
    }

    /// The function's body in place of its call.
    fn inline(
        &mut self,
        name: &str,
        arguments: &'a [Json],
        own: Integer,
    ) -> Read<(TermId, Integer)> {
        let Some(&function) = self.functions.get(name) else {
            return self.error(format!("the function `{name}` is not in this file and not known"));
        };
        if self.frames.iter().any(|frame| frame.name == name) || self.frames.len() > DEPTH {
            return self.error(format!("`{name}` calls itself; recursion is not supported"));
        }
        let parameters = inner(function).iter().filter(|part| kind(part) == "ParmVarDecl");
        for (parameter, argument) in parameters.zip(arguments) {
            let id = parameter["id"].as_str().unwrap_or_default().to_string();
            if type_of(parameter).ends_with('*') {
                let meaning = self.pointer(argument)?;
                self.meanings.insert((Some(self.thread), id), meaning);
                continue;
            }
            let (value, _) = self.value(argument)?;
            let value = number(self.builder.terms(), value);
            self.variable(parameter, Some(self.thread))?;
            if let Some(Meaning::Memory { cells, .. }) =
                self.meanings.get(&(Some(self.thread), id)).cloned()
            {
                self.step(None, vec![(cells[0], value)], Visible::No, "");
            }
        }
        let text = function["type"]["qualType"].as_str().unwrap_or_default();
        let result = match text.starts_with("void") {
            true => None,
            false => Some(self.temporary()?),
        };
        let whole = name.starts_with("__VERIFIER_atomic_");
        let exit = self.fresh();
        if whole {
            self.builder.begin_atomic();
        }
        let inside = if whole { self.fresh() } else { exit };
        self.enter(name.to_string(), inside, result);
        let here = self.place;
        let body = inner(function).iter().find(|part| kind(part) == "CompoundStmt");
        self.inlined(body.expect("only functions with a body are kept"))?;
        self.go(inside);
        self.resume(inside);
        self.frames.pop();
        if whole {
            self.builder.end_atomic();
            self.go(exit);
            self.resume(exit);
        }
        self.place = here;
        let zero = self.builder.terms().int(0);
        Ok((result.unwrap_or(zero), own))
    }
}

/// Whether a sum or difference with a constant is at least (at most) its other part.
fn grows(terms: &TermStore, value: TermId) -> Option<bool> {
    let Term::Apply(operator @ (Operator::Add | Operator::Sub), parts) = terms.term(value) else {
        return None;
    };
    let &[left, right] = &**parts else { return None };
    let constant = |term| match terms.constant_value(term) {
        Some(Value::Int(value)) => Some(*value),
        _ => None,
    };
    match (constant(left), constant(right), operator) {
        (None, Some(change), Operator::Add) | (Some(change), None, Operator::Add) => {
            Some(change >= 0)
        }
        (None, Some(change), Operator::Sub) => Some(change < 0),
        _ => None,
    }
}

/// A literal's value, through conversions that keep it.
fn literal(node: &Json, enumerators: &HashMap<String, i128>) -> Option<i128> {
    match kind(node) {
        "IntegerLiteral" => node["value"].as_str()?.parse().ok(),
        "CharacterLiteral" => node["value"].as_i64().map(i128::from),
        "UnaryOperator" if node["opcode"].as_str() == Some("-") => {
            Some(-literal(inner(node).first()?, enumerators)?)
        }
        "DeclRefExpr" => enumerators.get(node["referencedDecl"]["id"].as_str()?).copied(),
        "ParenExpr" | "ImplicitCastExpr" | "CStyleCastExpr" | "ConstantExpr" => {
            literal(inner(node).first()?, enumerators)
        }
        _ => None,
    }
}

/// Does the tree call one of these?
fn calls(node: &Json, names: &[&str]) -> bool {
    let called = kind(node) == "CallExpr"
        && inner(node)
            .first()
            .and_then(|callee| bare(callee)["referencedDecl"]["name"].as_str())
            .is_some_and(|name| names.contains(&name));
    called || inner(node).iter().any(|part| calls(part, names))
}

fn variable_id(program: &Program, term: TermId) -> VariableId {
    match program.terms.term(term) {
        Term::Variable(variable) => *variable,
        other => unreachable!("memory is made of variables, not {other:?}"),
    }
}
