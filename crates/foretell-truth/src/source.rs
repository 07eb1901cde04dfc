//! A program as C, and as the instructions of the [machine](crate::machine), line by line the same.

use std::fmt::Write;

use crate::machine::{Code, FRAME, Instruction, Op};
use crate::program::{
    ATOMICS, Comparison, Condition, ELEMENTS, GLOBALS, LOCALS, MUTEXES, Place, Program, SEMAPHORES,
    Statement, Value,
};

/// A program in both languages.
#[derive(Clone, Debug)]
pub struct Emitted {
    /// C11 with POSIX threads.
    pub c: String,
    /// For the machine.
    pub code: Code,
}

/// Names of the local variables.
const NAMES: [&str; LOCALS] = ["x", "y"];
/// The hidden local variable that holds what a waiting loop read.
const HIDDEN: usize = LOCALS;
/// The pointer `q`, as the index of an element.
const POINTER: usize = LOCALS + 1;
/// The declarations in every function.
const DECLARATIONS: [&str; 2] =
    ["int x = 0, y = 0, expected, *q = arr;", "(void)x, (void)y, (void)expected, (void)q;"];

/// Writes the program in both languages.
pub fn emit(program: &Program) -> Emitted {
    let mut emitter = Emitter { program, c: String::new(), line: 1, functions: Vec::new() };
    emitter.declarations();
    // Functions are compiled once for their text; every call has the instructions again.
    for (number, body) in program.functions.iter().enumerate() {
        emitter.functions.push(emitter.line);
        emitter.text(0, &format!("static void function{number}(void) {{"));
        emitter.function(body);
        emitter.text(0, "}");
    }
    let mut threads = Vec::new();
    for (number, body) in program.threads.iter().enumerate() {
        emitter.text(0, &format!("static void *thread{number}(void *unused) {{"));
        let mut code = emitter.function(body);
        emitter.text(1, "return unused;");
        emitter.text(0, "}");
        code.push(Instruction { line: 0, op: Op::End });
        threads.push(code);
    }
    let main = emitter.main();
    threads.insert(0, main);
    Emitted { c: emitter.c, code: Code { threads, globals: program.globals.clone() } }
}

struct Emitter<'p> {
    program: &'p Program,
    c: String,
    line: u32,
    /// First lines of the functions.
    functions: Vec<u32>,
}

