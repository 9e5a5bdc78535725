//! The body of an answer, as hyper takes it, and `http2`.
use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::Ordering::*;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::frames::{LONG, SHORT};
use crate::io::{Connection, Local};
use crate::places::{Client, End, State};
use crate::server::Key;

/// How much of a stream may wait for the client before its sender has to.
pub const WINDOW: usize = 256 * 1024;

pub enum Answer {
    Whole(Bytes),
    /// In frames that are as long as the client is quick.
    Long(Bytes, Rc<Connection>),
    Stream(Stream),
}

impl Answer {
    pub fn whole(bytes: Bytes, connection: &Rc<Connection>) -> Self {
        if connection.is_cut.get() && bytes.len() > SHORT {
            Answer::Long(bytes, connection.clone())
        } else {
            Answer::Whole(bytes)
        }
    }
}

pub struct Stream {
    pub local: Rc<Local>,
    pub connection: Rc<Connection>,
    pub key: Key,
    /// Of the length that the handler gave, if it did, what is still to come.
    pub left: Option<u64>,
    /// It is shorter or longer than that.
    pub is_wrong: bool,
}

#[derive(Debug)]
pub struct Aborted;

impl std::fmt::Display for Aborted {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("the handler ended before its answer did")
    }
}

impl std::error::Error for Aborted {}

impl From<Infallible> for Aborted {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = Aborted;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        match self.get_mut() {
            Answer::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Answer::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Answer::Long(bytes, _) if bytes.is_empty() => Poll::Ready(None),
            Answer::Long(bytes, connection) => {
                // Other streams wait for the end of a frame.
                let most = if connection.at_once.get() >= LONG { LONG } else { SHORT };
                let now = bytes.split_to(most.min(bytes.len()));
                Poll::Ready(Some(Ok(Frame::data(now))))
            }
            Answer::Stream(stream) => stream.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Answer::Whole(bytes) | Answer::Long(bytes, _) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Answer::Whole(bytes) | Answer::Long(bytes, _) => SizeHint::with_exact(bytes.len() as u64),
            Answer::Stream(_) => SizeHint::default(),
        }
    }
}

impl Stream {
    fn poll(&mut self, cx: &mut Context) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        if self.is_wrong {
            return Poll::Ready(Some(Err(Aborted)));
        }
        let mut places = self.local.places.borrow_mut();
        let Some(place) = places.get(self.key) else { return Poll::Ready(Some(Err(Aborted))) };
        let State::Streaming(streaming) = &mut place.state else { return Poll::Ready(Some(Err(Aborted))) };
        let next = streaming.next(if self.connection.is_cut.get() { SHORT } else { usize::MAX });
        let length = next.as_ref().map(|chunk| chunk.len() as u64);
        let is_short = next.is_none() && matches!(streaming.end, Some(End::Complete(_)));
        if self.left.is_some_and(|left| length.is_some_and(|length| length > left) || is_short && left > 0) {
            // Cut off, as below.
            self.is_wrong = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(chunk) = next {
            self.left = self.left.map(|left| left - chunk.len() as u64);
            self.connection.progress();
            let left = streaming.flow.bytes.fetch_sub(chunk.len(), AcqRel) - chunk.len();
            if left <= WINDOW / 2 {
                self.local.tell_room_all(&streaming.flow.room(), self.key)
            }
            return Poll::Ready(Some(Ok(Frame::data(chunk))));
        }
        match streaming.end.take() {
            None => {
                place.client = Client::Task(cx.waker().clone());
                Poll::Pending
            }
            Some(End::Cut) => {
                // hyper and h2 drop what waits; so it goes out first, in the connection's next turn.
                streaming.end = Some(End::Aborted);
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Some(End::Aborted) => Poll::Ready(Some(Err(Aborted))),
            Some(End::Complete(trailers)) => {
                // Dropped from now on without telling anybody.
                streaming.end = Some(End::Complete(None));
                Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let complete = match self.local.places.borrow_mut().get(self.key).map(|place| &place.state) {
            Some(State::Streaming(s)) => matches!(s.end, Some(End::Complete(_))) && !self.is_wrong,
            _ => false,
        };
        self.connection.let_go();
        self.local.give_back(self.key, !complete)
    }
}
