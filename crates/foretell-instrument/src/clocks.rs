//! Comparisons with what a clock shows.
//!
//! A clock is an input: it shows the same in every run of a schedule, and another interleaving may show another time.
//! That matters where the program compares it. What a clock gives is followed through the module: arithmetic, local
//! and global variables, arguments and results of functions that are called by name.
//!
//! Comparisons with the numbers by which seconds are made of nanoseconds do not count: both ways lead to the same time.
//! Not followed: what is stored through a pointer that was loaded, or handed to a function of another module.

use crate::library;
use crate::llvm::{Opcode, Value};
use std::collections::HashSet;

/// Functions whose result is a time.
const GIVE: &[&str] = &[
    "_ZNSt6chrono3_V212steady_clock3nowEv",
    "_ZNSt6chrono3_V212system_clock3nowEv",
    "clock",
    "time",
    "times",
];
/// Functions that write a time to where an argument points, with the argument's position.
const WRITE: &[(&str, u32)] =
    &[("clock_gettime", 1), ("gettimeofday", 0), ("time", 0), ("timespec_get", 0)];
/// Functions that compute a time of times.
const COMPUTE: &[&str] = &["difftime", "floor", "ceil", "round", "fabs", "labs", "llabs", "mktime"];
/// To compare with these is how a time is brought into its form.
const OF_THE_FORM: &[i64] = &[0, 1, -1, 999, 1_000, 999_999, 1_000_000, 999_999_999, 1_000_000_000];