impl Emitter<'_> {
    /// A line of C; gives its number.
    fn text(&mut self, depth: usize, text: &str) -> u32 {
        let _ = writeln!(self.c, "{:1$}{text}", "", 2 * depth); // a string takes everything
        self.line += 1;
        self.line - 1
    }

    fn declarations(&mut self) {
        for header in ["assert", "pthread", "semaphore", "stdatomic", "stdio", "time"] {
            self.text(0, &format!("#include <{header}.h>"));
        }
        for number in 0..GLOBALS {
            let value = self.program.globals[number];
            self.text(0, &format!("static int g{number} = {value};"));
        }
        for number in 0..ATOMICS {
            self.text(0, &format!("static atomic_int a{number};"));
        }
        self.text(0, &format!("static int arr[{ELEMENTS}], *p = arr;"));
        self.text(0, "static const struct timespec late = {4000000000, 0};");
        for number in 0..MUTEXES {
            let text = format!("static pthread_mutex_t m{number} = PTHREAD_MUTEX_INITIALIZER;");
            self.text(0, &text);
        }
        self.text(0, "static pthread_cond_t c0 = PTHREAD_COND_INITIALIZER;");
        self.text(0, "static pthread_rwlock_t r0 = PTHREAD_RWLOCK_INITIALIZER;");
        for number in 0..SEMAPHORES {
            self.text(0, &format!("static sem_t s{number};"));
        }
    }

    /// The local variables and the body of a function that is not inlined.
    fn function(&mut self, body: &[Statement]) -> Vec<Instruction> {
        DECLARATIONS.iter().for_each(|line| _ = self.text(1, line));
        let mut code = Vec::new();
        self.statements(1, 0, body, &mut code);
        code
    }

    fn main(&mut self) -> Vec<Instruction> {
        let mut code = Vec::new();
        self.text(0, "int main(void) {");
        DECLARATIONS.iter().for_each(|line| _ = self.text(1, line));
        for number in 0..SEMAPHORES {
            self.text(1, &format!("sem_init(&s{number}, 0, 0);"));
        }
        let count = self.program.threads.len();
        self.text(1, &format!("pthread_t threads[{count}];"));
        for number in 0..count {
            let text = format!("pthread_create(&threads[{number}], 0, thread{number}, 0);");
            let line = self.text(1, &text);
            code.push(Instruction { line, op: Op::Create(number + 1) });
        }
        self.statements(1, 0, &self.program.meanwhile, &mut code);
        for number in 0..count {
            let line = self.text(1, &format!("pthread_join(threads[{number}], 0);"));
            code.push(Instruction { line, op: Op::Join(number + 1) });
        }
        self.statements(1, 0, &self.program.finally, &mut code);
        let all = (0..GLOBALS)
            .map(|n| format!("g{n}"))
            .chain((0..ATOMICS).map(|n| format!("a{n}")))
            .chain((0..ELEMENTS).map(|n| format!("arr[{n}]")));
        let all: Vec<String> = all.collect();
        let form = vec!["%d"; all.len()].join(" ");
        let line = self.text(1, &format!("printf(\"{form}\\n\", {});", all.join(", ")));
        code.push(Instruction { line, op: Op::Print });
        self.text(1, "return 0;");
        self.text(0, "}");
        code.push(Instruction { line: 0, op: Op::End });
        code
    }

    fn statements(
        &mut self,
        depth: usize,
        frame: usize,
        body: &[Statement],
        code: &mut Vec<Instruction>,
    ) {
        for statement in body {
            self.statement(depth, frame, statement, code);
        }
    }

    /// One statement; `frame` is where the local variables of the function lie.
    fn statement(
        &mut self,
        depth: usize,
        frame: usize,
        statement: &Statement,
        code: &mut Vec<Instruction>,
    ) {
        let at = |local: usize| frame + local;
        let moved = |value: &Value| match *value {
            Value::Constant(constant) => Value::Constant(constant),
            Value::Local(local, constant) => Value::Local(at(local), constant),
        };
        let placed = |place: &Place| match *place {
            Place::Global(number) => Place::Global(number),
            Place::Element(local) => Place::Element(at(local)),
            Place::Pointer => Place::Pointer,
            Place::Target => Place::Element(at(POINTER)),
        };
        let mut push = |line: u32, op: Op| code.push(Instruction { line, op });
        match statement {
            Statement::Load(local, place) => {
                let line = self.text(depth, &format!("{} = {};", NAMES[*local], c_place(*place)));
                push(line, Op::Load(at(*local), placed(place)));
            }
            Statement::Store(place, value) => {
                let line = self.text(depth, &format!("{} = {};", c_place(*place), c_value(*value)));
                push(line, Op::Store(placed(place), moved(value)));
            }
            Statement::Assign(local, value) => {
                let line = self.text(depth, &format!("{} = {};", NAMES[*local], c_value(*value)));
                push(line, Op::Assign(at(*local), moved(value)));
            }
            Statement::FetchAdd(local, atomic, value) => {
                let (name, more) = (NAMES[*local], c_value(*value));
                let text = format!("{name} = atomic_fetch_add(&a{atomic}, {more});");
                let line = self.text(depth, &text);
                push(line, Op::FetchAdd(at(*local), *atomic, moved(value)));
            }
            Statement::AtomicLoad(local, atomic) => {
                let line =
                    self.text(depth, &format!("{} = atomic_load(&a{atomic});", NAMES[*local]));
                push(line, Op::AtomicLoad(at(*local), *atomic));
            }
            Statement::AtomicStore(atomic, value) => {
                let text = format!("atomic_store(&a{atomic}, {});", c_value(*value));
                let line = self.text(depth, &text);
                push(line, Op::AtomicStore(*atomic, moved(value)));
            }
            Statement::CompareExchange(local, atomic, expected, value) => {
                self.text(depth, &format!("expected = {expected};"));
                let text = format!(
                    "{} = atomic_compare_exchange_strong(&a{atomic}, &expected, {});",
                    NAMES[*local],
                    c_value(*value)
                );
                let line = self.text(depth, &text);
                push(line, Op::CompareExchange(at(*local), *atomic, *expected, moved(value)));
            }
            Statement::SpinUntil(atomic, value) => {
                let line =
                    self.text(depth, &format!("while (atomic_load(&a{atomic}) != {value});"));
                push(line, Op::Await(*atomic, *value, None));
            }
            Statement::SpinTake(atomic, expected, value) => {
                self.text(depth, &format!("do expected = {expected};"));
                let text = format!(
                    "while (!atomic_compare_exchange_strong(&a{atomic}, &expected, {}));",
                    c_value(*value)
                );
                let line = self.text(depth, &text);
                push(line, Op::Await(*atomic, *expected, Some(moved(value))));
            }
            Statement::SpinAdd(local, atomic, constant) => {
                let name = NAMES[*local];
                self.text(depth, "do {");
                let line = self.text(depth + 1, &format!("expected = atomic_load(&a{atomic});"));
                push(line, Op::AtomicLoad(at(*local), *atomic));
                self.text(depth + 1, &format!("{name} = expected;"));
                let text = format!(
                    "}} while (!atomic_compare_exchange_strong(&a{atomic}, &expected, {name} + {constant}));"
                );
                let line = self.text(depth, &text);
                let succeeded =
                    Condition { local: at(HIDDEN), comparison: Comparison::Equal, constant: 1 };
                push(line, Op::CompareExchangeLocal(at(HIDDEN), *atomic, at(*local), *constant));
                let head = code.len() - 2;
                code.push(Instruction { line, op: Op::Branch(succeeded, head) });
            }
            Statement::Locked(mutex, body) => {
                let line = self.text(depth, &format!("pthread_mutex_lock(&m{mutex});"));
                push(line, Op::Lock(*mutex));
                self.statements(depth, frame, body, code);
                let line = self.text(depth, &format!("pthread_mutex_unlock(&m{mutex});"));
                code.push(Instruction { line, op: Op::Unlock(*mutex) });
            }
            Statement::Tried(mutex, body) | Statement::TriedForLong(mutex, body) => {
                let text = match statement {
                    Statement::Tried(..) => format!("pthread_mutex_trylock(&m{mutex})"),
                    _ => format!("pthread_mutex_timedlock(&m{mutex}, &late)"),
                };
                let text = format!("if ({text} == 0) {{");
                let line = self.text(depth, &text);
                let place = code.len();
                code.push(Instruction { line, op: Op::Try(*mutex, 0) });
                self.statements(depth + 1, frame, body, code);
                let line = self.text(depth + 1, &format!("pthread_mutex_unlock(&m{mutex});"));
                code.push(Instruction { line, op: Op::Unlock(*mutex) });
                self.text(depth, "}");
                code[place].op = Op::Try(*mutex, code.len());
            }
            Statement::TriedSemaphore(timed, semaphore, body) => {
                let text = match timed {
                    true => format!("sem_timedwait(&s{semaphore}, &late)"),
                    false => format!("sem_trywait(&s{semaphore})"),
                };
                let line = self.text(depth, &format!("if ({text} == 0) {{"));
                let place = code.len();
                code.push(Instruction { line, op: Op::TryWait(*semaphore, 0) });
                self.statements(depth + 1, frame, body, code);
                self.text(depth, "}");
                code[place].op = Op::TryWait(*semaphore, code.len());
            }
            Statement::Point(element) => {
                let line = self.text(depth, &format!("p = &arr[{element}];"));
                push(line, Op::Store(Place::Pointer, Value::Constant(*element as i32)));
            }
            Statement::Follow => {
                let line = self.text(depth, "q = p;");
                push(line, Op::Load(at(POINTER), Place::Pointer));
            }
            Statement::ReadWriteLocked(write, body) => {
                let mode = if *write { "wr" } else { "rd" };
                let line = self.text(depth, &format!("pthread_rwlock_{mode}lock(&r0);"));
                push(line, if *write { Op::WriteLock } else { Op::ReadLock });
                self.statements(depth, frame, body, code);
                let line = self.text(depth, "pthread_rwlock_unlock(&r0);");
                code.push(Instruction { line, op: Op::ReadWriteUnlock });
            }
            Statement::AwaitFlag | Statement::AwaitFlagForLong => {
                let line = self.text(depth, "pthread_mutex_lock(&m0);");
                push(line, Op::Lock(0));
                let line = self.text(depth, "while (g0 == 0)");
                push(line, Op::Load(at(HIDDEN), Place::Global(0)));
                let condition =
                    Condition { local: at(HIDDEN), comparison: Comparison::Equal, constant: 0 };
                let timed = *statement == Statement::AwaitFlagForLong;
                let (head, after) = (code.len() - 1, code.len() + 4 + usize::from(timed));
                code.push(Instruction { line, op: Op::Branch(condition, after) });
                if timed {
                    let text = "if (pthread_cond_timedwait(&c0, &m0, &late) != 0) break;";
                    let line = self.text(depth + 1, text);
                    code.push(Instruction { line, op: Op::TimedWait(at(HIDDEN)) });
                    code.push(Instruction { line, op: Op::LockAgain(at(HIDDEN)) });
                    code.push(Instruction { line: 0, op: Op::Branch(condition, after) });
                } else {
                    let line = self.text(depth + 1, "pthread_cond_wait(&c0, &m0);");
                    code.push(Instruction { line, op: Op::CondWait });
                    code.push(Instruction { line, op: Op::Lock(0) });
                }
                code.push(Instruction { line, op: Op::Jump(head) });
                let line = self.text(depth, "pthread_mutex_unlock(&m0);");
                code.push(Instruction { line, op: Op::Unlock(0) });
            }
            Statement::SetFlag(all) => {
                let line = self.text(depth, "pthread_mutex_lock(&m0);");
                push(line, Op::Lock(0));
                let line = self.text(depth, "g0 = 1;");
                push(line, Op::Store(Place::Global(0), Value::Constant(1)));
                let word = if *all { "broadcast" } else { "signal" };
                let line = self.text(depth, &format!("pthread_cond_{word}(&c0);"));
                push(line, if *all { Op::Broadcast } else { Op::Signal });
                let line = self.text(depth, "pthread_mutex_unlock(&m0);");
                push(line, Op::Unlock(0));
            }
            Statement::Wait(semaphore) => {
                let line = self.text(depth, &format!("sem_wait(&s{semaphore});"));
                push(line, Op::Wait(*semaphore));
            }
            Statement::Post(semaphore) => {
                let line = self.text(depth, &format!("sem_post(&s{semaphore});"));
                push(line, Op::Post(*semaphore));
            }
            Statement::If(condition, then, otherwise) => {
                let line = self.text(depth, &format!("if ({}) {{", c_condition(*condition)));
                let branch = code.len();
                let moved = Condition { local: at(condition.local), ..*condition };
                code.push(Instruction { line, op: Op::Branch(moved, 0) });
                self.statements(depth + 1, frame, then, code);
                if otherwise.is_empty() {
                    self.text(depth, "}");
                    code[branch].op = Op::Branch(moved, code.len());
                } else {
                    self.text(depth, "} else {");
                    let jump = code.len();
                    code.push(Instruction { line: 0, op: Op::Jump(0) });
                    code[branch].op = Op::Branch(moved, code.len());
                    self.statements(depth + 1, frame, otherwise, code);
                    self.text(depth, "}");
                    code[jump].op = Op::Jump(code.len());
                }
            }
            Statement::Repeat(times, body) => {
                self.text(depth, &format!("for (int i = 0; i < {times}; i++) {{"));
                let first = self.line;
                self.statements(depth + 1, frame, body, code);
                for _ in 1..*times {
                    self.again(first, frame, body, code);
                }
                self.text(depth, "}");
            }
            Statement::Call(function) => {
                self.text(depth, &format!("function{function}();"));
                code.push(Instruction { line: 0, op: Op::Enter });
                // Its body stands two lines of declarations after its head.
                let first = self.functions[*function] + 3;
                let body = &self.program.functions[*function];
                self.again(first, frame + FRAME, body, code);
            }
            Statement::Assert(condition) => {
                let line = self.text(depth, &format!("assert({});", c_condition(*condition)));
                push(line, Op::Assert(Condition { local: at(condition.local), ..*condition }));
            }
        }
    }

    /// Instructions of statements whose text stands elsewhere, from the given line on.
    fn again(&mut self, first: u32, frame: usize, body: &[Statement], code: &mut Vec<Instruction>) {
        let text = std::mem::take(&mut self.c);
        let line = std::mem::replace(&mut self.line, first);
        self.statements(0, frame, body, code);
        (self.c, self.line) = (text, line);
    }
}

fn c_place(place: Place) -> String {
    match place {
        Place::Global(number) => format!("g{number}"),
        Place::Element(local) => format!("arr[{} & {}]", NAMES[local], ELEMENTS - 1),
        Place::Pointer => "p".into(),
        Place::Target => "*q".into(),
    }
}

fn c_value(value: Value) -> String {
    match value {
        Value::Constant(constant) => constant.to_string(),
        Value::Local(local, 0) => NAMES[local].to_owned(),
        Value::Local(local, constant) => format!("{} + {constant}", NAMES[local]),
    }
}

fn c_condition(condition: Condition) -> String {
    let operator = match condition.comparison {
        Comparison::Equal => "==",
        Comparison::NotEqual => "!=",
        Comparison::Less => "<",
    };
    format!("{} {operator} {}", NAMES[condition.local], condition.constant)
}
