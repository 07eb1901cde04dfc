//! Concurrent static single assignment (004 section 4.1, 000 section 4.1): every variable is
//! defined once, and every use of a shared variable is a π-function over the definitions that it
//! may see.
//!
//! A π-function lists only what must-happens-before, locks and values leave possible:
//! - a definition that always comes after the use, or that another definition always hides, is
//!   dropped, and so is the initial value if some definition always comes first;
//! - where use and definition lie in sections of one lock that exclude each other, only the last
//!   definition of the section can be seen, and none if the use's own section has defined the
//!   variable before;
//! - a constant that the guard rejects is dropped (an acquire that can only read a release, a read
//!   that must return its recorded value);
//! - what is then certain is put in place: a use that can see one definition only has no π-function,
//!   one that can see one value only has that value for its name.
//!
//! A lock's own variables need no π-function where the lock is taken or held; the sections
//! ([`ConcurrentTraceProgram::sections`]) say all there is to say. What was assumed of the order is
//! in [`Cssa::edges`], and an encoder has to demand it.

use std::collections::{BTreeMap, HashMap, HashSet};

use foretell_trace::{
    EventId, LockMode, Operator, Scope, Term, TermId, TermStore, ThreadId, Value, VariableId,
};

use crate::ctp::{Action, ConcurrentTraceProgram, Role};
use crate::must_order::MustOrder;

/// A CTP in CSSA form. Leaves of its terms are symbols only.
#[derive(Clone, Debug)]
pub struct Cssa {
    /// Owns every term below.
    pub terms: TermStore,
    /// One entry for each event of the CTP.
    pub events: Vec<CssaEvent>,
    /// The π-functions, by event.
    pub pi_functions: Vec<PiFunction>,
    /// The initial value of each variable: a constant or a symbol.
    pub initial: Vec<TermId>,
    /// The symbols of values that transition predicates choose.
    pub choices: Vec<(EventId, VariableId, TermId)>,
    /// Pairs between threads that every interleaving keeps in this order; the π-functions rely on
    /// them.
    pub edges: Vec<(EventId, EventId)>,
    /// Holds of the initial values.
    pub precondition: Option<TermId>,
}

/// An event in CSSA form.
#[derive(Clone, Debug, PartialEq)]
pub struct CssaEvent {
    /// Must hold for the event to take place (for an assertion: that it has a value).
    pub guard: TermId,
    /// For an assertion: what it demands.
    pub assertion: Option<TermId>,
    /// Definitions: shared and local variables and their new values.
    pub definitions: Vec<(VariableId, TermId)>,
}

/// `symbol ← π(v₁, …, vₗ)` at `event` (000 Definition 3).
#[derive(Clone, Debug, PartialEq)]
pub struct PiFunction {
    /// The event that uses the variable.
    pub event: EventId,
    /// The shared variable.
    pub variable: VariableId,
    /// The name that the use has now; a constant if all choices have that value.
    pub symbol: TermId,
    /// The definitions it may see, pruned by must-happens-before, lock semantics and values.
    pub choices: Vec<PiChoice>,
    /// All other definitions of the variable that may come in between (choices included).
    pub interfering: Vec<EventId>,
    /// The π-function restricts the order even if nobody uses its symbol: the guard rejects what
    /// is not among the choices.
    pub required: bool,
}

/// One definition that a π-function may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PiChoice {
    /// The defining event; `None` is the initial value.
    pub definition: Option<EventId>,
    /// The value it gives.
    pub value: TermId,
}

impl Cssa {
    /// The CSSA form of a CTP. `order` is that of the trace the CTP was built from.
    pub fn build(ctp: &ConcurrentTraceProgram, order: &MustOrder) -> Self {
        let mut renaming = Renaming::new(ctp, order);
        for event in 0..ctp.events.len() {
            renaming.rename(EventId::from(event));
        }
        renaming.finish()
    }

