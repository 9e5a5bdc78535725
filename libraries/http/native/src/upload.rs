//! The bodies of requests: whole before Erlang hears of them, or read by Erlang; what an early answer leaves of one is
//! dropped.
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::Ordering::*;
use std::task::{ready, Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::Body as _;
use hyper::header::CONTENT_LENGTH;
use hyper::http::request::Parts;
use hyper::HeaderMap;
use tokio::task::spawn_local;

use crate::binaries::Growing;
use crate::io::{Connection, Local};
use crate::nif::*;
use crate::places::Reader;
use crate::request::{headers, Body, Counted};
use crate::server::Key;

/// How long a client may send on after it was answered, and how much. It is enough for one that reads to see its answer.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 1 << 20;

/// A body that comes, by its protocol.
pub enum Incoming {
    H1(hyper::body::Incoming),
    H2(h2::RecvStream),
}

impl Incoming {
    pub fn is_empty(&self) -> bool {
        match self {
            Incoming::H1(incoming) => incoming.is_end_stream(),
            Incoming::H2(incoming) => incoming.is_end_stream(),
        }
    }
}

/// A body, as far as it has not been read.
pub struct Upload {
    incoming: Incoming,
    connection: Rc<Connection>,
    /// What the client says of its length.
    announced: u64,
}

impl Upload {
    pub fn new(parts: &Parts, incoming: Incoming, connection: &Rc<Connection>) -> Self {
        // One, and a number: the filter and h2 refuse others.
        let length = parts.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        Upload { incoming, connection: connection.clone(), announced: length.unwrap_or(0) }
    }

    pub fn is_empty(&self) -> bool {
        self.incoming.is_empty()
    }

    /// The answer is there and the client still sends. If this is dropped now, HTTP/2 resets the stream and HTTP/1 closes
    /// the socket, and either may overtake the answer: many clients look at the reset first. So the rest is read and
    /// dropped, within bounds. A client that waits to be told to go on is not: the task runs behind the connection's turn, in which
    /// the answer begins.
    pub fn linger(mut self) {
        if self.is_empty() {
            return;
        }
        spawn_local(tokio::time::timeout(LINGER, async move {
            let mut left = LINGER_BYTES;
            while let Some(Ok(Piece::Data(data))) = self.next().await {
                match left.checked_sub(data.len()) {
                    Some(rest) => left = rest,
                    None => break,
                }
            }
        }));
    }

    async fn next(&mut self) -> Option<Result<Piece, Lost>> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &mut Context) -> Poll<Option<Result<Piece, Lost>>> {
        let piece = ready!(match &mut self.incoming {
            Incoming::H1(incoming) => poll_h1(incoming, cx),
            Incoming::H2(incoming) => poll_h2(incoming, cx),
        });
        self.connection.progress();
        Poll::Ready(piece)
    }
}

pub enum Refusal {
    Gone,
    Status(u16),
}

/// What a body of unknown length gets at first.
const FIRST: usize = 16 * 1024;

/// A body that there is.
pub async fn take(local: &Rc<Local>, mut upload: Upload) -> Result<(Body, Option<Upload>), Refusal> {
    let config = &local.server.config;
    // Refused before the client has sent it, if it says how much it is.
    if upload.announced > config.body_limit {
        upload.linger();
        return Err(Refusal::Status(413));
    }
    if config.stream_bodies {
        return Ok((Body::Stream, Some(upload)));
    }
    let within = Duration::from_millis(config.request_timeout_ms);
    let whole = tokio::time::timeout(within, whole(local, &mut upload)).await;
    let whole = whole.unwrap_or(Err(Refusal::Status(408)));
    if let Err(Refusal::Status(_)) = whole {
        upload.linger();
    }
    whole.map(|body| (body, None))
}

async fn whole(local: &Rc<Local>, upload: &mut Upload) -> Result<Body, Refusal> {
    let config = &local.server.config;
    let announced = upload.announced.min(FIRST as u64) as usize;
    let bytes = Growing::new(announced.max(256)).ok_or(Refusal::Status(503))?;
    let mut counted = Counted { counted: 0, bytes: Some(bytes), server: local.server.clone() };
    let mut trailers = None;
    while let Some(piece) = upload.next().await {
        match piece.map_err(|Lost| Refusal::Gone)? {
            Piece::Data(data) => {
                let bytes = counted.bytes.as_mut().expect("ours");
                if (bytes.len + data.len()) as u64 > config.body_limit {
                    return Err(Refusal::Status(413));
                }
                if !bytes.push(&data) {
                    return Err(Refusal::Status(503));
                }
                let grown = bytes.capacity() - counted.counted;
                counted.counted += grown;
                if local.server.body_memory.fetch_add(grown, Relaxed) + grown > config.body_memory {
                    return Err(Refusal::Status(503));
                }
            }
            Piece::Trailers(map) => trailers = Some(map),
        }
    }
    Ok(Body::Whole(counted, trailers))
}

enum Piece {
    Data(Bytes),
    Trailers(HeaderMap),
}

/// The client, or the rest of what it sent.
struct Lost;

