//! Connections: at most 512, and none on which nobody reads.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};

/// Lets so many connections in and no more.
#[derive(Debug, Clone)]
pub(crate) struct Limit {
    places: Arc<Semaphore>,
}

/// A connection that ends when a write is stuck.
pub(crate) struct Watched<S> {
    stream: S,
    stuck: Option<Pin<Box<Sleep>>>,
    _place: OwnedSemaphorePermit,
}

impl Limit {
    pub(crate) fn new(connections: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(connections)) }
    }

    /// `None`: there are as many already.
    pub(crate) fn admit<S>(&self, stream: S) -> Option<Watched<S>> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        Some(Watched { stream, stuck: None, _place: place })
    }
}

impl<S> Watched<S> {
    /// Passes on what a write says, unless nothing was written for too long.
    fn watch<T>(&mut self, written: Poll<io::Result<T>>, context: &mut Context) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(sleep(STUCK)));
        ready!(stuck.as_mut().poll(context));
        // Polled again after this error, the timer must not be a finished one.
        stuck.as_mut().reset(Instant::now() + STUCK);
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "nobody reads")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context, buffer: &mut ReadBuf) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(written, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.watch(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.watch(shut, context)
    }
}

/// How long a write may wait for its reader.
const STUCK: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    /// The accepted end of a connection whose other end holds 64 octets.
    fn accepted(limit: &Limit) -> Option<(Watched<tokio::io::DuplexStream>, tokio::io::DuplexStream)> {
        let (ours, theirs) = tokio::io::duplex(64);
        limit.admit(ours).map(|ours| (ours, theirs))
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_is_stuck_for_ten_seconds_is_left() {
        let (mut ours, mut theirs) = accepted(&Limit::new(1)).expect("there is room");
        let began = Instant::now();
        let error = ours.write_all(&[0; 1000]).await.expect_err("nobody reads");
        assert_eq!((error.kind(), began.elapsed().as_secs()), (io::ErrorKind::TimedOut, 10));
        // Whoever reads now and then, if slowly, is served.
        let slow = tokio::spawn(async move {
            for _ in 0..19 {
                sleep(Duration::from_secs(9)).await;
                theirs.read_exact(&mut [0; 64]).await.expect("it goes on");
            }
            theirs
        });
        ours.write_all(&[0; 1200]).await.expect("somebody reads");
        drop(slow.await.expect("it read"));
    }

    #[test]
    fn a_place_is_free_again_when_its_connection_ends() {
        let limit = Limit::new(1);
        let first = accepted(&limit).expect("there is room");
        assert!(accepted(&limit).is_none());
        drop(first);
        assert!(accepted(&limit).is_some());
    }
}
