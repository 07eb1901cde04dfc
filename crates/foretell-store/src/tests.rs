use super::*;

fn subject() -> Vec<(&'static str, String)> {
    vec![("the program", "bank 7".into()), ("--paths", String::new())]
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

/// A store with three records, closed.
fn filled(folder: &Path) -> Vec<u8> {
    let store = Store::open(folder, &subject()).expect("a store");
    assert_eq!(store.records_before(), 0);
    store.put(Kind::Run, b"first", b"one");
    store.put(Kind::Run, b"second", &[7; 300]);
    store.put(Kind::Answer, b"first", b"no");
    drop(store);
    fs::read(folder.join(FILE)).expect("the file")
}

#[test]
fn what_was_put_is_there_when_it_is_opened_again() {
    let folder = folder();
    let deep = folder.path().join("made/by/open");
    filled(&deep);
    let store = Store::open(&deep, &subject()).expect("the same store");
    assert_eq!((store.records_before(), store.note()), (3, None));
    assert_eq!(store.get(Kind::Run, b"first").as_deref(), Some(&b"one"[..]));
    assert_eq!(store.get(Kind::Answer, b"first").as_deref(), Some(&b"no"[..]));
    assert_eq!(store.get(Kind::Answer, b"second"), None);
    store.put(Kind::Run, b"first", b"later");
    assert_eq!(store.get(Kind::Run, b"first").as_deref(), Some(&b"later"[..]), "the last counts");
    assert_eq!(store.failure(), None);
}

/// Where each record begins, and the end; found by writing them one by one.
fn borders() -> Vec<u64> {
    let folder = folder();
    let store = Store::open(folder.path(), &subject()).expect("a store");
    let length = || fs::metadata(folder.path().join(FILE)).expect("the file").len();
    let mut borders = vec![length()];
    for (kind, key, value) in [
        (Kind::Run, &b"first"[..], &b"one"[..]),
        (Kind::Run, b"second", &[7; 300]),
        (Kind::Answer, b"first", b"no"),
    ] {
        store.put(kind, key, value);
        borders.push(length());
    }
    borders
}

#[test]
fn a_file_that_is_cut_off_anywhere_keeps_every_whole_record() {
    let folder = folder();
    let bytes = filled(folder.path());
    let borders = borders();
    for end in 0..=bytes.len() {
        fs::write(folder.path().join(FILE), &bytes[..end]).expect("written");
        let store = Store::open(folder.path(), &subject()).unwrap_or_else(|e| panic!("{end}: {e}"));
        let whole = borders.iter().skip(1).filter(|&&border| border <= end as u64).count();
        assert_eq!(store.records_before(), whole, "{end} bytes");
        let torn = whole > 0 && !borders.contains(&(end as u64));
        assert_eq!(store.note().is_some(), torn, "{end} bytes: {:?}", store.note());
        // It goes on where the last whole record ended.
        store.put(Kind::Run, b"new", b"more");
        drop(store);
        let store = Store::open(folder.path(), &subject()).expect("the same store");
        assert_eq!((store.records_before(), store.note()), (whole + 1, None), "{end} bytes");
        assert_eq!(store.get(Kind::Run, b"new").as_deref(), Some(&b"more"[..]));
    }
}

#[test]
fn every_changed_byte_is_damage() {
    let folder = folder();
    let bytes = filled(folder.path());
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 0x10;
        fs::write(folder.path().join(FILE), &changed).expect("written");
        let error = Store::open(folder.path(), &subject()).expect_err("damaged");
        assert!(
            matches!(
                error,
                StoreError::Damaged(..) | StoreError::NotAStore(_) | StoreError::Version(..)
            ),
            "byte {place}: {error}"
        );
        assert_eq!(fs::read(folder.path().join(FILE)).expect("the file"), changed, "untouched");
    }
}

#[test]
fn what_was_taken_out_of_the_middle_is_damage_and_the_advice_helps() {
    let folder = folder();
    let bytes = filled(folder.path());
    let borders = borders();
    let (from, to) = (borders[1] as usize, borders[2] as usize);
    let without = [&bytes[..from], &bytes[to..]].concat();
    fs::write(folder.path().join(FILE), &without).expect("written");
    let error = Store::open(folder.path(), &subject()).expect_err("damaged");
    assert!(error.to_string().contains(&format!("truncate -s {from} ")), "{error}");
    fs::write(folder.path().join(FILE), &bytes[..from]).expect("written");
    assert_eq!(Store::open(folder.path(), &subject()).expect("a store").records_before(), 1);
}

#[test]
fn another_subject_another_version_and_another_file_are_refused() {
    let folder = folder();
    let bytes = filled(folder.path());
    for (subject, said) in [
        (
            vec![("the program", "bank 8".into()), ("--paths", "".into())],
            "`bank 7` and is `bank 8`",
        ),
        (vec![("the program", "bank 7".into())], ""),
        (
            vec![("the program", "bank 7".into()), ("--paths", "all".into())],
            "--paths was not given and is `all`",
        ),
        (
            vec![("the program", "bank 7".into()), ("--paths", "".into()), ("--input", "a".into())],
            "--input was not given and is `a`",
        ),
    ] {
        match Store::open(folder.path(), &subject) {
            Ok(_) => assert_eq!(said, "", "what is not given is as if it were empty"),
            Err(error) => {
                assert!(!said.is_empty() && error.to_string().contains(said), "{error}");
            }
        }
    }
    let mut later = bytes.clone();
    later[15] = b'2';
    fs::write(folder.path().join(FILE), &later).expect("written");
    let error = Store::open(folder.path(), &subject()).expect_err("another version");
    assert!(error.to_string().contains("a store of version 2"), "{error}");
    for other in [&b"hello"[..], b"a text that is longer than the magic of a store\n"] {
        fs::write(folder.path().join(FILE), other).expect("written");
        let error = Store::open(folder.path(), &subject()).expect_err("something else");
        assert!(error.to_string().contains("not a store of foretell"), "{error}");
    }
}

#[test]
fn one_at_a_time() {
    let folder = folder();
    let first = Store::open(folder.path(), &subject()).expect("a store");
    let error = Store::open(folder.path(), &subject()).expect_err("in use");
    assert!(matches!(error, StoreError::InUse(_)), "{error}");
    drop(first);
    assert!(Store::open(folder.path(), &subject()).is_ok());
}

#[test]
fn bytes_are_read_as_files_are() {
    let folder = folder();
    let bytes = filled(folder.path());
    assert_eq!(check(&bytes), Some((4, bytes.len() as u64)));
    assert_eq!(check(&bytes[..bytes.len() - 1]), Some((3, borders()[2])));
    assert_eq!(check(b""), Some((0, 0)));
    assert_eq!(check(b"x"), None);
}
