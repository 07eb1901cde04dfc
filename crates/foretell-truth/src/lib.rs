//! Random concurrent programs, real ones, and everything that they can do.
//!
//! The truth test of `foretell test`: [`program::Program::random`] makes a small program with threads,
//! [`source::emit`] writes it as C, and [`machine::Machine`] runs the same program itself under *every*
//! schedule, with a set of visited states and no other reduction. What the machine says is compared
//! with what foretell says of the compiled C. [`schedules`] does the same for programs in C and C++ as they
//! are: it runs the compiled program itself under every schedule.
//!
//! This crate shares no code with foretell and depends on none of its crates, on purpose. It is used by
//! tests only.
//!
//! **What the programs have**: two or three threads besides `main`; shared integers, plain and atomic; a
//! shared array with computed indices; mutexes, nested in any order; condition variables, semaphores,
//! read-write locks, tries; branches, bounded loops, functions, assertions. **What they do not have**:
//! integer overflow, undefined behaviour other than data races, spurious wake-ups, time.

pub mod machine;
pub mod program;
pub mod random;
pub mod schedules;
pub mod source;
