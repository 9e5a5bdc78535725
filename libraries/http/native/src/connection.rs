//! One connection, from its handshake to its end.
use std::cell::Cell;
use std::future::{poll_fn, Future};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::spawn_local;

use crate::answering::Answering;
use crate::filter::Protocol;
use crate::io::{Connection, Local, Phase};
use crate::strict::Strict;
use crate::wire::Wire;

/// Runs the streams of HTTP/2. hyper hands one over right after it has called the service; where the answer is known by
/// then, no task is made for it.
#[derive(Clone, Default)]
struct OnThisThread {
    is_answered: Rc<Cell<bool>>,
}

impl<F: Future<Output = ()> + 'static> hyper::rt::Executor<F> for OnThisThread {
    fn execute(&self, future: F) {
        if !self.is_answered.take() {
            spawn_local(future);
            return;
        }
        let mut future = Box::pin(future);
        // Nobody is to be woken: what is not done now is polled again by its task.
        if future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            spawn_local(future);
        }
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
    let executor = OnThisThread::default();
    let is_answered = executor.is_answered.clone();
    let mut builder = Builder::new(executor);
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
    let wire = Rc::new(Wire::new(local.clone(), connection.clone(), stream));
    let stream = Strict::new(wire.clone(), protocol);
    let builder = match protocol {
        Protocol::H1 => builder.http1_only(),
        Protocol::H2 => builder.http2_only(),
        Protocol::Either => builder,
    };
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let answering = Answering::new(local, connection, request);
        is_answered.set(answering.is_answered());
        answering
    });
    let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let (mut told, mut ended) = (false, false);
    poll_fn(|cx| {
        let same = matches!(&*connection.waker.borrow(), Some(waker) if waker.will_wake(cx.waker()));
        if !same {
            *connection.waker.borrow_mut() = Some(cx.waker().clone());
        }
        match connection.phase.get() {
            Phase::Ended => return Poll::Ready(()),
            Phase::Closing if !told && !ended => {
                told = true;
                serving.as_mut().graceful_shutdown()
            }
            _ => (),
        }
        wire.begin_turn();
        // Its errors are the client's; requests that they cut short are counted as gone.
        ended = ended || serving.as_mut().poll(cx).is_ready();
        match wire.poll_send(cx) {
            Poll::Ready(Ok(())) if !ended => Poll::Pending,
            sent => sent.map(|_| ()),
        }
    })
    .await
}
