//! Every feasible interleaving, one by one: the oracle that all cleverer algorithms are tested
//! against, and exact for small traces.
//!
//! Free inputs (initial values, the choice of a signal, transition predicates) are tried from a
//! finite domain each: all values of a Boolean or a narrow bit-vector, or what
//! [`Interleavings::domain`] was given. What the domains leave out is missed.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::ops::ControlFlow;

use foretell_trace::{EventId, ScalarSort, Sort, ThreadId, Value, VariableId};

use crate::ctp::{Action, ConcurrentTraceProgram};
use crate::validate::{Configuration, Interpreter, Witness};

/// Bit-vectors up to this width are enumerated.
const MAX_WIDTH: u16 = 4;

/// An input has too many values to try them all, and no domain was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnboundedInput {
    /// The variable.
    pub variable: VariableId,
}

impl std::fmt::Display for UnboundedInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "variable {:?} has too many values to try them all", self.variable)
    }
}

impl std::error::Error for UnboundedInput {}

/// All feasible linearizations and prefixes of a CTP.
#[derive(Clone, Debug)]
pub struct Interleavings<'c> {
    interpreter: Interpreter<'c>,
    domains: HashMap<VariableId, Vec<Value>>,
}

/// A feasible prefix.
#[derive(Debug)]
pub struct Prefix<'p> {
    /// The events and inputs so far.
    pub witness: &'p Witness,
    /// Where it leads.
    pub at: &'p Configuration,
    /// The last event is an assertion that does not hold.
    pub violation: bool,
    /// All events have taken place.
    pub complete: bool,
}

impl<'c> Interleavings<'c> {
    /// Of this CTP.
    pub fn new(ctp: &'c ConcurrentTraceProgram) -> Self {
        Self { interpreter: Interpreter::new(ctp), domains: HashMap::new() }
    }

