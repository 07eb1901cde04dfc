//! Limits of work and size: each stands once, in the `limits` module of its crate, with what a larger one costs and
//! what is lost where it is reached. `foretell config show --limits` prints them all.

/// A limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The constant.
    pub name: &'static str,
    /// What is counted.
    pub what: &'static str,
    /// How much of it is allowed.
    pub value: u64,
    /// What a larger one costs.
    pub costs: &'static str,
    /// What is lost where it is reached.
    pub lost: &'static str,
}

/// Declares the limits of a crate: constants, and `TABLE` with all of them.
#[macro_export]
macro_rules! limits {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident: $type:ty = $value:expr, costs $costs:literal, lost $lost:literal;
    )*) => {
        $($(#[doc = $doc])* pub const $name: $type = $value;)*

        /// All limits of this crate.
        pub const TABLE: &[$crate::Limit] = &[$($crate::Limit {
            name: stringify!($name),
            what: concat!($($doc),*),
            value: $name as u64,
            costs: $costs,
            lost: $lost,
        },)*];
    };
}
