//! The one refusal of everything that is wrong with a signature itself.
//!
//! The service says why in a line that follows its fixed message. Where we know the service's own sentence it is used.

use partita_model::ServiceError;
use std::fmt::Display;

/// `AuthenticationFailed`, with the reason in the form the service gives it.
pub fn authentication_failed(reason: impl Display) -> ServiceError {
    ServiceError::AuthenticationFailed { detail: format!("\nAuthenticationErrorDetail:{reason}") }
}