    /// Which π-functions matter for the terms: those of the symbols in them and in the values of
    /// what these may see.
    pub fn live(&self, roots: impl IntoIterator<Item = TermId>) -> Vec<bool> {
        let of_symbol: HashMap<TermId, usize> =
            self.pi_functions.iter().enumerate().map(|(index, pi)| (pi.symbol, index)).collect();
        let mut live: Vec<bool> = self.pi_functions.iter().map(|pi| pi.required).collect();
        let required = self.pi_functions.iter().filter(|pi| pi.required);
        let mut stack: Vec<TermId> =
            required.flat_map(|pi| pi.choices.iter().map(|choice| choice.value)).collect();
        stack.extend(roots);
        let mut seen = HashSet::new();
        while let Some(term) = stack.pop() {
            if !seen.insert(term) {
                continue;
            }
            match self.terms.term(term) {
                Term::Apply(_, arguments) => stack.extend(arguments.iter().copied()),
                Term::Symbol(_) => {
                    if let Some(&index) = of_symbol.get(&term) {
                        live[index] = true;
                        let choices = &self.pi_functions[index].choices;
                        stack.extend(choices.iter().map(|choice| choice.value));
                    }
                }
                _ => {}
            }
        }
        live
    }
}

/// A section of a lock as seen from inside a thread.
#[derive(Clone, Copy)]
struct Held {
    section: usize,
    mode: LockMode,
}

struct Renaming<'c> {
    ctp: &'c ConcurrentTraceProgram,
    order: &'c MustOrder,
    cssa: Cssa,
    /// By shared variable and thread: the events that define it, in program order.
    definitions: HashMap<VariableId, BTreeMap<ThreadId, Vec<EventId>>>,
    /// The current name of each local variable, and of each shared variable's definitions.
    locals: HashMap<VariableId, TermId>,
    defined: HashMap<(EventId, VariableId), TermId>,
    /// By event: the sections it lies in (its own acquire and release included).
    held: Vec<Vec<Held>>,
    /// By thread: the indices that its events have in the trace.
    indices: Vec<Vec<u32>>,
}

impl<'c> Renaming<'c> {
    fn new(ctp: &'c ConcurrentTraceProgram, order: &'c MustOrder) -> Self {
        let mut terms = TermStore::default();
        let initial: Vec<TermId> = ctp
            .variables
            .iter()
            .map(|variable| match &variable.initial {
                Some(value) => terms.constant(value.clone()),
                None => terms.fresh_symbol(variable.name.clone(), variable.sort),
            })
            .collect();
        let mut definitions: HashMap<VariableId, BTreeMap<ThreadId, Vec<EventId>>> = HashMap::new();
        for chain in &ctp.threads {
            for &event in chain {
                for variable in ctp.event(event).action.defined() {
                    if ctp.variables[variable.index()].scope == Scope::Shared {
                        let threads = definitions.entry(variable).or_default();
                        threads.entry(ctp.event(event).thread).or_default().push(event);
                    }
                }
            }
        }
        let index = |&event: &EventId| {
            let event = ctp.event(event);
            order.count_before(event.thread, event.origin)
        };
        let indices = ctp.threads.iter().map(|chain| chain.iter().map(index).collect()).collect();
        let mut renaming = Self {
            ctp,
            order,
            cssa: Cssa {
                terms,
                events: Vec::with_capacity(ctp.events.len()),
                pi_functions: Vec::new(),
                initial,
                choices: Vec::new(),
                edges: ctp.orders.clone(),
                precondition: None,
            },
            definitions,
            locals: HashMap::new(),
            defined: HashMap::new(),
            held: held_sections(ctp),
            indices,
        };
        renaming.find_edges();
        renaming.cssa.precondition = ctp.precondition.map(|term| {
            let Cssa { terms, initial, .. } = &mut renaming.cssa;
            terms.import(&ctp.terms, term, &mut HashMap::new(), &mut |_, leaf| match ctp
                .terms
                .term(leaf)
            {
                Term::Variable(variable) => initial[variable.index()],
                other => unreachable!("{other:?} in a precondition"),
            })
        });
        renaming
    }

    /// How many events of `thread` in this CTP always come before.
    fn count_before(&self, thread: ThreadId, event: EventId) -> usize {
        let count = self.order.count_before(thread, self.ctp.event(event).origin);
        self.indices[thread.index()].partition_point(|&index| index < count)
    }

    fn before(&self, first: EventId, second: EventId) -> bool {
        self.order.before(self.ctp.event(first).origin, self.ctp.event(second).origin)
    }

    /// The must-order as edges: where an event's count of another thread grows.
    fn find_edges(&mut self) {
        for chain in &self.ctp.threads {
            let mut seen = vec![0; self.ctp.threads.len()];
            for &event in chain {
                for (other, events) in self.ctp.threads.iter().enumerate() {
                    let thread = ThreadId::from(other);
                    if thread == self.ctp.event(event).thread {
                        continue;
                    }
                    let count = self.count_before(thread, event);
                    if count > seen[other] {
                        seen[other] = count;
                        self.cssa.edges.push((events[count - 1], event));
                    }
                }
            }
        }
    }

