//! A connection's bytes as hyper has them: its input is filtered, its output gathered.
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{ready, Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::filter::Filter;
use crate::wire::Wire;

pub struct Strict<S> {
    wire: Rc<Wire<S>>,
    filter: Filter,
    ended: bool,
}

/// hyper looks at a head when it has an end: one that is refused gets it here.
const END: &[u8] = b"\r\n\r\n";

impl<S> Strict<S> {
    pub fn new(wire: Rc<Wire<S>>, filter: Filter) -> Self {
        Strict { wire, filter, ended: false }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Strict<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context, buf: &mut ReadBuf) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.filter.is_refused() && !this.ended && buf.remaining() >= END.len() {
            this.ended = true;
            buf.put_slice(END);
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        loop {
            ready!(this.wire.poll_read(cx, buf))?;
            let read = buf.filled().len() - before;
            if read == 0 || this.filter.is_passing() {
                return Poll::Ready(Ok(()));
            }
            let kept = this.filter.filter(&mut buf.filled_mut()[before..]);
            buf.set_filled(before + kept);
            // None would be the end of the stream; what comes behind a refusal is read and dropped until hyper closes.
            if kept > 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Strict<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.wire.poll_write(cx, &[io::IoSlice::new(buf)])
    }

    fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context, bufs: &[io::IoSlice]) -> Poll<io::Result<usize>> {
        self.wire.poll_write(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// The connection does it, when hyper has said all.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context) -> Poll<io::Result<()>> {
        self.wire.poll_shutdown(cx)
    }
}