fn poll_h1(incoming: &mut hyper::body::Incoming, cx: &mut Context) -> Poll<Option<Result<Piece, Lost>>> {
    loop {
        let Some(frame) = ready!(Pin::new(&mut *incoming).poll_frame(cx)) else { return Poll::Ready(None) };
        return Poll::Ready(Some(match frame.map(|frame| frame.into_data().map_err(|frame| frame.into_trailers())) {
            Ok(Ok(data)) => Ok(Piece::Data(data)),
            Ok(Err(Ok(trailers))) => Ok(Piece::Trailers(trailers)),
            Ok(Err(Err(_))) => continue, // a kind of frame that hyper has not yet
            Err(_) => Err(Lost),
        }));
    }
}

fn poll_h2(incoming: &mut h2::RecvStream, cx: &mut Context) -> Poll<Option<Result<Piece, Lost>>> {
    match ready!(incoming.poll_data(cx)) {
        Some(Ok(data)) => {
            // Read: the client may send as much again.
            let _ = incoming.flow_control().release_capacity(data.len());
            Poll::Ready(Some(Ok(Piece::Data(data))))
        }
        Some(Err(_)) => Poll::Ready(Some(Err(Lost))),
        None => match ready!(incoming.poll_trailers(cx)) {
            Ok(trailers) => Poll::Ready(trailers.map(|map| Ok(Piece::Trailers(map)))),
            Err(_) => Poll::Ready(Some(Err(Lost))),
        },
    }
}

/// Reads until there are `most` bytes or more, by one frame at most, or the body ends, and tells `pid`.
/// The client sends on only as far as it is read: this is the credit. Of two that read at once, the later one is told.
pub fn read(local: &Rc<Local>, key: Key, most: usize, pid: ErlNifPid) -> bool {
    let mut places = local.places.borrow_mut();
    let place = places.get(key);
    if let Some(reader) = place.and_then(|place| place.reader.as_mut()) {
        (reader.pid, reader.most) = (Some(pid), most);
        if let Some(task) = reader.task.take() {
            task.wake()
        }
        return true;
    }
    let body = places.get(key).and_then(|place| {
        let body = place.body.take()?;
        place.reader = Some(Reader { pid: Some(pid), most, task: None });
        Some(body)
    });
    drop(places);
    let Some(mut upload) = body else {
        // Read to its end, or the client is gone.
        local.tell_body_closed(&pid, key);
        return false;
    };
    let local = local.clone();
    spawn_local(async move {
        let limit = local.server.config.body_limit;
        let mut got = Vec::new();
        let mut trailers = None;
        let ended = loop {
            match next_for(&local, key, &mut upload, got.len()).await {
                Next::Enough => break Ok(false),
                Next::Piece(None) => break Ok(true),
                Next::Piece(Some(Err(Lost))) => break Err(atoms().closed),
                Next::Piece(Some(Ok(Piece::Trailers(map)))) => trailers = Some(map),
                Next::Piece(Some(Ok(Piece::Data(data)))) => {
                    got.extend_from_slice(&data);
                    let mut places = local.places.borrow_mut();
                    let Some(place) = places.get(key) else { break Err(atoms().closed) };
                    place.read += data.len() as u64;
                    if place.read > limit {
                        break Err(atoms().body_limit);
                    }
                }
            }
        };
        let reader = local.places.borrow_mut().get(key).and_then(|place| place.reader.take());
        // It was answered meanwhile, or its client left: who gave the place back has told the reader.
        let Some(Reader { pid: Some(pid), .. }) = reader else { return upload.linger() };
        let a = atoms();
        let told = local.tell_body(&pid, key, |env| match ended {
            Err(reason) => tuple(env, &[a.error, reason]),
            Ok(false) => tuple(env, &[a.more, binary(env, &got)]),
            Ok(true) => {
                let trailers = trailers.map_or_else(|| list(env, &[]), |map| headers(env, &map, None));
                tuple(env, &[a.done, binary(env, &got), trailers])
            }
        });
        match ended {
            // What was not told is lost: nobody reads on behind it.
            _ if !told => {
                local.tell_body_closed(&pid, key);
                upload.linger()
            }
            Ok(true) => (),
            // The client is gone, which the first read shows.
            Err(reason) if reason == a.closed => upload.linger(),
            _ => {
                if let Some(place) = local.places.borrow_mut().get(key) {
                    place.body = Some(upload)
                }
            }
        }
    });
    true
}

/// Whoever reads, if anybody, waits no more, and is told behind what it was told of the body.
pub fn unread(local: &Local, key: Key, pid: ErlNifPid) -> bool {
    if let Some(reader) = local.places.borrow_mut().get(key).and_then(|place| place.reader.as_mut()) {
        reader.pid = reader.pid.filter(|other| !is_same(other, &pid));
    }
    local.tell_unread(&pid, key);
    true
}

enum Next {
    /// There is what the reader wants.
    Enough,
    Piece(Option<Result<Piece, Lost>>),
}

/// What comes behind the `got` bytes, while somebody reads, and as long as the request has its place: an answer ends the reading.
async fn next_for(local: &Local, key: Key, upload: &mut Upload, got: usize) -> Next {
    poll_fn(|cx| {
        let mut places = local.places.borrow_mut();
        let Some(reader) = places.get(key).and_then(|place| place.reader.as_mut()) else {
            return Poll::Ready(Next::Piece(Some(Err(Lost))));
        };
        reader.task = Some(cx.waker().clone());
        match reader {
            Reader { pid: None, .. } => Poll::Pending,
            Reader { most, .. } if got >= *most => Poll::Ready(Next::Enough),
            _ => {
                drop(places);
                upload.poll_next(cx).map(Next::Piece)
            }
        }
    })
    .await
}
