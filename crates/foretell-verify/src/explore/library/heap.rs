//! Memory that is allocated and freed.

use std::sync::Arc;

use super::Call;
use crate::certificate::Assumption;
use crate::explore::machine::{Kind, Step, Stop};
use crate::explore::memory::{Base, Object, Pointer, Value};
use crate::explore::state::State;
use crate::limits::LARGEST_ALLOCATION;

impl Call<'_, '_> {
    // ---- memory and output ----

    pub(super) fn allocate(&self, state: &mut State, name: &str) -> Step<Option<Value>> {
        let mut size = self.integer(state, 0)?;
        if name == "calloc" {
            size = size.saturating_mul(self.integer(state, 1)?);
        }
        if size == 0 || size > LARGEST_ALLOCATION.into() {
            return self.refuse(format!("an allocation of {size} bytes"));
        }
        self.assume(Assumption::MemoryIsAllocated);
        let mut object = Object::undefined(size as usize);
        if name == "calloc" {
            object.fill(0, size as usize, 0);
        }
        Ok(Some(self.new_memory(state, object)))
    }

    /// The old memory is no more, even where the C library would have left it in its place.
    pub(super) fn reallocate(&self, state: &mut State) -> Step<Option<Value>> {
        let old = self.pointer(state, 0)?;
        let size = self.integer(state, 1)?;
        if size == 0 || size > LARGEST_ALLOCATION.into() {
            return self.refuse(format!("an allocation of {size} bytes"));
        }
        self.assume(Assumption::MemoryIsAllocated);
        let mut object = Object::undefined(size as usize);
        match old {
            Pointer::NULL => {}
            Pointer { base: base @ Base::Heap(_), offset: 0 } => {
                if let Some(before) = state.object(base) {
                    if before.has_sync() {
                        return self.refuse("realloc of memory with a lock in it");
                    }
                    object.paste(0, &before.slice(0, before.size().min(size as usize)));
                }
                self.free(state)?;
            }
            // what free says of it
            _ => return self.free(state),
        }
        Ok(Some(self.new_memory(state, object)))
    }

    fn new_memory(&self, state: &mut State, object: Object) -> Value {
        let object = Some(Arc::new(object));
        let free = state.heap.iter().position(Option::is_none);
        let at = free.unwrap_or(state.heap.len());
        match free {
            Some(at) => state.heap[at] = object,
            None => state.heap.push(object),
        }
        Value::Pointer(Pointer::to(Base::Heap(at as u32)))
    }

    pub(super) fn free(&self, state: &mut State) -> Step<Option<Value>> {
        match self.pointer(state, 0)? {
            Pointer::NULL => {}
            Pointer { base: Base::Heap(id), offset: 0 } => {
                if let Some(object) = &state.heap[id as usize] {
                    self.machine.check_locks(object, self.place)?;
                }
                state.heap[id as usize] = None;
                state.forget(|base| *base == Base::Heap(id));
            }
            Pointer { base: Base::Ended, .. } => {
                let what = "free of memory that no longer exists";
                return Err(Stop::Violated(Kind::Free(what), self.place));
            }
            _ => {
                let what = "free of memory that malloc did not return";
                return Err(Stop::Violated(Kind::Free(what), self.place));
            }
        }
        Ok(Some(Value::Undefined))
    }
}
