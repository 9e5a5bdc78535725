//! One request, from its head to the head of its answer.
use std::future::{poll_fn, Future};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::header::{HeaderValue, CONTENT_LENGTH, HOST, RETRY_AFTER};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::{Method, Response, StatusCode, Version};

use crate::body::{Answer, Stream};
use crate::io::{Connection, Local};
use crate::places::{self, Client, State};
use crate::request::{Body, Request};
use crate::server::{count, Key};
use crate::upload::{self, Incoming, Upload};

/// hyper moves it: so it is small, and what few requests need is behind a pointer.
pub struct Answering {
    pub local: Rc<Local>,
    pub stage: Stage,
}

pub enum Stage {
    Answered(Response<Answer>),
    Asked(Ticket),
    /// Its body comes first.
    Taking(Pin<Box<dyn Future<Output = Response<Answer>>>>),
    /// It was polled until it was ready.
    Over,
}

impl Answering {
    /// A panic in a request is its own, here and later: 500, and the connection goes on.
    pub fn new(local: &Rc<Local>, connection: &Rc<Connection>, request: hyper::Request<Incoming>) -> Self {
        let begun = catch_unwind(AssertUnwindSafe(|| begin(local, connection, request)));
        let stage = begun.unwrap_or_else(|payload| Stage::Answered(panicked(local, payload)));
        Answering { local: local.clone(), stage }
    }
}

