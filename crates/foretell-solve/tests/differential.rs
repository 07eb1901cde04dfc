//! Random small problems: brute force over all orders, the embedded solver and Z3 must agree.
//!
//! A problem is a tiny trace (chains of reads and writes, a few edges, π-functions for the reads) and
//! a random sequence of calls: formulas are asserted, questions are asked under assumptions. Every
//! solution is checked by evaluation, every core by enumeration. A failure prints its seed;
//! `FORETELL_PROPTEST_CASES` asks for more cases than usual.

use std::collections::HashMap;

use foretell_solve::{Answer, Budget, Embedded, Model, OrderProblem, OrderSolver, Pi, z3};
use foretell_trace::{EventId, Operator, Sort, SymbolId, Term, TermId, TermStore, Value};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// A problem and what formulas may speak about.
struct Case {
    problem: OrderProblem,
    events: Vec<EventId>,
    /// Symbols of reads and when they count.
    reads: Vec<(TermId, TermId)>,
    /// Symbols that nothing defines.
    free: Vec<TermId>,
}

const BYTE: Sort = Sort::bit_vec(4);

fn case(random: &mut Random) -> Case {
    let mut problem = OrderProblem::default();
    let chains = 2 + random.below(3);
    let mut lengths: Vec<usize> = (0..chains).map(|_| 1 + random.below(8)).collect();
    while lengths.iter().sum::<usize>() > 14 || interleavings(&lengths) > 200 {
        let longest = (0..chains).max_by_key(|&chain| lengths[chain]).unwrap();
        lengths[longest] -= 1;
    }
    let mut events = Vec::new();
    for length in lengths {
        let chain: Vec<EventId> = (0..length)
            .map(|_| {
                events.push(EventId(events.len() as u32 * 3 + 1));
                *events.last().unwrap()
            })
            .collect();
        problem.chains.push(chain);
    }
    for _ in 0..random.below(3) {
        let (a, b) = (random.pick(&events), random.pick(&events));
        // a cycle now and then is fine, an edge against a chain most of the time is not
        if a < b || random.chance(10) {
            problem.edges.push((a, b));
        }
    }
    let terms = &mut problem.terms;
    let mut free = Vec::new();
    for name in 0..random.below(3) {
        let sort = random.pick(&[Sort::BOOL, Sort::BOOL, Sort::bit_vec(2)]);
        free.push(terms.fresh_symbol(format!("free{name}"), sort));
    }
    let always = terms.bool(true);
    let end = random.pick(&events);
    let prefixes = random.chance(40);
    // two variables; an event reads or writes one of them, or does both at once
    let sorts = [random.pick(&[Sort::INT, BYTE, Sort::BOOL]), random.pick(&[Sort::INT, BYTE])];
    let mut accesses: Vec<(EventId, usize, bool, bool)> = Vec::new();
    for &event in &events {
        let (reads, writes) =
            random.pick(&[(true, false), (false, true), (true, true), (false, false)]);
        accesses.push((event, random.below(2), reads, writes));
    }
    let mut reads = Vec::new();
    let mut values: HashMap<EventId, TermId> = HashMap::new();
    let mut symbols: HashMap<EventId, TermId> = HashMap::new();
    let order: Vec<EventId> = problem.chains.iter().flatten().copied().collect();
    let mut known: [Vec<TermId>; 2] = Default::default();
    let mut chain_of = HashMap::new();
    for (number, chain) in problem.chains.iter().enumerate() {
        for &event in chain {
            chain_of.insert(event, number);
        }
    }
    let mut current = usize::MAX;
    for event in order {
        if chain_of[&event] != current {
            current = chain_of[&event];
            known = Default::default();
        }
        let &(_, variable, read, write) = accesses.iter().find(|a| a.0 == event).unwrap();
        if read {
            let symbol = terms.fresh_symbol(format!("read{event:?}"), sorts[variable]);
            symbols.insert(event, symbol);
            known[variable].push(symbol);
        }
        if write {
            let value = value(random, terms, sorts[variable], &known[variable]);
            values.insert(event, value);
        }
    }
    for &(event, variable, read, _) in &accesses {
        if !read {
            continue;
        }
        let writes: Vec<EventId> = accesses
            .iter()
            .filter(|a| a.0 != event && a.1 == variable && a.3)
            .map(|a| a.0)
            .collect();
        let mut choices: Vec<(Option<EventId>, TermId)> =
            writes.iter().map(|write| (Some(*write), values[write])).collect();
        if random.chance(15) && !choices.is_empty() {
            choices.remove(random.below(choices.len()));
        }
        let initial = constant(random, terms, sorts[variable]);
        choices.push((None, initial));
        let active = if prefixes && event != end { terms.before(event, end) } else { always };
        let symbol = symbols[&event];
        problem.pis.push(Pi { event, active, symbol, choices, interfering: writes });
        reads.push((symbol, active));
    }
    Case { problem, events, reads, free }
}

