//! Where the stacks of threads lie, and with them their handles and thread-local variables: at
//! addresses that the creation path alone decides, so that they are the same in every run.
//!
//! A stack that the program provides stays where it is. Where an address is taken the C library
//! chooses, as it does without us.

use libc::{c_int, c_void, pthread_attr_t, size_t};

use crate::sys;

/// Far from what the loader, the kernel and [`crate::arena`] use.
const BEGIN: u64 = 0x6000_0000_0000;
/// So much for each thread.
const SLOT: u64 = 1 << 30;
const PAGE: u64 = 4096;

unsafe extern "C" {
    fn pthread_getattr_default_np(attributes: *mut pthread_attr_t) -> c_int;
    fn pthread_attr_getstackaddr(attributes: *const pthread_attr_t, at: *mut *mut c_void) -> c_int;
}

/// Memory for a stack, with its guard.
#[derive(Clone, Copy, Default)]
pub struct Stack {
    begin: u64,
    bytes: u64,
}

impl Stack {
    /// Gives the memory back; the thread must be over.
    pub fn release(self) {
        if self.bytes > 0 {
            sys::unmap(self.begin, self.bytes);
        }
    }
}

/// A stack for the thread with this slot, and the attributes to create it with; `None` if the
/// attributes that the program gave are to be used.
///
/// # Safety
/// `given` is null or valid.
pub unsafe fn place(slot: u32, given: *const pthread_attr_t) -> Option<(Stack, pthread_attr_t)> {
    // SAFETY: all that is asked for is written before it is used.
    unsafe {
        let mut attributes: pthread_attr_t = std::mem::zeroed();
        if !given.is_null() {
            let mut at = std::ptr::null_mut();
            if pthread_attr_getstackaddr(given, &mut at) != 0 || !at.is_null() {
                return None;
            }
            // A copy that is never destroyed: what it refers to belongs to the original.
            attributes = given.read();
        } else if pthread_getattr_default_np(&mut attributes) != 0 {
            return None;
        }
        let (mut size, mut guard): (size_t, size_t) = (0, 0);
        if libc::pthread_attr_getstacksize(&attributes, &mut size) != 0
            || libc::pthread_attr_getguardsize(&attributes, &mut guard) != 0
        {
            return None;
        }
        let size = (size as u64).next_multiple_of(PAGE);
        let guard = (guard as u64).next_multiple_of(PAGE);
        let bytes = size.checked_add(guard).filter(|&bytes| bytes <= SLOT)?;
        let begin = BEGIN + (u64::from(slot) + 1) * SLOT - bytes;
        if !sys::map_at(begin, bytes as usize, libc::PROT_READ | libc::PROT_WRITE) {
            return None;
        }
        let stack = Stack { begin, bytes };
        sys::protect(begin, guard, libc::PROT_NONE);
        let first = (begin + guard) as *mut c_void;
        if libc::pthread_attr_setstack(&mut attributes, first, size as size_t) != 0 {
            stack.release();
            return None;
        }
        Some((stack, attributes))
    }
}
