//! The connection of a client: made, used until it ends, made again.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::sync::mpsc;
use tokio::time::interval;
use tokio_tungstenite::tungstenite::Message;

use super::table::{Reply, Table};
use crate::embedded::connect::{Socket, Way, backoff, next};
use crate::embedded::frame::{FromClient, decode, encode};
use crate::embedded::greet::introduce;
use crate::embedded::limits::Limits;
use crate::error::{Error, Result};
use crate::key::Key;

/// A frame to send, and who waits for the answer with this number.
pub(super) struct Command {
    pub(super) frame: FromClient,
    pub(super) answer: Option<(u64, Reply)>,
}

/// Runs in a task until the client is closed.
pub(super) struct Connection {
    pub(super) way: Arc<Way>,
    pub(super) key: Option<Key>,
    pub(super) limits: Limits,
    pub(super) table: Arc<Table>,
    pub(super) commands: mpsc::Receiver<Command>,
}

impl Connection {
    pub(super) async fn run(mut self) {
        let mut failures = 0;
        loop {
            let why = match self.open().await {
                Ok(socket) => {
                    failures = 0;
                    self.serve(socket).await
                }
                Err(error) => error,
            };
            let why = match why {
                Error::Disconnected(text) => text,
                other => other.to_string(),
            };
            self.table.end(&why);
            if self.commands.is_closed() {
                return;
            }
            failures += 1;
            self.until(tokio::time::sleep(backoff(failures)), &why).await;
        }
    }

    /// A connection over which both ends know each other.
    async fn open(&mut self) -> Result<Socket> {
        let (way, key, limits) = (Arc::clone(&self.way), self.key.clone(), self.limits.clone());
        let opening = async {
            let opened = async {
                let mut socket = way.connect(&limits).await?;
                let (server, most) = introduce(&mut socket, key.as_ref(), &limits).await?;
                Ok((socket, server, most))
            };
            let late = |_| Err(Error::Disconnected("the server does not answer".to_owned()));
            tokio::time::timeout(limits.greeting, opened).await.unwrap_or_else(late)
        };
        let opened = self.until(opening, "still connecting").await;
        let (mut socket, server, most) = opened?;
        for frame in self.table.again() {
            socket.send(Message::Binary(encode(&frame).into())).await.map_err(Error::lost)?;
        }
        // It counts as a connection when the subscriptions are there again.
        while self.table.resubscribes() {
            self.table.take(decode(&next(&mut socket, self.limits.greeting).await?)?);
        }
        self.table.begin(server, most);
        Ok(socket)
    }

    /// Whoever asks for something meanwhile learns that there is no connection.
    async fn until<T>(&mut self, future: impl Future<Output = T>, why: &str) -> T {
        let mut future = std::pin::pin!(future);
        loop {
            tokio::select! {
                done = &mut future => return done,
                Some(command) = self.commands.recv() => {
                    if let Some((_, reply)) = command.answer {
                        // Whoever asked may be gone.
                        let _ = reply.send(Err(Error::Disconnected(why.to_owned())));
                    }
                }
            }
        }
    }

    /// Returns why it ended.
    async fn serve(&mut self, socket: Socket) -> Error {
        let (sink, stream) = socket.split();
        let ended = tokio::select! {
            ended = read(stream, &self.table, self.limits.silence) => ended,
            ended = write(sink, &mut self.commands, &self.table, self.limits.ping) => ended,
        };
        ended.err().unwrap_or(Error::Closed)
    }
}

async fn read(mut stream: SplitStream<Socket>, table: &Table, silence: Duration) -> Result<()> {
    loop {
        table.take(decode(&next(&mut stream, silence).await?)?);
    }
}

async fn write(
    mut sink: SplitSink<Socket, Message>,
    commands: &mut mpsc::Receiver<Command>,
    table: &Table,
    ping: Duration,
) -> Result<()> {
    let mut pings = interval(ping);
    loop {
        tokio::select! {
            command = commands.recv() => {
                let Command { frame, answer } = command.ok_or(Error::Closed)?;
                if let Some((number, reply)) = answer {
                    table.call(number, reply);
                }
                sink.send(Message::Binary(encode(&frame).into())).await.map_err(Error::lost)?;
            }
            _ = pings.tick() => {
                for subscription in table.closed() {
                    let frame = encode(&FromClient::Unsubscribe(subscription));
                    sink.feed(Message::Binary(frame.into())).await.map_err(Error::lost)?;
                }
                sink.send(Message::Ping(Vec::new().into())).await.map_err(Error::lost)?;
            }
        }
    }
}