/// The comparisons in these functions that depend on a clock.
pub fn compared(functions: &[Value]) -> HashSet<Value> {
    let mut found = Compared::default();
    for function in functions.iter().filter(|function| !function.is_of_library()) {
        for block in function.reachable_blocks() {
            for instruction in block.instructions() {
                found.begin(instruction);
            }
        }
    }
    while let Some(times) = found.open.pop() {
        match times {
            Times::Value(value) => {
                value.users().into_iter().for_each(|user| found.used(value, user))
            }
            Times::Memory(address) => {
                address.users().into_iter().for_each(|user| found.accessed(address, user));
                found.handed_by_callers(address);
            }
        }
    }
    found.comparisons
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Times {
    /// A value that is a time.
    Value(Value),
    /// The address of memory in which there is one.
    Memory(Value),
}

#[derive(Default)]
struct Compared {
    comparisons: HashSet<Value>,
    known: HashSet<Times>,
    open: Vec<Times>,
}

impl Compared {
    fn add(&mut self, times: Times) {
        if self.known.insert(times) {
            self.open.push(times);
        }
    }

    fn begin(&mut self, call: Value) {
        let Some(callee) = called(call) else { return };
        let name = callee.name();
        if !callee.is_declaration() {
            return;
        }
        if GIVE.contains(&name.as_str()) {
            self.add(Times::Value(call));
        }
        for (function, position) in WRITE {
            if *function == name && *position < call.argument_count() {
                self.add_memory(call.operand(*position));
            }
        }
    }

    /// Memory: the whole variable has a time if a part of it has.
    fn add_memory(&mut self, address: Value) {
        let mut address = address;
        while address.instruction_opcode() == Some(Opcode::LLVMGetElementPtr)
            || address.constant_expression_opcode() == Some(Opcode::LLVMGetElementPtr)
        {
            address = address.operand(0);
        }
        let is_variable = match address.instruction_opcode() {
            Some(Opcode::LLVMAlloca) | None => !address.is_null(),
            // Without optimisation every pointer is kept in a variable.
            Some(Opcode::LLVMLoad) => {
                for pointer in stored_in(address.operand(0)) {
                    if pointer.instruction_opcode() != Some(Opcode::LLVMLoad) {
                        self.add_memory(pointer);
                    }
                }
                false
            }
            _ => false,
        };
        if is_variable {
            self.add(Times::Memory(address));
        }
    }

    fn used(&mut self, value: Value, user: Value) {
        use Opcode::*;
        let Some(opcode) = user.instruction_opcode() else { return };
        match opcode {
            LLVMICmp | LLVMFCmp => {
                let other = user.operands().find(|operand| *operand != value);
                let is_form = other.and_then(Value::constant_integer);
                if !is_form.is_some_and(|number| OF_THE_FORM.contains(&number)) {
                    self.comparisons.insert(user);
                }
            }
            LLVMSwitch => {
                self.comparisons.insert(user);
            }
            LLVMStore if user.operand(0) == value => self.add_memory(user.operand(1)),
            LLVMRet => self.returned(user.block().function()),
            LLVMCall | LLVMInvoke => self.handed(value, user),
            LLVMSelect if user.operand(0) == value => {}
            LLVMStore | LLVMLoad | LLVMGetElementPtr | LLVMBr => {}
            _ => self.add(Times::Value(user)),
        }
    }

    fn accessed(&mut self, address: Value, user: Value) {
        use Opcode::*;
        let by_constant = user.constant_expression_opcode() == Some(LLVMGetElementPtr);
        match user.instruction_opcode() {
            Some(LLVMLoad) => self.add(Times::Value(user)),
            Some(LLVMGetElementPtr) => self.add(Times::Memory(user)),
            Some(LLVMStore) if user.operand(0) == address && is_local(user.operand(1)) => {
                user.operand(1).loads().for_each(|load| self.add(Times::Memory(load)));
            }
            None if by_constant => self.add(Times::Memory(user)),
            Some(LLVMCall | LLVMInvoke) => {
                let copies = user.intrinsic().is_some_and(|name| name.starts_with("mem"));
                if copies && user.operand(1) == address {
                    self.add_memory(user.operand(0));
                }
                for parameter in parameters_for(address, user) {
                    self.add(Times::Memory(parameter));
                }
            }
            _ => {}
        }
    }

    /// If the address is a parameter: there is a time in what callers hand over.
    fn handed_by_callers(&mut self, address: Value) {
        let Some(function) = address.parameter_of() else { return };
        for call in calls_of(function) {
            let parameters = function.parameters().into_iter().zip(0..call.argument_count());
            for (_, position) in parameters.filter(|(parameter, _)| *parameter == address) {
                self.add_memory(call.operand(position));
            }
        }
    }

    fn handed(&mut self, value: Value, call: Value) {
        let name = called(call).map(Value::name).unwrap_or_default();
        if call.intrinsic().is_some_and(|name| !library::is_ignored(&name))
            || COMPUTE.contains(&name.as_str())
        {
            self.add(Times::Value(call));
        }
        for parameter in parameters_for(value, call) {
            self.add(Times::Value(parameter));
        }
    }

    fn returned(&mut self, function: Value) {
        for call in calls_of(function) {
            self.add(Times::Value(call));
        }
    }
}

/// The function that a call names.
fn called(call: Value) -> Option<Value> {
    let is_call = matches!(call.instruction_opcode(), Some(Opcode::LLVMCall | Opcode::LLVMInvoke));
    is_call.then(|| call.callee().as_function()).flatten()
}

fn is_local(variable: Value) -> bool {
    variable.instruction_opcode() == Some(Opcode::LLVMAlloca)
}

/// What is stored in a local variable.
fn stored_in(variable: Value) -> Vec<Value> {
    let users = if is_local(variable) { variable.users() } else { Vec::new() };
    let stores = users.into_iter().filter(|user| {
        user.instruction_opcode() == Some(Opcode::LLVMStore) && user.operand(1) == variable
    });
    stores.map(|store| store.operand(0)).collect()
}

fn calls_of(function: Value) -> Vec<Value> {
    let mut users = function.users();
    users.retain(|user| called(*user) == Some(function));
    users
}

/// The parameters of a function with a body that are this value in a call.
fn parameters_for(value: Value, call: Value) -> Vec<Value> {
    let callee = called(call).filter(|callee| !callee.is_declaration());
    let parameters = callee.map(Value::parameters).unwrap_or_default();
    let given = (0..call.argument_count()).map(|position| call.operand(position));
    parameters.into_iter().zip(given).filter(|(_, given)| *given == value).map(|it| it.0).collect()
}