    fn rename(&mut self, id: EventId) {
        let ctp = self.ctp;
        let mut uses: HashMap<TermId, TermId> = HashMap::new();
        let event = match &ctp.event(id).action {
            Action::Assert { condition } => {
                let assertion = self.import(id, *condition, &mut uses);
                let guard = self.cssa.terms.bool(true);
                let guard = self.demand_defined(guard, assertion);
                CssaEvent { guard, assertion: Some(assertion), definitions: Vec::new() }
            }
            Action::Guarded { guard, assignments } => {
                let mut guard = self.import(id, *guard, &mut uses);
                let mut definitions = Vec::with_capacity(assignments.len());
                for &(variable, value) in assignments {
                    let value = self.import(id, value, &mut uses);
                    guard = self.demand_defined(guard, value);
                    definitions.push((variable, value));
                }
                let guard = self.demand_defined(guard, guard);
                CssaEvent { guard, assertion: None, definitions }
            }
            Action::Transition { predicate, changed } => {
                let mut definitions = Vec::with_capacity(changed.len());
                for &variable in changed {
                    let described = &ctp.variables[variable.index()];
                    let name = format!("{}@{}", described.name, id.0);
                    let symbol = self.cssa.terms.fresh_symbol(name, described.sort);
                    self.cssa.choices.push((id, variable, symbol));
                    definitions.push((variable, symbol));
                }
                for leaf in ctp.terms.leaves(*predicate) {
                    if let Term::Primed(variable) = *ctp.terms.term(leaf) {
                        let new = definitions.iter().find(|(changed, _)| *changed == variable);
                        // A variable that may not change has its old value.
                        let symbol = match new {
                            Some(&(_, symbol)) => symbol,
                            None => self.used(id, variable),
                        };
                        uses.insert(leaf, symbol);
                    }
                }
                let guard = self.import(id, *predicate, &mut uses);
                let guard = self.demand_defined(guard, guard);
                CssaEvent { guard, assertion: None, definitions }
            }
        };
        for &(variable, value) in &event.definitions {
            match ctp.variables[variable.index()].scope {
                Scope::Local(_) => {
                    self.locals.insert(variable, value);
                }
                Scope::Shared => {
                    self.defined.insert((id, variable), value);
                }
            }
        }
        self.cssa.events.push(event);
    }

    /// SMT-LIB leaves division by zero open; an event cannot take place that would do it.
    fn demand_defined(&mut self, guard: TermId, value: TermId) -> TermId {
        let terms = &mut self.cssa.terms;
        let mut demands = vec![guard];
        let mut stack = vec![value];
        let mut seen = HashSet::new();
        while let Some(term) = stack.pop() {
            let Term::Apply(operator, arguments) = terms.term(term).clone() else { continue };
            if !seen.insert(term) {
                continue;
            }
            if matches!(operator, Operator::IntDiv | Operator::Mod | Operator::RealDiv) {
                for &divisor in &arguments[1..] {
                    let zero = Value::zero(terms.sort(divisor));
                    let zero = terms.constant(zero);
                    let vanishes = terms.eq(divisor, zero);
                    demands.push(terms.not(vanishes));
                }
            }
            stack.extend(arguments.iter().copied());
        }
        terms.and(&demands)
    }

    /// A term of the CTP with the names that its variables have at the event.
    fn import(&mut self, id: EventId, term: TermId, uses: &mut HashMap<TermId, TermId>) -> TermId {
        let from = &self.ctp.terms;
        for leaf in from.leaves(term) {
            if let Term::Variable(variable) = *from.term(leaf)
                && !uses.contains_key(&leaf)
            {
                let name = self.used(id, variable);
                uses.insert(leaf, name);
            }
        }
        self.cssa.terms.import(from, term, uses, &mut |_, leaf| {
            unreachable!("{:?} cannot stand in a CTP", from.term(leaf))
        })
    }

