//! Steps of a run in the order that breaks the program.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::is_zero;

/// Recorded and predicted order of the events that matter. The numbers are those of
/// [`Event::id`], which is the recorded order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// Events before the first one here, which both orders share and which are left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: usize,
    /// As they took place.
    pub recorded: Vec<u32>,
    /// As they take place in the prediction.
    pub predicted: Vec<u32>,
    /// What the threads stand before when the predicted order is done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<u32>,
    /// Events of the predicted order that overtook another thread's event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<u32>,
    /// The few steps that tell the story.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<u32>,
    /// Values in the predicted order that differ from the recorded ones; `?` where they are not known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<u32, String>,
    /// Who wrote what a read returns, in both orders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads_from: Vec<ReadsFrom>,
}

impl Timeline {
    /// Its events have greater numbers, by `first`.
    pub(crate) fn renumber(&mut self, first: u32) {
        let lists = [
            &mut self.recorded,
            &mut self.predicted,
            &mut self.next,
            &mut self.moved,
            &mut self.steps,
        ];
        lists.into_iter().flatten().for_each(|id| *id += first);
        let values = std::mem::take(&mut self.values);
        self.values = values.into_iter().map(|(id, value)| (id + first, value)).collect();
        for read in &mut self.reads_from {
            read.read += first;
            read.recorded = read.recorded.map(|write| write + first);
            read.predicted = read.predicted.map(|write| write + first);
        }
    }
}

/// Who wrote what a read returns; absent for the initial value and for writes that are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadsFrom {
    /// The read.
    pub read: u32,
    /// The write, as recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<u32>,
    /// The write, as predicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted: Option<u32>,
}

/// An event of a timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its place in the recorded order.
    pub id: u32,
    /// The thread's number, see [`TraceSummary::thread_names`](super::TraceSummary::thread_names).
    pub thread: u32,
    /// A word of the text format: `read`, `acquire`, ...
    pub op: String,
    /// The variable, lock, thread or block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The recorded value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The source file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The call that it is in, by its number in [`Report::frames`](super::Report::frames).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<u32>,
    /// The locks that its thread holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<String>,
}

/// A call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The call it was made in, by number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<u32>,
    /// The function that was called.
    pub function: String,
    /// Where it was called from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Where it was called from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}
