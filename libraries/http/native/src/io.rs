//! An I/O thread: one runtime, one listener, its connections and requests. Nothing here is shared with another thread but
//! `Shared` and `Server`.
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::atomic::Ordering::*;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::Response;
use tokio::task::{spawn_local, LocalSet};

use crate::connection;
use crate::upload;
use crate::nif::*;
use crate::places::{Answer, End, Places, State, Streaming};
use crate::request::{id, term, Reference};
use crate::server::*;

/// Requests in one message at most, so that several acceptors share.
const BATCH: usize = 64;
/// accept failed for want of files or memory: how long others have to free some.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub struct Local {
    pub server: Arc<Server>,
    pub index: usize,
    pub places: RefCell<Places>,
    /// Requests for Erlang, in their order; those that left meanwhile are still in it.
    queue: RefCell<VecDeque<Key>>,
    flusher: RefCell<Option<Waker>>,
    flush_asked: Cell<bool>,
    acceptors: RefCell<(u64, Arc<Vec<Arc<Acceptor>>>)>,
    next_acceptor: Cell<usize>,
    statics: RefCell<(u64, Arc<Statics>)>,
    pub connections: RefCell<Vec<Option<Rc<Connection>>>>,
    free_connections: RefCell<Vec<usize>>,
    open_connections: Cell<usize>,
    accepter: RefCell<Option<Waker>>,
    closer: RefCell<Option<Waker>>,
    closing: Cell<Option<u64>>,
    panic_told: Cell<bool>,
    env: MessageEnv,
    began: Instant,
    now_ms: Cell<u64>,
}

/// A connection, as the sweep and its requests see it.
pub struct Connection {
    pub peer: SocketAddr,
    pub tls: bool,
    since_ms: u64,
    /// Requests that are not answered.
    pub active: Cell<u32>,
    /// Goes up with each request and each piece of a body; what the sweep saw of it, and when it changed.
    progress: Cell<u64>,
    seen: Cell<(u64, u64)>,
    pub phase: Cell<Phase>,
    pub waker: RefCell<Option<Waker>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Open,
    /// No further request; those there are end.
    Closing,
    Ended,
}

impl Connection {
    pub fn progress(&self) {
        self.progress.set(self.progress.get() + 1)
    }

    fn advance(&self, phase: Phase) {
        self.phase.set(phase);
        if let Some(waker) = self.waker.borrow().as_ref() {
            waker.wake_by_ref()
        }
    }
}

/// The thread's life.
pub fn run(server: Arc<Server>, index: usize, listener: TcpListener) {
    let shared = || &server.threads[index];
    let ended = guard(false, || {
        block_on(server.clone(), index, listener);
        true
    });
    shared().close();
    shared().counters.connections.store(0, Relaxed);
    shared().counters.waiting.store(0, Relaxed);
    let env = MessageEnv::new();
    let a = atoms();
    if !ended {
        let text = last_panic();
        env.send(&server.owner, |env| tuple(env, &[a.tame_http, a.panicked, binary(env, text.as_bytes())]));
    }
    if server.running.fetch_sub(1, AcqRel) == 1 {
        env.send(&server.owner, |env| tuple(env, &[a.tame_http, a.stopped]));
    }
}

fn block_on(server: Arc<Server>, index: usize, listener: TcpListener) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let set = LocalSet::new();
    let local = Rc::new(Local::new(server, index));
    set.block_on(&runtime, async {
        spawn_local(local.clone().flush_when_asked());
        spawn_local(local.clone().sweep());
        local.clone().obey(listener).await;
    });
    // What is left goes with its tasks, before the places that it refers to.
    drop(set);
    drop(runtime);
}

