//! A connection's bytes as hyper has them: its input is filtered, its output gathered; of HTTP/2, settings and frames are
//! other ones than those on the wire (`frames`).
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{ready, Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::filter::{Filter, Protocol};
use crate::frames::{lengthen, HEAD, SETTING};
use crate::wire::Wire;

pub struct Strict<S> {
    wire: Rc<Wire<S>>,
    filter: Filter,
    ended: bool,
    opening: Opening,
}

/// What HTTP/2 begins with, so far. No more is read than is there.
enum Opening {
    Preface(usize),
    /// Of the client's settings, in which there is room for one more.
    Head([u8; HEAD + SETTING], usize),
    Given { head: [u8; HEAD + SETTING], from: usize, to: usize },
    Over,
}

const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// hyper looks at a head when it has an end: one that is refused gets it here.
const END: &[u8] = b"\r\n\r\n";

impl<S: AsyncRead + AsyncWrite + Unpin> Strict<S> {
    pub fn new(wire: Rc<Wire<S>>, protocol: Protocol) -> Self {
        let opening = if protocol == Protocol::H1 { Opening::Over } else { Opening::Preface(0) };
        Strict { wire, filter: Filter::new(protocol), ended: false, opening }
    }

    fn poll_opening(&mut self, cx: &mut Context, buf: &mut ReadBuf) -> Poll<io::Result<()>> {
        loop {
            match self.opening {
                Opening::Preface(come) => {
                    let mut few = [0; PREFACE.len()];
                    let mut few = ReadBuf::new(&mut few[..(PREFACE.len() - come).min(buf.remaining())]);
                    ready!(self.poll_filtered(cx, &mut few))?;
                    let now = few.filled();
                    buf.put_slice(now);
                    let before = come;
                    let come = before + now.len();
                    self.opening = if now.is_empty() || now != &PREFACE[before..come] {
                        Opening::Over
                    } else if come < PREFACE.len() {
                        Opening::Preface(come)
                    } else {
                        Opening::Head([0; HEAD + SETTING], 0)
                    };
                    return Poll::Ready(Ok(()));
                }
                Opening::Head(ref mut head, ref mut come) => {
                    let mut few = ReadBuf::new(&mut head[*come..HEAD]);
                    ready!(self.wire.poll_read(cx, &mut few))?;
                    let read = few.filled().len();
                    *come += read;
                    let (mut head, come) = (*head, *come);
                    if come == HEAD {
                        let to = lengthen(&mut head);
                        if to > HEAD {
                            self.wire.cut()
                        }
                        self.opening = Opening::Given { head, from: 0, to }
                    } else if read == 0 {
                        self.opening = Opening::Given { head, from: 0, to: come }
                    }
                }
                Opening::Given { ref head, ref mut from, to } => {
                    let n = (to - *from).min(buf.remaining());
                    buf.put_slice(&head[*from..*from + n]);
                    *from += n;
                    if *from == to {
                        self.opening = Opening::Over
                    }
                    return Poll::Ready(Ok(()));
                }
                Opening::Over => return self.poll_filtered(cx, buf),
            }
        }
    }

    fn poll_filtered(&mut self, cx: &mut Context, buf: &mut ReadBuf) -> Poll<io::Result<()>> {
        let this = self;
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

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Strict<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context, buf: &mut ReadBuf) -> Poll<io::Result<()>> {
        match self.opening {
            Opening::Over => self.poll_filtered(cx, buf),
            _ => self.poll_opening(cx, buf),
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