fn interleavings(lengths: &[usize]) -> usize {
    let (mut count, mut placed) = (1, 0);
    for &length in lengths {
        for place in 1..=length {
            placed += 1;
            count = count * placed / place;
        }
    }
    count
}

fn constant(random: &mut Random, terms: &mut TermStore, sort: Sort) -> TermId {
    match sort {
        Sort::BOOL => terms.bool(random.chance(50)),
        Sort::INT => terms.int(random.below(7) as i128 - 3),
        _ => terms.bit_vec(sort.width().unwrap(), random.next() >> 20),
    }
}

/// What a write writes: a constant or something about what its thread read.
fn value(random: &mut Random, terms: &mut TermStore, sort: Sort, known: &[TermId]) -> TermId {
    if known.is_empty() || random.chance(40) {
        return constant(random, terms, sort);
    }
    let symbol = random.pick(known);
    let other = constant(random, terms, sort);
    match sort {
        Sort::BOOL => terms.not(symbol),
        _ => number(random, terms, sort, symbol, other),
    }
}

fn number(random: &mut Random, terms: &mut TermStore, sort: Sort, a: TermId, b: TermId) -> TermId {
    use Operator::*;
    let wide = sort.width().unwrap_or(0);
    match sort {
        Sort::INT => match random.below(9) {
            0..4 => terms.build(Add, &[a, b]),
            4 | 5 => terms.build(Sub, &[a, b]),
            6 => terms.build(Mul, &[a, b]),
            7 => {
                let divisor = terms.int(random.pick(&[-3, -2, 2, 3]));
                terms.build(random.pick(&[IntDiv, Mod]), &[a, divisor])
            }
            _ => terms.build(random.pick(&[Neg, Abs]), &[a]),
        },
        _ => match random.below(10) {
            0 => terms.build(random.pick(&[BvNot, BvNeg]), &[a]),
            1 => {
                let low = terms.build(Extract { high: wide / 2, low: 0 }, &[a]);
                let by = wide - wide / 2 - 1;
                terms.build(random.pick(&[ZeroExtend(by), SignExtend(by)]), &[low])
            }
            2 => {
                let high = terms.build(Extract { high: wide - 1, low: 1 }, &[a]);
                let low = terms.build(Extract { high: 0, low: 0 }, &[b]);
                terms.build(Concat, &[high, low])
            }
            3 | 4 => terms.build(BvAdd, &[a, b]),
            _ => {
                let operator = random.pick(&[
                    BvAnd, BvOr, BvXor, BvSub, BvMul, BvUdiv, BvUrem, BvSdiv, BvSrem, BvShl,
                    BvLshr, BvAshr,
                ]);
                terms.build(operator, &[a, b])
            }
        },
    }
}

/// A random formula that speaks about a read only where it counts.
fn formula(random: &mut Random, terms: &mut TermStore, case: &Facts, depth: usize) -> TermId {
    if depth > 0 && random.chance(60) {
        let a = formula(random, terms, case, depth - 1);
        let b = formula(random, terms, case, depth - 1);
        return match random.below(6) {
            0 | 1 => terms.and(&[a, b]),
            2 | 3 => terms.or(&[a, b]),
            4 => terms.build(Operator::Xor, &[a, b]),
            _ => {
                let c = formula(random, terms, case, 0);
                terms.ite(c, a, b)
            }
        };
    }
    let negate = random.chance(50);
    let atom = match random.below(10) {
        0..4 => {
            let (a, b) = (random.pick(&case.events), random.pick(&case.events));
            terms.before(a, b)
        }
        4 if !case.free.is_empty() => {
            let symbol = random.pick(&case.free);
            compare(random, terms, symbol)
        }
        _ if !case.reads.is_empty() => {
            let (symbol, active) = random.pick(&case.reads);
            let atom = compare(random, terms, symbol);
            let atom = if random.chance(50) { terms.not(atom) } else { atom };
            match random.chance(50) {
                true => terms.and(&[active, atom]),
                false => terms.implies(active, atom),
            }
        }
        _ => terms.bool(random.chance(70)),
    };
    if negate { terms.not(atom) } else { atom }
}

fn compare(random: &mut Random, terms: &mut TermStore, symbol: TermId) -> TermId {
    use Operator::*;
    let sort = terms.sort(symbol);
    if sort == Sort::BOOL {
        return symbol;
    }
    let (a, b) = (constant(random, terms, sort), constant(random, terms, sort));
    let left = if random.chance(40) { number(random, terms, sort, symbol, a) } else { symbol };
    let operator = match sort {
        Sort::INT => random.pick(&[Eq, Eq, Lt, Le]),
        _ => random.pick(&[Eq, Eq, BvUlt, BvUle, BvSlt, BvSle]),
    };
    match random.chance(50) {
        true => terms.build(operator, &[left, b]),
        false => terms.build(operator, &[b, left]),
    }
}

