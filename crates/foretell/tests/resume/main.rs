//! Explorations that are ended and go on, or are divided and joined: the result is that of one whole
//! exploration that nobody disturbed.

mod common;
mod killed;
mod merged;
mod refused;
