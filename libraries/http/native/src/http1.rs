//! A connection over HTTP/1, which is hyper's.
use std::convert::Infallible;
use std::future::{poll_fn, Future};
use std::pin::{pin, Pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::answering::Answering;
use crate::body::Answer;
use crate::io::{Connection, Local, Phase};
use crate::strict::Strict;
use crate::upload;

pub async fn serve<S>(local: &Rc<Local>, connection: &Rc<Connection>, stream: Strict<S>)
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let mut builder = Builder::new();
    // The sweep looks how long heads take. hyper's own timer costs more than to parse one, and counts from the answer before.
    builder.header_read_timeout(None).max_headers(128).max_buf_size(64 * 1024).half_close(false);
    let service = service_fn(|request: Request<Incoming>| {
        Infallibly(Answering::new(local, connection, request.map(upload::Incoming::H1)))
    });
    let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let mut told = false;
    poll_fn(|cx| {
        if connection.phase.get() == Phase::Closing && !told {
            told = true;
            serving.as_mut().graceful_shutdown();
            // hyper would wait for the end of a head that has begun.
            if !connection.has_asked() {
                return Poll::Ready(());
            }
        }
        serving.as_mut().poll(cx).map(|_| ())
    })
    .await
}

/// As hyper asks for it.
struct Infallibly(Answering);

impl Future for Infallibly {
    type Output = Result<Response<Answer>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(Ok)
    }
}
