//! Every interleaving of a small trace, run by the independent interpreter.

use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_model::validate::{Configuration, Interpreter};
use foretell_trace::{EventId, Value, VariableId};

/// What one interleaving does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// An assertion fails.
    Bad,
    /// All events take place.
    Good,
    /// A guard does not hold.
    Infeasible,
}

/// Calls `visit` with every interleaving (the place of each CTP event) and its class; false when
/// there are more than `limit`. All inputs must be fixed.
pub fn interleavings(
    ctp: &ConcurrentTraceProgram,
    limit: usize,
    visit: &mut dyn FnMut(&[usize], Class),
) -> bool {
    let interpreter = Interpreter::new(ctp);
    let start = interpreter.start(&free_inputs(ctp)).expect("inputs satisfy the precondition");
    let mut search =
        Search { ctp, interpreter: &interpreter, place: Vec::new(), left: limit, visit };
    search.place = vec![usize::MAX; ctp.events.len()];
    search.descend(&mut vec![0; ctp.threads.len()], 0, Some(start), Class::Good)
}

/// Variables that start with any value start with zero.
pub fn free_inputs(ctp: &ConcurrentTraceProgram) -> Vec<(VariableId, Value)> {
    ctp.variables
        .iter()
        .enumerate()
        .filter(|(_, variable)| variable.initial.is_none())
        .map(|(number, variable)| (VariableId::from(number), Value::zero(variable.sort)))
        .collect()
}

/// The program with those inputs.
pub fn closed(mut ctp: ConcurrentTraceProgram) -> ConcurrentTraceProgram {
    for (variable, value) in free_inputs(&ctp) {
        ctp.variables[variable.index()].initial = Some(value);
    }
    ctp
}

struct Search<'a> {
    ctp: &'a ConcurrentTraceProgram,
    interpreter: &'a Interpreter<'a>,
    place: Vec<usize>,
    left: usize,
    visit: &'a mut dyn FnMut(&[usize], Class),
}

impl Search<'_> {
    fn descend(
        &mut self,
        next: &mut Vec<usize>,
        depth: usize,
        state: Option<Configuration>,
        class: Class,
    ) -> bool {
        if depth == self.ctp.events.len() {
            if self.left == 0 {
                return false;
            }
            self.left -= 1;
            (self.visit)(&self.place, class);
            return true;
        }
        let inside = |event: EventId, this: &Self| {
            this.ctp.atomic_sections.iter().any(|&(first, last)| {
                let event = this.ctp.event(event);
                let (first, last) = (this.ctp.event(first), this.ctp.event(last));
                event.thread == first.thread
                    && (first.position + 1..=last.position).contains(&event.position)
            })
        };
        // a thread inside a section goes on alone
        let threads: Vec<usize> = (0..next.len())
            .filter(|&thread| next[thread] < self.ctp.threads[thread].len())
            .collect();
        let bound = threads
            .iter()
            .copied()
            .find(|&thread| inside(self.ctp.threads[thread][next[thread]], self));
        for thread in bound.map_or(threads, |thread| vec![thread]) {
            let event = self.ctp.threads[thread][next[thread]];
            let early =
                self.ctp.orders.iter().any(|&(before, after)| {
                    after == event && self.place[before.index()] == usize::MAX
                });
            if early {
                continue;
            }
            let mut state = state.clone();
            let mut class = class;
            if let Some(configuration) = &mut state {
                match self.interpreter.step(configuration, event, &[]) {
                    Ok(effect) if effect.violation => (state, class) = (None, Class::Bad),
                    Ok(_) => {}
                    Err(_) => (state, class) = (None, Class::Infeasible),
                }
            }
            self.place[event.index()] = depth;
            next[thread] += 1;
            let going = self.descend(next, depth + 1, state, class);
            next[thread] -= 1;
            self.place[event.index()] = usize::MAX;
            if !going {
                return false;
            }
        }
        true
    }
}
