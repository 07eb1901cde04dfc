//! How a front end builds a program, edge by edge.

use foretell_trace::{Operator, Sort, Term, TermId, TermStore, VariableId};

use super::{Edge, Location, Place, Program, Thread, VARIABLES, Variable, Visible};

/// Builds a program edge by edge.
pub struct Builder {
    /// What has been built.
    pub program: Program,
    atomic: usize,
}

impl Builder {
    /// A program without threads.
    pub fn new(file: &str) -> Self {
        let mut terms = TermStore::default();
        let initially = terms.bool(true);
        Self {
            program: Program {
                terms,
                file: file.into(),
                variables: Vec::new(),
                initially,
                threads: Vec::new(),
                edges: Vec::new(),
            },
            atomic: 0,
        }
    }

    /// The terms of the program.
    pub fn terms(&mut self) -> &mut TermStore {
        &mut self.program.terms
    }

    /// A new variable, as a term; `None` when there are too many.
    pub fn variable(
        &mut self,
        name: impl Into<Box<str>>,
        local_of: Option<usize>,
        initial: Option<i128>,
    ) -> Option<TermId> {
        let id = self.program.variables.len();
        if id == VARIABLES {
            return None;
        }
        // functions are inlined, and blocks may reuse a name: a proof calls variables by theirs
        let said: Box<str> = name.into();
        let mut name = said.clone();
        let taken = |name: &str| self.program.variables.iter().any(|v| &*v.name == name);
        for again in 2.. {
            if !taken(&name) {
                break;
            }
            name = format!("{said}#{again}").into();
        }
        self.program.variables.push(Variable { name, local_of, initial });
        Some(self.program.terms.variable(VariableId::from(id), Sort::INT))
    }

    /// A value that the environment chooses.
    pub fn input(&mut self) -> TermId {
        let name = format!("input{}", self.program.terms.symbol_count());
        self.program.terms.fresh_symbol(name, Sort::INT)
    }

    /// A new thread.
    pub fn thread(&mut self, name: impl Into<Box<str>>, initial: bool) -> usize {
        self.program.threads.push(Thread {
            name: name.into(),
            initial,
            locations: 4,
            idle: 0,
            entry: 1,
            exit: 2,
            error: 3,
            dead: None,
            atomic: vec![false; 4],
            loop_head: vec![false; 4],
            total: Vec::new(),
            outgoing: Vec::new(),
        });
        self.program.threads.len() - 1
    }

    /// A new location.
    pub fn location(&mut self, thread: usize) -> Location {
        let inside = self.atomic > 0;
        let thread = &mut self.program.threads[thread];
        thread.locations += 1;
        thread.atomic.push(inside);
        thread.loop_head.push(false);
        thread.locations - 1
    }

    /// The location of a thread in which the whole program has ended: nobody moves any more.
    pub fn dead(&mut self, thread: usize) -> Location {
        if let Some(dead) = self.program.threads[thread].dead {
            return dead;
        }
        let dead = self.location(thread);
        let thread = &mut self.program.threads[thread];
        thread.atomic[dead] = true;
        thread.dead = Some(dead);
        dead
    }

    /// Locations made from now on are inside an atomic section, until [`Builder::end_atomic`].
    pub fn begin_atomic(&mut self) {
        self.atomic += 1;
    }

    /// Ends the innermost atomic section; returns whether there was one.
    pub fn end_atomic(&mut self) -> bool {
        let inside = self.atomic > 0;
        self.atomic = self.atomic.saturating_sub(1);
        inside
    }

    /// A loop comes back to the location.
    pub fn loop_head(&mut self, thread: usize, location: Location) {
        self.program.threads[thread].loop_head[location] = true;
    }

    /// A new edge without guard, assignments and control; the caller fills it in.
    pub fn edge(&mut self, thread: usize, from: Location, to: Location, place: Place) -> &mut Edge {
        let guard = self.program.terms.bool(true);
        let id = self.program.edges.len();
        self.program.edges.push(Edge {
            thread,
            from,
            to,
            guard,
            assignments: Vec::new(),
            inputs: Vec::new(),
            starts: None,
            awaits: None,
            place,
            text: "".into(),
            visible: Visible::No,
            parts: vec![id],
        });
        &mut self.program.edges[id]
    }

    /// The program of small edges.
    pub fn finish(mut self) -> Program {
        let program = &mut self.program;
        for thread in &mut program.threads {
            thread.outgoing = vec![Vec::new(); thread.locations];
        }
        for (id, edge) in program.edges.iter_mut().enumerate() {
            // inputs are the symbols that occur
            let terms = &program.terms;
            let used = edge.assignments.iter().map(|&(_, value)| value).chain([edge.guard]);
            let mut inputs: Vec<TermId> = used
                .flat_map(|term| terms.leaves(term))
                .filter(|&leaf| matches!(terms.term(leaf), Term::Symbol(_)))
                .collect();
            inputs.sort_unstable();
            inputs.dedup();
            edge.inputs = inputs;
            if !terms.is_false(edge.guard) {
                program.threads[edge.thread].outgoing[edge.from].push(id);
            }
        }
        for thread in &mut program.threads {
            thread.total = (0..thread.locations)
                .map(|location| {
                    let leaving = &thread.outgoing[location];
                    let waits = leaving.iter().any(|&edge| program.edges[edge].awaits.is_some());
                    let guards: Vec<TermId> =
                        leaving.iter().map(|&edge| program.edges[edge].guard).collect();
                    let some = program.terms.or(&guards);
                    !waits && program.terms.is_true(some)
                })
                .collect();
        }
        self.program
    }
}

/// `a < b`, written so that a formula and its negation are one term and its `not`.
pub fn less(terms: &mut TermStore, a: TermId, b: TermId) -> TermId {
    let not_less = terms.build(Operator::Le, &[b, a]);
    terms.not(not_less)
}
