//! TLS of webhooks and mail. Without the crate's feature `tls` there is none: a channel that needs
//! it is refused, so that nothing is sent in clear.

#[cfg(not(feature = "tls"))]
mod absent;
#[cfg(feature = "tls")]
mod present;

#[cfg(not(feature = "tls"))]
pub(super) use absent::{fault_of_mail, fault_of_web, mail, web};
#[cfg(feature = "tls")]
pub(super) use present::{fault_of_mail, fault_of_web, mail, web};
