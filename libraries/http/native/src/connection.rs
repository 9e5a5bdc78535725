//! One connection, from its handshake to its end.
use std::future::{poll_fn, Future};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::io::{Connection, Local, Phase};
use crate::strict::{Protocol, Strict};
use crate::wire::{Socket, Wire};
use crate::{http1, http2};

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
            let accepted = while_open(&connection, acceptor.accept(stream));
            let Ok(Some(Ok(stream))) = tokio::time::timeout(within, accepted).await else { return };
            let h2 = stream.get_ref().1.alpn_protocol() == Some(&b"h2"[..]);
            speak(&local, &connection, stream, if h2 { Protocol::H2 } else { Protocol::H1 }).await
        }
    }
}

/// None where the server closes before that is over: nobody has asked for anything yet.
async fn while_open<T>(connection: &Connection, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|cx| {
        *connection.waker.borrow_mut() = Some(cx.waker().clone());
        if connection.phase.get() != Phase::Open {
            return Poll::Ready(None);
        }
        future.as_mut().poll(cx).map(Some)
    })
    .await
}

struct Registered<'a>(&'a Rc<Local>, usize);

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.0.unregister(self.1)
    }
}

async fn speak<S>(local: &Rc<Local>, connection: &Rc<Connection>, stream: S, protocol: Protocol)
where
    S: AsyncRead + AsyncWrite + Socket + Unpin + 'static,
{
    let wire = Rc::new(Wire::new(local.clone(), connection.clone(), stream));
    let mut serving = pin!(async {
        let mut stream = Strict::new(wire.clone(), protocol);
        match protocol_of(&mut stream, connection).await {
            Some(Protocol::H2) => http2::serve(local, connection, stream).await,
            Some(_) => {
                wire.is_http1.set(true);
                http1::serve(local, connection, stream).await
            }
            None => (),
        }
    });
    let mut ended = false;
    let mut turn = |cx: &mut Context| {
        let same = matches!(&*connection.waker.borrow(), Some(waker) if waker.will_wake(cx.waker()));
        if !same {
            *connection.waker.borrow_mut() = Some(cx.waker().clone());
        }
        if connection.phase.get() == Phase::Ended {
            return Poll::Ready(true);
        }
        wire.begin_turn();
        // Its errors are the client's; requests that they cut short are counted as gone.
        ended = ended || serving.as_mut().poll(cx).is_ready();
        match wire.poll_send(cx) {
            Poll::Ready(Err(_)) => Poll::Ready(true),
            Poll::Ready(Ok(())) if ended => Poll::Ready(true),
            _ if wire.is_unwatched() => Poll::Ready(false),
            _ => Poll::Pending,
        }
    };
    // Until the connection has ended, or its client has left.
    while !poll_fn(&mut turn).await && !wire.watch().await {}
}

/// None where the connection ends before that is known.
async fn protocol_of<S>(stream: &mut Strict<S>, connection: &Connection) -> Option<Protocol>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    poll_fn(|cx| match stream.poll_protocol(cx) {
        Poll::Pending if connection.phase.get() != Phase::Open => Poll::Ready(None),
        known => known.map(Result::ok),
    })
    .await
}
