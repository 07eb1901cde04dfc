//! A module: which functions are instrumented, the constants that describe places in the source,
//! and the constructor that registers the module with the runtime.

use crate::function;
use crate::handlers;
use crate::llvm::{self, Builder, Location, Value};
use crate::{clocks, polled, rust, rust_names};
use foretell_abi::{ABI_VERSION, AccessInfo, Hook, MODULE_RUST, MODULE_SYMBOLIC, NEVER};
use llvm_sys::LLVMLinkage;
use std::collections::{HashMap, HashSet};

/// What is reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Accesses with values and shadows, branches that depend on reads.
    Symbolic,
    /// Accesses with values only.
    Concrete,
}

/// The environment variable through which the compiler driver chooses the [`Mode`].
const MODE_VARIABLE: &str = "FORETELL_INSTRUMENT";

impl Mode {
    /// From `FORETELL_INSTRUMENT`; the driver has checked that it is one of ours.
    pub fn from_environment() -> Mode {
        match std::env::var_os(MODE_VARIABLE) {
            Some(value) if value == "concrete" => Mode::Concrete,
            _ => Mode::Symbolic,
        }
    }
}

/// The constructor's name; its presence says that the module is already instrumented.
const CONSTRUCTOR: &str = "foretell.register";
/// Before the program's own constructors, whose priority is 101 or more.
const CONSTRUCTOR_PRIORITY: i32 = 100;

/// Called where a task of OpenMP is made, and what tells `openmp.c` that a program makes any.
const OMP_TASK: &str = "__kmpc_omp_task_alloc";
const OMP_TASKS: &str = "foretell_omp_tasks";

/// Instruments all functions of the module.
pub fn instrument(module: llvm::Module, mode: Mode) {
    if module.has_symbol(CONSTRUCTOR) {
        return;
    }
    let functions: Vec<Value> = defined(&module).filter(|f| wanted(*f)).collect();
    let globals: Vec<Value> =
        module.globals().into_iter().filter(|g| is_variable(&module, *g)).collect();
    if functions.is_empty() && globals.is_empty() {
        return;
    }
    let mut context = ModuleContext {
        builder: Builder::new(&module),
        module,
        mode,
        strings: HashMap::new(),
        sites: HashMap::new(),
        met: HashMap::new(),
        demangled: HashMap::new(),
        hidden: HashSet::new(),
        looking: HashSet::new(),
        clocks: HashSet::new(),
        is_rust: functions.iter().any(|function| rust_names::is_mangled(&function.name())),
    };
    rust::replace_locks(&mut context, &functions);
    let quiet = handlers::quiet(&functions);
    context.looking = polled::looking(&functions);
    context.clocks = clocks::compared(&functions);
    for function in functions {
        function::instrument(&mut context, function);
    }
    context.register(&globals, &quiet);
    let functions = context.module.functions();
    if functions.iter().any(|it| it.is_declaration() && it.name() == OMP_TASK) {
        context.module.add_mark(OMP_TASKS);
    }
}

/// The functions of the module that have a body.
pub fn defined(module: &llvm::Module) -> impl Iterator<Item = Value> {
    module.functions().into_iter().filter(|function| !function.is_declaration())
}

fn wanted(function: Value) -> bool {
    function.linkage() != LLVMLinkage::LLVMAvailableExternallyLinkage
        && !function.has_function_attribute("naked")
        && !function.has_function_attribute("disable_sanitizer_instrumentation")
        && !function.name().starts_with("__foretell_")
}

/// A variable that reports should name. Thread-locals have no one address.
fn is_variable(module: &llvm::Module, global: Value) -> bool {
    !global.is_declaration()
        && !global.is_constant_global()
        && !module.is_thread_local(global)
        && global.linkage() != LLVMLinkage::LLVMAvailableExternallyLinkage
        && !global.name().starts_with("llvm.")
        && !global.name().is_empty()
}

/// The instruction's place in the source. An instruction that the optimiser made from several has
/// none; it gets that of its nearest neighbour in the block.
fn nearest_location(instruction: Value) -> Location {
    let own = instruction.location();
    if own.line != 0 {
        return own;
    }
    let before = std::iter::successors(instruction.previous(), |i| i.previous());
    let after = std::iter::successors(instruction.next(), |i| i.next());
    before.chain(after).map(Value::location).find(|location| location.line != 0).unwrap_or(own)
}

/// What recurs at a site.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Recurring {
    /// A read of this shape, see [`shape`]; whether the address has a shadow.
    Read(u32, bool),
    /// A write of this shape; whether there are shadows.
    Write(u32, bool),
    /// A branch with this outcome.
    Branch(bool),
}

/// Size and order of an access.
pub fn shape(info: u32) -> u32 {
    AccessInfo(info).size() | AccessInfo(info).order_code() << 8
}

/// What all functions of a module share.
pub struct ModuleContext {
    /// Inserts instructions.
    pub builder: Builder,
    /// The module.
    pub module: llvm::Module,
    /// What is reported.
    pub mode: Mode,
    strings: HashMap<String, Value>,
    sites: HashMap<(String, String, u32, u32), Value>,
    met: HashMap<(Value, Recurring), Value>,
    demangled: HashMap<String, String>,
    /// Accesses that are the business of a library whose calls are told of.
    pub hidden: HashSet<Value>,
    /// Functions that leave nothing behind (`polled`).
    pub looking: HashSet<Value>,
    /// Comparisons with what a clock shows.
    pub clocks: HashSet<Value>,
    /// It was written in Rust.
    pub is_rust: bool,
}