    /// The name of a variable where it is used.
    fn used(&mut self, id: EventId, variable: VariableId) -> TermId {
        let described = &self.ctp.variables[variable.index()];
        if let Scope::Local(_) = described.scope {
            let initial = self.cssa.initial[variable.index()];
            return self.locals.get(&variable).copied().unwrap_or(initial);
        }
        if let Some(value) = self.lock_value(id, variable) {
            return self.cssa.terms.constant(value);
        }
        let (choices, interfering) = self.visible(id, variable);
        if let [only] = choices.as_slice() {
            let certain = match *only {
                None => interfering.is_empty(),
                Some(definition) => interfering == [definition] && self.before(definition, id),
            };
            let value = match *only {
                None => Some(self.cssa.initial[variable.index()]),
                Some(definition) => self.defined.get(&(definition, variable)).copied(),
            };
            if let (true, Some(value)) = (certain, value) {
                return value;
            }
        }
        let name = format!("{}%{}", described.name, id.0);
        let symbol = self.cssa.terms.fresh_symbol(name, described.sort);
        // The values are filled in when all definitions have their names.
        let choices =
            choices.into_iter().map(|definition| PiChoice { definition, value: symbol }).collect();
        self.cssa.pi_functions.push(PiFunction {
            event: id,
            variable,
            symbol,
            choices,
            interfering,
            required: false,
        });
        symbol
    }

    /// The value of a lock's variable where the sections alone fix it.
    fn lock_value(&self, id: EventId, variable: VariableId) -> Option<Value> {
        let described = &self.ctp.variables[variable.index()];
        let me = self.ctp.event(id).thread;
        let (lock, reader) = match described.role {
            Role::Lock(lock) => (lock, None),
            Role::Reader(lock, reader) => (lock, Some(reader)),
            _ => return None,
        };
        let held = self.held[id.index()]
            .iter()
            .map(|held| &self.ctp.sections[held.section])
            .filter(|section| section.lock == lock);
        let (mut exclusive, mut shared) = (false, false);
        for section in held {
            if section.acquire == Some(id) {
                return match (reader, section.mode) {
                    // Nobody holds it when a writer comes; only readers may when a reader comes.
                    (None, _) => Some(Value::zero(described.sort)),
                    (Some(_), LockMode::Exclusive) => Some(Value::Bool(false)),
                    (Some(_), LockMode::Shared) => None,
                };
            }
            exclusive |= section.mode == LockMode::Exclusive;
            shared |= section.mode == LockMode::Shared;
        }
        match reader {
            None if exclusive => Value::from_bits(described.sort, u64::from(me.0) + 1),
            None if shared => Some(Value::zero(described.sort)),
            Some(reader) if reader == me => Some(Value::Bool(shared)),
            Some(_) if exclusive => Some(Value::Bool(false)),
            _ => None,
        }
    }

    /// The definitions that a use may see (`None`: the initial value), and those that may come in
    /// between.
    fn visible(&self, id: EventId, variable: VariableId) -> (Vec<Option<EventId>>, Vec<EventId>) {
        let mut candidates = Vec::new();
        let mut certain = Vec::new(); // the last definition of each thread that always comes first
        if let Some(threads) = self.definitions.get(&variable) {
            for (&thread, events) in threads {
                let always = self.count_before(thread, id);
                let split = events
                    .partition_point(|&event| (self.ctp.event(event).position as usize) < always);
                certain.extend(split.checked_sub(1).map(|last| events[last]));
                let later = events[split..].iter().copied();
                candidates.extend(later.filter(|&event| event != id && !self.before(id, event)));
            }
        }
        candidates.retain(|&definition| !self.hidden_by_lock(id, variable, definition));
        let last: Vec<EventId> = certain
            .iter()
            .copied()
            .filter(|&event| !certain.iter().any(|&other| self.before(event, other)))
            .filter(|&event| !self.hidden_by_lock(id, variable, event))
            .collect();
        let initial = certain.is_empty();
        candidates.extend(last);
        candidates.sort_unstable();
        let mut choices: Vec<Option<EventId>> = candidates.iter().copied().map(Some).collect();
        if initial {
            choices.insert(0, None);
        }
        (choices, candidates)
    }

