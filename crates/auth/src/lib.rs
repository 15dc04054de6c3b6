//! Who is asking, and what may they do: Shared Key, Shared Key Lite and shared access signatures of the Table service.
//!
//! Pure functions over plain values. Nothing here reads a header, a clock or a socket: the caller passes the path, the
//! query and the moment, so that server, client and tests use the same code. The order in which a request is checked:
//!
//! ```text
//! Credential::from_request ─┬─ Header ── check_date, verify_shared_key
//!                           └─ Sas ───── Sas::verify ── Sas::table_matches ── Sas::grant ── Grant::check
//! ```
//!
//! A bearer token is recognised and handed back; judging it is not for this crate.

mod account_keys;
mod address_range;
mod authorization;
mod credential;
mod date;
mod grant;
mod key_range;
mod letters;
mod need;
mod refusal;
mod sas;
mod sas_builder;
mod shared_key;

pub use account_keys::{AccountKey, AccountKeys, DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY, KeyError, sign};
pub use address_range::AddressRange;
pub use authorization::{Authorization, Scheme};
pub use credential::Credential;
pub use date::check_date;
pub use grant::{Caller, Grant};
pub use key_range::{KeyBound, KeyRange};
pub use letters::Letters;
pub use need::Need;
pub use refusal::authentication_failed;
pub use sas::{Sas, SasKind};
pub use sas_builder::SasBuilder;
pub use shared_key::{TableRequest, string_to_sign, verify_shared_key};