impl ModuleContext {
    /// Calls the runtime's hook at the builder's place.
    pub fn hook(&self, hook: Hook, arguments: &[Value]) -> Value {
        let given = arguments.iter().map(|argument| argument.ty());
        let wanted = hook.arguments().iter().map(|&scalar| self.module.scalar(scalar));
        assert!(given.eq(wanted), "arguments of {}", hook.symbol());
        self.builder.call(self.module.hook(hook), arguments)
    }

    /// The site of an instruction in the function.
    pub fn site(&mut self, instruction: Value, function: Value) -> Value {
        self.site_at(nearest_location(instruction), function)
    }

    /// What the runtime tells of what recurs at a site, a `foretell_abi::Met`.
    pub fn met(&mut self, site: Value, what: Recurring) -> Value {
        let module = self.module;
        *self.met.entry((site, what)).or_insert_with(|| {
            let members = [module.constant64(NEVER), module.constant64(0)];
            module.add_variable(module.constant_struct(&members), "foretell.met")
        })
    }

    /// The site where a function is declared.
    pub fn function_site(&mut self, function: Value) -> Value {
        let location = function.function_location();
        self.site_at(location, function)
    }

    fn site_at(&mut self, location: Location, function: Value) -> Value {
        let name = if location.name.is_empty() { function.name() } else { location.name };
        let file = if location.file.is_empty() { "?".to_owned() } else { location.file };
        let key = (file, name, location.line, location.column);
        if let Some(site) = self.sites.get(&key) {
            return *site;
        }
        let function_name = self.demangle(&key.1);
        let members = [
            self.string(&key.0),
            self.string(&function_name),
            self.module.constant32(key.2),
            self.module.constant32(key.3),
        ];
        let contents = self.module.constant_struct(&members);
        let site = self.module.add_constant(contents, "foretell.site");
        self.sites.insert(key, site);
        site
    }

    /// A constant `foretell_abi::Described` of so many bytes.
    pub fn described(&mut self, description: &llvm::Description, size: u64) -> Value {
        let function = match description.function.is_empty() {
            true => String::new(),
            false => self.demangle(&description.function),
        };
        let members = [
            self.string(&description.name),
            self.string(&function),
            self.string(&description.layout),
            self.module.constant64(size),
        ];
        let contents = self.module.constant_struct(&members);
        self.module.add_constant(contents, "foretell.described")
    }

    fn demangle(&mut self, name: &str) -> String {
        let readable = || {
            let full = llvm::demangle(name);
            rust_names::shortened(&full).unwrap_or(full)
        };
        self.demangled.entry(name.to_owned()).or_insert_with(readable).clone()
    }

    /// A constant text.
    pub fn string(&mut self, text: &str) -> Value {
        if let Some(value) = self.strings.get(text) {
            return *value;
        }
        let contents = self.module.constant_string(text);
        let value = self.module.add_constant(contents, "foretell.string");
        self.strings.insert(text.to_owned(), value);
        value
    }

    fn table(&self, entries: &[Value], name: &str) -> Value {
        match entries.first() {
            Some(first) => {
                let contents = self.module.constant_array(first.ty(), entries);
                self.module.add_constant(contents, name)
            }
            None => self.module.null(),
        }
    }

    fn register(&mut self, globals: &[Value], quiet: &[Value]) {
        let table: Vec<Value> = globals.iter().map(|g| self.global_entry(*g)).collect();
        let entries = self.table(&table, "foretell.globals");
        let handlers = self.table(quiet, "foretell.quiet");
        let name = self.module.source_name();
        let mut flags = if self.mode == Mode::Symbolic { MODULE_SYMBOLIC } else { 0 };
        if self.is_rust {
            flags |= MODULE_RUST;
        }
        let members = [
            self.module.constant32(ABI_VERSION),
            self.module.constant32(flags),
            self.string(&name),
            entries,
            self.module.constant64(table.len() as u64),
            handlers,
            self.module.constant64(quiet.len() as u64),
        ];
        let contents = self.module.constant_struct(&members);
        let description = self.module.add_constant(contents, "foretell.module");
        let hook = self.module.hook(Hook::Module);
        self.module.add_constructor(CONSTRUCTOR, hook, description, CONSTRUCTOR_PRIORITY);
    }

    fn global_entry(&mut self, global: Value) -> Value {
        let location = global.global_location();
        // A mangled name says where a variable of C++ belongs; in C the source's name is the better
        // one, since a static variable of a function has a symbol of its own.
        let symbol = global.name();
        let name = if symbol.starts_with("_Z") || location.name.is_empty() {
            self.demangle(&symbol)
        } else {
            self.demangle(&location.name)
        };
        let file = if location.file.is_empty() { "?" } else { &location.file };
        let size = self.module.stride(self.module.contents_type(global));
        let layout = if self.is_rust { String::new() } else { global.global_layout() };
        let members = [
            global,
            self.module.constant64(size),
            self.string(&name),
            self.string(file),
            self.module.constant32(location.line),
            self.module.constant32(0),
            self.string(&layout),
        ];
        self.module.constant_struct(&members)
    }
}
