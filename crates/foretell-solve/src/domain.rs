//! Which values can a term have, whatever the order of events?
//!
//! A value flows from writes to reads along the π-functions. Where that flow has no cycle, the values
//! of a read are those of its choices. In a cycle, as in `t = x; x = t + 1` of two threads, values
//! are bounded by counting: a value passes each definition at most once, because each was written
//! before it was read, so a counter is at most its start plus all increments that need not follow
//! the read; other arithmetic is iterated as often as there are definitions. Bounds hold for symbols of active π-functions only (see [`crate::Pi`]).

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use foretell_trace::{EventId, Operator, ScalarSort, Sort, SymbolId, Term, TermId, TermStore};

use crate::ladder::{self, FEW, PAIRS};
use crate::must::MustOrder;
use crate::problem::Pi;

/// Longer flows of values through arithmetic are not followed.
const ROUNDS: usize = 32;

/// The values of a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Domain {
    /// These, sorted.
    Few(Rc<[i128]>),
    /// Any in between, bounds included.
    Range(i128, i128),
    /// Not known.
    Any,
}

impl Domain {
    fn constant(value: i128) -> Self {
        Domain::Few([value].into())
    }

    /// Every value of the sort.
    pub(crate) fn full(sort: Sort) -> Self {
        match sort {
            Sort::Scalar(ScalarSort::BitVec(width)) => {
                let half = 1i128 << (width - 1);
                Domain::Range(-half, half - 1)
            }
            _ => Domain::Any,
        }
    }

    pub(crate) fn bounds(&self) -> Option<(i128, i128)> {
        match self {
            Domain::Few(values) => Some((*values.first()?, *values.last()?)),
            Domain::Range(low, high) => Some((*low, *high)),
            Domain::Any => None,
        }
    }

    fn join(&self, other: &Domain) -> Domain {
        if let (Domain::Few(a), Domain::Few(b)) = (self, other) {
            let mut values: Vec<i128> = a.iter().chain(&**b).copied().collect();
            values.sort_unstable();
            values.dedup();
            if values.len() <= FEW {
                return Domain::Few(values.into());
            }
        }
        match (self.bounds(), other.bounds()) {
            (None, Some(_)) if self.is_empty() => other.clone(),
            (Some(_), None) if other.is_empty() => self.clone(),
            (Some(a), Some(b)) => Domain::Range(a.0.min(b.0), a.1.max(b.1)),
            _ => Domain::Any,
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, Domain::Few(values) if values.is_empty())
    }

    /// Small ranges as their values.
    fn listed(self) -> Domain {
        match self {
            Domain::Range(low, high) if high.saturating_sub(low) < FEW as i128 => {
                Domain::Few((low..=high).collect())
            }
            other => other,
        }
    }
}

/// Domains of symbols and of the terms above them.
#[derive(Default)]
pub(crate) struct Domains {
    symbols: HashMap<SymbolId, Domain>,
    terms: HashMap<TermId, Domain>,
    counters: Vec<Counter>,
    counter_of: HashMap<SymbolId, usize>,
}

/// What a cycle of values starts from, and what each definition adds at least and at most.
struct Counter {
    entry: (i128, i128),
    changes: Vec<(u32, (i128, i128))>,
}

impl Counter {
    /// Bounds of the values that only these definitions had a part in.
    fn bounds(&self, keep: impl Fn(u32) -> bool) -> Option<(i128, i128)> {
        let mut bounds = self.entry;
        for &(_, change) in self.changes.iter().filter(|change| keep(change.0)) {
            bounds.0 = bounds.0.checked_add(change.0)?;
            bounds.1 = bounds.1.checked_add(change.1)?;
        }
        Some(bounds)
    }
}

/// A counter with more definitions gets no further clauses; their number is quadratic.
const COUNTED: usize = 512;

/// A number as the value of a symbol in the cycle (or none) plus something bounded.
type Step = (Option<SymbolId>, i128, i128);