impl Local {
    fn new(server: Arc<Server>, index: usize) -> Self {
        Local {
            places: RefCell::new(Places::new(server.threads[index].generations.len())),
            server,
            index,
            queue: RefCell::default(),
            flusher: RefCell::default(),
            flush_asked: Cell::new(false),
            acceptors: RefCell::new((u64::MAX, Arc::default())),
            next_acceptor: Cell::new(0),
            statics: RefCell::new((u64::MAX, Arc::default())),
            connections: RefCell::default(),
            free_connections: RefCell::default(),
            open_connections: Cell::new(0),
            accepter: RefCell::default(),
            closer: RefCell::default(),
            closing: Cell::new(None),
            panic_told: Cell::new(false),
            env: MessageEnv::new(),
            began: Instant::now(),
            now_ms: Cell::new(0),
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

    pub fn is_closing(&self) -> bool {
        self.closing.get().is_some()
    }

    // ---- commands ----

    /// Ends when the server has closed.
    async fn obey(self: Rc<Self>, listener: TcpListener) {
        let mut commands = Vec::new();
        let mut listener = Some(listener);
        let mut accepting = None;
        poll_fn(|cx| {
            self.shared().register(cx.waker());
            *self.closer.borrow_mut() = Some(cx.waker().clone());
            self.shared().take(&mut commands);
            if !commands.is_empty() {
                count(&self.counters().wakes);
            }
            for command in commands.drain(..) {
                match command {
                    Command::Accept => {
                        if let Some(listener) = listener.take() {
                            accepting = Some(spawn_local(self.clone().accept(listener)));
                        }
                    }
                    Command::Close { grace_ms } => {
                        listener = None;
                        // The task has the socket: it closes with it.
                        if let Some(task) = accepting.take() {
                            task.abort()
                        }
                        self.begin_closing(grace_ms)
                    }
                    other => {
                        self.command(other);
                    }
                }
            }
            let ended = self.open_connections.get() == 0 || self.closing.get() == Some(0);
            if self.is_closing() && ended { Poll::Ready(()) } else { Poll::Pending }
        })
        .await
    }

    fn begin_closing(self: &Rc<Self>, grace_ms: u64) {
        self.closing.set(Some(grace_ms));
        for connection in self.connections.borrow().iter().flatten() {
            if connection.phase.get() == Phase::Open {
                connection.advance(Phase::Closing)
            }
        }
        if grace_ms > 0 {
            let local = self.clone();
            spawn_local(async move {
                tokio::time::sleep(Duration::from_millis(grace_ms)).await;
                local.closing.set(Some(0));
                local.wake_closer();
            });
        }
    }

    fn wake_closer(&self) {
        if let Some(waker) = self.closer.borrow().as_ref() {
            waker.wake_by_ref()
        }
    }

    /// False if it came too late.
    fn command(self: &Rc<Self>, command: Command) -> bool {
        match command {
            Command::Reply(key, response) => self.answer(key, Answer::Whole(response)),
            Command::Start(key, head, flow) => {
                let streaming = Streaming { flow: flow.clone(), chunks: VecDeque::new(), end: None };
                let taken = self.answer(key, Answer::Stream(head, streaming));
                if !taken {
                    // The sender of a message that nobody takes is told so.
                    flow.closed.store(true, Release);
                }
                taken
            }
            Command::Chunk(key, bytes) => self.stream(key, |s| s.chunks.push_back(bytes)),
            Command::End(key, trailers) => self.stream(key, |s| s.end = Some(End::Complete(trailers))),
            Command::Dropped(key) => {
                self.stream(key, |s| s.end = Some(End::Aborted)) || self.answer(key, Answer::Failed(500))
            }
            Command::Read(key, most, pid) => upload::read(self, key, most, pid),
            Command::Watch(key, pid) => self.watch(key, pid),
            Command::Credit => self.ask_flush(),
            Command::Accept | Command::Close { .. } => unreachable!("obey has them"),
        }
    }

    fn watch(&self, key: Key, pid: ErlNifPid) -> bool {
        if let Some(place) = self.places.borrow_mut().get(key) {
            place.watcher = Some(pid);
            return true;
        }
        self.tell_gone(&pid, key);
        false
    }

    /// False if nobody waits for it any more.
    pub fn answer(&self, key: Key, answer: Answer) -> bool {
        let mut places = self.places.borrow_mut();
        let Some(place) = places.get(key) else { return false };
        if !matches!(place.state, State::Held | State::Waiting(_)) {
            return false;
        }
        place.state = State::Answered(answer);
        if let Some(waker) = place.waker.take() {
            waker.wake()
        }
        true
    }

    /// Changes an answer that comes in pieces, also before hyper has taken its head. False if there is none.
    fn stream(&self, key: Key, change: impl FnOnce(&mut Streaming)) -> bool {
        let mut places = self.places.borrow_mut();
        let Some(place) = places.get(key) else { return false };
        match &mut place.state {
            State::Streaming(streaming) | State::Answered(Answer::Stream(_, streaming)) => change(streaming),
            _ => return false,
        }
        if let Some(waker) = place.waker.take() {
            waker.wake()
        }
        true
    }

    /// Ends a request's place. What its handler asked to be told, it is told if the client left.
    pub fn give_back(&self, key: Key, gone: bool) {
        let watcher = self.places.borrow_mut().give_back(key, self.shared());
        if let (Some(pid), true) = (watcher, gone) {
            self.tell_gone(&pid, key)
        }
    }

    fn tell_gone(&self, pid: &ErlNifPid, key: Key) {
        self.tell(pid, atoms().gone, key)
    }

    pub fn tell_room(&self, pid: &ErlNifPid, key: Key) {
        self.tell(pid, atoms().room, key)
    }

    fn tell(&self, pid: &ErlNifPid, what: Term, key: Key) {
        let id = id(self.index, key);
        self.env.send(pid, |env| tuple(env, &[atoms().tame_http, what, integer(env, id)]));
    }

    pub fn tell_body(&self, pid: &ErlNifPid, key: Key, build: impl FnOnce(Env) -> Term) {
        let id = id(self.index, key);
        self.env.send(pid, |env| {
            let result = build(env);
            tuple(env, &[atoms().tame_http, atoms().body, integer(env, id), result])
        });
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

    // ---- requests to Erlang ----

    /// False if too many wait already.
    pub fn enqueue(&self, key: Key) -> bool {
        if self.queue.borrow().len() >= self.server.config.max_waiting {
            self.flush();
        }
        let mut queue = self.queue.borrow_mut();
        if queue.len() >= self.server.config.max_waiting {
            let mut places = self.places.borrow_mut();
            queue.retain(|key| places.get(*key).is_some());
            if queue.len() >= self.server.config.max_waiting {
                return false;
            }
        }
        queue.push_back(key);
        self.ask_flush();
        true
    }

    /// Once for all that come until the flusher runs, behind the connections that are ready now.
    fn ask_flush(&self) -> bool {
        if !self.flush_asked.replace(true) {
            if let Some(waker) = self.flusher.borrow().as_ref() {
                waker.wake_by_ref()
            }
        }
        true
    }

    async fn flush_when_asked(self: Rc<Self>) {
        poll_fn(|cx| {
            *self.flusher.borrow_mut() = Some(cx.waker().clone());
            self.flush_asked.set(false);
            self.flush();
            Poll::<()>::Pending
        })
        .await
    }

    fn flush(&self) {
        loop {
            if self.queue.borrow().is_empty() {
                break;
            }
            if !self.flush_one() {
                // Said before the second look, so that credit that comes between is seen by one of the two.
                self.shared().starved.store(true, SeqCst);
                if !self.flush_one() {
                    break;
                }
                self.shared().starved.store(false, SeqCst);
            }
        }
        self.counters().waiting.store(self.queue.borrow().len() as u64, Relaxed);
    }

    /// One batch to one acceptor. False if nobody takes any.
    fn flush_one(&self) -> bool {
        let held = self.server.held.load(SeqCst);
        let room = self.server.config.max_in_flight.saturating_sub(held);
        let Some(acceptor) = self.acceptor() else { return false };
        let credit = acceptor.credit.load(SeqCst).max(0) as usize;
        let most = BATCH.min(room).min(credit);
        if most == 0 {
            return false;
        }
        let mut keys = Vec::with_capacity(most);
        let mut queue = self.queue.borrow_mut();
        let mut places = self.places.borrow_mut();
        while keys.len() < most {
            let Some(key) = queue.pop_front() else { break };
            if matches!(places.get(key).map(|p| &p.state), Some(State::Waiting(_))) {
                keys.push(key)
            }
        }
        if keys.is_empty() {
            return true;
        }
        self.server.held.fetch_add(keys.len(), AcqRel);
        acceptor.credit.fetch_sub(keys.len() as i64, AcqRel);
        let references: RefCell<Vec<*const Reference>> = RefCell::default();
        let sent = self.env.send_or(
            &acceptor.pid,
            |env| {
                let batch: Vec<Term> = keys
                    .iter()
                    .map(|key| {
                        let reference = Reference::new(self.server.clone(), self.index, *key);
                        let (resource, object) = unsafe { make_resource(env, types().request, reference) };
                        references.borrow_mut().push(object);
                        match &mut places.get(*key).expect("looked at above").state {
                            State::Waiting(request) => term(env, resource, request),
                            _ => unreachable!("looked at above"),
                        }
                    })
                    .collect();
                let a = atoms();
                let n = integer(env, keys.len() as u64);
                tuple(env, &[a.tame_http, a.requests, n, list(env, &batch)])
            },
            // The message and its references end unsent: they are no answer.
            || {
                for reference in references.borrow().iter() {
                    unsafe { (**reference).finish() };
                }
            },
        );
        if sent {
            count(&self.counters().batches);
            for key in &keys {
                places.get(*key).expect("looked at above").state = State::Held;
            }
            return true;
        }
        // Bodies went with the message; requests without one are handed on.
        for key in keys.into_iter().rev() {
            let place = places.get(key).expect("looked at above");
            let lost = match &place.state {
                State::Waiting(request) => matches!(request.body, crate::request::Body::Whole(..)),
                _ => true,
            };
            if !lost {
                queue.push_front(key);
            } else {
                place.state = State::Answered(Answer::Failed(500));
                if let Some(waker) = place.waker.take() {
                    waker.wake()
                }
            }
        }
        drop((queue, places));
        acceptor.dead.store(true, Release);
        self.server.forget_dead();
        true
    }

    /// The next one with credit, in turns.
    fn acceptor(&self) -> Option<Arc<Acceptor>> {
        let version = self.server.acceptors_version.load(Acquire);
        let mut cached = self.acceptors.borrow_mut();
        if cached.0 != version {
            *cached = (version, self.server.acceptors());
        }
        let all = &cached.1;
        let from = self.next_acceptor.get();
        let found = (0..all.len()).map(|i| (from + i) % all.len()).find(|i| {
            let acceptor = &all[*i];
            !acceptor.dead.load(Acquire) && acceptor.credit.load(SeqCst) > 0
        })?;
        self.next_acceptor.set(found + 1);
        Some(all[found].clone())
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

    // ---- time ----

    /// Ends what takes too long: at a fraction of the shortest bound, so that each is kept to about an eighth.
    async fn sweep(self: Rc<Self>) {
        let c = &self.server.config;
        let bounds = [c.header_timeout_ms, c.request_timeout_ms, c.idle_timeout_ms, c.wait_timeout_ms];
        let tick = (bounds.into_iter().min().unwrap_or(1000) / 8).clamp(5, 500);
        loop {
            tokio::time::sleep(Duration::from_millis(tick)).await;
            self.panic_told.set(false);
            self.now_ms.set(self.began.elapsed().as_millis() as u64);
            self.sweep_requests();
            self.sweep_connections();
        }
    }

    fn sweep_requests(&self) {
        let (c, now) = (&self.server.config, self.now_ms.get());
        let late: Vec<(Key, u16)> = {
            let places = self.places.borrow();
            let late = |(key, place): (Key, &crate::places::Place)| {
                let age = now.saturating_sub(place.since_ms);
                match place.state {
                    State::Waiting(_) if age > c.wait_timeout_ms => Some((key, 503)),
                    State::Held if age > c.request_timeout_ms => Some((key, 504)),
                    _ => None,
                }
            };
            places.iter().filter_map(late).collect()
        };
        for (key, status) in late {
            self.answer(key, Answer::Failed(status));
        }
    }

    fn sweep_connections(&self) {
        let (c, now) = (&self.server.config, self.now_ms.get());
        for connection in self.connections.borrow().iter().flatten() {
            let progress = connection.progress.get();
            let (seen, since_ms) = connection.seen.get();
            if progress != seen || connection.active.get() > 0 {
                connection.seen.set((progress, now));
                continue;
            }
            let quiet = now.saturating_sub(since_ms);
            if progress == 0 && now.saturating_sub(connection.since_ms) > c.header_timeout_ms {
                connection.advance(Phase::Ended)
            } else if quiet > c.idle_timeout_ms {
                let open = connection.phase.get() == Phase::Open;
                // A second chance for the client to read what is on its way, and no third.
                connection.seen.set((progress, if open { now - c.idle_timeout_ms * 3 / 4 } else { now }));
                connection.advance(if open { Phase::Closing } else { Phase::Ended })
            }
        }
    }

    // ---- connections ----

    async fn accept(self: Rc<Self>, listener: TcpListener) {
        let listener = tokio::net::TcpListener::from_std(listener).expect("a listener of this thread");
        let most = (self.server.config.max_connections / self.server.config.io_threads).max(1);
        loop {
            poll_fn(|cx| {
                if self.open_connections.get() < most {
                    return Poll::Ready(());
                }
                *self.accepter.borrow_mut() = Some(cx.waker().clone());
                Poll::Pending
            })
            .await;
            match listener.accept().await {
                Ok((stream, peer)) => {
                    let _ = stream.set_nodelay(true); // slower without it, and nothing else
                    let connection = self.register(peer);
                    spawn_local(connection::serve(self.clone(), connection, stream));
                }
                Err(error) => {
                    count(&self.counters().accept_errors);
                    let client_left =
                        matches!(error.raw_os_error(), Some(libc::ECONNABORTED) | Some(libc::EINTR) | Some(libc::EPROTO));
                    if !client_left {
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        }
    }

    fn register(&self, peer: SocketAddr) -> (usize, Rc<Connection>) {
        let connection = Rc::new(Connection {
            peer,
            tls: self.server.config.tls.is_some(),
            since_ms: self.now_ms.get(),
            active: Cell::new(0),
            progress: Cell::new(0),
            seen: Cell::new((0, self.now_ms.get())),
            phase: Cell::new(if self.is_closing() { Phase::Closing } else { Phase::Open }),
            waker: RefCell::default(),
        });
        self.open_connections.set(self.open_connections.get() + 1);
        let counters = self.counters();
        counters.connections.store(self.open_connections.get() as u64, Relaxed);
        count(&counters.connections_total);
        let mut all = self.connections.borrow_mut();
        let at = match self.free_connections.borrow_mut().pop() {
            Some(at) => at,
            None => {
                all.push(None);
                all.len() - 1
            }
        };
        all[at] = Some(connection.clone());
        (at, connection)
    }

    pub fn unregister(&self, at: usize) {
        self.connections.borrow_mut()[at] = None;
        self.free_connections.borrow_mut().push(at);
        self.open_connections.set(self.open_connections.get() - 1);
        self.counters().connections.store(self.open_connections.get() as u64, Relaxed);
        if let Some(waker) = self.accepter.borrow_mut().take() {
            waker.wake()
        }
        if self.is_closing() {
            self.wake_closer()
        }
    }
}
