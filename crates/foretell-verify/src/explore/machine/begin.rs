//! The state in which a program begins: globals with their values, `main` with its arguments.

use std::sync::Arc;

use super::{Machine, Step, Stop};
use crate::certificate::Assumption;
use crate::explore::memory::{Base, Object, Pointer, Value};
use crate::explore::state::{State, Status, Thread};
use crate::ir::{Constant, Place, Type};

impl<'m> Machine<'m> {
    /// The state in which `main` begins.
    pub fn first(&self) -> Step<State> {
        let refuse = |what: String| Stop::Refused(Place::default(), what);
        let mut globals = Vec::new();
        for global in &self.module.globals {
            let size = match (global.content.size(), &global.initial) {
                (Some(size), _) => size,
                (None, None) => 0,
                (None, Some(_)) => {
                    let shown = global.content.show();
                    return Err(refuse(format!(
                        "the variable {}: {shown} has no size",
                        global.name
                    )));
                }
            };
            let mut object = Object::undefined(size as usize);
            object.padding = global.padding.clone();
            // what `__FILE__` says depends on how the file is compiled: nobody knows it
            let is_file = self.file_names.contains(&(globals.len() as u32));
            if let Some(initial) = global.initial.as_ref().filter(|_| !is_file) {
                self.initialise(&mut object, 0, &global.content, initial)
                    .map_err(|why| refuse(format!("the variable {}: {why}", global.name)))?;
            }
            object.constant = global.constant;
            object.align = global.align as u32;
            object.plain = global.content.is_declared();
            globals.push(Arc::new(object));
        }
        let Some(main) = self.module.function("main") else {
            return Err(refuse("there is no main".into()));
        };
        let function = self.function(main);
        if !function.is_defined() || function.variadic {
            return Err(refuse("there is no main".into()));
        }
        // a command line of the program's name only; what the name is, is not known
        let (mut arguments, mut heap) = (Vec::new(), Vec::new());
        let kinds: Vec<&Type> = function.parameters.iter().map(|p| &p.kind).collect();
        match kinds[..] {
            [] => {}
            [Type::Integer(32)] | [Type::Integer(32), Type::Pointer] => {
                let mut words = Object::undefined(16);
                words.store(0, 8, &Value::Pointer(Pointer::to(Base::Heap(1))));
                words.store(8, 8, &Value::Integer(0));
                heap = vec![Some(Arc::new(words)), Some(Arc::new(Object::undefined(1)))];
                arguments = vec![Value::Integer(1), Value::Pointer(Pointer::to(Base::Heap(0)))];
                self.assumed.borrow_mut().insert(Assumption::NoArguments);
            }
            _ => return Err(refuse("a main with parameters other than argc and argv".into())),
        }
        let mut state = State {
            globals,
            heap,
            keys: 0,
            deleted_keys: 0,
            threads: Vec::new(),
            alone: None,
            inputs: 0,
            path: [].into(),
        };
        let frame = self.frame(main, &arguments, None);
        let own = self.own(&state);
        let main = Thread {
            frames: vec![frame],
            status: Status::Runs,
            detached: false,
            own,
            specific: Vec::new(),
        };
        state.threads.push(Some(Arc::new(main)));
        self.unseen(&mut state, 0)?;
        Ok(state)
    }

    /// The first values of a thread's copies of thread-local variables.
    pub(super) fn own(&self, state: &State) -> Vec<Object> {
        let all = self.module.globals.iter().zip(&state.globals);
        all.filter(|(global, _)| global.thread_local).map(|(_, first)| (**first).clone()).collect()
    }

    fn initialise(
        &self,
        object: &mut Object,
        at: usize,
        kind: &Type,
        constant: &Constant,
    ) -> Result<(), String> {
        let size = kind.size().ok_or_else(|| format!("{} has no size", kind.show()))? as usize;
        if at + size > object.size() {
            return Err("its first value is too long".into());
        }
        match (constant, kind) {
            (Constant::Zero, _) => object.fill(at, size, 0),
            (Constant::Undefined, _) => {}
            (Constant::Bytes(bytes), Type::Array(..)) => {
                for (place, byte) in bytes.iter().enumerate().take(size) {
                    object.store(at + place, 1, &Value::Integer((*byte).into()));
                }
            }
            (Constant::Aggregate(parts), Type::Array(_, element)) => {
                let stride = element.size().ok_or("an element without a size")? as usize;
                for (place, (kind, part)) in parts.iter().enumerate() {
                    self.initialise(object, at + place * stride, kind, part)?;
                }
            }
            (Constant::Aggregate(parts), Type::Struct(fields)) => {
                for (place, (kind, part)) in parts.iter().enumerate() {
                    let offset =
                        fields.offset(place).ok_or("a field that does not exist")? as usize;
                    self.initialise(object, at + offset, kind, part)?;
                }
            }
            (Constant::Refused(what), Type::Float { .. }) => {
                // nobody can look at it: values of this type are refused
                let _ = what;
            }
            _ => {
                let value = self.constant(constant, kind)?;
                object.store(at, size, &value);
            }
        }
        Ok(())
    }
}
