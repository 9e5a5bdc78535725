//! A request, as Erlang gets it.
use std::sync::atomic::{AtomicU8, Ordering::*};
use std::sync::{Arc, Mutex, OnceLock};

use hyper::header::{HeaderValue, COOKIE, HOST};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Version};
use std::net::{IpAddr, SocketAddr};

use crate::binaries::Growing;
use crate::nif::*;
use crate::server::{Command, Flow, Key, Server};

pub struct Request {
    pub parts: Parts,
    pub peer: SocketAddr,
    pub tls: bool,
    /// Taken by whoever takes the request.
    pub body: Mutex<Body>,
}

pub enum Body {
    Empty,
    Whole(Counted, Option<HeaderMap>),
    Stream,
}

/// A body in memory, counted in the server's `body_memory`.
pub struct Counted {
    pub bytes: Option<Growing>,
    pub counted: usize,
    pub server: Arc<Server>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.server.body_memory.fetch_sub(self.counted, Relaxed);
    }
}

/// What Erlang answers by: a resource. Its drop, by the garbage collector, is an answer as well.
pub struct Reference {
    pub server: Arc<Server>,
    pub thread: usize,
    pub key: Key,
    state: AtomicU8,
    pub flow: OnceLock<Arc<Flow>>,
}

const OPEN: u8 = 0;
const STREAMING: u8 = 1;
const DONE: u8 = 2;

impl Reference {
    pub fn new(server: Arc<Server>, thread: usize, key: Key) -> Self {
        Reference { server, thread, key, state: AtomicU8::new(OPEN), flow: OnceLock::new() }
    }

    /// False if the thread has ended.
    pub fn push(&self, command: Command) -> bool {
        self.server.threads[self.thread].push(command)
    }

    /// The first answer wins; true for it alone.
    pub fn finish(&self) -> bool {
        self.change(OPEN, DONE)
    }

    pub fn start(&self) -> bool {
        self.state.compare_exchange(OPEN, STREAMING, AcqRel, Relaxed).is_ok()
    }

    pub fn end(&self) -> bool {
        self.change(STREAMING, DONE)
    }

    fn change(&self, from: u8, to: u8) -> bool {
        let changed = self.state.compare_exchange(from, to, AcqRel, Relaxed).is_ok();
        if changed {
            self.server.let_go();
        }
        changed
    }

    pub fn is_open(&self) -> bool {
        self.state.load(Acquire) != DONE && self.server.threads[self.thread].is_good(self.key)
    }

    /// What messages about this request have.
    pub fn id(&self) -> u64 {
        id(self.thread, self.key)
    }
}

pub fn id(thread: usize, key: Key) -> u64 {
    (thread as u64) << 56 | (key.generation as u64) << 24 | key.place as u64
}

impl Drop for Reference {
    fn drop(&mut self) {
        if self.finish() || self.end() {
            self.push(Command::Dropped(self.key));
        }
    }
}

/// `{Ref, Method, Path, Query, Headers, Peer, Version, Scheme, Body, Trailers}`
pub fn term(env: Env, reference: Term, request: &Request) -> Term {
    let a = atoms();
    let uri = &request.parts.uri;
    let body = std::mem::replace(&mut *request.body.lock().unwrap(), Body::Empty);
    let (body, trailers) = match body {
        Body::Empty => (binary(env, b""), None),
        Body::Stream => (a.stream, None),
        Body::Whole(mut counted, trailers) => {
            (counted.bytes.take().map_or_else(|| binary(env, b""), |b| b.into_term(env)), trailers)
        }
    };
    // It is what counts, whatever a host beside it says (RFC 9113, 8.3.1; RFC 9112, 3.2.2).
    let host = uri.authority().map(|authority| authority.as_str());
    tuple(env, &[
        reference,
        binary(env, request.parts.method.as_str().as_bytes()),
        binary(env, uri.path().as_bytes()),
        binary(env, uri.query().unwrap_or("").as_bytes()),
        headers(env, &request.parts.headers, host),
        peer(env, &request.peer),
        match request.parts.version {
            Version::HTTP_10 => a.h10,
            Version::HTTP_2 => a.h2,
            _ => a.h11,
        },
        if request.tls { a.https } else { a.http },
        body,
        trailers.map_or_else(|| list(env, &[]), |t| headers(env, &t, None)),
    ])
}

/// `[{Name, Value}]`, names in lower case. HTTP/2 has the host in a pseudo-header; Erlang sees it where HTTP/1.1 has it.
pub fn headers(env: Env, headers: &HeaderMap, host: Option<&str>) -> Term {
    let mut all = list(env, &[]);
    let mut push = |name: &[u8], value: &[u8]| {
        let pair = tuple(env, &[binary(env, name), binary(env, value)]);
        all = unsafe { enif_make_list_cell(env, pair, all) };
    };
    // Values of one name stay in their order, though the list is built from its end.
    for name in headers.keys() {
        if host.is_some() && *name == HOST {
            continue;
        }
        let mut values = headers.get_all(name).iter();
        if *name == COOKIE {
            // HTTP/2 has it in pieces, of which nobody else knows (RFC 9113, 8.2.3).
            push(b"cookie", &values.map(HeaderValue::as_bytes).collect::<Vec<_>>().join(&b"; "[..]));
            continue;
        }
        while let Some(value) = values.next_back() {
            push(name.as_str().as_bytes(), value.as_bytes());
        }
    }
    if let Some(host) = host {
        push(b"host", host.as_bytes());
    }
    all
}

pub fn peer(env: Env, peer: &SocketAddr) -> Term {
    let port = integer(env, peer.port() as u64);
    let ip = match peer.ip() {
        IpAddr::V4(ip) => tuple(env, &ip.octets().map(|n| integer(env, n as u64))),
        IpAddr::V6(ip) => tuple(env, &ip.segments().map(|n| integer(env, n as u64))),
    };
    tuple(env, &[ip, port])
}
