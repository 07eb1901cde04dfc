//! Four parts that are joined find what one whole exploration finds.

use crate::common::{READERS, Said, Workshop, stderr};

/// Runs that are cut short: how many classes there are depends on their order. Two that each wait for what the other does first, and a third that looks at both: a deadlock and a wrong sum.
const SUMS: &str = r#"
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static int x, y, order[3];
static void *one(void *unused) {
  pthread_mutex_lock(&a);
  if (x == 0) y++;
  x = x * 2 + 1;
  pthread_mutex_unlock(&a);
  return unused;
}
static void *two(void *unused) {
  pthread_mutex_lock(&a);
  if (x > 1) { pthread_mutex_lock(&b); order[0] = x; pthread_mutex_unlock(&b); }
  x = x * 2;
  pthread_mutex_unlock(&a);
  return unused;
}
static void *three(void *unused) {
  pthread_mutex_lock(&b);
  pthread_mutex_lock(&a);
  if (x & 1) order[1] = 1;
  if (y) order[2] = 1;
  x += 3;
  pthread_mutex_unlock(&a);
  pthread_mutex_unlock(&b);
  return unused;
}
int main(void) {
  pthread_t threads[4];
  pthread_create(&threads[0], 0, one, 0);
  pthread_create(&threads[1], 0, two, 0);
  pthread_create(&threads[2], 0, three, 0);
  pthread_create(&threads[3], 0, one, 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
  return 0;
}
"#;

/// Makes the parts; gives their results.
pub fn parts(workshop: &Workshop, of: u32) -> Vec<String> {
    (1..=of)
        .map(|number| {
            let (part, json) = (format!("{number}/{of}"), format!("part{number}.json"));
            let jobs = if number % 2 == 0 { "1" } else { "3" };
            let words = ["test", "--partition", &part, "--json", &json, "--jobs", jobs, "./p"];
            let output = workshop.foretell(&words);
            let code = output.status.code().expect("a code");
            // A part alone covers nothing.
            assert!(code == 10 || code == 12, "{code}: {}", stderr(&output));
            json
        })
        .collect()
}

fn merge(workshop: &Workshop, parts: &[String]) -> Said {
    let mut words = vec!["merge", "--json", "merged.json"];
    words.extend(parts.iter().map(String::as_str));
    let output = workshop.foretell(&words);
    let code = output.status.code().expect("a code");
    assert!(code != 1 && code != 2, "{}", stderr(&output));
    Said::of(code, &workshop.json("merged.json"))
}

#[test]
fn four_parts_are_one() {
    for (program, cuts) in [(READERS, false), (SUMS, true)] {
        let workshop = Workshop::new(program);
        let whole = workshop.whole(&[]);
        for of in [1, 2, 4] {
            let mut parts = parts(&workshop, of);
            let known = |json: &String| workshop.json(json)["statistics"]["runs"].as_u64();
            println!(
                "{of} parts of {}: {:?}",
                whole.classes,
                parts.iter().map(known).collect::<Vec<_>>()
            );
            parts.reverse();
            let (merged, whole) = (merge(&workshop, &parts).bugs(), whole.bugs());
            match cuts {
                false => assert_eq!(merged, whole, "{of} parts"),
                true => assert_eq!(merged.without_cover(), whole.without_cover(), "{of} parts"),
            }
        }
    }
}

#[test]
fn a_part_goes_on_as_well() {
    let workshop = Workshop::new(READERS);
    let whole = workshop.whole(&[]);
    let mut parts = parts(&workshop, 2);
    let words = ["test", "--resume", "kept", "--partition", "2/2", "--json", "ended.json"];
    workshop.foretell(&[&words[..], &["--runs", "12", "./p"]].concat());
    assert!(workshop.json("ended.json")["exploration"]["go_on"].is_string());
    parts[1] = "ended.json".into();
    let said = merge(&workshop, &parts);
    assert!(!said.covered, "{said:?}");
    workshop.foretell(&[&words[..], &["./p"]].concat());
    assert_eq!(merge(&workshop, &parts).bugs(), whole.bugs());
}

#[test]
fn parts_that_are_missing_or_do_not_belong_together_are_refused() {
    let workshop = Workshop::new(READERS);
    let parts = parts(&workshop, 3);
    let refused = |parts: &[&str], said: &str| {
        let output = workshop.foretell(&[&["merge"], parts].concat());
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(stderr(&output).contains(said), "{said:?} in {}", stderr(&output));
    };
    let [one, two, three] = [&*parts[0], &*parts[1], &*parts[2]];
    refused(&[two], "of 3 parts these are missing: 1, 3");
    refused(&[one, two, three, two], "are both part 2 of 3");
    let words = ["test", "--partition", "3/3", "--budget", "7000", "--json", "other.json", "./p"];
    workshop.foretell(&words);
    refused(&[one, two, "other.json"], "--budget is `7000` there and not given here");
    workshop.foretell(&["test", "--partition", "1/2", "--json", "half.json", "./p"]);
    refused(&["half.json", two], "half.json is a part of 2, and part2.json is a part of 3");
    workshop.build(&READERS.replace("!= 5", "!= 6"));
    workshop.foretell(&["test", "--partition", "3/3", "--json", "other.json", "./p"]);
    refused(&[one, two, "other.json"], "the program's digest is");
    workshop.whole(&[]);
    refused(&["whole.json"], "not a part of an exploration");
    refused(&["p.c"], "not a result of foretell");
}
