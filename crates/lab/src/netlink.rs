//! One conversation with the kernel about devices, addresses and routes, in the namespace of the calling thread.

use std::io;

use rtnetlink::Handle;

/// Lets `work` talk to the kernel and waits for it.
pub(crate) fn talk<T>(work: impl AsyncFnOnce(Handle) -> Result<T, rtnetlink::Error>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let (connection, handle, _) = rtnetlink::new_connection()?;
        let connection = tokio::spawn(connection);
        let result = work(handle).await;
        connection.abort();
        result.map_err(in_words)
    })
}

/// The kernel's own error where there is one, so that it is said in the usual words.
fn in_words(error: rtnetlink::Error) -> io::Error {
    match error {
        rtnetlink::Error::NetlinkError(message) => message.to_io(),
        other => io::Error::other(other),
    }
}
