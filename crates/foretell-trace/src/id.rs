//! Indices as types: an event number can never be passed where a thread number is meant.

macro_rules! index_type {
    ($($(#[$doc:meta])* $name:ident $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The number as an index into a slice.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl From<usize> for $name {
            /// # Panics
            /// When the number does not fit in 32 bits; readers check their counts first.
            fn from(index: usize) -> Self {
                Self(u32::try_from(index).expect("more than u32::MAX entries"))
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    )*};
}

index_type! {
    /// A thread of a trace, in order of first appearance.
    ThreadId "t";
    /// An event of a trace: its place in the recorded total order.
    EventId "e";
    /// A memory location or program variable of a trace.
    VariableId "v";
    /// A synchronisation object of a trace (mutex, condition, semaphore, barrier, ...).
    ObjectId "o";
    /// A source position of a trace.
    SiteId "s";
    /// A hash-consed symbolic expression in a [`crate::term::TermStore`].
    TermId "#";
    /// A free symbol that an analysis introduced in a [`crate::term::TermStore`].
    SymbolId "?";
}
