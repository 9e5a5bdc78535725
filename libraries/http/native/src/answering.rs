//! One request, from hyper's call to the head of its answer.
use std::convert::Infallible;
use std::future::Future;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{HeaderValue, RETRY_AFTER};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};

use crate::body::{Answer, Stream};
use crate::io::{Connection, Local};
use crate::places::{self, State};
use crate::request::{Body, Request};
use crate::server::{count, Key};
use crate::upload::{self, Upload};

/// hyper moves it, and keeps one for each request: so it is small, and what few requests need is behind a pointer.
pub struct Answering {
    local: Rc<Local>,
    stage: Stage,
}

enum Stage {
    Answered(Option<Response<Answer>>),
    Asked(Asked),
    /// Its body comes first.
    Taking(Pin<Box<dyn Future<Output = Response<Answer>>>>),
}

impl Answering {
    /// A panic in a request is its own, here and later: 500, and the connection goes on.
    pub fn new(local: &Rc<Local>, connection: &Rc<Connection>, request: hyper::Request<Incoming>) -> Self {
        let begun = catch_unwind(AssertUnwindSafe(|| begin(local, connection, request)));
        let stage = begun.unwrap_or_else(|payload| Stage::Answered(Some(panicked(local, payload))));
        Answering { local: local.clone(), stage }
    }

    pub fn is_answered(&self) -> bool {
        matches!(self.stage, Stage::Answered(_))
    }
}

impl Future for Answering {
    type Output = Result<Response<Answer>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context) -> Poll<Self::Output> {
        let Answering { local, stage } = self.get_mut();
        let polled = catch_unwind(AssertUnwindSafe(|| match stage {
            Stage::Answered(answer) => Poll::Ready(answer.take().expect("polled until it is ready")),
            Stage::Asked(asked) => Pin::new(asked).poll(cx),
            Stage::Taking(future) => future.as_mut().poll(cx),
        }));
        let answer = polled.unwrap_or_else(|payload| {
            if let Stage::Asked(Asked(ticket)) = stage {
                ticket.outcome = Outcome::Failed
            }
            *stage = Stage::Answered(None);
            Poll::Ready(panicked(local, payload))
        });
        answer.map(Ok)
    }
}

fn panicked(local: &Local, payload: Box<dyn std::any::Any + Send>) -> Response<Answer> {
    std::mem::forget(payload); // its drop may panic too
    local.tell_panic();
    status(500)
}

#[derive(Clone, Copy)]
enum Outcome {
    Answered,
    Refused,
    Failed,
    Gone,
}

/// Counts a request once, whatever becomes of it, and gives its place back.
struct Ticket {
    local: Rc<Local>,
    connection: Rc<Connection>,
    key: Option<Key>,
    outcome: Outcome,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let gone = matches!(self.outcome, Outcome::Gone) && !std::thread::panicking();
        if let Some(key) = self.key {
            self.local.give_back(key, gone)
        }
        let counters = self.local.counters();
        count(match self.outcome {
            Outcome::Answered => &counters.answered,
            Outcome::Refused => &counters.refused,
            Outcome::Failed => &counters.failed,
            Outcome::Gone if gone => &counters.gone,
            Outcome::Gone => &counters.failed,
        });
        self.connection.active.set(self.connection.active.get() - 1);
        self.connection.progress();
    }
}

