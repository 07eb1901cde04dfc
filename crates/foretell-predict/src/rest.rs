//! The other instances of a question: when none of those that were asked about first is possible,
//! the answer has to hold for all of them.
//!
//! In a loop there is an instance for each pair of iterations, tens of thousands of them, and an exact
//! goal for each would cost more than all the rest. So three accesses or a race are asked about in one
//! question that looks at the order only: can any of the instances come about at all? If not, all are
//! decided. If so, the instances that the answer shows are asked about exactly, and the question is
//! put again without them. Instances of other kinds are as many as events at most; they are asked
//! about exactly, in parts.
//!
//! Guaranteed: "impossible" holds for every instance. What time or the number of rounds left undecided
//! is counted.

use foretell_trace::{EventId, TermId};

use crate::asking::{Answered, Asker, Way};
use crate::engine::Verdict;
use crate::goal::{Goal, GoalBuilder};
use crate::limits::{INSTANCES_AT_ONCE, MOST_ROUNDS};
use crate::options::Options;
use crate::predict::PredictError;
use crate::question::{Instance, Question, Subject};

/// What became of a question whose first instances are impossible.
pub(crate) enum Rest {
    /// None of the others is possible.
    Impossible,
    /// So many were not decided.
    Undecided(u64),
}

/// A question and those of its instances that are not decided yet.
struct Left<'q> {
    question: &'q Question,
    number: usize,
    instances: Vec<Instance>,
    done: bool,
}

/// Who is told what came out.
pub(crate) trait Listener {
    /// One of these instances is possible, or an answer was refused.
    fn answered(&mut self, question: &Question, instances: &[Instance], answer: Answered<'_>);

    /// This is known about the other instances of a question whose first ones are impossible.
    fn decided(&mut self, question: &Question, rest: Rest);
}

/// Asks about the rest of the questions.
pub(crate) fn ask(
    asker: &mut Asker<'_>,
    questions: &[&Question],
    options: &Options,
    listener: &mut dyn Listener,
) -> Result<(), PredictError> {
    let mut left: Vec<Left<'_>> = questions
        .iter()
        .enumerate()
        .map(|(number, &question)| Left {
            question,
            number,
            instances: question.rest.clone(),
            done: false,
        })
        .collect();
    for _ in 0..MOST_ROUNDS.max(most_parts(&left)) {
        left.retain(|left| !left.done);
        if left.is_empty() || options.is_late() {
            break;
        }
        let chosen = choose(asker, &mut left, listener)?;
        let ways: Vec<&[Instance]> = chosen.iter().map(|(_, part)| part.as_slice()).collect();
        asker.ask(&ways, &mut |asked, answer| {
            let (place, part) = &chosen[asked];
            let left = &mut left[*place];
            match answer.verdict {
                Verdict::Impossible { .. } => {
                    left.instances.retain(|instance| !part.contains(instance));
                    if left.instances.is_empty() {
                        left.done = true;
                        listener.decided(left.question, Rest::Impossible);
                    }
                }
                Verdict::Unknown(_) => {
                    left.done = true;
                    let undecided = left.instances.len() as u64;
                    listener.decided(left.question, Rest::Undecided(undecided));
                }
                Verdict::Possible(..) | Verdict::Refused(_) => {
                    left.done = true;
                    listener.answered(left.question, part, answer);
                }
            }
        })?;
    }
    for left in left.into_iter().filter(|left| !left.done) {
        listener.decided(left.question, Rest::Undecided(left.instances.len() as u64));
    }
    Ok(())
}

/// Rounds that exact questions in parts need.
fn most_parts(left: &[Left<'_>]) -> usize {
    let exact = left.iter().filter(|left| !is_about_order(&left.instances));
    exact.map(|left| left.instances.len().div_ceil(INSTANCES_AT_ONCE)).max().unwrap_or(0)
}

fn is_about_order(instances: &[Instance]) -> bool {
    instances.iter().all(|instance| instance.shape.has_order())
}

/// The instances of each question that are to be asked about exactly now. Questions that the order
/// alone decides are done.
fn choose(
    asker: &mut Asker<'_>,
    left: &mut [Left<'_>],
    listener: &mut dyn Listener,
) -> Result<Vec<(usize, Vec<Instance>)>, PredictError> {
    let mut chosen: Vec<(usize, Vec<Instance>)> = Vec::new();
    let mut orders: Vec<(usize, [AnyOf; 1])> = Vec::new();
    for (place, left) in left.iter().enumerate() {
        match is_about_order(&left.instances) {
            true => orders.push((place, [AnyOf(left.instances.clone())])),
            false => {
                let part = left.instances.iter().take(INSTANCES_AT_ONCE).cloned().collect();
                chosen.push((place, part));
            }
        }
    }
    let ways: Vec<&[AnyOf]> = orders.iter().map(|(_, any)| any.as_slice()).collect();
    if ways.is_empty() {
        return Ok(chosen);
    }
    asker.ask(&ways, &mut |asked, answer| {
        let place = orders[asked].0;
        let left = &mut left[place];
        match answer.verdict {
            Verdict::Possible(_, witness) => {
                let order = |event: EventId| {
                    let event = answer.ctp.event_of(event)?;
                    witness.order.iter().position(|&taken| taken == event)
                };
                let shown = |instance: &&Instance| {
                    instance.shape.is_in(answer.ctp, &order, &instance.events)
                };
                let mut part: Vec<Instance> =
                    left.instances.iter().filter(shown).take(INSTANCES_AT_ONCE).cloned().collect();
                if part.is_empty() {
                    part.extend(left.instances.first().cloned());
                }
                chosen.push((place, part));
            }
            Verdict::Impossible { .. } => {
                left.done = true;
                listener.decided(left.question, Rest::Impossible);
            }
            Verdict::Unknown(_) | Verdict::Refused(_) => {
                left.done = true;
                listener.decided(left.question, Rest::Undecided(left.instances.len() as u64));
            }
        }
    })?;
    chosen.sort_by_key(|(place, _)| left[*place].number);
    Ok(chosen)
}

/// One of the instances comes about, whatever the values are.
#[derive(Clone, Debug)]
struct AnyOf(Vec<Instance>);

impl Way for AnyOf {
    fn goal(&self, subject: &Subject<'_>) -> Option<Goal> {
        let mut builder = GoalBuilder::new(subject.ctp);
        let mut ways: Vec<TermId> = Vec::new();
        for instance in &self.0 {
            let events: Option<Vec<EventId>> =
                instance.events.iter().map(|&event| subject.ctp.event_of(event)).collect();
            let Some(events) = events.filter(|_| !subject.is_excluded(instance)) else { continue };
            let parts = instance.shape.order(&mut builder, &events);
            let Some(parts) = parts else { continue };
            ways.push(builder.terms.and(&parts));
        }
        let formula = builder.terms.or(&ways);
        let goal = builder.finish(formula);
        (!goal.is_impossible()).then_some(goal)
    }

    fn window(&self) -> &[EventId] {
        self.0.first().map_or(&[], |instance| &instance.events)
    }
}
