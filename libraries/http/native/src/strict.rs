//! A stream whose input is filtered.
use std::io;
use std::pin::Pin;
use std::task::{ready, Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::filter::Filter;

pub struct Strict<S> {
    stream: S,
    filter: Filter,
    ended: bool,
}

/// hyper looks at a head when it has an end: one that is refused gets it here.
const END: &[u8] = b"\r\n\r\n";

impl<S> Strict<S> {
    pub fn new(stream: S, filter: Filter) -> Self {
        Strict { stream, filter, ended: false }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Strict<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context, buf: &mut ReadBuf) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.filter.is_refused() && !this.ended && buf.remaining() >= END.len() {
            this.ended = true;
            buf.put_slice(END);
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        loop {
            ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
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

impl<S: AsyncWrite + Unpin> AsyncWrite for Strict<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context,
        bufs: &[io::IoSlice],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