impl Future for Answering {
    type Output = Response<Answer>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context) -> Poll<Self::Output> {
        let Answering { local, stage } = self.get_mut();
        let polled = catch_unwind(AssertUnwindSafe(|| match stage {
            Stage::Asked(ticket) => poll_asked(ticket, cx),
            Stage::Taking(future) => future.as_mut().poll(cx),
            _ => match std::mem::replace(stage, Stage::Over) {
                Stage::Answered(response) => Poll::Ready(response),
                _ => unreachable!("polled until it is ready"),
            },
        }));
        polled.unwrap_or_else(|payload| {
            if let Stage::Asked(ticket) = stage {
                ticket.outcome = Outcome::Failed
            }
            *stage = Stage::Over;
            Poll::Ready(panicked(local, payload))
        })
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
pub struct Ticket {
    pub local: Rc<Local>,
    connection: Rc<Connection>,
    key: Option<Key>,
    outcome: Outcome,
}

impl Ticket {
    /// Of one that was asked for and has no answer yet.
    pub fn key(&self) -> Key {
        self.key.expect("asked")
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let gone = matches!(self.outcome, Outcome::Gone) && !std::thread::panicking();
        if let Some(key) = self.key {
            self.connection.let_go();
            self.local.give_back(key, gone)
        }
        if matches!(self.outcome, Outcome::Gone) {
            self.connection.cancelled.set(self.connection.cancelled.get() + 1)
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
    if !is_target(&parts) {
        Upload::new(&parts, incoming, connection).linger();
        return Stage::Answered(refuse(&mut ticket, 400));
    }
    let path = parts.uri.path();
    if matches!(parts.method, Method::GET | Method::HEAD) {
        if let Some(found) = local.static_answer(path) {
            ticket.outcome = Outcome::Answered;
            if !incoming.is_empty() {
                Upload::new(&parts, incoming, connection).linger()
            }
            return Stage::Answered(found.map(|body| Answer::whole(body, connection)));
        }
    }
    // A defect, for the test of what one does.
    #[cfg(feature = "panic_path")]
    if path == "/panic" {
        panic!("the path that panics");
    }
    let upload = Upload::new(&parts, incoming, connection);
    if parts.method == Method::CONNECT {
        upload.linger();
        return Stage::Answered(refuse(&mut ticket, 501));
    }
    if upload.is_empty() {
        return match ask(ticket, parts, Body::Empty, None) {
            Ok(ticket) => Stage::Asked(ticket),
            Err(refused) => Stage::Answered(refused),
        };
    }
    Stage::Taking(Box::pin(async move {
        let taken = upload::take(&ticket.local, upload).await;
        let asked = match taken {
            Ok((body, upload)) => ask(ticket, parts, body, upload),
            Err(upload::Refusal::Gone) => Err(status(400)),
            Err(upload::Refusal::Status(code)) => Err(refuse(&mut ticket, code)),
        };
        match asked {
            Ok(mut ticket) => poll_fn(|cx| poll_asked(&mut ticket, cx)).await,
            Err(refused) => refused,
        }
    }))
}

/// Whether it says of which resource it is, and of one host: RFC 9112, 3.2. h2 looks at that itself.
fn is_target(parts: &Parts) -> bool {
    let hosts = || parts.headers.get_all(HOST).iter().count();
    let has_host = match parts.version {
        Version::HTTP_2 => true,
        Version::HTTP_11 => hosts() == 1,
        _ => hosts() <= 1,
    };
    let has_path = match parts.uri.path() {
        "*" => parts.method == Method::OPTIONS,
        path => path.starts_with('/') || parts.method == Method::CONNECT,
    };
    let of_target = || parts.uri.authority().is_none_or(|authority| is_host(authority.as_str().as_bytes()));
    has_host && has_path && of_target() && parts.headers.get_all(HOST).iter().all(|host| is_host(host.as_bytes()))
}

/// A host and perhaps a port, of nobody, or empty: RFC 9112, 3.2, and RFC 9113, 8.3.1.
fn is_host(text: &[u8]) -> bool {
    let Ok(authority) = Authority::try_from(text) else { return text.is_empty() };
    let Some(port) = authority.as_str().strip_prefix(authority.host()) else { return false }; // of somebody
    let digits = port.strip_prefix(':').unwrap_or(port);
    digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits.is_empty() || digits.parse::<u16>().is_ok())
}

/// Puts it into the queue for Erlang; the ticket has a key then. An error is the answer.
fn ask(mut ticket: Ticket, parts: Parts, body: Body, upload: Option<Upload>) -> Result<Ticket, Response<Answer>> {
    let (local, connection) = (ticket.local.clone(), ticket.connection.clone());
    let mut places = local.places.borrow_mut();
    let Some(key) = places.take(local.now_ms()) else {
        drop(places);
        if let Some(upload) = upload {
            upload.linger()
        }
        return Err(refuse(&mut ticket, 503));
    };
    let place = places.get(key).expect("just taken");
    let tls = connection.tls;
    place.state = State::Waiting;
    place.request = Some(Arc::new(Request { parts, peer: connection.peer, tls, body: Mutex::new(body) }));
    place.body = upload;
    drop(places);
    ticket.key = Some(key);
    connection.hold();
    if local.enqueue(key) { Ok(ticket) } else { Err(refuse(&mut ticket, 503)) }
}

fn poll_asked(ticket: &mut Ticket, cx: &mut Context) -> Poll<Response<Answer>> {
    let waiting = ticket.local.places.borrow_mut().wait(ticket.key(), Client::Task(cx.waker().clone()));
    match waiting {
        Some((_, answer)) => Poll::Ready(answered(ticket, answer)),
        None => Poll::Pending,
    }
}

pub fn answered(ticket: &mut Ticket, answer: places::Answer) -> Response<Answer> {
    let key = ticket.key();
    if !matches!(answer, places::Answer::Failed(_)) {
        let cancelled = &ticket.connection.cancelled;
        cancelled.set(cancelled.get().saturating_sub(1))
    }
    match answer {
        places::Answer::Whole(mut response) => {
            ticket.outcome = Outcome::Answered;
            if response.headers().contains_key(CONTENT_LENGTH) && !is_for_head(ticket) {
                response.headers_mut().remove(CONTENT_LENGTH);
            }
            response.map(|body| Answer::whole(body, &ticket.connection))
        }
        places::Answer::Stream(head, streaming) => {
            let (local, connection) = (ticket.local.clone(), ticket.connection.clone());
            let mut places = local.places.borrow_mut();
            let place = places.get(key).expect("answered");
            place.state = State::Streaming(streaming);
            if place.request.take().is_some_and(|request| ends_with_connection(&request.parts, &head)) {
                connection.ends_answer.set(true)
            }
            drop(places);
            ticket.outcome = Outcome::Answered;
            ticket.key = None; // the body's now
            let left = head.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
            head.map(|()| Answer::Stream(Stream { local, connection, key, left, is_wrong: false }))
        }
        places::Answer::Failed(503) => refuse(ticket, 503),
        places::Answer::Failed(code) => {
            // The handler may still work for it: it hears that nobody waits.
            let gone = code == 504;
            ticket.outcome = Outcome::Failed;
            ticket.key = None;
            ticket.connection.let_go();
            ticket.local.give_back(key, gone);
            status(code)
        }
    }
}

/// A length that came without a body is that of what GET would get.
fn is_for_head(ticket: &Ticket) -> bool {
    let mut places = ticket.local.places.borrow_mut();
    let request = places.get(ticket.key()).and_then(|place| place.request.as_ref());
    request.is_some_and(|request| request.parts.method == Method::HEAD)
}

/// HTTP/1.0 has no other end for a body whose length was not said.
fn ends_with_connection(request: &Parts, head: &Response<()>) -> bool {
    let has_body = request.method != Method::HEAD && !matches!(head.status().as_u16(), 204 | 205 | 304);
    request.version == Version::HTTP_10 && has_body && !head.headers().contains_key(CONTENT_LENGTH)
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