impl Domains {
    /// Domains of the symbols that the π-functions define.
    pub(crate) fn new(terms: &TermStore, pis: &[Pi], must: &MustOrder) -> Self {
        let mut domains = Domains::default();
        let mut defined: HashMap<SymbolId, Vec<&Pi>> = HashMap::new();
        for pi in pis {
            if let (Term::Symbol(symbol), Sort::Scalar(ScalarSort::Int | ScalarSort::BitVec(_))) =
                (terms.term(pi.symbol), terms.sort(pi.symbol))
            {
                defined.entry(*symbol).or_default().push(pi);
            }
        }
        for component in components(terms, &defined) {
            let alone = match component.as_slice() {
                [only] => !depends(terms, &defined[only], *only),
                _ => false,
            };
            if alone {
                let values = defined[&component[0]].iter().flat_map(|pi| &pi.choices);
                let mut domain: Option<Domain> = None;
                for &(_, value) in values {
                    let next = domains.of(terms, value);
                    domain = Some(domain.map_or(next.clone(), |domain| domain.join(&next)));
                }
                let full = || Domain::full(terms.symbol(component[0]).sort);
                let domain = match domain {
                    Some(Domain::Any) | None => full(),
                    Some(domain) => domain,
                };
                domains.symbols.insert(component[0], domain);
            } else {
                domains.count(terms, &component, &defined, must);
            }
        }
        domains
    }

    /// The counting bound for the symbols of a cycle.
    fn count(
        &mut self,
        terms: &TermStore,
        component: &[SymbolId],
        defined: &HashMap<SymbolId, Vec<&Pi>>,
        must: &MustOrder,
    ) {
        let members: HashSet<SymbolId> = component.iter().copied().collect();
        let bounds = self
            .counted(terms, &members, defined, must)
            .or_else(|| self.iterated(terms, &members, defined, must));
        for &symbol in component {
            let domain = bounds.as_ref().and_then(|bounds| bounds.get(&symbol).cloned());
            let domain = domain.unwrap_or(Domain::full(terms.symbol(symbol).sort));
            self.symbols.insert(symbol, domain);
        }
    }

    /// The values after as many steps as there are definitions.
    fn iterated(
        &self,
        terms: &TermStore,
        members: &HashSet<SymbolId>,
        defined: &HashMap<SymbolId, Vec<&Pi>>,
        must: &MustOrder,
    ) -> Option<HashMap<SymbolId, Domain>> {
        let mut definitions = HashSet::new();
        for pi in members.iter().flat_map(|symbol| &defined[symbol]) {
            for &(definition, value) in &pi.choices {
                let mut bases = terms.leaves(value);
                bases.retain(|&leaf| {
                    matches!(terms.term(leaf), Term::Symbol(symbol) if members.contains(symbol))
                });
                if bases.is_empty() {
                    continue;
                }
                definitions.insert(definition?);
                for base in bases {
                    let Term::Symbol(base) = terms.term(base) else { continue };
                    read_before(&defined[base], definition?, must)?;
                }
            }
        }
        if definitions.len() > ROUNDS {
            return None;
        }
        let mut now: HashMap<SymbolId, Domain> = HashMap::new();
        for _ in 0..=definitions.len() {
            let mut round = Domains { symbols: self.symbols.clone(), ..Domains::default() };
            let none: Rc<[i128]> = Rc::new([]);
            for &symbol in members {
                let domain = now.get(&symbol).cloned();
                round.symbols.insert(symbol, domain.unwrap_or(Domain::Few(Rc::clone(&none))));
            }
            let mut next = HashMap::new();
            for &symbol in members {
                let mut domain = round.symbols[&symbol].clone();
                for &(_, value) in defined[&symbol].iter().flat_map(|pi| &pi.choices) {
                    domain = domain.join(&round.of(terms, value));
                }
                if domain == Domain::Any {
                    return None;
                }
                next.insert(symbol, domain);
            }
            if next == now {
                break;
            }
            now = next;
        }
        Some(now)
    }