    /// Use and definition are in sections that exclude each other, and the definition's section has
    /// a later definition, or the use's section has defined the variable before the use.
    fn hidden_by_lock(&self, id: EventId, variable: VariableId, definition: EventId) -> bool {
        let (user, definer) = (self.ctp.event(id), self.ctp.event(definition));
        if user.thread == definer.thread {
            return false;
        }
        let of_thread = |thread: ThreadId| {
            let threads = self.definitions.get(&variable);
            threads.and_then(|threads| threads.get(&thread)).map_or(&[][..], Vec::as_slice)
        };
        for mine in &self.held[id.index()] {
            let my_section = &self.ctp.sections[mine.section];
            for theirs in &self.held[definition.index()] {
                let their_section = &self.ctp.sections[theirs.section];
                let shared = mine.mode == LockMode::Shared && theirs.mode == LockMode::Shared;
                if my_section.lock != their_section.lock || shared {
                    continue;
                }
                let overwritten = of_thread(definer.thread).iter().any(|&later| {
                    self.ctp.event(later).position > definer.position
                        && self.held[later.index()]
                            .iter()
                            .any(|held| held.section == theirs.section)
                });
                let defined_before = of_thread(user.thread).iter().any(|&earlier| {
                    self.ctp.event(earlier).position < user.position
                        && self.held[earlier.index()]
                            .iter()
                            .any(|held| held.section == mine.section)
                });
                if overwritten || defined_before {
                    return true;
                }
            }
        }
        false
    }

    fn finish(mut self) -> Cssa {
        for pi in &mut self.cssa.pi_functions {
            for choice in &mut pi.choices {
                choice.value = match choice.definition {
                    None => self.cssa.initial[pi.variable.index()],
                    Some(definition) => self.defined[&(definition, pi.variable)],
                };
            }
        }
        while self.cssa.prune_by_value() {}
        self.cssa
    }
}

impl Cssa {
    /// Drops choices that the guard rejects and puts values in place that are certain. Tells
    /// whether a symbol got a value, which may make others certain.
    fn prune_by_value(&mut self) -> bool {
        let mut values: HashMap<TermId, TermId> = HashMap::new();
        for index in 0..self.pi_functions.len() {
            let pi = &self.pi_functions[index];
            if !matches!(self.terms.term(pi.symbol), Term::Symbol(_)) {
                continue;
            }
            let symbol = pi.symbol;
            let guard = self.events[pi.event.index()].guard;
            let conditions: Vec<TermId> = match self.terms.term(guard) {
                Term::Apply(Operator::And, parts) => parts.to_vec(),
                _ => vec![guard],
            };
            let conditions: Vec<TermId> = conditions
                .into_iter()
                .filter(|&condition| self.terms.leaves(condition) == [symbol])
                .collect();
            let mut kept = pi.choices.clone();
            kept.retain(|choice| match self.terms.constant_value(choice.value) {
                None => true,
                Some(value) => conditions.iter().all(|&condition| {
                    let leaf = |_: &Term| Some(value.clone());
                    self.terms.holds(condition, &leaf) != Some(false)
                }),
            });
            let pi = &mut self.pi_functions[index];
            pi.required |= kept.len() < pi.choices.len();
            pi.choices = kept;
            let first = pi.choices.first().map(|choice| choice.value);
            if let Some(value) = first
                && self.terms.constant_value(value).is_some()
                && pi.choices.iter().all(|choice| choice.value == value)
            {
                pi.symbol = value;
                values.insert(symbol, value);
            }
            if pi.choices.is_empty() {
                self.events[pi.event.index()].guard = self.terms.bool(false);
            }
        }
        if values.is_empty() {
            return false;
        }
        let Self { terms, events, pi_functions, .. } = self;
        let mut cache: HashMap<TermId, TermId> = values;
        let mut put = |term: &mut TermId| {
            *term = terms.substitute(*term, &mut cache, &mut |_, _| None);
        };
        for event in events {
            put(&mut event.guard);
            event.assertion.iter_mut().for_each(&mut put);
            event.definitions.iter_mut().for_each(|(_, value)| put(value));
        }
        for choice in pi_functions.iter_mut().flat_map(|pi| &mut pi.choices) {
            put(&mut choice.value);
        }
        true
    }
}

/// For each event, the sections of its thread that it lies in, their acquire and release included.
fn held_sections(ctp: &ConcurrentTraceProgram) -> Vec<Vec<Held>> {
    let mut held = vec![Vec::new(); ctp.events.len()];
    for (number, section) in ctp.sections.iter().enumerate() {
        let chain = &ctp.threads[section.thread.index()];
        let place = |event: EventId| ctp.event(event).position as usize;
        let first = section.acquire.map_or(0, place);
        let last = section.release.map_or(chain.len(), |release| place(release) + 1);
        for &event in &chain[first..last] {
            held[event.index()].push(Held { section: number, mode: section.mode });
        }
    }
    held
}
