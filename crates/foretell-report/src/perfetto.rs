//! A trace for the Perfetto UI: for each finding two processes, the recorded and the predicted order,
//! with a track for each thread, a track below it for each lock it holds, and flows from each write
//! to the reads that return it.
//!
//! There is no clock in an interleaving, so every event takes one microsecond. The few messages that
//! are needed are written by hand; the numbers are those of Perfetto's `trace_packet.proto`,
//! `track_descriptor.proto` and `track_event.proto`, and a test reads the file back with Perfetto's
//! own definitions.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use crate::report::{Report, Timeline};
use crate::story;

/// A protobuf message under construction.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn number(mut self, field: u64, number: u64) -> Self {
        self.varint(field << 3);
        self.varint(number);
        self
    }

    fn fixed64(mut self, field: u64, number: u64) -> Self {
        self.varint(field << 3 | 1);
        self.0.extend(number.to_le_bytes());
        self
    }

    fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    fn message(self, field: u64, message: Message) -> Self {
        self.bytes(field, &message.0)
    }
}

/// Nanoseconds that an event takes.
const EVENT: u64 = 1_000;

const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;

/// Writes the trace.
pub fn render(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let mut tracks = Tracks::default();
    for (number, entry) in story::entries(report).into_iter().enumerate() {
        let Some(timeline) = &entry.finding.timeline else { continue };
        let headline = format!("{}. {}", number + 1, story::headline(entry.finding));
        let predicted: Vec<u32> =
            timeline.predicted.iter().chain(&timeline.next).copied().collect();
        tracks.order(report, timeline, &headline, &timeline.recorded, false);
        tracks.order(report, timeline, &headline, &predicted, true);
    }
    // Stable: an end at the same time as a begin was pushed before it.
    tracks.events.sort_by_key(|(time, _)| *time);
    let packets = tracks.descriptors.into_iter().chain(
        tracks
            .events
            .into_iter()
            .map(|(time, event)| Message::default().number(8, time).message(11, event)),
    );
    for packet in packets {
        let packet = packet.number(10, 1);
        out.write_all(&Message::default().message(1, packet).0)?;
    }
    Ok(())
}

#[derive(Default)]
struct Tracks {
    descriptors: Vec<Message>,
    events: Vec<(u64, Message)>,
    last_track: u64,
    last_process: u64,
    last_flow: u64,
}

impl Tracks {
    fn track(&mut self, descriptor: impl FnOnce(Message) -> Message) -> u64 {
        self.last_track += 1;
        let track = Message::default().number(1, self.last_track);
        self.descriptors.push(Message::default().message(60, descriptor(track)));
        self.last_track
    }

    fn order(
        &mut self,
        report: &Report,
        timeline: &Timeline,
        headline: &str,
        order: &[u32],
        predicted: bool,
    ) {
        self.last_process += 1;
        let process = self.last_process;
        let which = if predicted { "predicted" } else { "recorded" };
        let name = format!("{which}: {headline}");
        self.track(|track| track.message(3, Message::default().number(1, process).text(6, &name)));
        let mut threads: BTreeMap<u32, u64> = BTreeMap::new();
        let mut locks: BTreeMap<(u32, String), u64> = BTreeMap::new();
        let mut held: BTreeMap<(u32, String), u64> = BTreeMap::new();
        let mut flows: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        let mut ends: BTreeMap<u32, u64> = BTreeMap::new();
        let here: BTreeSet<u32> = order.iter().copied().collect();
        let moved: BTreeSet<u32> = timeline.moved.iter().copied().collect();
        for read in &timeline.reads_from {
            let write = if predicted { read.predicted } else { read.recorded };
            if let Some(write) = write
                && here.contains(&write)
                && here.contains(&read.read)
            {
                self.last_flow += 1;
                flows.entry(write).or_default().push(self.last_flow);
                ends.insert(read.read, self.last_flow);
            }
        }
        for (row, &id) in order.iter().enumerate() {
            let Some(event) = report.event(id) else { continue };
            let time = row as u64 * EVENT;
            let thread = *threads.entry(event.thread).or_insert_with(|| {
                let name = report.thread_name(event.thread);
                let number = u64::from(event.thread) + 1 + process * 1_000;
                let thread = Message::default().number(1, process).number(2, number).text(5, &name);
                self.track(|track| track.message(4, thread))
            });
            // A lock that is no longer held ended before this event.
            let gone: Vec<_> = held
                .keys()
                .filter(|(owner, lock)| *owner == event.thread && !event.locks.contains(lock))
                .cloned()
                .collect();
            for key in gone {
                let track = held.remove(&key).expect("it is one of its keys");
                self.slice_end(time, track);
            }
            for lock in &event.locks {
                let key = (event.thread, lock.clone());
                if held.contains_key(&key) {
                    continue;
                }
                let track = *locks.entry(key.clone()).or_insert_with(|| {
                    self.track(|track| track.number(5, thread).text(2, &format!("lock {lock}")))
                });
                held.insert(key, track);
                let begin = Message::default().number(9, SLICE_BEGIN).number(11, track);
                self.events.push((time, begin.text(22, "lock").text(23, &format!("holds {lock}"))));
            }
            let text = story::event_text(event, predicted.then_some(timeline));
            let category = match moved.contains(&id) {
                true => "moved",
                false => "event",
            };
            let mut begin = Message::default()
                .number(9, SLICE_BEGIN)
                .number(11, thread)
                .text(22, category)
                .text(23, &text);
            let facts = [
                ("place", story::place(event.file.as_deref(), event.line)),
                ("function", event.function.clone()),
                ("event", Some(id.to_string())),
            ];
            for (name, value) in facts {
                if let Some(value) = value {
                    begin = begin.message(4, Message::default().text(10, name).text(6, &value));
                }
            }
            for flow in flows.get(&id).into_iter().flatten() {
                begin = begin.fixed64(47, *flow);
            }
            if let Some(flow) = ends.get(&id) {
                begin = begin.fixed64(48, *flow);
            }
            self.events.push((time, begin));
            self.slice_end(time + EVENT * 9 / 10, thread);
        }
        for track in held.into_values() {
            self.slice_end(order.len() as u64 * EVENT, track);
        }
    }

    fn slice_end(&mut self, time: u64, track: u64) {
        self.events.push((time, Message::default().number(9, SLICE_END).number(11, track)));
    }
}

#[cfg(test)]
mod tests {
    use super::Message;

    #[test]
    fn numbers_are_varints_as_in_the_protobuf_documentation() {
        // Message { 1: 150 } and Message { 2: "testing" }.
        assert_eq!(Message::default().number(1, 150).0, [0x08, 0x96, 0x01]);
        assert_eq!(Message::default().text(2, "testing").0, b"\x12\x07testing");
        assert_eq!(Message::default().fixed64(1, 1).0, [9, 1, 0, 0, 0, 0, 0, 0, 0]);
    }
}