    fn counted(
        &mut self,
        terms: &TermStore,
        members: &HashSet<SymbolId>,
        defined: &HashMap<SymbolId, Vec<&Pi>>,
        must: &MustOrder,
    ) -> Option<HashMap<SymbolId, Domain>> {
        let mut entry: Option<(i128, i128)> = None;
        let mut changes: HashMap<u32, (i128, i128)> = HashMap::new();
        let mut inside = HashMap::new();
        for pi in members.iter().flat_map(|symbol| &defined[symbol]) {
            for &(definition, value) in &pi.choices {
                let mut steps = Vec::new();
                self.steps(terms, value, members, &mut inside, 0, &mut steps)?;
                for (base, low, high) in steps {
                    let Some(base) = base else {
                        let (a, b) = entry.unwrap_or((low, high));
                        entry = Some((a.min(low), b.max(high)));
                        continue;
                    };
                    // the value must have been read before it is written
                    let definition = read_before(&defined[&base], definition?, must)?;
                    let change = changes.entry(definition).or_insert((0, 0));
                    *change = (change.0.min(low), change.1.max(high));
                }
            }
        }
        let mut changes: Vec<(u32, (i128, i128))> = changes.into_iter().collect();
        changes.sort_unstable();
        let counter = Counter { entry: entry?, changes };
        let all = counter.bounds(|_| true)?;
        let mut result = HashMap::new();
        for &symbol in members {
            // no step may wrap around
            if let Some((low, high)) = Domain::full(terms.symbol(symbol).sort).bounds()
                && (all.0 < low || all.1 > high)
            {
                return None;
            }
            let mut bounds: Option<(i128, i128)> = None;
            for pi in &defined[&symbol] {
                let event = must.require(pi.event).ok()?;
                let next = counter
                    .bounds(|definition| definition != event && !must.reaches(event, definition))?;
                let old = bounds.unwrap_or(next);
                bounds = Some((old.0.min(next.0), old.1.max(next.1)));
            }
            let (low, high) = bounds?;
            result.insert(symbol, Domain::Range(low, high).listed());
        }
        self.counter_of.extend(members.iter().map(|&member| (member, self.counters.len())));
        self.counters.push(counter);
        Some(result)
    }

    /// For each definition of the symbol's cycle that may come before or after the event: the
    /// symbol's bounds when the event comes first.
    pub(crate) fn counted_before(
        &self,
        symbol: SymbolId,
        event: u32,
        must: &MustOrder,
    ) -> Vec<(u32, i128, i128)> {
        let Some(&counter) = self.counter_of.get(&symbol) else { return Vec::new() };
        let counter = &self.counters[counter];
        if counter.changes.len() > COUNTED {
            return Vec::new();
        }
        let definitions = counter.changes.iter().map(|change| change.0);
        definitions
            .filter(|&d| d != event && !must.reaches(event, d) && !must.reaches(d, event))
            .filter_map(|definition| {
                let (low, high) = counter.bounds(|other| {
                    other != event
                        && other != definition
                        && !must.reaches(event, other)
                        && !must.reaches(definition, other)
                })?;
                Some((definition, low, high))
            })
            .collect()
    }

