//! State that belongs to the thread that has the turn.

use std::cell::UnsafeCell;
use std::marker::PhantomData;

/// Shows that the calling thread has the turn, so that no other thread touches what belongs to it. A
/// thread in a [`crate::thread::Session`] has one, and so has whoever was given the scheduler's state. It
/// costs nothing, and cannot be given to another thread.
#[derive(Clone, Copy)]
pub struct Turn(PhantomData<*mut ()>);

impl Turn {
    /// The turn of the calling thread.
    ///
    /// # Safety
    /// The thread must have the turn (or be the only one) whenever the token is used.
    #[inline(always)]
    pub const unsafe fn held() -> Turn {
        Turn(PhantomData)
    }
}

/// A static that needs no lock: only the thread that has the turn touches it.
pub struct TurnCell<T>(UnsafeCell<T>);

// SAFETY: turns are passed on with sequentially consistent stores, one thread at a time has one.
unsafe impl<T> Sync for TurnCell<T> {}

impl<T> TurnCell<T> {
    /// The state at the start.
    pub const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// The state, shared: what changes in it is in cells.
    #[inline(always)]
    pub fn shared(&self, _turn: Turn) -> &T {
        // SAFETY: the token says that no other thread is here; a state that is used by this function is
        // not used by `get`, so nobody has it exclusively.
        unsafe { &*self.0.get() }
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
