//! A connection over HTTP/2. The protocol is h2's, as it is under hyper; hyper itself has a task for each request, and asks h2 five
//! times for it. Here a request without a body has no task: its end of the stream waits in its place (`Stream`), and the answer
//! from Erlang finds it there.
use std::future::{poll_fn, Future};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;
use std::task::{ready, Context, Poll, Wake, Waker};
use std::time::Duration;

use bytes::Bytes;
use h2::server::{Builder, SendResponse};
use h2::{Reason, RecvStream, SendStream};
use http_body::Body as _;
use hyper::header::{CONNECTION, CONTENT_LENGTH, DATE, EXPECT};
use hyper::{Method, Request, Response, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::spawn_local;
use tokio::time::sleep;

use crate::answering::{answered, Answering, Stage, Ticket};
use crate::body::{Aborted, Answer};
use crate::frames::LONG;
use crate::io::{Connection, Local, Phase};
use crate::places::{self, Client};
use crate::server::Key;
use crate::strict::Strict;
use crate::upload::Incoming;

/// What a client may send before it is read: hyper's own choice.
const WINDOW: u32 = 1024 * 1024;
/// Streams that are reset because of the client's errors, in the life of a connection.
const RESETS: usize = 1024;
/// What h2 has around small pieces of bodies that nobody has read yet, in bytes: one turn of a connection brings some
/// thousand.
const SMALL_FRAMES: usize = 4 * 1024 * 1024;

pub async fn serve<S>(local: &Rc<Local>, connection: &Rc<Connection>, stream: Strict<S>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut builder = Builder::new();
    builder
        .initial_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_concurrent_streams(local.server.config.max_streams)
        .max_header_list_size(32 * 1024)
        // No bound of its own: what a stream may send, `pipe` gives it.
        .max_send_buffer_size(LONG)
        // Streams beyond max_streams count as well, however polite the client is.
        .max_local_error_reset_streams(Some(RESETS))
        .max_pending_accept_reset_streams(32)
        .data_frame_budget(SMALL_FRAMES);
    let Ok(mut h2) = builder.handshake::<_, Bytes>(stream).await else { return };
    let mut asked = Asked::new(local);
    let mut told = false;
    let mut calmed = false;
    poll_fn(|cx| {
        if connection.phase.get() == Phase::Closing && !told {
            told = true;
            h2.graceful_shutdown()
        }
        loop {
            match h2.poll_accept(cx) {
                Poll::Ready(Some(Ok((request, respond)))) => begin(connection, &mut asked, request, respond),
                // The client's errors.
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => {
                    asked.let_go_of_reset();
                    // Erlang goes on with what was given up, and has no more than max_streams of one client's.
                    if connection.cancelled.get() <= local.server.config.max_streams || calmed {
                        return Poll::Pending;
                    }
                    calmed = true;
                    h2.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM)
                }
            }
        }
    })
    .await
}

fn begin(
    connection: &Rc<Connection>,
    asked: &mut Asked,
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
) {
    let local = asked.local;
    let is_head = request.method() == Method::HEAD;
    let expects = request.headers().contains_key(EXPECT);
    let Answering { local: its, stage } = Answering::new(local, connection, request.map(Incoming::H2));
    match stage {
        Stage::Answered(response) => send(local, respond, is_head, response),
        Stage::Asked(ticket) => asked.wait(Stream { ticket, respond, is_head }),
        stage => {
            spawn_local(async move {
                let mut answering = Answering { local: its.clone(), stage };
                let mut expects = expects;
                let answered = poll_fn(|cx| match Pin::new(&mut answering).poll(cx) {
                    Poll::Pending => {
                        if std::mem::take(&mut expects) {
                            go_on(&mut respond)
                        }
                        respond.poll_reset(cx).map(|_| None)
                    }
                    answered => answered.map(Some),
                });
                if let Some(response) = answered.await {
                    send(&its, respond, is_head, response)
                }
            });
        }
    }
}

/// It is not refused: its client may send its body.
fn go_on(respond: &mut SendResponse<Bytes>) {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::CONTINUE;
    let _ = respond.send_informational(response); // its errors are the connection's
}

/// A request that Erlang has, without a body: who answers it finds it in its place.
pub struct Stream {
    ticket: Ticket,
    respond: SendResponse<Bytes>,
    is_head: bool,
}

impl Stream {
    /// A panic is contained here as it is in `Answering`; the stream is reset then.
    pub fn answer(self, answer: places::Answer) {
        let Stream { mut ticket, respond, is_head } = self;
        let local = ticket.local.clone();
        let sent = catch_unwind(AssertUnwindSafe(|| {
            let response = answered(&mut ticket, answer);
            drop(ticket);
            send(&local, respond, is_head, response)
        }));
        if let Err(payload) = sent {
            std::mem::forget(payload); // its drop may panic too
            local.tell_panic()
        }
    }
}

/// The streams of one connection that wait in their places, and some that have been answered meanwhile. Those that are
/// left when the connection ends are gone.
struct Asked<'a> {
    local: &'a Rc<Local>,
    keys: Vec<Key>,
    resets: Arc<Resets>,
    waker: Waker,
}

/// Whether h2 has told one of the streams something: that it was reset, or nothing of interest.
#[derive(Default)]
struct Resets(AtomicBool);

impl Wake for Resets {
    /// In the connection's own turn, which looks behind it.
    fn wake(self: Arc<Self>) {
        self.0.store(true, Relaxed)
    }
}