fn begin(local: &Rc<Local>, connection: &Rc<Connection>, request: hyper::Request<Incoming>) -> Stage {
    count(&local.counters().requests);
    connection.active.set(connection.active.get() + 1);
    connection.progress();
    let mut ticket =
        Ticket { local: local.clone(), connection: connection.clone(), key: None, outcome: Outcome::Gone };
    let (parts, incoming) = request.into_parts();
    let path = parts.uri.path();
    if matches!(parts.method, Method::GET | Method::HEAD) {
        if let Some(found) = local.static_answer(path) {
            ticket.outcome = Outcome::Answered;
            return Stage::Answered(Some(found.map(|body| Answer::whole(body, connection))));
        }
    }
    // A defect, for the test of what one does.
    #[cfg(feature = "panic_path")]
    if path == "/panic" {
        panic!("the path that panics");
    }
    if parts.method == Method::CONNECT {
        return Stage::Answered(Some(refuse(&mut ticket, 501)));
    }
    let since_ms = local.now_ms();
    let upload = Upload::new(&parts, incoming);
    if upload.is_empty() {
        return match ask(ticket, since_ms, parts, Body::Empty, None) {
            Ok(asked) => Stage::Asked(asked),
            Err(refused) => Stage::Answered(Some(refused)),
        };
    }
    Stage::Taking(Box::pin(async move {
        let taken = upload::take(&ticket.local, upload, &ticket.connection).await;
        let asked = match taken {
            Ok((body, upload)) => ask(ticket, since_ms, parts, body, upload),
            Err(upload::Refusal::Gone) => Err(status(400)),
            Err(upload::Refusal::Status(code)) => Err(refuse(&mut ticket, code)),
        };
        match asked {
            Ok(asked) => asked.await,
            Err(refused) => refused,
        }
    }))
}

/// Puts it into the queue for Erlang. An error is the answer.
fn ask(
    mut ticket: Ticket,
    since_ms: u64,
    parts: Parts,
    body: Body,
    upload: Option<Upload>,
) -> Result<Asked, Response<Answer>> {
    let (local, connection) = (ticket.local.clone(), ticket.connection.clone());
    let mut places = local.places.borrow_mut();
    let Some(key) = places.take(since_ms) else {
        drop(places);
        return Err(refuse(&mut ticket, 503));
    };
    let place = places.get(key).expect("just taken");
    let tls = connection.tls;
    place.state = State::Waiting(Box::new(Request { parts, peer: connection.peer, tls, body }));
    place.body = upload;
    drop(places);
    ticket.key = Some(key);
    if local.enqueue(key) { Ok(Asked(ticket)) } else { Err(refuse(&mut ticket, 503)) }
}

/// The ticket has a key, until the answer is there.
struct Asked(Ticket);

impl Future for Asked {
    type Output = Response<Answer>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context) -> Poll<Response<Answer>> {
        let ticket = &mut self.0;
        let key = ticket.key.expect("asked");
        poll_answer(&ticket.local, key, cx).map(|answer| answered(ticket, key, answer))
    }
}

fn answered(ticket: &mut Ticket, key: Key, answer: places::Answer) -> Response<Answer> {
    match answer {
        places::Answer::Whole(response) => {
            ticket.outcome = Outcome::Answered;
            response.map(|body| Answer::whole(body, &ticket.connection))
        }
        places::Answer::Stream(head, streaming) => {
            let (local, connection) = (ticket.local.clone(), ticket.connection.clone());
            local.places.borrow_mut().get(key).expect("answered").state = State::Streaming(streaming);
            ticket.outcome = Outcome::Answered;
            ticket.key = None; // the body's now
            head.map(|()| Answer::Stream(Stream { local, connection, key }))
        }
        places::Answer::Failed(503) => refuse(ticket, 503),
        places::Answer::Failed(code) => {
            // The handler may still work for it: it hears that nobody waits.
            let gone = code == 504;
            ticket.outcome = Outcome::Failed;
            ticket.key = None;
            ticket.local.give_back(key, gone);
            status(code)
        }
    }
}

fn poll_answer(local: &Local, key: Key, cx: &mut Context) -> Poll<places::Answer> {
    let mut places = local.places.borrow_mut();
    let place = places.get(key).expect("given back by its ticket alone");
    if let State::Answered(_) = place.state {
        let State::Answered(answer) = std::mem::replace(&mut place.state, State::Held) else { unreachable!() };
        return Poll::Ready(answer);
    }
    place.waker = Some(cx.waker().clone());
    Poll::Pending
}

fn refuse(ticket: &mut Ticket, code: u16) -> Response<Answer> {
    ticket.outcome = Outcome::Refused;
    let mut response = status(code);
    if code == 503 {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

fn status(code: u16) -> Response<Answer> {
    let mut response = Response::new(Answer::Whole(Bytes::new()));
    *response.status_mut() = StatusCode::from_u16(code).expect("a status of ours");
    response
}
