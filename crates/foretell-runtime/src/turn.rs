//! State that belongs to the thread that has the turn.

use std::cell::UnsafeCell;

/// A static that needs no lock: only the thread that has the turn touches it.
pub struct TurnCell<T>(UnsafeCell<T>);

// SAFETY: turns are passed on with sequentially consistent stores, one thread at a time has one.
unsafe impl<T> Sync for TurnCell<T> {}

impl<T> TurnCell<T> {
    /// The state at the start.
    pub const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// The state.
    ///
    /// # Safety
    /// Only for the thread that has the turn (or while there is no other), and not while another
    /// reference to the same part is used.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)] // the turn makes it exclusive
    pub unsafe fn get(&self) -> &mut T {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.0.get() }
    }
}
