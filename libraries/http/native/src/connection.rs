//! One connection and the requests on it.
use std::convert::Infallible;
use std::future::{poll_fn, Future};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::{pin, Pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{HeaderValue, RETRY_AFTER};
use hyper::service::service_fn;
use hyper::{Method, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::spawn_local;

use crate::body::{Answer, Stream};
use crate::filter::{Filter, Protocol};
use crate::io::{Connection, Local, Phase};
use crate::places::{self, State};
use crate::request::Request;
use crate::server::{count, Key};
use crate::strict::Strict;
use crate::upload::{self, Upload};

#[derive(Clone)]
struct OnThisThread;

impl<F: Future + 'static> hyper::rt::Executor<F> for OnThisThread {
    fn execute(&self, future: F) {
        spawn_local(async {
            future.await;
        });
    }
}

pub async fn serve(local: Rc<Local>, (at, connection): (usize, Rc<Connection>), stream: TcpStream) {
    // Also when the thread ends, or a panic this task.
    let _registered = Registered(&local, at);
    let config = &local.server.config;
    match &config.tls {
        None => {
            let protocol = if config.h2c { Protocol::Either } else { Protocol::H1 };
            speak(&local, &connection, stream, protocol).await
        }
        Some(tls) => {
            let acceptor = tokio_rustls::TlsAcceptor::from(tls.clone());
            let within = Duration::from_millis(config.header_timeout_ms);
            let Ok(Ok(stream)) = tokio::time::timeout(within, acceptor.accept(stream)).await else { return };
            let h2 = stream.get_ref().1.alpn_protocol() == Some(&b"h2"[..]);
            speak(&local, &connection, stream, if h2 { Protocol::H2 } else { Protocol::H1 }).await
        }
    }
}

struct Registered<'a>(&'a Rc<Local>, usize);

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.0.unregister(self.1)
    }
}

async fn speak<S>(local: &Rc<Local>, connection: &Rc<Connection>, stream: S, protocol: Protocol)
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let config = &local.server.config;
    let mut builder = Builder::new(OnThisThread);
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(config.header_timeout_ms))
        .max_headers(128)
        .max_buf_size(64 * 1024)
        .half_close(false);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(config.max_streams)
        .max_header_list_size(32 * 1024)
        .max_send_buf_size(64 * 1024)
        .max_local_error_reset_streams(64)
        .max_pending_accept_reset_streams(32);
    let stream = Strict::new(stream, Filter::new(protocol));
    let builder = match protocol {
        Protocol::H1 => builder.http1_only(),
        Protocol::H2 => builder.http2_only(),
        Protocol::Either => builder,
    };
    let service = service_fn(|request: hyper::Request<Incoming>| {
        Contained(local.clone(), request_on(local.clone(), connection.clone(), request))
    });
    let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let mut told = false;
    poll_fn(|cx| {
        let same = matches!(&*connection.waker.borrow(), Some(waker) if waker.will_wake(cx.waker()));
        if !same {
            *connection.waker.borrow_mut() = Some(cx.waker().clone());
        }
        match connection.phase.get() {
            Phase::Ended => return Poll::Ready(()),
            Phase::Closing if !told => {
                told = true;
                serving.as_mut().graceful_shutdown()
            }
            _ => (),
        }
        // Its errors are the client's; requests that they cut short are counted as gone.
        serving.as_mut().poll(cx).map(|_| ())
    })
    .await
}

/// A panic in a request is its own: 500, and the connection goes on.
struct Contained<F>(Rc<Local>, F);

impl<F: Future<Output = Result<Response<Answer>, Infallible>>> Future for Contained<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context) -> Poll<F::Output> {
        let local = self.0.clone();
        // Pinned with us, and never moved.
        let future = unsafe { self.map_unchecked_mut(|contained| &mut contained.1) };
        catch_unwind(AssertUnwindSafe(|| future.poll(cx))).unwrap_or_else(|payload| {
            std::mem::forget(payload); // its drop may panic too
            local.tell_panic();
            Poll::Ready(Ok(status(500)))
        })
    }
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

async fn request_on(
    local: Rc<Local>,
    connection: Rc<Connection>,
    request: hyper::Request<Incoming>,
) -> Result<Response<Answer>, Infallible> {
    count(&local.counters().requests);
    connection.active.set(connection.active.get() + 1);
    connection.progress();
    let (local, connection) = (local, connection);
    let mut ticket =
        Ticket { local: local.clone(), connection: connection.clone(), key: None, outcome: Outcome::Gone };
    let answer = answer(&mut ticket, request).await;
    Ok(answer)
}

async fn answer(ticket: &mut Ticket, request: hyper::Request<Incoming>) -> Response<Answer> {
    let (local, connection) = (ticket.local.clone(), ticket.connection.clone());
    let (parts, incoming) = request.into_parts();
    let path = parts.uri.path();
    if matches!(parts.method, Method::GET | Method::HEAD) {
        if let Some(found) = local.static_answer(path) {
            ticket.outcome = Outcome::Answered;
            return found.map(|body| Answer::whole(body, &connection));
        }
    }
    // A defect, for the test of what one does.
    #[cfg(feature = "panic_path")]
    if path == "/panic" {
        panic!("the path that panics");
    }
    if parts.method == Method::CONNECT {
        return refuse(ticket, 501);
    }
    let since_ms = local.now_ms();
    let (body, upload) = match upload::take(&local, Upload::new(&parts, incoming), &connection).await {
        Ok(taken) => taken,
        Err(upload::Refusal::Gone) => return status(400),
        Err(upload::Refusal::Status(code)) => return refuse(ticket, code),
    };
    let key = {
        let mut places = local.places.borrow_mut();
        let Some(key) = places.take(since_ms) else {
            drop(places);
            return refuse(ticket, 503);
        };
        let place = places.get(key).expect("just taken");
        let tls = connection.tls;
        place.state = State::Waiting(Box::new(Request { parts, peer: connection.peer, tls, body }));
        place.body = upload;
        key
    };
    ticket.key = Some(key);
    if !local.enqueue(key) {
        return refuse(ticket, 503);
    }
    match poll_fn(|cx| poll_answer(&local, key, cx)).await {
        places::Answer::Whole(response) => {
            ticket.outcome = Outcome::Answered;
            response.map(|body| Answer::whole(body, &connection))
        }
        places::Answer::Stream(head, streaming) => {
            local.places.borrow_mut().get(key).expect("answered").state = State::Streaming(streaming);
            ticket.outcome = Outcome::Answered;
            ticket.key = None; // the body's now
            head.map(|()| Answer::Stream(Stream { local: local.clone(), connection, key }))
        }
        places::Answer::Failed(503) => refuse(ticket, 503),
        places::Answer::Failed(code) => {
            // The handler may still work for it: it hears that nobody waits.
            let gone = code == 504;
            ticket.outcome = Outcome::Failed;
            ticket.key = None;
            local.give_back(key, gone);
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
    let mut response = Response::new(Answer::Whole(Bytes::new(), None));
    *response.status_mut() = StatusCode::from_u16(code).expect("a status of ours");
    response
}
