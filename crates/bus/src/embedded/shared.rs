//! What all sessions of a server share.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::keeper::Keeper;
use super::limits::Limits;
use super::router::Router;
use crate::permissions::Permissions;

/// What the owner of a public key may do; `None`: the key is not known. Called for each connection.
pub type Admission = Arc<dyn Fn(&str) -> Option<Permissions> + Send + Sync>;

/// Of one server.
pub(super) struct Shared {
    pub(super) id: String,
    pub(super) keeper: Keeper,
    pub(super) router: Arc<Router>,
    pub(super) limits: Limits,
    /// For clients.
    pub(super) room: Arc<Semaphore>,
}
