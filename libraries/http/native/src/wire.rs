//! A socket, or TLS on one, as a connection writes to it: what hyper or h2 says in one turn goes out at once.
//!
//! They write each answer, and each frame, alone, and a call of the system costs more than its bytes do.
use std::cell::{Cell, RefCell};
use std::future::{poll_fn, Future};
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::pin::{pin, Pin};
use std::rc::Rc;
use std::task::{ready, Context, Poll};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use crate::frames::{Cutter, Piece};
use crate::io::{Connection, Local};

/// What waits at most.
const GATHERED: usize = 128 * 1024;
/// From here on bytes are not gathered, which is a copy.
const LONG: usize = 32 * 1024;
/// A client that takes this much moves: see `Connection::progress`.
const PROGRESS: usize = 64 * 1024;
/// What one turn of a connection reads: a flood of small frames is much work, and others wait meanwhile.
const TURN: usize = 256 * 1024;
/// Heads and payloads that go at once: those of a long frame, and what is before it.
const PIECES: usize = 160;
/// Buffers that a thread keeps for its connections.
const KEPT: usize = 8;

pub struct Wire<S> {
    local: Rc<Local>,
    connection: Rc<Connection>,
    stream: RefCell<S>,
    /// Taken from the thread's, and given back when all is sent.
    gathered: RefCell<Vec<u8>>,
    /// Of HTTP/2, once h2 makes frames that are too long.
    cutter: Cell<Option<Cutter>>,
    sent: Cell<usize>,
    must_flush: Cell<bool>,
    taken: Cell<usize>,
    read: Cell<usize>,
    /// The socket had no more for who reads in this turn, and tells him of an end as well.
    awaited: Cell<bool>,
    pub is_http1: Cell<bool>,
}

/// The socket below.
pub trait Socket {
    fn socket(&self) -> &TcpStream;
}

impl Socket for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }
}