struct Facts {
    events: Vec<EventId>,
    reads: Vec<(TermId, TermId)>,
    free: Vec<TermId>,
}

/// An order with values: what brute force enumerates and what solvers return.
struct World {
    place: HashMap<EventId, usize>,
    values: HashMap<SymbolId, Value>,
}

impl World {
    fn value(&self, terms: &TermStore, term: TermId) -> Value {
        let environment = |leaf: &Term| match leaf {
            Term::Before(a, b) => Some(Value::Bool(self.place[a] < self.place[b])),
            Term::Symbol(symbol) => {
                let any = || Value::zero(terms.symbol(*symbol).sort);
                Some(self.values.get(symbol).cloned().unwrap_or_else(any))
            }
            _ => None,
        };
        terms.evaluate(term, &environment).unwrap()
    }

    fn holds(&self, terms: &TermStore, formula: TermId) -> bool {
        self.value(terms, formula) == Value::Bool(true)
    }

    fn extends(&self, problem: &OrderProblem) -> bool {
        let chains = problem.chains.iter().flat_map(|c| c.windows(2).map(|w| (w[0], w[1])));
        chains.chain(problem.edges.iter().copied()).all(|(a, b)| self.place[&a] < self.place[&b])
    }

    /// The choices that fit the order.
    fn visible<'a>(&self, pi: &'a Pi) -> impl Iterator<Item = &'a (Option<EventId>, TermId)> {
        pi.choices.iter().filter(move |(definition, _)| {
            let read = self.place[&pi.event];
            let start = match definition {
                Some(definition) if self.place[definition] > read => return false,
                Some(definition) => self.place[definition] + 1,
                None => 0,
            };
            pi.interfering.iter().all(|write| !(start..read).contains(&self.place[write]))
        })
    }
}

/// All orders and values that satisfy chains, edges and π-functions.
fn worlds(problem: &OrderProblem, free: &[TermId]) -> Vec<World> {
    let mut orders = Vec::new();
    let mut next = vec![0; problem.chains.len()];
    linearise(problem, &mut next, &mut Vec::new(), &mut orders);
    let mut worlds = Vec::new();
    for order in orders {
        let place: HashMap<EventId, usize> =
            order.iter().enumerate().map(|(place, &event)| (event, place)).collect();
        let combinations: usize = free.iter().map(|&symbol| size(&problem.terms, symbol)).product();
        for mut combination in 0..combinations {
            let mut world = World { place: place.clone(), values: HashMap::new() };
            if !world.extends(problem) {
                break;
            }
            for &symbol in free {
                let size = size(&problem.terms, symbol);
                let (id, sort) = (id(&problem.terms, symbol), problem.terms.sort(symbol));
                let value = match sort {
                    Sort::BOOL => Value::Bool(combination % size == 1),
                    _ => Value::bit_vec(2, (combination % size) as u64),
                };
                world.values.insert(id, value);
                combination /= size;
            }
            if read_all(problem, &order, &mut world) {
                worlds.push(world);
            }
        }
    }
    worlds
}

fn size(terms: &TermStore, symbol: TermId) -> usize {
    if terms.sort(symbol) == Sort::BOOL { 2 } else { 4 }
}

fn id(terms: &TermStore, symbol: TermId) -> SymbolId {
    match terms.term(symbol) {
        Term::Symbol(id) => *id,
        _ => unreachable!(),
    }
}

fn linearise(
    problem: &OrderProblem,
    next: &mut Vec<usize>,
    order: &mut Vec<EventId>,
    orders: &mut Vec<Vec<EventId>>,
) {
    let mut done = true;
    for chain in 0..next.len() {
        if let Some(&event) = problem.chains[chain].get(next[chain]) {
            done = false;
            next[chain] += 1;
            order.push(event);
            linearise(problem, next, order, orders);
            order.pop();
            next[chain] -= 1;
        }
    }
    if done {
        orders.push(order.clone());
    }
}

/// Runs the reads in order; false if an active one has nothing to read.
fn read_all(problem: &OrderProblem, order: &[EventId], world: &mut World) -> bool {
    for &event in order {
        for pi in problem.pis.iter().filter(|pi| pi.event == event) {
            if !world.holds(&problem.terms, pi.active) {
                continue;
            }
            let Some(&(_, value)) = world.visible(pi).next() else { return false };
            let value = world.value(&problem.terms, value);
            world.values.insert(id(&problem.terms, pi.symbol), value);
        }
    }
    true
}

