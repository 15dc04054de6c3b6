//! Stored access policies of a table.

use crate::Ticks;

/// Rights and times kept with the table, that a shared access signature may refer to by `id`. Whatever is `None` here
/// must be in the signature itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredAccessPolicy {
    /// Unique within its table.
    pub id: String,
    /// When signatures begin to hold.
    pub start: Option<Ticks>,
    /// When they cease to.
    pub expiry: Option<Ticks>,
    /// The letters of what they allow.
    pub permission: Option<String>,
}