impl Socket for TlsStream<TcpStream> {
    fn socket(&self) -> &TcpStream {
        self.get_ref().0
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    pub fn new(local: Rc<Local>, connection: Rc<Connection>, stream: S) -> Self {
        let [sent, taken, read] = [0, 0, 0].map(Cell::new);
        let (stream, gathered) = (RefCell::new(stream), RefCell::default());
        let [must_flush, awaited, is_http1] = [false; 3].map(Cell::new);
        let cutter = Cell::new(None);
        Wire { local, connection, stream, gathered, cutter, sent, must_flush, taken, read, awaited, is_http1 }
    }

    /// From here on frames are cut. Between two of them.
    pub fn cut(&self) {
        self.connection.is_cut.set(true);
        self.cutter.set(Some(Cutter::default()))
    }

    /// hyper wants more of the head that has begun and not ended, if any, and nothing is there: the sweep looks how long that takes.
    pub fn wait_for_head(&self, head: Option<u64>) {
        let seen = &self.connection.head;
        if seen.get().is_none() {
            seen.set(head.map(|head| (head, self.local.now_ms())))
        }
    }

    /// The head that was waited for has ended, unless it is this one.
    pub fn forget_head_before(&self, head: Option<u64>) {
        let seen = &self.connection.head;
        if head != seen.get().map(|(head, _)| head) {
            seen.set(None)
        }
    }

    pub fn begin_turn(&self) {
        self.read.set(0);
        self.awaited.set(false)
    }

    /// Of HTTP/1: nobody would see that the client leaves. hyper reads no more while it has bytes that it does not look at yet,
    /// and of a body as much as Erlang does.
    pub fn is_unwatched(&self) -> bool {
        self.is_http1.get() && self.connection.held.get() > 0 && !self.awaited.get()
    }

    /// Between two turns, until something is to be done: true if the client has left.
    pub async fn watch(&self) -> bool
    where
        S: Socket,
    {
        let stream = self.stream.borrow();
        // Nobody asks the system for urgent bytes: so that is the end of the input, or an error, also behind what is not read.
        let mut left = pin!(stream.socket().ready(Interest::PRIORITY | Interest::ERROR));
        let mut woken = false;
        poll_fn(|cx| match left.as_mut().poll(cx) {
            Poll::Ready(_) => Poll::Ready(true),
            Poll::Pending if std::mem::replace(&mut woken, true) => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    pub fn poll_read(&self, cx: &mut Context, buf: &mut ReadBuf) -> Poll<io::Result<()>> {
        if self.read.get() >= TURN {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buf.filled().len();
        let read = Pin::new(&mut *self.stream.borrow_mut()).poll_read(cx, buf);
        self.awaited.set(read.is_pending());
        ready!(read)?;
        self.read.set(self.read.get() + buf.filled().len() - before);
        Poll::Ready(Ok(()))
    }

    pub fn poll_write(&self, cx: &mut Context, bufs: &[IoSlice]) -> Poll<io::Result<usize>> {
        let length = bufs.iter().map(|buf| buf.len()).sum::<usize>();
        if length >= LONG {
            loop {
                ready!(self.poll_send(cx))?;
                let Some(cutter) = self.cutter.get() else { return self.poll_write_now(cx, bufs) };
                let (went, used) = ready!(self.poll_write_cut(cutter, cx, bufs))?;
                // Heads may go without a byte of h2's.
                if used > 0 || went == 0 {
                    return Poll::Ready(Ok(used));
                }
            }
        }
        if self.gathered.borrow().len() + length > GATHERED {
            ready!(self.poll_send(cx))?;
        }
        match self.cutter.take() {
            Some(mut cutter) => {
                for buf in bufs {
                    let mut input = &buf[..];
                    while let Some(piece) = cutter.next(&mut input, usize::MAX) {
                        self.gather(piece.bytes())
                    }
                }
                self.cutter.set(Some(cutter))
            }
            None => bufs.iter().for_each(|buf| self.gather(buf)),
        }
        Poll::Ready(Ok(length))
    }

    fn gather(&self, bytes: &[u8]) {
        let mut gathered = self.gathered.borrow_mut();
        if gathered.capacity() == 0 {
            *gathered = self.local.buffers.borrow_mut().pop().unwrap_or_default();
        }
        gathered.extend_from_slice(bytes);
    }

    fn poll_write_now(&self, cx: &mut Context, bufs: &[IoSlice]) -> Poll<io::Result<usize>> {
        let n = ready!(self.unless_full(Pin::new(&mut *self.stream.borrow_mut()).poll_write_vectored(cx, bufs)))?;
        self.taken(n);
        Poll::Ready(Ok(n))
    }

    /// How much went, and how much of h2's bytes it took. Nothing is gathered when this is called.
    fn poll_write_cut(&self, cutter: Cutter, cx: &mut Context, bufs: &[IoSlice]) -> Poll<io::Result<(usize, usize)>> {
        let mut pieces = [Piece::Payload(&[]); PIECES];
        let mut count = 0;
        let mut ahead = cutter;
        for buf in bufs {
            let mut input = &buf[..];
            while count < PIECES {
                let Some(piece) = ahead.next(&mut input, usize::MAX) else { break };
                pieces[count] = piece;
                count += 1;
            }
        }
        let slices: [IoSlice; PIECES] = std::array::from_fn(|i| IoSlice::new(pieces[i].bytes()));
        let went = ready!(self.poll_write_now(cx, &slices[..count]))?;
        // Again, as far as that: of a head that went in part, the rest goes first the next time.
        let mut cutter = cutter;
        let (mut left, mut used) = (went, 0);
        for buf in bufs {
            let mut input = &buf[..];
            while left > 0 {
                let Some(piece) = cutter.next(&mut input, left) else { break };
                let (_, behind) = piece.bytes().split_at(left.min(piece.bytes().len()));
                left -= piece.bytes().len() - behind.len();
                if !behind.is_empty() {
                    self.gather(behind)
                }
            }
            used += buf.len() - input.len();
        }
        self.cutter.set(Some(cutter));
        Poll::Ready(Ok((went, used)))
    }

    /// Sends what was gathered. The connection's task calls it at the end of each turn.
    pub fn poll_send(&self, cx: &mut Context) -> Poll<io::Result<()>> {
        let mut gathered = self.gathered.borrow_mut();
        while self.sent.get() < gathered.len() {
            let next = &gathered[self.sent.get()..];
            let n = ready!(self.unless_full(Pin::new(&mut *self.stream.borrow_mut()).poll_write(cx, next)))?;
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
        // All was said: that is the end of whatever it is the end of.
        self.connection.ends_answer.set(false);
        Pin::new(&mut *self.stream.borrow_mut()).poll_shutdown(cx)
    }

    /// A socket that is full takes less than it is given.
    fn unless_full<T>(&self, written: Poll<T>) -> Poll<T> {
        if written.is_pending() {
            self.connection.at_once.set(0)
        }
        written
    }

    fn taken(&self, n: usize) {
        self.must_flush.set(true);
        self.connection.at_once.set(self.connection.at_once.get().saturating_add(n));
        let taken = self.taken.get() + n;
        if taken >= PROGRESS {
            self.connection.progress()
        }
        self.taken.set(taken % PROGRESS);
    }
}

impl<S> Drop for Wire<S> {
    /// An answer that was cut off, and whose client would take this end for its own: the connection is reset.
    fn drop(&mut self) {
        if self.connection.ends_answer.get() {
            // The stream, which is dropped behind this, has it still.
            let socket = unsafe { BorrowedFd::borrow_raw(self.connection.socket) };
            let _ = SockRef::from(&socket).set_linger(Some(Duration::ZERO)); // an end as others, if that fails
        }
    }
}
