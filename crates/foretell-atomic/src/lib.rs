//! Marks for foretell in Rust programs. A program names this crate `foretell`:
//!
//! ```toml
//! [dependencies]
//! foretell = { package = "foretell-atomic", path = "..." }
//! ```
//!
//! and says that no other thread should be able to tell the steps of a function or of a block apart:
//!
//! ```
//! # extern crate foretell_atomic as foretell;
//! # use std::sync::Mutex;
//! #[foretell::atomic]
//! fn transfer(from: &Mutex<i32>, to: &Mutex<i32>, amount: i32) {
//!     *from.lock().unwrap() -= amount;
//!     *to.lock().unwrap() += amount;
//! }
//!
//! # let (from, to) = (Mutex::new(1), Mutex::new(0));
//! let left = foretell::atomic_block! {
//!     "book";
//!     transfer(&from, &to, 1);
//!     *from.lock().unwrap()
//! };
//! # assert_eq!(left, 0);
//! ```
//!
//! Regions nest; a region ends where its block is left, also by `return`, `?` or a panic. In programs that
//! `cargo foretell` has not built the marks are nothing: what they expand to is the block.
//!
//! (The two marks have two names, because a name stands for one macro: an attribute or one with `!`.)

pub use foretell_atomic_macros::atomic;

#[cfg(foretell)]
unsafe extern "C" {
    // The second argument is filled in by the compiler's plugin.
    #[doc(hidden)]
    pub fn __foretell_region_begin(name: *const std::ffi::c_char, site: *const u8);
    #[doc(hidden)]
    pub fn __foretell_region_end(site: *const u8);
}

/// A region that ends when this goes.
#[cfg(foretell)]
#[doc(hidden)]
pub struct Region;

#[cfg(foretell)]
impl Drop for Region {
    // A region ends in the function in which it began.
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the runtime's; it began where this was made.
        unsafe { __foretell_region_end(std::ptr::null()) }
    }
}

/// A block whose steps no other thread should be able to tell apart; its name, with a semicolon, may stand
/// first.
#[cfg(foretell)]
#[macro_export]
macro_rules! atomic_block {
    ($name:literal; $($body:tt)*) => {{
        // SAFETY: the runtime's; the name is a constant that ends with a zero.
        unsafe {
            $crate::__foretell_region_begin(
                ::core::concat!($name, "\0").as_ptr().cast(),
                ::core::ptr::null(),
            )
        };
        let _region = $crate::Region;
        // What the last expression borrows is given back before the region ends.
        #[allow(clippy::let_and_return, clippy::let_unit_value, unreachable_code)]
        let value = { $($body)* };
        value
    }};
    ($($body:tt)*) => { $crate::atomic_block!("block"; $($body)*) };
}

/// A block whose steps no other thread should be able to tell apart; its name, with a semicolon, may stand
/// first.
#[cfg(not(foretell))]
#[macro_export]
macro_rules! atomic_block {
    ($name:literal; $($body:tt)*) => {{ $($body)* }};
    ($($body:tt)*) => {{ $($body)* }};
}
