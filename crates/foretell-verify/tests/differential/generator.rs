//! Writes random C programs (see `differential.rs`).

use std::fmt::Write as _;

/// A generator of random numbers (splitmix64).
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len() as u64) as usize]
    }
}

const TYPES: [&str; 10] = [
    "char",
    "signed char",
    "unsigned char",
    "short",
    "unsigned short",
    "int",
    "unsigned",
    "long",
    "unsigned long",
    "_Bool",
];

/// Operands of these types cannot overflow an operation of `int`.
const NARROW: [&str; 5] = ["char", "signed char", "unsigned char", "short", "_Bool"];

const UNSIGNED: [&str; 2] = ["unsigned", "unsigned long"];

const LITERALS: [&str; 14] = [
    "0",
    "1",
    "2",
    "-1",
    "7",
    "'a'",
    "'\\xfe'",
    "200",
    "-129",
    "0x80u",
    "40000",
    "3000000000u",
    "-5l",
    "1000000ul",
];

/// Writes one program.
struct Writer<'r> {
    random: &'r mut Random,
    number: u64,
    text: String,
    /// Locals in scope.
    locals: Vec<String>,
    fresh: usize,
    /// Steps that the thread may still take.
    steps: usize,
    locked: bool,
}

impl Writer<'_> {
    fn n(&self, name: &str) -> String {
        format!("p{}_{name}", self.number)
    }

    fn local(&mut self) -> String {
        self.fresh += 1;
        format!("l{}", self.fresh)
    }

    fn leaf(&mut self) -> String {
        match self.locals.is_empty() || self.random.chance(35) {
            true => self.random.pick(&LITERALS).to_owned(),
            false => {
                let at = self.random.below(self.locals.len() as u64) as usize;
                self.locals[at].clone()
            }
        }
    }

    fn expression(&mut self, depth: usize) -> String {
        if depth == 0 || self.random.chance(20) {
            return self.leaf();
        }
        let a = self.expression(depth - 1);
        match self.random.below(12) {
            0 => {
                let kind = self.random.pick(&TYPES);
                format!("({kind})({a})")
            }
            1 => match self.random.below(3) {
                0 => format!("-(short)({a})"),
                1 => format!("~({a})"),
                _ => format!("!({a})"),
            },
            2 => {
                let operation = self.random.pick(&["+", "-", "*"]);
                let (one, other) = (self.random.pick(&NARROW), self.random.pick(&NARROW));
                let b = self.expression(depth - 1);
                format!("((({one})({a})) {operation} (({other})({b})))")
            }
            3 => {
                let operation = self.random.pick(&["+", "-", "*"]);
                let (one, other) = (self.random.pick(&UNSIGNED), self.random.pick(&NARROW));
                let b = self.expression(depth - 1);
                format!("((({one})({a})) {operation} (({other})({b})))")
            }
            4 => {
                let operation = self.random.pick(&["/", "%"]);
                let b = self.expression(depth - 1);
                format!("(({a}) {operation} ((({b}) & 7) + 1))")
            }
            5 => {
                let kind = self.random.pick(&UNSIGNED);
                let b = self.expression(depth - 1);
                format!("((({kind})({a})) << (({b}) & 15))")
            }
            6 => {
                let b = self.expression(depth - 1);
                format!("(({a}) >> (({b}) & 7))")
            }
            7 => {
                let operation = self.random.pick(&["&", "|", "^"]);
                let b = self.expression(depth - 1);
                format!("(({a}) {operation} ({b}))")
            }
            8 => {
                let operation = self.random.pick(&["<", "<=", ">", ">=", "==", "!="]);
                let b = self.expression(depth - 1);
                format!("(({a}) {operation} ({b}))")
            }
            9 => {
                let operation = self.random.pick(&["&&", "||"]);
                let b = self.expression(depth - 1);
                format!("(({a}) {operation} ({b}))")
            }
            10 => {
                let (b, c) = (self.expression(depth - 1), self.expression(depth - 1));
                format!("(({a}) ? ({b}) : ({c}))")
            }
            _ => {
                let b = self.expression(depth - 1);
                match self.random.below(3) {
                    0 => format!("{}({a}, {b})", self.n("mix")),
                    1 => format!("{}[({a}) & 1]({b})", self.n("table")),
                    _ => format!(
                        "{}((struct p{}_S){{.a = {a}, .b = {b}}}, {a})",
                        self.n("fold"),
                        self.number
                    ),
                }
            }
        }
    }

    /// Something shared.
    fn shared(&mut self) -> String {
        match self.random.below(6) {
            0..=2 => {
                let global = self.random.below(3);
                self.n(&format!("g{global}"))
            }
            3 => {
                let index = self.expression(1);
                format!("{}[({index}) & 1]", self.n("a"))
            }
            4 => format!("{}.{}", self.n("s"), self.random.pick(&["c", "d"])),
            _ => format!("(*{})", self.n("q")),
        }
    }

    fn line(&mut self, text: String) {
        self.text.push_str("  ");
        self.text.push_str(&text);
        self.text.push('\n');
    }

    fn take(&mut self, steps: usize) -> bool {
        let enough = self.steps >= steps;
        self.steps = self.steps.saturating_sub(if enough { steps } else { 0 });
        enough
    }

    fn statement(&mut self, depth: usize) {
        match self.random.below(10) {
            0 | 1 if self.take(1) => {
                let (kind, from, name) = (self.random.pick(&TYPES), self.shared(), self.local());
                // an index is computed before the step, from locals
                self.line(format!("STEP; {kind} {name} = {from};"));
                self.locals.push(name);
            }
            2 | 3 if self.take(1) => {
                let (to, value) = (self.shared(), self.expression(3));
                self.line(format!("STEP; {to} = {value};"));
            }
            4 if self.take(2) => {
                let (name, value) = (self.local(), self.expression(2));
                let global = self.random.below(3);
                let to = self.n(&format!("g{global}"));
                self.line(format!("STEP; unsigned long {name} = {to};"));
                self.line(format!("{name} += {value};"));
                self.line(format!("STEP; {to} = {name};"));
            }
            5 if depth > 0 && !self.locked && self.take(2) => {
                self.locked = true;
                let kept = self.locals.len();
                self.line(format!("LOCK({});", self.n("m")));
                self.statement(0);
                self.statement(0);
                self.line(format!("UNLOCK({});", self.n("m")));
                self.locked = false;
                let _ = kept;
            }
            6 if depth > 0 => {
                let condition = self.expression(2);
                let kept = self.locals.len();
                self.line(format!("if ({condition}) {{"));
                self.statement(depth - 1);
                self.locals.truncate(kept);
                self.line("} else {".into());
                self.statement(depth - 1);
                self.locals.truncate(kept);
                self.line("}".into());
            }
            7 if depth > 0 && self.take(2) => {
                let (index, value) = (self.local(), self.expression(2));
                let array = self.n("a");
                self.line(format!("for (unsigned char {index} = 0; {index} < 2; {index}++) {{"));
                self.line(format!("  STEP; {array}[{index}] = {value} + {index};"));
                self.line("}".into());
            }
            8 => {
                let (name, pointer) = (self.local(), self.local());
                let (kind, value) = (self.random.pick(&TYPES), self.expression(2));
                let change = self.expression(2);
                let operation = self.random.pick(&["=", "^=", "|=", "&="]);
                self.line(format!(
                    "{kind} {name}[2] = {{{value}, 3}}; {kind} *{pointer} = {name} + 1;"
                ));
                self.line(format!(
                    "*{pointer} {operation} {change}; {pointer}[-1] {operation} {name}[1];"
                ));
                self.locals.push(format!("{name}[0]"));
            }
            _ => {
                let (kind, name, value) =
                    (self.random.pick(&TYPES), self.local(), self.expression(3));
                self.line(format!("{kind} {name} = {value};"));
                let change = self.expression(2);
                let operation = self.random.pick(&["=", "^=", "|=", "&="]);
                self.line(format!("{name} {operation} {change};"));
                self.locals.push(name);
            }
        }
    }

    /// Two pointers to the same memory; whether C allows it depends on the types.
    fn two_ways(&mut self) {
        let (name, value) = (self.local(), self.local());
        let number = self.number;
        let first = match self.random.below(3) {
            0 => {
                self.line(format!("union p{number}_U {name} = {{.room = {{0}}}};"));
                format!("{name}.one")
            }
            1 => {
                self.line(format!("union p{number}_U *{name} = MEMORY(16);"));
                format!("{name}->one")
            }
            _ => {
                self.line(format!("p{number}_T1 {name}[16] __attribute__((aligned(8))) = {{0}};"));
                name
            }
        };
        let call = match self.random.chance(70) {
            true => format!("{}({first}, (p{number}_T2 *){first})", self.n("alias")),
            false => format!("{}({first}, {first} + {})", self.n("apart"), self.random.below(2)),
        };
        self.line(format!("int {value} = {call};"));
        self.locals.push(value);
    }

    /// What C leaves open or undefined, more often than not, and compilers do in different ways: operands
    /// without an order, lifetimes of blocks, initialisers with effects, padding.
    fn open_ways(&mut self) {
        let (name, value, kind) = (self.local(), self.local(), self.random.pick(&TYPES));
        let (one, other) = (self.random.below(2), self.random.below(2));
        let number = self.number;
        let call = match self.random.below(6) {
            0 => {
                let change = self.random.pick(&["(*q)++", "++*q", "*q = 5", "(*q += 2, 3)", "*q"]);
                self.line(format!("{kind} {name}[2] = {{1, 2}};"));
                format!(
                    "({{ {kind} *p = &{name}[{one}], *q = &{name}[{other}]; p{number}_less(*p, {change}); }})"
                )
            }
            1 => {
                let read = self.random.pick(&["*p", "q[0]"]);
                format!(
                    "({{ int *p, q[2] = {{4, 5}}; {{ p = (int[]){{6, 7}}; p{number}_keep(p); }} \
                     {{ int z[4] = {{8, 8, 8, 8}}; p{number}_keep(z); }} {read}; }})"
                )
            }
            2 => {
                let last = self.random.pick(&["p{}_next(&{})", "7", "{}"]);
                let last = last
                    .replacen("{}", &number.to_string(), usize::from(last.len() > 2))
                    .replace("{}", &name);
                self.line(format!("int {name} = {one};"));
                format!("({{ int a[2] = {{p{number}_next(&{name}), {last}}}; a[0] * 10 + a[1]; }})")
            }
            3 => {
                let byte = self.random.below(8);
                self.line(format!("struct p{number}_S {name} = {{.a = 1, .d = 2}};"));
                format!("((unsigned char *)&{name})[{byte}]")
            }
            4 => {
                let read = self.random.pick(&["*p", "1"]);
                format!(
                    "({{ int *p = 0, k = {one}; switch (k) {{ int x; default: x = 5; p = &x; p{number}_keep(p); }} \
                     {{ int z[4] = {{9, 9, 9, 9}}; p{number}_keep(z); }} {read}; }})"
                )
            }
            _ => {
                self.line(format!("int {name} = {other};"));
                let left = self.random.pick(&["n", "1"]);
                format!(
                    "({{ int *n_ = &{name}; int n = *n_; (*n_ + {left}) + p{number}_next(n_); }})"
                )
            }
        };
        self.line(format!("int {value} = {call};"));
        self.locals.push(value);
    }

    fn thread(&mut self, name: &str, condition: Option<bool>) {
        let name = self.n(name);
        self.text.push_str(&format!("static void *{name}(void *arg) {{\n"));
        self.locals = vec!["l0".into()];
        self.fresh = 0;
        self.steps = 5;
        let kind = self.random.pick(&TYPES);
        self.line(format!("{kind} l0 = (long)arg;"));
        let (m, c, ready) = (self.n("m"), self.n("c"), self.n("ready"));
        if condition == Some(false) {
            self.steps = 2;
            self.line(format!("LOCK({m});"));
            self.line(format!(
                "for (;;) {{ STEP; int r = {ready}; if (r) break; WAIT({c}, {m}); }}"
            ));
            self.line(format!("UNLOCK({m});"));
        }
        for _ in 0..2 + self.random.below(4) {
            self.statement(2);
        }
        if self.random.chance(4) {
            self.two_ways();
        }
        if self.random.chance(5) {
            self.open_ways();
        }
        if condition == Some(true) {
            let wake = self.random.pick(&["SIGNAL", "BROADCAST"]);
            self.line(format!("LOCK({m});"));
            self.line(format!("STEP; {ready} = 1;"));
            self.line(format!("{wake}({c});"));
            self.line(format!("UNLOCK({m});"));
        }
        let value = self.expression(2);
        self.line(format!("return (void *)(long)({value});"));
        self.text.push_str("}\n");
    }
}

