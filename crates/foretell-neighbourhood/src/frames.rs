//! Events in terms of the program's functions: which calls a thread was in, and where a region
//! begins and ends as seen from the innermost function that has both ends in one call.

use std::collections::HashSet;

use foretell_trace::{EventId, Op, ThreadId, Trace};

use crate::synthesis::Region;

/// The calls that each event of a trace lies in.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    /// By event: the innermost call it lies in, by number.
    call: Vec<Option<u32>>,
    calls: Vec<Call>,
    names: Vec<Box<str>>,
}

#[derive(Clone, Debug)]
struct Call {
    function: Box<str>,
    event: EventId,
    parent: Option<u32>,
    depth: u32,
}

/// One end of a region, seen from a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The event itself, in the function.
    Here(EventId),
    /// A call that the function makes.
    CallOf {
        /// What is called.
        function: Box<str>,
        /// The event of the call, or of the region's end inside it.
        event: EventId,
    },
}

/// A region as seen from one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The innermost function with both ends in one call; `None` where the trace has no calls.
    pub function: Option<Box<str>>,
    /// The event of that call.
    pub call: Option<EventId>,
    /// Where it begins.
    pub begin: End,
    /// Where it ends.
    pub end: End,
}

impl Frames {
    /// Of a trace.
    pub fn new(trace: &Trace) -> Self {
        let mut calls: Vec<Call> = Vec::new();
        let mut open: Vec<Option<u32>> = vec![None; trace.threads.len()];
        let mut call = Vec::with_capacity(trace.events.len());
        for (number, event) in trace.events.iter().enumerate() {
            let thread = event.thread.index();
            if let Op::Call(function) = &event.op {
                let parent = open[thread];
                let depth = parent.map_or(0, |parent| calls[parent as usize].depth + 1);
                let id = calls.len() as u32;
                let event = EventId::from(number);
                calls.push(Call { function: function.clone(), event, parent, depth });
                open[thread] = Some(id);
            }
            call.push(open[thread]);
            if let Op::Return = event.op {
                open[thread] = open[thread].and_then(|open| calls[open as usize].parent);
            }
        }
        Self { call, calls, names: trace.thread_names() }
    }

    /// What people call the thread: its name, or the function it began with.
    pub fn thread(&self, thread: ThreadId) -> &str {
        &self.names[thread.index()]
    }

    /// The function that the event lies in.
    pub fn function(&self, event: EventId) -> Option<&str> {
        self.call[event.index()].map(|call| self.calls[call as usize].function.as_ref())
    }

    /// Does the region run some statement of its function more than once? Then it begins in one
    /// iteration of a loop and ends in another, and the lines of its ends say nothing about its extent.
    pub fn crosses_iterations(&self, trace: &Trace, region: Region) -> bool {
        let thread = trace.event(region.first).thread;
        let frame = self.placement(region).call.map(|event| self.call[event.index()]);
        let mut seen = HashSet::new();
        let events = (region.first.index()..=region.last.index()).map(EventId::from);
        for event in events.filter(|&event| trace.event(event).thread == thread) {
            let Some(site) = trace.event(event).site else { continue };
            // A call is a statement of its caller.
            let of = match (&trace.event(event).op, self.call[event.index()]) {
                (Op::Call(_), Some(call)) => self.calls[call as usize].parent,
                (_, call) => call,
            };
            if frame.is_none_or(|frame| of == frame)
                && !seen.insert((site, trace.event(event).op.keyword()))
            {
                return true;
            }
        }
        false
    }

    /// The region as seen from the innermost function with both ends in one call.
    pub fn placement(&self, region: Region) -> Placement {
        let (mut a, mut b) = (self.call[region.first.index()], self.call[region.last.index()]);
        let (mut inner_a, mut inner_b) = (None, None);
        let call = |id: u32| &self.calls[id as usize];
        while a != b {
            let deeper_a = match (a, b) {
                (Some(a), Some(b)) => call(a).depth >= call(b).depth,
                (a, _) => a.is_some(),
            };
            match (deeper_a, a, b) {
                (true, Some(id), _) => {
                    inner_a = Some(id);
                    a = call(id).parent;
                }
                (_, _, Some(id)) => {
                    inner_b = Some(id);
                    b = call(id).parent;
                }
                _ => break,
            }
        }
        let end = |inner: Option<u32>, event: EventId| match inner {
            None => End::Here(event),
            Some(id) => End::CallOf { function: call(id).function.clone(), event: call(id).event },
        };
        Placement {
            function: a.map(|id| call(id).function.clone()),
            call: a.map(|id| call(id).event),
            begin: end(inner_a, region.first),
            end: end(inner_b, region.last),
        }
    }
}
