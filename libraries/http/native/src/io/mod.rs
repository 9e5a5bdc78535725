//! An I/O thread: one runtime, one listener, its connections and requests. Nothing here is shared with another thread but
//! `Shared` and `Server`.
mod batches;
mod commands;
mod connections;
mod sweep;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::atomic::Ordering::*;
use std::sync::mpsc::Sender;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant, UNIX_EPOCH};

use bytes::Bytes;
use hyper::header::HeaderValue;
use hyper::Response;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::task::spawn_local;

use crate::nif::*;
use crate::places::Places;
use crate::request::id;
use crate::server::*;

pub use connections::{Connection, Phase};

pub struct Local {
    pub server: Arc<Server>,
    pub index: usize,
    pub places: RefCell<Places>,
    /// Requests for Erlang, in their order; those that left meanwhile are still in it, and how many there are of them.
    queue: RefCell<VecDeque<Key>>,
    left_in_queue: Cell<usize>,
    flusher: RefCell<Option<Waker>>,
    flush_asked: Cell<bool>,
    acceptors: RefCell<(u64, Arc<Vec<Arc<Acceptor>>>)>,
    next_acceptor: Cell<usize>,
    statics: RefCell<(u64, Arc<Statics>)>,
    /// Of connections that have nothing to send.
    pub buffers: RefCell<Vec<Vec<u8>>>,
    pub connections: RefCell<Vec<Option<Rc<Connection>>>>,
    free_connections: RefCell<Vec<usize>>,
    open_connections: Cell<usize>,
    closer: RefCell<Option<Waker>>,
    closing: Cell<Option<u64>>,
    panic_told: Cell<bool>,
    env: MessageEnv,
    began: Instant,
    now_ms: Cell<u64>,
    /// As HTTP/2 says it, and in which second.
    date: RefCell<(libc::time_t, HeaderValue)>,
}

/// The thread's life. It says first whether it can begin: a runtime takes files, and there may be none left.
pub fn run(server: Arc<Server>, index: usize, listener: TcpListener, begun: Sender<std::io::Result<()>>) {
    let shared = || &server.threads[index];
    let ended = guard(false, || {
        match Builder::new_current_thread().enable_all().build_local(LocalOptions::default()) {
            Ok(runtime) => {
                let _ = begun.send(Ok(())); // who started it waits for that
                block_on(runtime, server.clone(), index, listener);
            }
            Err(error) => {
                let _ = begun.send(Err(error));
            }
        }
        true
    });
    let left = shared().close();
    shared().counters.connections.store(0, Relaxed);
    shared().counters.waiting.store(0, Relaxed);
    let env = MessageEnv::new();
    let a = atoms();
    for command in left {
        tell_closed(&env, index, command)
    }
    if !ended {
        let text = last_panic();
        env.send(&server.owner, |env| tuple(env, &[a.tame_http, a.panicked, binary(env, text.as_bytes())]));
    }
    if server.running.fetch_sub(1, AcqRel) == 1 {
        env.send(&server.owner, |env| tuple(env, &[a.tame_http, a.stopped]));
    }
}

/// Nobody obeys it: who waits for what it would have brought hears that nothing comes.
fn tell_closed(env: &MessageEnv, index: usize, command: Command) {
    let a = atoms();
    match command {
        Command::Start(key, _, flow) => flow.close().iter().for_each(|pid| tell(env, pid, a.room, id(index, key))),
        Command::Read(key, _, pid) => tell_body_closed(env, &pid, id(index, key)),
        Command::Unread(key, pid) => tell(env, &pid, a.unread, id(index, key)),
        Command::Watch(key, pid) => tell(env, &pid, a.gone, id(index, key)),
        _ => (),
    }
}

fn tell_body_closed(env: &MessageEnv, pid: &ErlNifPid, id: u64) {
    let a = atoms();
    tell_body(env, pid, id, |env| tuple(env, &[a.error, a.closed]));
}

fn tell_body(env: &MessageEnv, pid: &ErlNifPid, id: u64, build: impl FnOnce(Env) -> Term) -> bool {
    env.send(pid, |env| {
        let result = build(env);
        tuple(env, &[atoms().tame_http, atoms().body, integer(env, id), result])
    })
}

