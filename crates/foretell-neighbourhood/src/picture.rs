//! The threads as columns with their events, and the ordering edges of a bad neighbourhood as arrows
//! between them: a picture for reports (SVG, self-contained).
//!
//! Only events that the formula, a summary or a fix mentions are drawn, with the thread's line in
//! between; each disjunct has a colour of its own. Every name is escaped.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use foretell_trace::{EventId, Trace};

use crate::explain::Explanation;
use crate::synthesis::Primitive;

const COLUMN: usize = 220;
const ROW: usize = 34;
const TOP: usize = 50;
/// Disjuncts beyond this are not drawn.
const DRAWN: usize = 12;
const COLOURS: [&str; 6] = ["#c0392b", "#2471a3", "#1e8449", "#b9770e", "#7d3c98", "#566573"];

/// Text that is safe inside an SVG element or attribute.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            control if control.is_control() => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

/// The picture.
pub fn svg(trace: &Trace, explanation: &Explanation) -> String {
    let mut drawn: BTreeSet<EventId> = BTreeSet::new();
    let disjuncts = &explanation.bad.clauses()[..explanation.bad.clauses().len().min(DRAWN)];
    for atom in disjuncts.iter().flatten() {
        drawn.extend([atom.before, atom.after]);
    }
    for primitive in explanation.synthesis.iter().flat_map(|synthesis| &synthesis.primitives) {
        match primitive {
            Primitive::Lock { regions } => {
                drawn.extend(regions.iter().take(DRAWN).flat_map(|r| [r.first, r.last]));
            }
            Primitive::WaitNotify { waiter, notifier } => drawn.extend([*waiter, *notifier]),
            Primitive::Barrier { events } => drawn.extend(events),
            Primitive::SharedExclusiveLock { shared, exclusive } => {
                drawn.extend(shared.iter().chain(exclusive).flat_map(|r| [r.first, r.last]));
            }
        }
    }
    drawn.extend(explanation.deadlock.iter().flatten());
    let mut columns: BTreeMap<usize, Vec<EventId>> = BTreeMap::new();
    for &event in &drawn {
        columns.entry(trace.event(event).thread.index()).or_default().push(event);
    }
    let mut place: BTreeMap<EventId, (usize, usize)> = BTreeMap::new();
    for (column, events) in columns.values_mut().enumerate() {
        events.sort_by_key(|&event| trace.event(event).index);
        for (row, &event) in events.iter().enumerate() {
            place.insert(event, (COLUMN / 2 + column * COLUMN, TOP + 30 + row * ROW));
        }
    }
    let rows = columns.values().map(Vec::len).max().unwrap_or(0);
    let (width, height) = (columns.len().max(1) * COLUMN, TOP + 40 + rows.max(1) * ROW);
    let mut out = String::new();
    // writing to a string cannot fail
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <defs><marker id=\"arrow\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"7\" \
         markerHeight=\"7\" orient=\"auto-start-reverse\"><path d=\"M0 0L10 5L0 10z\" \
         fill=\"context-stroke\"/></marker></defs>\n"
    );
    for (column, (thread, events)) in columns.iter().enumerate() {
        let x = COLUMN / 2 + column * COLUMN;
        let bottom = TOP + 30 + (events.len().max(1) - 1) * ROW;
        let name = escape(&trace.threads[*thread].name);
        let _ = write!(
            out,
            "<text x=\"{x}\" y=\"24\" text-anchor=\"middle\" font-weight=\"bold\">{name}</text>\n\
             <line x1=\"{x}\" y1=\"{TOP}\" x2=\"{x}\" y2=\"{bottom}\" stroke=\"#888\"/>\n"
        );
        for &event in events {
            let (x, y) = place[&event];
            let name = escape(&trace.event_name(event));
            let _ = writeln!(
                out,
                "<circle cx=\"{x}\" cy=\"{y}\" r=\"4\" fill=\"#222\"/>\
                 <text x=\"{}\" y=\"{}\" text-anchor=\"end\">{name}</text>",
                x - 9,
                y + 4
            );
        }
    }
    for (number, disjunct) in disjuncts.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        for atom in disjunct {
            let ((x1, y1), (x2, y2)) = (place[&atom.before], place[&atom.after]);
            let title = escape(&format!(
                "{} before {}",
                trace.event_name(atom.before),
                trace.event_name(atom.after)
            ));
            let _ = writeln!(
                out,
                "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"{colour}\" \
                 stroke-width=\"1.5\" marker-end=\"url(#arrow)\"><title>{title}</title></line>"
            );
        }
    }
    out.push_str("</svg>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn names_cannot_break_out_of_the_picture() {
        assert_eq!(
            escape("<a href=\"x\">&'\u{7}"),
            "&lt;a href=&quot;x&quot;&gt;&amp;&#39;\u{fffd}"
        );
    }
}
