//! Threads that own a connection each.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::error::{Error, Result};

/// Work that may wait; whoever has more waits as well.
const QUEUE: usize = 64;

type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// One or more threads that take work from one queue.
#[derive(Debug)]
pub(super) struct Threads {
    jobs: Option<mpsc::Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

impl Threads {
    /// A thread for each connection.
    pub(super) fn start(name: &str, connections: Vec<Connection>) -> Result<Self> {
        let (jobs, queue) = mpsc::channel::<Job>(QUEUE);
        let queue = Arc::new(Mutex::new(queue));
        let start = |mut connection: Connection| {
            let queue = Arc::clone(&queue);
            let work = move || {
                loop {
                    // One thread waits for work, the others for this lock.
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
                    let Some(job) = next else { return };
                    job(&mut connection);
                }
            };
            let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
            thread.map_err(|error| Error::Unavailable(error.to_string()))
        };
        let threads = connections.into_iter().map(start).collect::<Result<_>>()?;
        Ok(Self { jobs: Some(jobs), threads })
    }

    /// Has work done, and waits for its end.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let ended = || Error::Unavailable("its thread has ended".to_owned());
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            // Whoever asked may be gone.
            let _ = reply.send(work(connection));
        });
        self.jobs.as_ref().ok_or_else(ended)?.send(job).await.map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }
}

impl Drop for Threads {
    /// Waits until the connections are closed.
    fn drop(&mut self) {
        drop(self.jobs.take());
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}
