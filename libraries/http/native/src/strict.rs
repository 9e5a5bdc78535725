//! A connection's bytes as hyper and h2 have them: the protocol is found in the first of them, the input of HTTP/1 is filtered,
//! the output gathered; of HTTP/2, settings and frames are other ones than those on the wire (`frames`).
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{ready, Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::filter::Filter;
use crate::frames::{lengthen, HEAD, SETTING};
use crate::wire::Wire;

#[derive(Clone, Copy, PartialEq)]
pub enum Protocol {
    H1,
    H2,
    /// HTTP/2 by prior knowledge, else HTTP/1.
    Either,
}

pub struct Strict<S> {
    wire: Rc<Wire<S>>,
    protocol: Protocol,
    filter: Filter,
    ended: bool,
    opening: Opening,
}

const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What a connection begins with. No more is read than is there.
enum Opening {
    /// What HTTP/2 begins with, so far.
    Preface([u8; PREFACE.len()], usize),
    /// Of the client's settings, in which there is room for one more.
    Head([u8; HEAD + SETTING], usize),
    /// Bytes that were looked at, for who reads. `more`: they are the preface.
    Given { bytes: [u8; PREFACE.len()], from: usize, to: usize, more: bool },
    Over,
}

/// hyper looks at a head when it has an end: one that is refused gets it here.
const END: &[u8] = b"\r\n\r\n";

impl<S: AsyncRead + AsyncWrite + Unpin> Strict<S> {
    pub fn new(wire: Rc<Wire<S>>, protocol: Protocol) -> Self {
        let opening =
            if protocol == Protocol::H1 { Opening::Over } else { Opening::Preface([0; PREFACE.len()], 0) };
        Strict { wire, protocol, filter: Filter::new(), ended: false, opening }
    }

    /// Which of the two it is.
    pub fn poll_protocol(&mut self, cx: &mut Context) -> Poll<io::Result<Protocol>> {
        while let Opening::Preface(seen, come) = &mut self.opening {
            let mut few = ReadBuf::new(&mut seen[*come..]);
            ready!(self.wire.poll_read(cx, &mut few))?;
            let read = few.filled().len();
            *come += read;
            let is_preface = read > 0 && seen[..*come] == PREFACE[..*come];
            if is_preface && *come < PREFACE.len() {
                continue;
            }
            if self.protocol == Protocol::Either {
                self.protocol = if is_preface { Protocol::H2 } else { Protocol::H1 }
            }
            self.opening = Opening::Given { bytes: *seen, from: 0, to: *come, more: is_preface };
        }
        Poll::Ready(Ok(self.protocol))
    }

    fn poll_input(&mut self, cx: &mut Context, buf: &mut ReadBuf) -> Poll<io::Result<()>> {
        loop {
            match self.opening {
                Opening::Preface(..) => {
                    ready!(self.poll_protocol(cx))?;
                }
                Opening::Head(ref mut head, ref mut come) => {
                    let mut few = ReadBuf::new(&mut head[*come..HEAD]);
                    ready!(self.wire.poll_read(cx, &mut few))?;
                    let read = few.filled().len();
                    *come += read;
                    let (mut head, mut to) = (*head, *come);
                    if to == HEAD {
                        to = lengthen(&mut head);
                        if to > HEAD {
                            self.wire.cut()
                        }
                    } else if read > 0 {
                        continue;
                    }
                    let mut bytes = [0; PREFACE.len()];
                    bytes[..head.len()].copy_from_slice(&head);
                    self.opening = Opening::Given { bytes, from: 0, to, more: false };
                }
                Opening::Given { from, to, more, .. } if from == to => {
                    self.opening = if more { Opening::Head([0; HEAD + SETTING], 0) } else { Opening::Over }
                }
                Opening::Given { ref bytes, ref mut from, to, .. } => {
                    let n = (to - *from).min(buf.remaining());
                    buf.put_slice(&bytes[*from..*from + n]);
                    *from += n;
                    return Poll::Ready(Ok(()));
                }
                Opening::Over => return self.wire.poll_read(cx, buf),
            }
        }
    }

    fn poll_filtered(&mut self, cx: &mut Context, buf: &mut ReadBuf) -> Poll<io::Result<()>> {
        if self.filter.is_refused() && !self.ended && buf.remaining() >= END.len() {
            self.ended = true;
            buf.put_slice(END);
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        loop {
            let come = self.poll_input(cx, buf);
            if come.is_pending() {
                // Not when a part of it has come: hyper may look at that no sooner than the answers before are out.
                self.wire.wait_for_head(self.filter.head())
            }
            ready!(come)?;
            if buf.filled().len() == before {
                return Poll::Ready(Ok(()));
            }
            let kept = self.filter.filter(&mut buf.filled_mut()[before..]);
            buf.set_filled(before + kept);
            self.wire.forget_head_before(self.filter.head());
            // None would be the end of the stream; what comes behind a refusal is read and dropped until hyper closes.
            if kept > 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Strict<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context, buf: &mut ReadBuf) -> Poll<io::Result<()>> {
        match self.protocol {
            Protocol::H1 => self.poll_filtered(cx, buf),
            _ => self.poll_input(cx, buf),
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
