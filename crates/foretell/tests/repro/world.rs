//! What is outside the scheduler: timers, signals, other processes, time, calls that are not wrapped.
