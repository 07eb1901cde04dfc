//! Predicts from traces within the time of a test: a prediction that takes too long, fails or panics loses nothing else.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use foretell_predict::{PredictError, Prediction, predict_together};
use foretell_trace::Trace;

use crate::bounded::{Lost, bounded};
use crate::session::{Options, TestError};

/// Predicts from traces, within the time of a test.
#[derive(Clone, Copy)]
pub(crate) struct Predictor<'a> {
    pub options: &'a Options,
    pub started: Instant,
    /// Something is ordered by a library that is not seen.
    pub is_outside: bool,
}

impl Predictor<'_> {
    /// What can be predicted from the trace of a class of paths, besides what is of no interest any more
    /// (`Campaign::settled`).
    pub fn predict_class(
        self,
        trace: &Arc<Trace>,
        settled: HashSet<String>,
    ) -> Result<Prediction, TestError> {
        self.predict(trace, move |trace, options| predict_together(trace, options, &settled))
    }

    /// What can be predicted from the trace, by this function.
    pub fn predict(
        self,
        trace: &Arc<Trace>,
        predict: impl FnOnce(&Trace, &foretell_predict::Options) -> Result<Prediction, PredictError>
        + Send
        + 'static,
    ) -> Result<Prediction, TestError> {
        if self.is_outside {
            // What is ordered by means that are not seen would be predicted in any order.
            let unseen = trace.metadata.gaps.iter().map(ToString::to_string).collect();
            return Ok(Prediction { unseen, ..Prediction::default() });
        }
        let mut options = self.options.predict.clone();
        let (time, elapsed) = (self.options.time, self.started.elapsed());
        // Half of the time is for runs. A single question may take longer than what was left when it
        // was asked.
        let asking = (time / 2).max(elapsed + time.saturating_sub(elapsed) / 2);
        options.deadline = self.started.checked_add(asking);
        let left = (asking + time.saturating_sub(asking) / 4).saturating_sub(elapsed);
        let trace = Arc::clone(trace);
        result(bounded(left, move || predict(&trace, &options)))
    }
}

/// The result of work that was bounded, as one of the test.
fn result<T>(done: Result<Result<T, PredictError>, Lost>) -> Result<T, TestError> {
    match done {
        Ok(result) => result.map_err(TestError::Predict),
        Err(Lost::Late) => Err(TestError::Late),
        Err(Lost::Panicked(why)) => Err(TestError::Internal(why)),
    }
}

#[cfg(test)]
mod tests {
    use foretell_solve::SolveError;

    use super::*;

    /// Whatever becomes of a prediction, it is an answer: what was found before stays.
    #[test]
    fn a_prediction_that_fails_panics_or_takes_too_long_is_an_error_like_others() {
        let options = Options::default();
        let started = Instant::now();
        let predictor = Predictor { options: &options, started, is_outside: false };
        let trace = Arc::new(Trace::default());
        let failed = predictor
            .predict(&trace, |_, _| Err(PredictError::Solver(SolveError::Leaf("no".into()))));
        assert!(matches!(failed, Err(TestError::Predict(_))), "{failed:?}");
        let panicked = predictor.predict(&trace, |trace, _| {
            let past_the_end = trace.events.len();
            let event = &trace.events[past_the_end];
            panic!("{event:?}")
        });
        assert!(matches!(panicked, Err(TestError::Internal(_))), "{panicked:?}");
        let no_time = Options { time: std::time::Duration::ZERO, ..Options::default() };
        let predictor = Predictor { options: &no_time, ..predictor };
        let late = predictor.predict(&trace, |_, _| {
            loop {
                std::thread::park();
            }
        });
        assert!(matches!(late, Err(TestError::Late)), "{late:?}");
    }
}
