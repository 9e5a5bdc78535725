//! A socket, or TLS on one, as a connection writes to it: what hyper says in one turn goes out at once.
//!
//! hyper writes each answer, and each frame of HTTP/2, alone, and a call of the system costs more than its bytes do.
use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{ready, Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::io::{Connection, Local};

/// What waits at most.
const GATHERED: usize = 128 * 1024;
/// From here on bytes are not gathered, which is a copy.
const LONG: usize = 32 * 1024;
/// A client that takes this much moves: see `Connection::progress`.
const PROGRESS: usize = 64 * 1024;
/// What one turn of a connection reads: a flood of small frames is much work, and others wait meanwhile.
const TURN: usize = 256 * 1024;
/// Buffers that a thread keeps for its connections.
const KEPT: usize = 8;

pub struct Wire<S> {
    local: Rc<Local>,
    connection: Rc<Connection>,
    stream: RefCell<S>,
    /// Taken from the thread's, and given back when all is sent.
    gathered: RefCell<Vec<u8>>,
    sent: Cell<usize>,
    must_flush: Cell<bool>,
    taken: Cell<usize>,
    read: Cell<usize>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    pub fn new(local: Rc<Local>, connection: Rc<Connection>, stream: S) -> Self {
        let [sent, taken, read] = [0, 0, 0].map(Cell::new);
        let (stream, gathered) = (RefCell::new(stream), RefCell::default());
        Wire { local, connection, stream, gathered, sent, must_flush: Cell::new(false), taken, read }
    }

    pub fn begin_turn(&self) {
        self.read.set(0)
    }

    pub fn poll_read(&self, cx: &mut Context, buf: &mut ReadBuf) -> Poll<io::Result<()>> {
        if self.read.get() >= TURN {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut *self.stream.borrow_mut()).poll_read(cx, buf))?;
        self.read.set(self.read.get() + buf.filled().len() - before);
        Poll::Ready(Ok(()))
    }

    pub fn poll_write(&self, cx: &mut Context, bufs: &[IoSlice]) -> Poll<io::Result<usize>> {
        let length = bufs.iter().map(|buf| buf.len()).sum::<usize>();
        if length >= LONG {
            ready!(self.poll_send(cx))?;
            let n = ready!(Pin::new(&mut *self.stream.borrow_mut()).poll_write_vectored(cx, bufs))?;
            self.taken(n);
            return Poll::Ready(Ok(n));
        }
        if self.gathered.borrow().len() + length > GATHERED {
            ready!(self.poll_send(cx))?;
        }
        let mut gathered = self.gathered.borrow_mut();
        if gathered.capacity() == 0 {
            *gathered = self.local.buffers.borrow_mut().pop().unwrap_or_default();
        }
        for buf in bufs {
            gathered.extend_from_slice(buf);
        }
        Poll::Ready(Ok(length))
    }

    /// Sends what was gathered. The connection's task calls it at the end of each turn.
    pub fn poll_send(&self, cx: &mut Context) -> Poll<io::Result<()>> {
        let mut gathered = self.gathered.borrow_mut();
        while self.sent.get() < gathered.len() {
            let n = ready!(Pin::new(&mut *self.stream.borrow_mut()).poll_write(cx, &gathered[self.sent.get()..]))?;
            if n == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.sent.set(self.sent.get() + n);
            self.taken(n);
        }
        if gathered.capacity() > 0 {
            let mut buffer = std::mem::take(&mut *gathered);
            buffer.clear();
            self.sent.set(0);
            let mut kept = self.local.buffers.borrow_mut();
            if kept.len() < KEPT {
                kept.push(buffer)
            }
        }
        if self.must_flush.get() {
            ready!(Pin::new(&mut *self.stream.borrow_mut()).poll_flush(cx))?;
            self.must_flush.set(false);
        }
        Poll::Ready(Ok(()))
    }

    pub fn poll_shutdown(&self, cx: &mut Context) -> Poll<io::Result<()>> {
        ready!(self.poll_send(cx))?;
        Pin::new(&mut *self.stream.borrow_mut()).poll_shutdown(cx)
    }

    fn taken(&self, n: usize) {
        self.must_flush.set(true);
        let taken = self.taken.get() + n;
        if taken >= PROGRESS {
            self.connection.progress()
        }
        self.taken.set(taken % PROGRESS);
    }
}
