//! Accesses of memory: guards on addresses and values, and what is assigned.

use std::collections::HashMap;

use foretell_trace::{
    Access, EventId, ReadModifyWrite, Scope, Sort, Term, TermId, Value, VariableId,
};

use super::error::BuildError;
use super::{Step, Translator};
use crate::ctp::{CtpVariable, Role};
use crate::layout::token;

impl<'t> Translator<'t> {
    pub(super) fn read(
        &mut self,
        step: &mut Step,
        origin: EventId,
        access: &Access,
    ) -> Result<(), BuildError> {
        self.check_scope(origin, access.variable)?;
        self.pin_address(step, origin, access.variable, access.address)?;
        if self.layout.holds_tokens(access.variable) {
            self.demand_tokens(step, access.variable)?;
            return Ok(());
        }
        let value = self.place(access.variable, false);
        if !self.trace.metadata.symbolic {
            self.demand_value(step, origin, value, access.value)?;
        }
        self.name_read(step, origin, value);
        Ok(())
    }

    pub(super) fn write(
        &mut self,
        step: &mut Step,
        origin: EventId,
        access: &Access,
    ) -> Result<(), BuildError> {
        self.pin_address(step, origin, access.variable, access.address)?;
        if self.layout.holds_tokens(access.variable) {
            return self.assign_token(step, origin, access.variable);
        }
        let value = self.written(origin, access.variable, access.value, access.term)?;
        self.assign(step, origin, access.variable, value)
    }

    pub(super) fn read_modify_write(
        &mut self,
        step: &mut Step,
        origin: EventId,
        rmw: &ReadModifyWrite,
    ) -> Result<(), BuildError> {
        self.pin_address(step, origin, rmw.variable, rmw.address)?;
        if self.layout.holds_tokens(rmw.variable) {
            self.demand_tokens(step, rmw.variable)?;
            return self.assign_token(step, origin, rmw.variable);
        }
        let old = self.place(rmw.variable, false);
        if !self.trace.metadata.symbolic {
            self.demand_value(step, origin, old, rmw.old)?;
        }
        let result = self.name_read(step, origin, old);
        let new = self.written(origin, rmw.variable, rmw.new, rmw.term)?;
        // In this step the result is what the location holds; its own name is set by the step.
        let new = self.terms.substitute(new, &mut HashMap::new(), &mut |_, leaf| {
            (*leaf == Term::Variable(result)).then_some(old)
        });
        self.assign(step, origin, rmw.variable, new)
    }

    /// The new local variable that names the result of a read.
    fn name_read(&mut self, step: &mut Step, origin: EventId, value: TermId) -> VariableId {
        let event = self.trace.event(origin);
        let thread = &self.trace.threads[event.thread.index()].name;
        let variable = VariableId::from(self.variables.len());
        self.variables.push(CtpVariable {
            name: format!("{thread}#{}", event.index).into(),
            sort: self.terms.sort(value),
            scope: Scope::Local(event.thread),
            initial: Some(Value::zero(self.terms.sort(value))),
            role: Role::ReadValue,
        });
        self.read_values.insert((event.thread, event.index), variable);
        step.assignments.push((variable, value));
        variable
    }

    fn demand_value(
        &mut self,
        step: &mut Step,
        origin: EventId,
        value: TermId,
        recorded: Option<u64>,
    ) -> Result<(), BuildError> {
        let recorded = recorded
            .and_then(|bits| Value::from_bits(self.terms.sort(value), bits))
            .ok_or(BuildError::MissingValue { event: origin })?;
        let recorded = self.terms.constant(recorded);
        step.guards.push(self.equal(value, recorded));
        Ok(())
    }

    fn written(
        &mut self,
        origin: EventId,
        variable: VariableId,
        recorded: Option<u64>,
        term: Option<TermId>,
    ) -> Result<TermId, BuildError> {
        let sort = self.trace.variables[variable.index()].sort;
        match (term, recorded) {
            (Some(term), None) => self.import_sorted(term, origin, sort),
            (Some(term), Some(_)) if self.trace.metadata.symbolic => {
                self.import_sorted(term, origin, sort)
            }
            (_, bits) => {
                let value = bits
                    .and_then(|bits| Value::from_bits(sort, bits))
                    .ok_or(BuildError::MissingValue { event: origin })?;
                Ok(self.terms.constant(value))
            }
        }
    }

    /// The read must see, in each cell, the write that it saw in the recorded run.
    fn demand_tokens(&mut self, step: &mut Step, variable: VariableId) -> Result<(), BuildError> {
        if !self.trace.metadata.observed_order {
            return Err(BuildError::NotObserved);
        }
        for cell in self.layout.cells(variable) {
            let seen = match self.tokens.get(&cell.variable) {
                Some(token) => token.clone(),
                None => self.variables[cell.variable.index()]
                    .initial
                    .clone()
                    .expect("tokens have an initial value"),
            };
            let seen = self.terms.constant(seen);
            let now = self.variable(cell.variable);
            step.guards.push(self.equal(now, seen));
        }
        Ok(())
    }

    fn assign_token(
        &mut self,
        step: &mut Step,
        origin: EventId,
        variable: VariableId,
    ) -> Result<(), BuildError> {
        self.check_scope(origin, variable)?;
        let token = token(origin);
        for cell in self.layout.cells(variable) {
            let value = self.terms.constant(token.clone());
            step.assignments.push((cell.variable, value));
            self.tokens.insert(cell.variable, token.clone());
        }
        Ok(())
    }

    /// A symbolic address must come out as recorded, or the step would be on another location.
    fn pin_address(
        &mut self,
        step: &mut Step,
        origin: EventId,
        variable: VariableId,
        address: Option<TermId>,
    ) -> Result<(), BuildError> {
        let Some(address) = address else { return Ok(()) };
        let memory = self.trace.variables[variable.index()]
            .memory
            .ok_or(BuildError::NoAddress { event: origin })?;
        let term = self.import(address, origin, Some(self.trace.event(origin).thread))?;
        let sort = self.terms.sort(term);
        let recorded = Value::from_bits(sort, memory.address)
            .filter(|_| sort != Sort::BOOL)
            .ok_or(BuildError::Sort { event: origin, expected: Sort::bit_vec(64), found: sort })?;
        let recorded = self.terms.constant(recorded);
        step.guards.push(self.equal(term, recorded));
        Ok(())
    }
}
