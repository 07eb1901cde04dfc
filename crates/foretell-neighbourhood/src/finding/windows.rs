//! Parts of a trace around a finding, largest first.

use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_model::replay::Replay;
use foretell_predict::Finding;
use foretell_trace::{EventId, Trace};

use crate::explain::ExplainError;
use crate::limits::LARGEST_WHOLE;

/// Events around a finding that a window has on each side, largest first.
const RADII: [usize; 5] = [2000, 400, 100, 20, 0];

/// Windows of the trace with the finding in them, largest first.
pub(super) struct Windows<'t> {
    trace: &'t Trace,
    borders: std::vec::IntoIter<Option<(EventId, EventId)>>,
}

impl<'t> Windows<'t> {
    pub(super) fn new(trace: &'t Trace, finding: &Finding, events: &[EventId]) -> Self {
        let mut borders = Vec::new();
        if trace.events.len() <= LARGEST_WHOLE || !trace.metadata.observed_order {
            borders.push(None);
        }
        if trace.metadata.observed_order {
            let schedule = finding.schedule.as_ref();
            let involved = schedule.map_or(events.to_vec(), |schedule| {
                schedule.order.iter().chain(&schedule.next).chain(events).copied().collect()
            });
            let mut add = |events: &[EventId]| {
                let (Some(first), Some(last)) = (events.iter().min(), events.iter().max()) else {
                    return;
                };
                for radius in RADII {
                    let from = first.index().saturating_sub(radius);
                    let to = (last.index() + radius.max(50)).min(trace.events.len() - 1);
                    let window = Some((EventId::from(from), EventId::from(to)));
                    let whole = from == 0 && to == trace.events.len() - 1;
                    let known = whole && borders.contains(&None);
                    if !known && !borders.contains(&window) {
                        borders.push(window);
                    }
                }
            };
            add(&involved);
            add(events);
        }
        Self { trace, borders: borders.into_iter() }
    }
}

type Window = (Option<(EventId, EventId)>, Result<ConcurrentTraceProgram, ExplainError>);

impl Iterator for Windows<'_> {
    type Item = Window;

    fn next(&mut self) -> Option<Window> {
        let border = self.borders.next()?;
        let build = || match border {
            None => ConcurrentTraceProgram::build(self.trace),
            Some((from, to)) => {
                let mut start = Replay::new(self.trace)?;
                start.advance_to(from)?;
                let events: Vec<EventId> = (from.index()..=to.index()).map(EventId::from).collect();
                ConcurrentTraceProgram::build_window(&start, &events)
            }
        };
        Some((border, build().map_err(ExplainError::from)))
    }
}
