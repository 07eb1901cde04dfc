//! What a test has found so far, for whoever has to report before the test is over.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foretell_explore::{Doubt, Exploration};
use foretell_predict::Prediction;
use foretell_trace::Trace;

use crate::run::Run;
use crate::session::{Counts, Session, Tested};

/// What was found so far; clones are about the same test.
#[derive(Clone, Debug, Default)]
pub struct SoFar(Arc<Mutex<State>>);

#[derive(Debug, Default)]
enum State {
    /// Nothing was recorded yet.
    #[default]
    Nothing,
    Begun(Box<Session>),
    Over(Arc<Session>),
}

impl SoFar {
    /// The program was recorded.
    pub(crate) fn begin(&self, recorded: &Run) {
        let gaps = recorded.trace.metadata.gaps.iter().map(ToString::to_string);
        let late = "the time limit was over before the test came to a close: what was found until then is \
                    reported (--time-limit)";
        *self.state() = State::Begun(Box::new(Session {
            recorded: recorded.clone(),
            prediction: Prediction::default(),
            bases: vec![recorded.trace.clone()],
            tested: Vec::new(),
            open: Vec::new(),
            unseen: [late.to_owned()].into_iter().chain(gaps).collect(),
            errors: Vec::new(),
            exploration: Exploration {
                classes: 1,
                open: [(Doubt::Limit, 1)].into(),
                ..Exploration::default()
            },
            counts: Counts { runs: 1, runs_made: 1, behaviours: 1, ..Counts::default() },
            was_ended: true,
        }));
    }

    /// A finding that counts, about a trace.
    pub(crate) fn found(&self, tested: &Tested, base: &Trace) {
        let mut state = self.state();
        let State::Begun(session) = &mut *state else { return };
        let same = |known: &Tested| {
            known.finding.kind == tested.finding.kind && known.ended == tested.ended
        };
        if session.tested.iter().any(|known| known.is_recorded() && same(known)) {
            return;
        }
        let known = session.bases.iter().position(|known| known == base);
        let base = known.unwrap_or_else(|| {
            session.bases.push(base.clone());
            session.bases.len() - 1
        });
        session.counts.runs = session.counts.runs.max(tested.runs_before + 1);
        session.counts.runs_made = session.counts.runs;
        session.tested.push(Tested { base, ..tested.clone() });
    }

    /// The test is over.
    pub fn finish(&self, session: Arc<Session>) {
        *self.state() = State::Over(session);
    }

    /// What was found until now, once; `None` where nothing was recorded yet, and that may still come.
    pub fn take(&self) -> Option<Arc<Session>> {
        match std::mem::take(&mut *self.state()) {
            State::Nothing => None,
            State::Begun(session) => Some(Arc::from(session)),
            State::Over(session) => Some(session),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