fn tell(env: &MessageEnv, pid: &ErlNifPid, what: Term, id: u64) {
    env.send(pid, |env| tuple(env, &[atoms().tame_http, what, integer(env, id)]));
}

fn block_on(runtime: LocalRuntime, server: Arc<Server>, index: usize, listener: TcpListener) {
    let local = Rc::new(Local::new(server, index));
    runtime.block_on(async {
        spawn_local(local.clone().flush_when_asked());
        spawn_local(local.clone().sweep());
        local.clone().obey(listener).await;
    });
    // What is left goes with its tasks, before the places that it refers to.
    drop(runtime);
}

impl Local {
    fn new(server: Arc<Server>, index: usize) -> Self {
        Local {
            places: RefCell::new(Places::new(server.threads[index].generations.len())),
            server,
            index,
            queue: RefCell::default(),
            left_in_queue: Cell::new(0),
            flusher: RefCell::default(),
            flush_asked: Cell::new(false),
            acceptors: RefCell::new((u64::MAX, Arc::default())),
            next_acceptor: Cell::new(0),
            statics: RefCell::new((u64::MAX, Arc::default())),
            buffers: RefCell::default(),
            connections: RefCell::default(),
            free_connections: RefCell::default(),
            open_connections: Cell::new(0),
            closer: RefCell::default(),
            closing: Cell::new(None),
            panic_told: Cell::new(false),
            env: MessageEnv::new(),
            began: Instant::now(),
            now_ms: Cell::new(0),
            date: RefCell::new((0, HeaderValue::from_static(""))),
        }
    }

    pub fn shared(&self) -> &Shared {
        &self.server.threads[self.index]
    }

    pub fn counters(&self) -> &Counters {
        &self.shared().counters
    }

    /// As exact as the sweep is frequent.
    pub fn now_ms(&self) -> u64 {
        self.now_ms.get()
    }

    pub fn date(&self) -> HeaderValue {
        let now = unsafe { libc::time(std::ptr::null_mut()) };
        let mut date = self.date.borrow_mut();
        if date.0 != now {
            let text = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(now as u64));
            *date = (now, HeaderValue::from_str(&text).expect("a date"));
        }
        date.1.clone()
    }

    pub fn is_closing(&self) -> bool {
        self.closing.get().is_some()
    }

    pub fn static_answer(&self, path: &str) -> Option<Response<Bytes>> {
        let version = self.server.statics_version.load(Acquire);
        let mut cached = self.statics.borrow_mut();
        if cached.0 != version {
            *cached = (version, self.server.statics());
        }
        if cached.1.is_empty() {
            return None;
        }
        cached.1.get(path.as_bytes()).cloned()
    }

    // ---- what processes are told ----

    fn tell_gone(&self, pid: &ErlNifPid, key: Key) {
        self.tell(pid, atoms().gone, key)
    }

    pub fn tell_unread(&self, pid: &ErlNifPid, key: Key) {
        self.tell(pid, atoms().unread, key)
    }

    pub fn tell_room(&self, pid: &ErlNifPid, key: Key) {
        self.tell(pid, atoms().room, key)
    }

    fn tell(&self, pid: &ErlNifPid, what: Term, key: Key) {
        tell(&self.env, pid, what, id(self.index, key))
    }

    /// False if it did not get there.
    pub fn tell_body(&self, pid: &ErlNifPid, key: Key, build: impl FnOnce(Env) -> Term) -> bool {
        tell_body(&self.env, pid, id(self.index, key), build)
    }

    pub fn tell_body_closed(&self, pid: &ErlNifPid, key: Key) {
        tell_body_closed(&self.env, pid, id(self.index, key))
    }

    /// The owner logs it; one in each tick of the sweep, however many there are.
    pub fn tell_panic(&self) {
        if !self.panic_told.replace(true) {
            let text = last_panic();
            let a = atoms();
            self.env.send(&self.server.owner, |env| {
                tuple(env, &[a.tame_http, a.contained, binary(env, text.as_bytes())])
            });
        }
    }
}
