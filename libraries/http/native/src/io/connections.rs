//! The connections of an I/O thread: how they come, and the table in which the sweep and the closer find them.
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, RawFd};
use std::rc::Rc;
use std::sync::atomic::Ordering::*;
use std::task::{Poll, Waker};
use std::time::Duration;

use tokio::task::spawn_local;

use super::Local;
use crate::connection;
use crate::server::count;

/// accept failed for want of files or memory: how long others have to free some.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A connection, as the sweep and its requests see it.
pub struct Connection {
    pub peer: SocketAddr,
    pub tls: bool,
    pub(super) since_ms: u64,
    /// Requests that are not answered.
    pub active: Cell<u32>,
    /// Requests that Erlang has, and answers in pieces that it sends.
    pub held: Cell<u32>,
    /// Requests that the client gave up, less those that Erlang has answered since: what they take of Erlang costs it nothing.
    pub cancelled: Cell<u32>,
    /// Goes up with each request and each piece of a body; what the sweep saw of it, and when it changed.
    pub(super) progress: Cell<u64>,
    pub(super) seen: Cell<(u64, u64)>,
    /// Of HTTP/1, the head that has begun and not ended, and since when hyper waits for the rest.
    pub head: Cell<Option<(u64, u64)>>,
    /// HTTP/2, whose frames may be long: see `frames`.
    pub is_cut: Cell<bool>,
    /// Bytes that the socket has taken since it last took no more.
    pub at_once: Cell<usize>,
    /// Of HTTP/1.0: the connection's end says that an answer is complete. One that is not needs another end.
    pub ends_answer: Cell<bool>,
    /// The wire's.
    pub socket: RawFd,
    pub phase: Cell<Phase>,
    pub waker: RefCell<Option<Waker>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Open,
    /// No further request; those there are end.
    Closing,
    Ended,
}

impl Connection {
    /// Whether there was a request.
    pub fn has_asked(&self) -> bool {
        self.progress.get() > 0
    }

    pub fn hold(&self) {
        self.held.set(self.held.get() + 1)
    }

    pub fn let_go(&self) {
        self.held.set(self.held.get() - 1)
    }

    pub fn progress(&self) {
        self.progress.set(self.progress.get() + 1)
    }

    pub(super) fn advance(&self, phase: Phase) {
        self.phase.set(phase);
        if let Some(waker) = self.waker.borrow().as_ref() {
            waker.wake_by_ref()
        }
    }
}

impl Local {
    pub(super) async fn accept(self: Rc<Self>, listener: TcpListener) {
        let listener = tokio::net::TcpListener::from_std(listener).expect("a listener of this thread");
        loop {
            // No room is kept for what has not come: another thread may need it.
            let accepted = poll_fn(|cx| {
                if !self.server.make_room(self.index, cx.waker()) {
                    return Poll::Pending;
                }
                let accepted = listener.poll_accept(cx);
                if !matches!(accepted, Poll::Ready(Ok(_))) {
                    self.server.give_room()
                }
                accepted
            });
            match accepted.await {
                Ok((stream, peer)) => {
                    let _ = stream.set_nodelay(true); // slower without it, and nothing else
                    let connection = self.register(peer, stream.as_raw_fd());
                    spawn_local(connection::serve(self.clone(), connection, stream));
                }
                Err(error) => {
                    count(&self.counters().accept_errors);
                    let client_left =
                        matches!(error.raw_os_error(), Some(libc::ECONNABORTED) | Some(libc::EINTR) | Some(libc::EPROTO));
                    if !client_left {
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        }
    }

    fn register(&self, peer: SocketAddr, socket: RawFd) -> (usize, Rc<Connection>) {
        let connection = Rc::new(Connection {
            peer,
            tls: self.server.config.tls.is_some(),
            since_ms: self.now_ms.get(),
            active: Cell::new(0),
            held: Cell::new(0),
            cancelled: Cell::new(0),
            progress: Cell::new(0),
            seen: Cell::new((0, self.now_ms.get())),
            head: Cell::new(None),
            is_cut: Cell::new(false),
            at_once: Cell::new(0),
            ends_answer: Cell::new(false),
            socket,
            phase: Cell::new(if self.is_closing() { Phase::Closing } else { Phase::Open }),
            waker: RefCell::default(),
        });
        self.open_connections.set(self.open_connections.get() + 1);
        let counters = self.counters();
        counters.connections.store(self.open_connections.get() as u64, Relaxed);
        count(&counters.connections_total);
        let mut all = self.connections.borrow_mut();
        let at = match self.free_connections.borrow_mut().pop() {
            Some(at) => at,
            None => {
                all.push(None);
                all.len() - 1
            }
        };
        all[at] = Some(connection.clone());
        (at, connection)
    }

    pub fn unregister(&self, at: usize) {
        self.connections.borrow_mut()[at] = None;
        self.free_connections.borrow_mut().push(at);
        self.open_connections.set(self.open_connections.get() - 1);
        self.counters().connections.store(self.open_connections.get() as u64, Relaxed);
        self.server.give_room();
        if self.is_closing() {
            self.wake_closer()
        }
    }
}