/// One program.
pub fn program(random: &mut Random, number: u64) -> String {
    let mut w = Writer {
        random,
        number,
        text: String::new(),
        locals: Vec::new(),
        fresh: 0,
        steps: 0,
        locked: false,
    };
    let p = format!("p{number}_");
    let mut kinds = Vec::new();
    for global in 0..3 {
        let (kind, first) = (w.random.pick(&TYPES), w.random.pick(&LITERALS));
        let _ = writeln!(w.text, "SHARED({number}) static {kind} {p}g{global} = {first};");
        kinds.push(kind);
    }
    let element = w.random.pick(&TYPES);
    let (one, two) = (w.random.pick(&LITERALS), w.random.pick(&LITERALS));
    let _ = writeln!(w.text, "SHARED({number}) static {element} {p}a[2] = {{{one}, {two}}};");
    let (a, b, bits) = (w.random.pick(&TYPES), w.random.pick(&TYPES), 2 + w.random.below(6));
    let sign = w.random.pick(&["int", "unsigned"]);
    let _ = writeln!(
        w.text,
        "struct {p}S {{ {a} a; {sign} b : {bits}; {sign} e : {}; {b} c; short d; }};",
        9 - bits
    );
    let _ =
        writeln!(w.text, "SHARED({number}) static struct {p}S {p}s = {{.c = {one}, .d = {two}}};");
    let target = match w.random.chance(50) {
        true => format!("{element} *{p}q = &{p}a[1]"),
        false => format!("{} *{p}q = &{p}g1", kinds[1]),
    };
    let _ = writeln!(w.text, "SHARED({number}) static {target};");
    let _ = writeln!(w.text, "SHARED({number}) static MUTEX {p}m = MUTEX_INIT;");
    let _ = writeln!(w.text, "SHARED({number}) static COND {p}c = COND_INIT;");
    let _ = writeln!(w.text, "SHARED({number}) static int {p}ready = 0;");
    // helpers over parameters only
    let (x, y, r) = (w.random.pick(&TYPES), w.random.pick(&TYPES), w.random.pick(&TYPES));
    w.locals = vec!["x".into(), "y".into()];
    let simple = |w: &mut Writer<'_>| {
        // no calls: helpers do not call each other
        loop {
            let text = w.expression(2);
            if !text.contains("_mix") && !text.contains("_table") && !text.contains("_fold") {
                return text;
            }
        }
    };
    let value = simple(&mut w);
    let _ = writeln!(w.text, "static {r} {p}mix({x} x, {y} y) {{ return {value}; }}");
    w.locals = vec!["x".into()];
    let (one, two) = (simple(&mut w), simple(&mut w));
    let (x, r) = (w.random.pick(&TYPES), w.random.pick(&TYPES));
    let _ = writeln!(w.text, "static {r} {p}f({x} x) {{ return {one}; }}");
    let _ = writeln!(w.text, "static {r} {p}h({x} x) {{ return {two}; }}");
    let _ = writeln!(w.text, "static {r} (*{p}table[2])({x}) = {{{p}f, {p}h}};");
    w.locals = vec!["s.a".into(), "s.b".into(), "s.e".into(), "x".into()];
    let (value, bits) = (simple(&mut w), simple(&mut w));
    let (x, r) = (w.random.pick(&TYPES), w.random.pick(&TYPES));
    let _ = writeln!(
        w.text,
        "static {r} {p}fold(struct {p}S s, {x} x) {{ s.e = {bits}; s.b ^= x; return {value}; }}"
    );
    let (one, two) = (w.random.pick(&TYPES), w.random.pick(&TYPES));
    let _ = writeln!(
        w.text,
        "typedef {one} {p}T1; typedef {two} {p}T2; union {p}U {{ {p}T1 one[2]; char room[16]; long aligned; }};\n\
         static int {p}alias({p}T1 *p, {p}T2 *q) {{ *p = 1; *q = 0; return *p; }}\n\
         static int {p}less(int a, int b) {{ return a * 3 - b; }}\n\
         static int {p}keep(int *p) {{ return p[0]; }}\n\
         static int {p}next(int *p) {{ return ++*p; }}\n\
         static int {p}apart({p}T1 *restrict p, {p}T1 *restrict q) {{ *p = 1; *q = 0; return *p; }}"
    );
    let waits = w.random.chance(30);
    w.thread("t0", waits.then_some(true));
    w.thread("t1", waits.then_some(false));
    let argument = w.random.pick(&LITERALS);
    let _ = writeln!(
        w.text,
        "int {p}main(void) {{\n  HANDLE one, two; void *x, *y;\n  SPAWN(one, {p}t0, (void *)(long)({argument}));\n  \
         SPAWN(two, {p}t1, 0);\n  JOIN(one, x); JOIN(two, y);\n  unsigned long r = (unsigned long)x * 3 + (unsigned long)y;\n  \
         r = r * 31 + {p}g0; r = r * 31 + {p}g1; r = r * 31 + {p}g2; r = r * 31 + {p}a[0]; r = r * 31 + {p}a[1];\n  \
         r = r * 31 + {p}s.c; r = r * 31 + {p}s.d;\n  result(r % {});\n  return 0;\n}}",
        w.random.pick(&["4", "100", "1000003"])
    );
    w.text
}
