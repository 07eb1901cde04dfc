//! Witnesses in the exchange format of SV-COMP (GraphML, version 1.0), for other tools to validate.
//!
//! A violation witness is the counterexample as a path: an edge for every event, with its line, its
//! thread, and the thread that it creates. A correctness witness says that the program is correct and
//! gives what holds where threads stand as comments: its format has no place for several threads.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::counterexample::{Counterexample, Ending};
use crate::explore::shown::Summary;
use crate::program::Visible;

/// The witness of a violation. `source`: the bytes of the program.
pub fn violation(found: &Counterexample, source: &[u8]) -> String {
    let property = match found.ending {
        Ending::Assertion => "CHECK( init(main()), LTL(G ! call(reach_error())) )",
        Ending::Fault => "CHECK( init(main()), LTL(G valid-deref) )",
        Ending::Deadlock => "CHECK( init(main()), LTL(G ! deadlock) )",
    };
    let mut text = head("violation_witness", &found.file, source, property);
    text.push_str("  <node id=\"n0\"><data key=\"entry\">true</data></node>\n");
    // threads are numbered as they are created; `main` is 0
    let mut numbers =
        BTreeMap::from([(found.events.first().map(|_| Vec::new()).unwrap_or_default(), 0)]);
    let mut children: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
    let mut node = 0;
    let mut edge = |text: &mut String, line: u32, data: String, violation: bool| {
        let ends = if violation { "<data key=\"violation\">true</data>" } else { "" };
        let _ = write!(
            text,
            "  <node id=\"n{next}\">{ends}</node>\n  <edge source=\"n{node}\" target=\"n{next}\">\n    \
             <data key=\"startline\">{line}</data>\n{data}  </edge>\n",
            next = node + 1
        );
        node += 1;
    };
    for event in &found.events {
        let thread = numbers.get(&event.thread.0).copied().unwrap_or(0);
        let mut data = format!("    <data key=\"threadId\">{thread}</data>\n");
        if event.does == Visible::Fork {
            let child = children.entry(event.thread.0.clone()).or_default();
            let path = [&event.thread.0[..], &[*child]].concat();
            *child += 1;
            let number = numbers.len();
            numbers.insert(path, number);
            let _ = writeln!(data, "    <data key=\"createThread\">{number}</data>");
        }
        if let Some(value) = event.input {
            let value = value as i64;
            let _ = writeln!(data, "    <data key=\"assumption\">\\result == {value}</data>");
        }
        edge(&mut text, event.line, data, false);
    }
    let thread = numbers.get(&found.thread.0).copied().unwrap_or(0);
    let data = format!("    <data key=\"threadId\">{thread}</data>\n");
    edge(&mut text, found.line, data, true);
    text.push_str("</graph></graphml>\n");
    text
}

/// The witness of a proof.
pub fn correctness(summary: &Summary, file: &str, source: &[u8]) -> String {
    let property = "CHECK( init(main()), LTL(G ! call(reach_error())) )";
    let mut text = head("correctness_witness", file, source, property);
    text.push_str("  <node id=\"n0\"><data key=\"entry\">true</data></node>\n");
    for line in summary.print().lines() {
        let _ = writeln!(text, "  <!-- {} -->", line.replace("--", "- -"));
    }
    text.push_str("</graph></graphml>\n");
    text
}

fn head(kind: &str, file: &str, source: &[u8], property: &str) -> String {
    let hash: String = sha256(source).iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n\
         <graph edgedefault=\"directed\">\n  <data key=\"witness-type\">{kind}</data>\n  \
         <data key=\"sourcecodelang\">C</data>\n  <data key=\"producer\">foretell {}</data>\n  \
         <data key=\"specification\">{}</data>\n  <data key=\"programfile\">{}</data>\n  \
         <data key=\"programhash\">{hash}</data>\n  <data key=\"architecture\">64bit</data>\n",
        env!("CARGO_PKG_VERSION"),
        escaped(property),
        escaped(file)
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// SHA-256 (FIPS 180-4), which the format wants.
fn sha256(message: &[u8]) -> [u8; 32] {
    // the first bits of the fractional parts of square and cube roots of primes
    let primes: Vec<u64> = (2u64..).filter(|n| (2..*n).all(|d| n % d != 0)).take(64).collect();
    let root = |prime: u64, cube: bool| -> u32 {
        // floor(root * 2^32), whose lower half is the fraction
        let (mut low, mut high) = (0u128, 1u128 << 37);
        while high - low > 1 {
            let middle = (low + high) / 2;
            let fits = match cube {
                true => middle * middle * middle <= u128::from(prime) << 96,
                false => middle * middle <= u128::from(prime) << 64,
            };
            if fits { low = middle } else { high = middle }
        }
        low as u32
    };
    let constants: Vec<u32> = primes.iter().map(|&prime| root(prime, true)).collect();
    let mut hash: Vec<u32> = primes[..8].iter().map(|&prime| root(prime, false)).collect();
    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend((message.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks(64) {
        let mut words: Vec<u32> = block
            .chunks(4)
            .map(|bytes| bytes.iter().fold(0, |word, &byte| word << 8 | u32::from(byte)))
            .collect();
        for at in 16..64 {
            let (a, b) = (words[at - 15], words[at - 2]);
            let one = a.rotate_right(7) ^ a.rotate_right(18) ^ a >> 3;
            let two = b.rotate_right(17) ^ b.rotate_right(19) ^ b >> 10;
            words.push(
                words[at - 16].wrapping_add(one).wrapping_add(words[at - 7]).wrapping_add(two),
            );
        }
        let mut v = hash.clone();
        for (word, constant) in words.iter().zip(&constants) {
            let sum = v[4].rotate_right(6) ^ v[4].rotate_right(11) ^ v[4].rotate_right(25);
            let choice = v[4] & v[5] ^ !v[4] & v[6];
            let one = [sum, choice, *constant, *word]
                .iter()
                .fold(v[7], |sum, term| sum.wrapping_add(*term));
            let sum = v[0].rotate_right(2) ^ v[0].rotate_right(13) ^ v[0].rotate_right(22);
            let majority = v[0] & v[1] ^ v[0] & v[2] ^ v[1] & v[2];
            let two = sum.wrapping_add(majority);
            v.rotate_right(1);
            v[4] = v[4].wrapping_add(one);
            v[0] = one.wrapping_add(two);
        }
        for (total, value) in hash.iter_mut().zip(v) {
            *total = total.wrapping_add(value);
        }
    }
    let mut bytes = [0; 32];
    for (place, word) in bytes.chunks_mut(4).zip(hash) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::sha256;

    #[test]
    fn the_hash_is_that_of_the_standard() {
        let shown = |text: &str| -> String {
            sha256(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
        };
        assert_eq!(
            shown("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(shown(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
