//! Deciding the properties of classes of paths while others are looked for.
//!
//! What can go wrong in a class is a question of its own, and most of the work of an exploration. Nothing in
//! the search for other classes depends on the answers, but for runs of what was predicted, which may belong
//! to classes that are not known. So the questions are answered in other threads; the answers are taken in
//! the order of the classes, when they are there.

use std::collections::{HashSet, VecDeque};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Scope;

use foretell_predict::Prediction;
use foretell_trace::Trace;

use crate::bounded::guarded;
use crate::predictor::Predictor;
use crate::session::TestError;

type Answer = Result<Prediction, TestError>;
/// A trace, what of it is settled, and where the answer goes.
type Work = (Arc<Trace>, HashSet<String>, Sender<Answer>);

/// A class that is predicted from.
pub(crate) struct Class {
    pub number: usize,
    pub trace: Arc<Trace>,
    /// Its run came to its end.
    pub ended: bool,
}

/// Threads that predict.
pub(crate) struct Beside {
    /// To them; none: there are no threads.
    sender: Option<Sender<Work>>,
    waiting: VecDeque<(Class, Receiver<Answer>)>,
    /// So many classes may wait.
    most: usize,
}

impl Beside {
    /// Starts so many threads, which end when this is dropped. One alone would not be beside anything.
    pub fn new<'s>(scope: &'s Scope<'s, '_>, threads: usize, predictor: Predictor<'s>) -> Self {
        let (sender, work) = channel::<Work>();
        let work = Arc::new(Mutex::new(work));
        let mut begun = 0;
        for _ in 0..if threads > 1 { threads } else { 0 } {
            let work = Arc::clone(&work);
            let next = move || work.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let predict = move || {
                while let Ok((trace, settled, answer)) = next() {
                    let predicted = guarded(|| predictor.predict_class(&trace, settled));
                    let internal = |lost: crate::bounded::Lost| {
                        TestError::Internal(lost.panic().unwrap_or_default())
                    };
                    // Nobody may be waiting any more.
                    let _ = answer.send(predicted.unwrap_or_else(|lost| Err(internal(lost))));
                }
            };
            let thread = std::thread::Builder::new().name("predict".into());
            begun += usize::from(thread.spawn_scoped(scope, predict).is_ok());
        }
        let sender = (begun > 0).then_some(sender);
        Self { sender, waiting: VecDeque::new(), most: 4 * begun }
    }

    /// Takes a class, unless there is nobody to predict from it. `settled` is of no interest.
    pub fn take(&mut self, class: Class, settled: HashSet<String>) -> Result<(), Class> {
        let Some(sender) = &self.sender else { return Err(class) };
        let (answer, answered) = channel();
        match sender.send((Arc::clone(&class.trace), settled, answer)) {
            Ok(()) => {
                self.waiting.push_back((class, answered));
                Ok(())
            }
            Err(_) => Err(class),
        }
    }

    /// The next class and what was predicted from it, if that is known already or too many wait; `last`:
    /// all are waited for.
    pub fn next(&mut self, last: bool) -> Option<(Class, Answer)> {
        let (_, answered) = self.waiting.front()?;
        let gone = || Err(TestError::Internal("a thread went away".into()));
        let answer = match last || self.waiting.len() > self.most {
            true => answered.recv().unwrap_or_else(|_| gone()),
            false => match answered.try_recv() {
                Ok(answer) => answer,
                Err(TryRecvError::Empty) => return None,
                Err(TryRecvError::Disconnected) => gone(),
            },
        };
        self.waiting.pop_front().map(|(class, _)| (class, answer))
    }
}
