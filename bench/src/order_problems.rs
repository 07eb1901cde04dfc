//! Questions about orders, in the families that ../shared/design/solving.md measured: pure ordering,
//! `loop-N` and `bank-N`. A family is a tiny trace; reads may take any write's value.

use std::collections::HashMap;

use foretell_solve::{OrderProblem, Pi};
use foretell_trace::{EventId, Operator, Sort, TermId, TermStore};

/// A problem and the questions to ask of it.
pub struct Questions {
    /// For the table.
    pub name: String,
    /// The problem.
    pub problem: OrderProblem,
    /// Assumptions, one list for each question.
    pub assumptions: Vec<Vec<TermId>>,
}

/// A trace that grows event by event.
#[derive(Default)]
struct Builder {
    problem: OrderProblem,
    reads: Vec<(EventId, usize, TermId)>,
    writes: HashMap<usize, Vec<(EventId, TermId)>>,
    open: HashMap<(usize, usize), EventId>,
    sections: Vec<(usize, usize, EventId, EventId)>,
    events: usize,
}

impl Builder {
    fn terms(&mut self) -> &mut TermStore {
        &mut self.problem.terms
    }

    fn event(&mut self, thread: usize, name: String) -> EventId {
        let event = EventId::from(self.events);
        self.events += 1;
        while self.problem.chains.len() <= thread {
            self.problem.chains.push(Vec::new());
        }
        self.problem.chains[thread].push(event);
        self.problem.names.push(format!("T{thread}: {name}"));
        event
    }

    fn read(&mut self, thread: usize, variable: usize) -> (EventId, TermId) {
        let event = self.event(thread, format!("read v{variable}"));
        let symbol = self.terms().fresh_symbol(format!("v{variable}@{}", event.0), Sort::INT);
        self.reads.push((event, variable, symbol));
        (event, symbol)
    }

    fn write(&mut self, thread: usize, variable: usize, value: TermId) -> EventId {
        let event = self.event(thread, format!("write v{variable}"));
        self.writes.entry(variable).or_default().push((event, value));
        event
    }

    fn lock(&mut self, thread: usize, mutex: usize) {
        let event = self.event(thread, format!("lock m{mutex}"));
        self.open.insert((thread, mutex), event);
    }

    fn unlock(&mut self, thread: usize, mutex: usize) {
        let event = self.event(thread, format!("unlock m{mutex}"));
        let start = self.open.remove(&(thread, mutex)).expect("it was locked");
        self.sections.push((mutex, thread, start, event));
    }

    /// The first thread starts the others after `fork` and joins them before `join`.
    fn fork_join(&mut self, fork: EventId, join: Option<EventId>) {
        for chain in &self.problem.chains[1..] {
            self.problem.edges.push((fork, chain[0]));
            if let Some(join) = join {
                self.problem.edges.push((chain[chain.len() - 1], join));
            }
        }
    }

    fn finish(mut self) -> OrderProblem {
        let active = self.problem.terms.bool(true);
        for (event, variable, symbol) in self.reads {
            let writes = &self.writes[&variable];
            self.problem.pis.push(Pi {
                event,
                active,
                symbol,
                choices: writes.iter().map(|&(write, value)| (Some(write), value)).collect(),
                interfering: writes.iter().map(|write| write.0).collect(),
            });
        }
        for (index, a) in self.sections.iter().enumerate() {
            for b in &self.sections[index + 1..] {
                if a.0 == b.0 && a.1 != b.1 {
                    let terms = &mut self.problem.terms;
                    let (first, second) = (terms.before(a.3, b.2), terms.before(b.3, a.2));
                    self.problem.asserted.push(terms.or(&[first, second]));
                }
            }
        }
        self.problem
    }
}

/// Two threads do `t = x; x = t + 1` so often. `bad`: can an update get lost? `harmless`: can the
/// one in the middle get lost and the sum still be right?
pub fn counters(rounds: usize) -> [Questions; 2] {
    let mut builder = Builder::default();
    let zero = builder.terms().int(0);
    let one = builder.terms().int(1);
    let fork = builder.write(0, 0, zero);
    let mut middle = Vec::new();
    for thread in 1..=2 {
        for round in 0..rounds {
            let (read, symbol) = builder.read(thread, 0);
            let next = builder.terms().build(Operator::Add, &[symbol, one]);
            let write = builder.write(thread, 0, next);
            if round == rounds / 2 {
                middle.push((read, write));
            }
        }
    }
    let (join, last) = builder.read(0, 0);
    builder.fork_join(fork, Some(join));
    let terms = builder.terms();
    let all = terms.int(2 * rounds as i128);
    let good = terms.build(Operator::Eq, &[last, all]);
    let bad = terms.not(good);
    let ((read, write), (_, other)) = (middle[0], middle[1]);
    let lost = [terms.before(read, other), terms.before(other, write)];
    let problem = builder.finish();
    [
        Questions {
            name: format!("loop-{rounds} lost update"),
            problem: problem.clone(),
            assumptions: vec![vec![bad]],
        },
        Questions {
            name: format!("loop-{rounds} harmless"),
            problem,
            assumptions: vec![vec![good, lost[0], lost[1]]],
        },
    ]
}

