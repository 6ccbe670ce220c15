//! A value of a specification that cannot be used.

/// A wrong value: the key, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// The dotted key.
    pub key: String,
    /// What is wrong, and what to do.
    pub message: String,
}

impl Wrong {
    /// A wrong value.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Wrong {
        Wrong { key: key.into(), message: message.into() }
    }
}