/// Checks a solution without any solver.
fn verify(problem: &OrderProblem, terms: &TermStore, model: &Model, formulas: &[TermId]) {
    let mut events: Vec<EventId> = problem.chains.iter().flatten().copied().collect();
    let mut order = model.order.clone();
    events.sort();
    order.sort();
    assert_eq!(order, events, "the order has all events once");
    let place = model.order.iter().enumerate().map(|(place, &event)| (event, place)).collect();
    let world = World { place, values: model.values.clone() };
    assert!(world.extends(problem), "chains and edges hold");
    for pi in &problem.pis {
        if world.holds(terms, pi.active) {
            let seen = world.value(terms, pi.symbol);
            let right = world.visible(pi).any(|&(_, value)| world.value(terms, value) == seen);
            assert!(right, "{:?} reads what it should", pi.event);
        }
    }
    for &formula in formulas {
        assert!(world.holds(terms, formula), "every formula holds");
    }
}

fn run(seed: u64, with_z3: bool) -> [usize; 2] {
    let mut random = Random(seed);
    let Case { problem, events, reads, free } = case(&mut random);
    let facts = Facts { events, reads, free };
    let worlds = worlds(&problem, &facts.free);
    let mut solvers: Vec<Box<dyn OrderSolver>> =
        vec![Box::new(Embedded::new(problem.clone()).unwrap())];
    if with_z3 {
        solvers.push(Box::new(z3(problem.clone()).unwrap()));
    }
    // solvers add terms of their own, so each has its own ids; the first are brute force's
    let mut terms = problem.terms.clone();
    let mut asserted: Vec<Vec<TermId>> = vec![Vec::new(); 1 + solvers.len()];
    let mut counts = [0; 2];
    for _ in 0..6 {
        let formulas = |random: &mut Random, terms: &mut TermStore| -> (bool, Vec<TermId>) {
            let assert = random.chance(25);
            let count = usize::from(assert) + random.below(4);
            let formulas = (0..count).map(|_| formula(random, terms, &facts, 2)).collect();
            (assert, formulas)
        };
        let start = random.0;
        let (assert, mut assumptions) = formulas(&mut random, &mut terms);
        if assert {
            asserted[0].push(assumptions.remove(0));
        }
        let all: Vec<TermId> = asserted[0].iter().chain(&assumptions).copied().collect();
        let expected = worlds.iter().any(|world| all.iter().all(|&f| world.holds(&terms, f)));
        counts[usize::from(expected)] += 1;
        for (number, solver) in solvers.iter_mut().enumerate() {
            let (assert, mut theirs) = formulas(&mut Random(start), solver.terms());
            if assert {
                let formula = theirs.remove(0);
                asserted[number + 1].push(formula);
                solver.assert(formula);
            }
            match solver.check(&theirs, Budget::default()) {
                Answer::Satisfiable(model) => {
                    assert!(expected, "solver {number} says satisfiable");
                    let all: Vec<TermId> =
                        asserted[number + 1].iter().chain(&theirs).copied().collect();
                    verify(&problem, solver.terms(), &model, &all);
                }
                Answer::Unsatisfiable { core } => {
                    assert!(!expected, "solver {number} says unsatisfiable");
                    assert!(core.iter().all(|part| theirs.contains(part)));
                    let pairs = assumptions.iter().zip(&theirs);
                    let ours: Vec<TermId> =
                        pairs.filter(|(_, t)| core.contains(t)).map(|(&ours, _)| ours).collect();
                    let all: Vec<TermId> = asserted[0].iter().chain(&ours).copied().collect();
                    let enough = !worlds.iter().any(|w| all.iter().all(|&f| w.holds(&terms, f)));
                    assert!(enough, "the core of solver {number} is enough");
                }
                Answer::Unknown(reason) => panic!("solver {number}: {reason:?}"),
            }
        }
    }
    counts
}

fn cases(usual: u64) -> u64 {
    std::env::var("FORETELL_PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

fn run_all(seeds: std::ops::Range<u64>, with_z3: bool) {
    let mut counts = [0; 2];
    for seed in seeds {
        let result = std::panic::catch_unwind(|| run(seed, with_z3));
        match result {
            Ok(more) => counts = [counts[0] + more[0], counts[1] + more[1]],
            Err(panic) => {
                eprintln!("seed {seed} fails");
                std::panic::resume_unwind(panic);
            }
        }
    }
    println!("{} unsatisfiable, {} satisfiable", counts[0], counts[1]);
    assert!(counts[0] > 10 && counts[1] > 10, "both answers occur");
}

#[test]
fn embedded_agrees_with_brute_force() {
    run_all(0..cases(1000), false);
}

#[test]
fn embedded_and_z3_agree_with_brute_force() {
    run_all(1_000_000..1_000_000 + cases(1000) / 10, true);
}
