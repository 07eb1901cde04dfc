//! Order that comes from descriptors, signals and processes; misuse of primitives; the end of the process.