impl<'a> Asked<'a> {
    fn new(local: &'a Rc<Local>) -> Self {
        let resets = Arc::new(Resets::default());
        let waker = resets.clone().into();
        Asked { local, keys: Vec::new(), resets, waker }
    }

    fn wait(&mut self, mut stream: Stream) {
        if stream.respond.poll_reset(&mut Context::from_waker(&self.waker)).is_ready() {
            return; // gone, which the ticket's end says
        }
        if self.keys.len() == self.keys.capacity() {
            self.forget_answered();
            self.keys.reserve(self.keys.len().max(16));
        }
        let key = stream.ticket.key();
        self.keys.push(key);
        let answer = self.local.places.borrow_mut().wait(key, Client::Stream(stream));
        if let Some((Client::Stream(stream), answer)) = answer {
            stream.answer(answer)
        }
    }

    fn forget_answered(&mut self) {
        let mut places = self.local.places.borrow_mut();
        self.keys.retain(|key| places.get(*key).is_some_and(|place| matches!(place.client, Client::Stream(_))));
    }

    fn let_go_of_reset(&mut self) {
        if !self.resets.0.swap(false, Relaxed) {
            return;
        }
        let mut cx = Context::from_waker(&self.waker);
        self.let_go(|stream| stream.respond.poll_reset(&mut cx).is_ready());
        self.forget_answered();
    }

    /// Those of which `is_gone` says so. They end when nobody looks at the places any more.
    fn let_go(&self, mut is_gone: impl FnMut(&mut Stream) -> bool) {
        let mut gone = Vec::new();
        let mut places = self.local.places.borrow_mut();
        for key in &self.keys {
            let Some(place) = places.get(*key) else { continue };
            let Client::Stream(stream) = &mut place.client else { continue };
            if is_gone(stream) {
                gone.push(std::mem::take(&mut place.client))
            }
        }
        drop(places);
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.let_go(|_| true)
    }
}

/// Answers to HEAD, and of some statuses, have no body, whatever the handler gave.
fn send(local: &Rc<Local>, mut respond: SendResponse<Bytes>, is_head: bool, response: Response<Answer>) {
    let (mut head, body) = response.into_parts();
    let has_none = matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    head.headers.remove(CONNECTION);
    head.headers.entry(DATE).or_insert_with(|| local.date());
    match body.size_hint().exact() {
        Some(length) if length > 0 && !has_none => {
            head.headers.entry(CONTENT_LENGTH).or_insert_with(|| length.into());
        }
        _ => (),
    }
    let is_whole = is_head || has_none || body.is_end_stream();
    let Ok(mut to) = respond.send_response(Response::from_parts(head, ()), is_whole) else {
        // The client has reset it, or the handler's headers are none of HTTP/2.
        return respond.send_reset(Reason::INTERNAL_ERROR);
    };
    match body {
        _ if is_whole => (),
        Answer::Whole(bytes) if has_room(&mut to, bytes.len()) => {
            let _ = to.send_data(bytes, true);
        }
        body => {
            spawn_local(pipe(local.clone(), to, body));
        }
    }
}

fn has_room(to: &mut SendStream<Bytes>, length: usize) -> bool {
    to.reserve_capacity(length);
    to.capacity() >= length
}

/// Sends a body as far as the client takes it: no more of it is h2's than the client has given room for. Errors of h2 mean that
/// the client is gone. A client that takes nothing of it for idle_timeout_ms is, too, whatever else it does on the connection.
async fn pipe(local: Rc<Local>, mut to: SendStream<Bytes>, mut body: Answer) {
    let patience = Duration::from_millis(local.server.config.idle_timeout_ms);
    let mut next: Option<Bytes> = None;
    let mut stalled = None;
    let sent = poll_fn(|cx| loop {
        if to.poll_reset(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        if let Some(bytes) = &mut next {
            while to.capacity() == 0 {
                match to.poll_capacity(cx) {
                    Poll::Ready(Some(Ok(_))) => (),
                    Poll::Ready(_) => return Poll::Ready(Ok(())), // the client is gone
                    Poll::Pending => {
                        let sleep = stalled.get_or_insert_with(|| Box::pin(sleep(patience)));
                        ready!(sleep.as_mut().poll(cx));
                        return Poll::Ready(Err(Aborted));
                    }
                }
            }
            stalled = None;
            let now = bytes.split_to(to.capacity().min(bytes.len()));
            let is_all = bytes.is_empty();
            let is_last = is_all && body.is_end_stream();
            let sent = to.send_data(now, is_last);
            if is_last || sent.is_err() {
                return Poll::Ready(Ok(()));
            }
            if !is_all {
                continue;
            }
            next = None
        }
        match ready!(Pin::new(&mut body).poll_frame(cx)) {
            None => {
                let _ = to.send_data(Bytes::new(), true);
                return Poll::Ready(Ok(()));
            }
            Some(Ok(frame)) => match frame.into_data() {
                Ok(bytes) => {
                    to.reserve_capacity(bytes.len());
                    next = Some(bytes)
                }
                Err(frame) => {
                    let _ = to.send_trailers(frame.into_trailers().unwrap_or_default());
                    return Poll::Ready(Ok(()));
                }
            },
            Some(Err(Aborted)) => return Poll::Ready(Err(Aborted)),
        }
    });
    if let Err(Aborted) = sent.await {
        to.send_reset(Reason::INTERNAL_ERROR)
    }
}