/// Threads move money between four accounts, under locks; can the sum change? With `bug` the last
/// read of the last thread is outside of its lock.
pub fn bank(threads: usize, bug: bool) -> Questions {
    const ACCOUNTS: usize = 4;
    const TRANSFERS: usize = 2;
    let mut builder = Builder::default();
    let mut random = Random(12345);
    let start = builder.terms().int(10);
    let mut fork = EventId(0);
    for account in 0..ACCOUNTS {
        fork = builder.write(0, account, start);
    }
    for thread in 1..=threads {
        for transfer in 0..TRANSFERS {
            let from = random.below(ACCOUNTS);
            let to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
            for (account, change) in [(from, -1), (to, 1)] {
                let early = bug && thread == threads && transfer + 1 == TRANSFERS && change == 1;
                let before = early.then(|| builder.read(thread, account).1);
                builder.lock(thread, account);
                let seen = before.unwrap_or_else(|| builder.read(thread, account).1);
                let change = builder.terms().int(change);
                let value = builder.terms().build(Operator::Add, &[seen, change]);
                builder.write(thread, account, value);
                builder.unlock(thread, account);
            }
        }
    }
    let mut join = None;
    let mut balances = Vec::new();
    for account in 0..ACCOUNTS {
        let (event, balance) = builder.read(0, account);
        join.get_or_insert(event);
        balances.push(balance);
    }
    builder.fork_join(fork, join);
    let terms = builder.terms();
    let sum = terms.build(Operator::Add, &balances);
    let right = terms.int(10 * ACCOUNTS as i128);
    let good = terms.build(Operator::Eq, &[sum, right]);
    let bad = terms.not(good);
    Questions {
        name: format!("bank-{threads} {}", if bug { "with bug" } else { "correct" }),
        problem: builder.finish(),
        assumptions: vec![vec![bad]],
    }
}

/// A random run of four threads with locks; every read must see the value it saw. The questions are
/// atomicity violations: a foreign access between two of one thread.
pub fn ordering(steps: usize, questions: usize) -> Questions {
    const THREADS: usize = 4;
    const VARIABLES: usize = 5;
    const MUTEXES: usize = 3;
    let mut builder = Builder::default();
    let mut random = Random(steps as u64);
    let mut memory = [0usize; VARIABLES];
    let mut fork = EventId(0);
    let values: Vec<TermId> = (0..3).map(|value| builder.terms().int(value)).collect();
    for variable in 0..VARIABLES {
        fork = builder.write(0, variable, values[0]);
    }
    let mut held: [Option<(usize, usize)>; THREADS + 1] = [None; THREADS + 1];
    let mut done = [0; THREADS + 1];
    let mut asserted = Vec::new();
    let mut accesses: Vec<(EventId, usize, usize, bool)> = Vec::new();
    let mut thread = 1;
    while (1..=THREADS).any(|thread| done[thread] < steps || held[thread].is_some()) {
        if random.below(4) == 0 || (done[thread] >= steps && held[thread].is_none()) {
            thread = 1 + random.below(THREADS);
        }
        match held[thread] {
            Some((mutex, left)) if left == 0 || done[thread] >= steps => {
                builder.unlock(thread, mutex);
                held[thread] = None;
                done[thread] += 1;
                continue;
            }
            Some((mutex, left)) => held[thread] = Some((mutex, left - 1)),
            None if done[thread] >= steps => continue,
            None if random.below(4) == 0 => {
                let mutex = random.below(MUTEXES);
                if held.iter().flatten().any(|&(other, _)| other == mutex) {
                    thread = 1 + random.below(THREADS);
                } else {
                    builder.lock(thread, mutex);
                    held[thread] = Some((mutex, 2 + random.below(4)));
                    done[thread] += 1;
                }
                continue;
            }
            None => {}
        }
        done[thread] += 1;
        let variable = match held[thread] {
            Some((mutex, _)) if random.below(3) > 0 => mutex,
            _ => random.below(VARIABLES),
        };
        let write = random.below(2) == 0;
        let event = if write {
            memory[variable] = random.below(3);
            builder.write(thread, variable, values[memory[variable]])
        } else {
            let (event, symbol) = builder.read(thread, variable);
            let seen = values[memory[variable]];
            asserted.push(builder.terms().build(Operator::Eq, &[symbol, seen]));
            event
        };
        accesses.push((event, thread, variable, write));
    }
    builder.fork_join(fork, None);
    let mut assumptions = Vec::new();
    while assumptions.len() < questions {
        let index = random.below(accesses.len());
        let first = accesses[index];
        let mut later = accesses[index + 1..].iter();
        let Some(last) = later.find(|next| next.1 == first.1 && next.2 == first.2) else {
            continue;
        };
        let middle = accesses[random.below(accesses.len())];
        if middle.1 != first.1 && middle.2 == first.2 && (middle.3 || (first.3 && last.3)) {
            let terms = builder.terms();
            assumptions.push(vec![terms.before(first.0, middle.0), terms.before(middle.0, last.0)]);
        }
    }
    let events = builder.events;
    let mut problem = builder.finish();
    problem.asserted.extend(asserted);
    Questions { name: format!("order, {events} events"), problem, assumptions }
}

/// A linear congruential generator; the same problems everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % bound as u64) as usize
    }
}
