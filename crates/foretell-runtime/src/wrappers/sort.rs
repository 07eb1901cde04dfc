//! `qsort` and `qsort_r`, so that what they read and write is seen.
//!
//! The order is found first, by the program's comparison of elements where they lie; then they are moved. Equal
//! elements stay in their order, as in the C library's merge sort. Moved elements keep their expressions. What
//! the comparison returns is held by the code that returns (`foretell-instrument/control`).

use foretell_abi::{COPY_SYMBOLIC, LOCAL_DESTINATION, LOCAL_SOURCE};
use libc::{c_int, c_void, size_t};

use crate::hooks;
use crate::modules;
use crate::real::{interpose, real};
use crate::thread::Session;

type Compare = unsafe extern "C-unwind" fn(*const c_void, *const c_void) -> c_int;
type CompareWith = unsafe extern "C-unwind" fn(*const c_void, *const c_void, *mut c_void) -> c_int;

/// The program's wish to sort, if it is recorded.
fn begin() -> Option<Session> {
    Session::begin().filter(|session| !modules::is_libc(session.place))
}

/// Sorts `count` elements of `size` bytes. Outside of comparisons there is a session, so that nothing that is
/// done here is taken for the program's.
///
/// # Safety
/// They are there.
unsafe fn sort(
    session: Session,
    base: *mut u8,
    count: usize,
    size: usize,
    mut is_less: impl FnMut(*const c_void, *const c_void) -> bool,
) {
    let place = session.place;
    let element = |number: usize| base.wrapping_add(number * size);
    let mut session = Some(session);
    let order = merged(count, |one, other| {
        session = None;
        let is_less = is_less(element(one).cast(), element(other).cast());
        session = Session::begin();
        is_less
    });
    // None: the run is being ended.
    let Some(session) = &mut session else { return };
    let mut kept = vec![0u8; count * size];
    let kept = kept.as_mut_ptr();
    let copy = |number: usize| kept.wrapping_add(number * size);
    let mut moved = |to: *mut u8, from: *mut u8, local: u32| {
        session.point();
        // SAFETY: the caller's promise; the copies have as many bytes.
        unsafe { to.copy_from_nonoverlapping(from, size) };
        let flags = COPY_SYMBOLIC | local;
        hooks::copy::<false>(session, place, to as u64, from as u64, size as u64, flags);
    };
    for (number, &from) in order.iter().enumerate() {
        moved(copy(number), element(from), LOCAL_DESTINATION);
    }
    for number in 0..count {
        moved(element(number), copy(number), LOCAL_SOURCE);
    }
    session.me.local.store(kept as u64, (count * size) as u64, 0);
    session.me.slots.local_shadows = session.me.local.len() as u32;
}

/// The numbers below `count` in order; `is_less` may say anything.
fn merged(count: usize, mut is_less: impl FnMut(usize, usize) -> bool) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut width = 1;
    while width < count {
        let mut next = Vec::with_capacity(count);
        for run in order.chunks(2 * width) {
            let (left, right) = run.split_at(width.min(run.len()));
            let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
            while let (Some(&&one), Some(&&other)) = (left.peek(), right.peek()) {
                let from_right = is_less(other, one);
                next.extend(if from_right { right.next() } else { left.next() });
            }
            next.extend(left.chain(right));
        }
        order = next;
        width *= 2;
    }
    order
}

interpose! {
    fn qsort(base: *mut c_void, count: size_t, size: size_t, compare: Compare) -> () {
        match begin() {
            Some(session) => sort(session, base.cast(), count, size, |one, other| {
                compare(one, other) < 0
            }),
            None => real!(qsort(base: *mut c_void, count: size_t, size: size_t, compare: Compare) -> ()),
        }
    }

    fn qsort_r(
        base: *mut c_void, count: size_t, size: size_t, compare: CompareWith, with: *mut c_void,
    ) -> () {
        match begin() {
            Some(session) => sort(session, base.cast(), count, size, |one, other| {
                compare(one, other, with) < 0
            }),
            None => real!(qsort_r(base: *mut c_void, count: size_t, size: size_t,
                compare: CompareWith, with: *mut c_void) -> ()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::merged;

    #[test]
    fn sorts_like_the_standard_library() {
        let mut seed = 1u64;
        for count in 0..200 {
            let mut random = || {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                seed >> 60
            };
            let values: Vec<u64> = (0..count).map(|_| random()).collect();
            let mut expected: Vec<usize> = (0..count).collect();
            expected.sort_by_key(|&number| values[number]);
            assert_eq!(merged(count, |one, other| values[one] < values[other]), expected);
        }
    }

    #[test]
    fn a_comparison_that_makes_no_sense_loses_nothing() {
        let mut order = merged(37, |_, _| true);
        order.sort_unstable();
        assert!(order.into_iter().eq(0..37));
    }
}