    fn steps(
        &mut self,
        terms: &TermStore,
        term: TermId,
        members: &HashSet<SymbolId>,
        inside: &mut HashMap<TermId, bool>,
        depth: u32,
        steps: &mut Vec<Step>,
    ) -> Option<()> {
        use Operator::{Add, BvAdd, BvSub, Ite, Sub};
        let mut is_inside = |term: TermId| {
            *inside.entry(term).or_insert_with(|| {
                terms.leaves(term).iter().any(|&leaf| {
                    matches!(terms.term(leaf), Term::Symbol(symbol) if members.contains(symbol))
                })
            })
        };
        if !is_inside(term) {
            let (low, high) = self.of(terms, term).bounds()?;
            steps.push((None, low, high));
            return Some(());
        }
        if depth > 16 || steps.len() > 64 {
            return None;
        }
        match terms.term(term) {
            Term::Symbol(symbol) => steps.push((Some(*symbol), 0, 0)),
            Term::Apply(Ite, arguments) => {
                for &branch in &arguments[1..] {
                    self.steps(terms, branch, members, inside, depth + 1, steps)?;
                }
            }
            Term::Apply(operator @ (Add | BvAdd | Sub | BvSub), arguments) => {
                let mut parts = arguments.iter().enumerate().filter(|(_, part)| is_inside(**part));
                let (place, &base) = parts.next()?;
                let subtract = matches!(operator, Sub | BvSub);
                if parts.next().is_some() || (subtract && place > 0) {
                    return None;
                }
                let mut shift = (0i128, 0i128);
                for (index, &part) in arguments.iter().enumerate() {
                    if index == place {
                        continue;
                    }
                    let (low, high) = self.of(terms, part).bounds()?;
                    let (low, high) = if subtract { (-high, -low) } else { (low, high) };
                    shift = (shift.0.checked_add(low)?, shift.1.checked_add(high)?);
                }
                let from = steps.len();
                self.steps(terms, base, members, inside, depth + 1, steps)?;
                for step in &mut steps[from..] {
                    step.1 = step.1.checked_add(shift.0)?;
                    step.2 = step.2.checked_add(shift.1)?;
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// The values that a numeric term can have.
    pub(crate) fn of(&mut self, terms: &TermStore, root: TermId) -> Domain {
        let mut stack = vec![root];
        while let Some(&top) = stack.last() {
            if self.terms.contains_key(&top) {
                stack.pop();
                continue;
            }
            let sort = terms.sort(top);
            let domain = match terms.term(top) {
                _ if !matches!(sort, Sort::Scalar(ScalarSort::Int | ScalarSort::BitVec(_))) => {
                    Domain::Any
                }
                Term::Constant(value) => {
                    ladder::number(value).map_or(Domain::Any, Domain::constant)
                }
                Term::Symbol(symbol) => {
                    self.symbols.get(symbol).cloned().unwrap_or(Domain::full(sort))
                }
                Term::Apply(operator, arguments) => {
                    let before = stack.len();
                    stack.extend(arguments.iter().filter(|a| !self.terms.contains_key(a)));
                    if stack.len() > before {
                        continue;
                    }
                    let parts: Vec<(&Domain, Sort)> =
                        arguments.iter().map(|a| (&self.terms[a], terms.sort(*a))).collect();
                    result(*operator, sort, &parts)
                }
                _ => Domain::full(sort),
            };
            self.terms.insert(top, domain);
            stack.pop();
        }
        self.terms[&root].clone()
    }
}

/// Must the reads come before the definition (or be part of it)?
fn read_before(reads: &[&Pi], definition: EventId, must: &MustOrder) -> Option<u32> {
    let definition = must.require(definition).ok()?;
    for read in reads {
        let event = must.require(read.event).ok()?;
        if event != definition && !must.reaches(event, definition) {
            return None;
        }
    }
    Some(definition)
}

/// The operator's values, from those of its arguments.
fn result(operator: Operator, sort: Sort, arguments: &[(&Domain, Sort)]) -> Domain {
    use Operator::*;
    if operator == Ite {
        return arguments[1].0.join(arguments[2].0);
    }
    if arguments.iter().any(|(domain, _)| domain.is_empty()) {
        return Domain::Few(Rc::new([]));
    }
    let few: Option<Vec<(&[i128], Sort)>> = arguments
        .iter()
        .map(|&(domain, sort)| match domain {
            Domain::Few(values) => Some((&**values, sort)),
            _ => None,
        })
        .collect();
    if let Some(few) = few
        && few.iter().map(|(values, _)| values.len()).product::<usize>() <= PAIRS
        && let Some(mut values) = ladder::results(operator, few.into_iter())
    {
        values.sort_unstable();
        values.dedup();
        if values.len() <= FEW {
            return Domain::Few(values.into());
        }
    }
    let bounds: Option<Vec<(i128, i128)>> =
        arguments.iter().map(|(domain, _)| domain.bounds()).collect();
    let range = bounds.and_then(|bounds| range(operator, &bounds));
    match (range, Domain::full(sort)) {
        (Some((low, high)), Domain::Any) => Domain::Range(low, high),
        (Some((low, high)), Domain::Range(lowest, highest)) if low >= lowest && high <= highest => {
            Domain::Range(low, high)
        }
        (_, full) => full,
    }
}

fn range(operator: Operator, bounds: &[(i128, i128)]) -> Option<(i128, i128)> {
    use Operator::*;
    let mut parts = bounds.iter().copied();
    let first = parts.next()?;
    match operator {
        Add | BvAdd => parts.try_fold(first, |sum, next| {
            Some((sum.0.checked_add(next.0)?, sum.1.checked_add(next.1)?))
        }),
        Sub | BvSub => parts.try_fold(first, |sum, next| {
            Some((sum.0.checked_sub(next.1)?, sum.1.checked_sub(next.0)?))
        }),
        Neg | BvNeg => Some((first.1.checked_neg()?, first.0.checked_neg()?)),
        Mul | BvMul => parts.try_fold(first, |product, next| {
            let corners = [
                product.0.checked_mul(next.0)?,
                product.0.checked_mul(next.1)?,
                product.1.checked_mul(next.0)?,
                product.1.checked_mul(next.1)?,
            ];
            Some((*corners.iter().min()?, *corners.iter().max()?))
        }),
        Abs => {
            let size = first.0.checked_abs()?.max(first.1.checked_abs()?);
            Some((0, size))
        }
        Mod if bounds[1].0 == bounds[1].1 && bounds[1].0 != 0 => {
            Some((0, bounds[1].0.checked_abs()? - 1))
        }
        IntDiv if bounds[1].0 == bounds[1].1 && bounds[1].0 != 0 => {
            let size = first.0.checked_abs()?.max(first.1.checked_abs()?);
            Some((size.checked_neg()? - 1, size + 1))
        }
        SignExtend(_) => Some(first),
        ZeroExtend(_) if first.0 >= 0 => Some(first),
        _ => None,
    }
}

fn depends(terms: &TermStore, pis: &[&Pi], symbol: SymbolId) -> bool {
    symbols_of(terms, pis).contains(&symbol)
}

fn symbols_of(terms: &TermStore, pis: &[&Pi]) -> HashSet<SymbolId> {
    let mut seen = HashSet::new();
    let mut found = HashSet::new();
    let mut stack: Vec<TermId> = pis.iter().flat_map(|pi| &pi.choices).map(|c| c.1).collect();
    while let Some(top) = stack.pop() {
        if !seen.insert(top) {
            continue;
        }
        match terms.term(top) {
            Term::Symbol(symbol) => {
                found.insert(*symbol);
            }
            Term::Apply(_, arguments) => stack.extend(arguments.iter().copied()),
            _ => {}
        }
    }
    found
}

/// Strongly connected components of "the value may come from", dependencies first (Tarjan).
fn components(terms: &TermStore, defined: &HashMap<SymbolId, Vec<&Pi>>) -> Vec<Vec<SymbolId>> {
    let mut symbols: Vec<SymbolId> = defined.keys().copied().collect();
    symbols.sort_unstable();
    let numbers: HashMap<SymbolId, usize> =
        symbols.iter().enumerate().map(|(number, &symbol)| (symbol, number)).collect();
    let next: Vec<Vec<usize>> = symbols
        .iter()
        .map(|symbol| {
            let found = symbols_of(terms, &defined[symbol]);
            let mut found: Vec<usize> =
                found.iter().filter_map(|other| numbers.get(other).copied()).collect();
            found.sort_unstable();
            found
        })
        .collect();
    const NEW: usize = usize::MAX;
    let mut index = vec![NEW; symbols.len()];
    let mut low = vec![0; symbols.len()];
    let mut on_stack = vec![false; symbols.len()];
    let (mut stack, mut count, mut result) = (Vec::new(), 0, Vec::new());
    for root in 0..symbols.len() {
        if index[root] != NEW {
            continue;
        }
        let mut work = vec![(root, 0)];
        while let Some((node, edge)) = work.pop() {
            if edge == 0 {
                index[node] = count;
                low[node] = count;
                count += 1;
                stack.push(node);
                on_stack[node] = true;
            }
            if edge > 0 {
                let done = next[node][edge - 1];
                if on_stack[done] {
                    low[node] = low[node].min(low[done]);
                }
            }
            match next[node].get(edge) {
                Some(&other) => {
                    work.push((node, edge + 1));
                    if index[other] == NEW {
                        work.push((other, 0));
                    } else if on_stack[other] {
                        low[node] = low[node].min(index[other]);
                    }
                }
                None if low[node] == index[node] => {
                    let mut component = Vec::new();
                    while let Some(member) = stack.pop() {
                        on_stack[member] = false;
                        component.push(symbols[member]);
                        if member == node {
                            break;
                        }
                    }
                    result.push(component);
                }
                None => {}
            }
        }
    }
    result
}