    /// The interpreter, to ask about configurations.
    pub fn interpreter(&self) -> &Interpreter<'c> {
        &self.interpreter
    }

    /// The values to try for an input variable, or for a variable that transitions change.
    pub fn domain(mut self, variable: VariableId, values: Vec<Value>) -> Self {
        self.domains.insert(variable, values);
        self
    }

    /// Visits every feasible prefix, the empty one first, in depth-first order. One that is
    /// reached by several inputs is visited for each.
    pub fn visit(
        &self,
        visitor: &mut impl FnMut(&Prefix) -> ControlFlow<()>,
    ) -> Result<(), UnboundedInput> {
        for (mut witness, start) in self.starts()? {
            let seen = Prefix {
                witness: &witness,
                at: &start,
                violation: false,
                complete: self.interpreter.is_complete(&start),
            };
            if visitor(&seen).is_break() || self.descend(&start, &mut witness, visitor)?.is_break()
            {
                break;
            }
        }
        Ok(())
    }

    /// Depth is bounded by the number of events, which is small where this is used.
    fn descend(
        &self,
        at: &Configuration,
        witness: &mut Witness,
        visitor: &mut impl FnMut(&Prefix) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, UnboundedInput> {
        for successor in self.successors(at)? {
            witness.order.push(successor.event);
            let choices = witness.choices.len();
            witness.choices.extend(successor.chosen(successor.event));
            let seen = Prefix {
                witness,
                at: &successor.at,
                violation: successor.violation,
                complete: self.interpreter.is_complete(&successor.at),
            };
            let flow = match visitor(&seen) {
                ControlFlow::Break(()) => ControlFlow::Break(()),
                ControlFlow::Continue(()) => self.descend(&successor.at, witness, visitor)?,
            };
            witness.order.pop();
            witness.choices.truncate(choices);
            if flow.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// A feasible prefix whose last configuration satisfies the predicate. Configurations that
    /// were met before are not followed again.
    pub fn reach(
        &self,
        mut goal: impl FnMut(&Configuration) -> bool,
    ) -> Result<Option<Witness>, UnboundedInput> {
        self.search((), |(), _, _| (), |(), at| goal(at))
    }

    /// A feasible prefix that a monitor accepts. The monitor's state starts with `first`; `step`
    /// makes the next one from an event and the configuration it led to; `accept` tells when it is
    /// enough. Pairs of configuration and monitor state that were met before are not followed
    /// again, so the cost is that of the state space, not of the interleavings.
    pub fn search<M: Clone + Eq + Hash>(
        &self,
        first: M,
        mut step: impl FnMut(&M, EventId, &Configuration) -> M,
        mut accept: impl FnMut(&M, &Configuration) -> bool,
    ) -> Result<Option<Witness>, UnboundedInput> {
        for (witness, start) in self.starts()? {
            let mut met: HashSet<(Configuration, M)> = HashSet::new();
            // A prefix is a chain of nodes that lead back to the start.
            let mut nodes: Vec<Node> = Vec::new();
            let mut stack = vec![(start, first.clone(), usize::MAX)];
            while let Some((at, monitor, node)) = stack.pop() {
                if accept(&monitor, &at) {
                    return Ok(Some(trace_back(&nodes, node, witness)));
                }
                if !met.insert((at.clone(), monitor.clone())) {
                    continue;
                }
                for successor in self.successors(&at)? {
                    let event = successor.event;
                    let monitor = step(&monitor, event, &successor.at);
                    let choices = successor.chosen(event).collect();
                    nodes.push(Node { event, choices, parent: node });
                    stack.push((successor.at, monitor, nodes.len() - 1));
                }
            }
        }
        Ok(None)
    }

    /// The inputs that the precondition allows, with the configurations they start.
    fn starts(&self) -> Result<Vec<(Witness, Configuration)>, UnboundedInput> {
        let free = self.interpreter.ctp().variables.iter().enumerate();
        let free: Vec<VariableId> = free
            .filter(|(_, variable)| variable.initial.is_none())
            .map(|(index, _)| VariableId::from(index))
            .collect();
        let inputs = self.combinations(&free)?;
        Ok(inputs
            .into_iter()
            .filter_map(|initial| {
                let start = self.interpreter.start(&initial).ok()?;
                Some((Witness { initial, ..Witness::default() }, start))
            })
            .collect())
    }

    fn successors(&self, at: &Configuration) -> Result<Vec<Successor>, UnboundedInput> {
        let ctp = self.interpreter.ctp();
        let mut successors = Vec::new();
        for thread in 0..ctp.threads.len() {
            let Some(event) = self.interpreter.next_event(at, ThreadId::from(thread)) else {
                continue;
            };
            let choices = match &ctp.event(event).action {
                Action::Transition { changed, .. } => self.combinations(changed)?,
                _ => vec![Vec::new()],
            };
            for choices in choices {
                let mut next = at.clone();
                if let Ok(effect) = self.interpreter.step(&mut next, event, &choices) {
                    let violation = effect.violation;
                    successors.push(Successor { event, at: next, choices, violation });
                }
            }
        }
        Ok(successors)
    }

    fn combinations(
        &self,
        variables: &[VariableId],
    ) -> Result<Vec<Vec<(VariableId, Value)>>, UnboundedInput> {
        let mut all = vec![Vec::new()];
        for &variable in variables {
            let values = self.values(variable)?;
            all = all
                .iter()
                .flat_map(|start| {
                    values.iter().map(|value| {
                        let mut longer = start.clone();
                        longer.push((variable, value.clone()));
                        longer
                    })
                })
                .collect();
        }
        Ok(all)
    }

    fn values(&self, variable: VariableId) -> Result<Vec<Value>, UnboundedInput> {
        if let Some(values) = self.domains.get(&variable) {
            return Ok(values.clone());
        }
        match self.interpreter.ctp().variables[variable.index()].sort {
            Sort::BOOL => Ok(vec![Value::Bool(false), Value::Bool(true)]),
            Sort::Scalar(ScalarSort::BitVec(width)) if width <= MAX_WIDTH => {
                Ok((0..1 << width).map(|bits| Value::bit_vec(width, bits)).collect())
            }
            _ => Err(UnboundedInput { variable }),
        }
    }
}

struct Successor {
    event: EventId,
    at: Configuration,
    choices: Vec<(VariableId, Value)>,
    violation: bool,
}

impl Successor {
    fn chosen(&self, event: EventId) -> impl Iterator<Item = (EventId, VariableId, Value)> {
        self.choices.iter().map(move |(variable, value)| (event, *variable, value.clone()))
    }
}

struct Node {
    event: EventId,
    choices: Vec<(EventId, VariableId, Value)>,
    parent: usize,
}

fn trace_back(nodes: &[Node], mut node: usize, mut witness: Witness) -> Witness {
    while let Some(step) = nodes.get(node) {
        witness.order.push(step.event);
        witness.choices.extend(step.choices.iter().cloned());
        node = step.parent;
    }
    witness.order.reverse();
    witness
}
