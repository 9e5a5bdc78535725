//! A server, as its I/O threads and the NIFs share it.
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex, RwLock};
use std::task::Waker;
use std::time::{Duration, Instant};

use atomic_waker::AtomicWaker;
use bytes::Bytes;
use hyper::{HeaderMap, Response};
use tokio_rustls::rustls::ServerConfig;

use crate::nif::ErlNifPid;
use crate::request::Request;

/// What start was given, checked there.
pub struct Config {
    pub address: SocketAddr,
    pub io_threads: usize,
    pub h2c: bool,
    pub tls: Option<Arc<ServerConfig>>,
    pub max_in_flight: usize,
    pub max_waiting: usize,
    pub max_connections: usize,
    pub max_streams: u32,
    pub body_limit: u64,
    pub body_memory: usize,
    pub stream_bodies: bool,
    pub header_timeout_ms: u64,
    pub request_timeout_ms: u64,
    pub idle_timeout_ms: u64,
    pub wait_timeout_ms: u64,
    pub credit: i64,
}

/// A request's place in its I/O thread. The generation makes a place that was used again another key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    pub place: u32,
    pub generation: u32,
}

/// What NIFs tell an I/O thread.
pub enum Command {
    Reply(Key, Response<Bytes>),
    Start(Key, Response<()>, Arc<Flow>),
    Chunk(Key, Bytes),
    End(Key, Option<HeaderMap>),
    /// The reference is gone and the answer is not complete.
    Dropped(Key),
    Read(Key, usize, ErlNifPid),
    /// It waits no more.
    Unread(Key, ErlNifPid),
    Watch(Key, ErlNifPid),
    /// There may be credit again.
    Credit,
    /// Nobody took it from the acceptor that had it.
    Returned(Key),
    Accept,
    Close { grace_ms: u64 },
}

/// How much of a streamed answer has not left yet.
pub struct Flow {
    pub bytes: AtomicUsize,
    /// Who waits for room: more than one, where several send.
    pub waiting: Mutex<Vec<ErlNifPid>>,
    pub closed: AtomicBool,
}

impl Flow {
    /// Nobody takes more of it. Who waits for room is to be told.
    pub fn close(&self) -> Vec<ErlNifPid> {
        self.closed.store(true, SeqCst);
        self.room()
    }

    /// There is room, for all who wait.
    pub fn room(&self) -> Vec<ErlNifPid> {
        std::mem::take(&mut *self.waiting.lock().unwrap())
    }
}

#[derive(Default)]
pub struct Counters {
    pub requests: AtomicU64,
    pub answered: AtomicU64,
    pub refused: AtomicU64,
    pub failed: AtomicU64,
    pub gone: AtomicU64,
    pub connections: AtomicU64,
    pub connections_total: AtomicU64,
    pub accept_errors: AtomicU64,
    pub waiting: AtomicU64,
    pub batches: AtomicU64,
    pub wakes: AtomicU64,
}

/// A counter with one writer.
pub fn count(counter: &AtomicU64) {
    counter.store(counter.load(Relaxed) + 1, Relaxed)
}

/// What the NIFs see of one I/O thread.
pub struct Shared {
    commands: Mutex<Vec<Command>>,
    notified: AtomicBool,
    closed: AtomicBool,
    pub starved: AtomicBool,
    waker: AtomicWaker,
    /// Of the task that accepts, where it found no room.
    accepter: AtomicWaker,
    /// The generation of each place: whether a key is still good can be asked from any thread.
    pub generations: Box<[AtomicU32]>,
    pub counters: Counters,
}

impl Shared {
    pub fn new(places: usize) -> Self {
        Shared {
            commands: Mutex::new(Vec::new()),
            notified: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            starved: AtomicBool::new(false),
            waker: AtomicWaker::new(),
            accepter: AtomicWaker::new(),
            generations: (0..places).map(|_| AtomicU32::new(0)).collect(),
            counters: Counters::default(),
        }
    }

    /// Only the first of the commands that the thread has not seen wakes it. False if the thread has ended.
    pub fn push(&self, command: Command) -> bool {
        {
            let mut commands = self.commands.lock().unwrap();
            // Under the lock: what comes after the thread's last look is not kept.
            if self.closed.load(Relaxed) {
                return false;
            }
            commands.push(command);
        }
        if !self.notified.swap(true, AcqRel) {
            self.waker.wake();
        }
        true
    }

    pub fn register(&self, waker: &std::task::Waker) {
        self.waker.register(waker)
    }

    /// Swaps the commands into `into`, which is empty. The flag first: a command that comes now wakes again.
    pub fn take(&self, into: &mut Vec<Command>) {
        if self.notified.swap(false, AcqRel) {
            std::mem::swap(&mut *self.commands.lock().unwrap(), into);
        }
    }

    /// The thread has ended. The commands that it has not seen.
    pub fn close(&self) -> Vec<Command> {
        let mut commands = self.commands.lock().unwrap();
        self.closed.store(true, Relaxed);
        std::mem::take(&mut *commands)
    }

    pub fn is_good(&self, key: Key) -> bool {
        self.generations[key.place as usize].load(Acquire) == key.generation
    }
}

/// A process that takes requests, or has others take them.
pub struct Acceptor {
    pub pid: ErlNifPid,
    pub credit: AtomicI64,
    pub dead: AtomicBool,
    /// Not taken yet.
    pub handed: Mutex<VecDeque<Handed>>,
}

pub struct Handed {
    pub thread: usize,
    pub key: Key,
    pub request: Arc<Request>,
    pub since: Instant,
}

/// A process that is to take a request runs by then, or died before it did.
const OVERDUE: Duration = Duration::from_secs(1);

impl Acceptor {
    /// How many it was handed that nobody takes.
    pub fn overdue(&self) -> usize {
        let handed = self.handed.lock().unwrap();
        handed.iter().take_while(|handed| handed.since.elapsed() > OVERDUE).count()
    }
}

pub type Statics = HashMap<Vec<u8>, Response<Bytes>>;

pub struct Server {
    pub config: Config,
    pub owner: ErlNifPid,
    pub threads: Vec<Shared>,
    /// Requests that Erlang has, answered or not: what max_in_flight bounds.
    pub held: AtomicUsize,
    /// What max_connections bounds.
    open_connections: AtomicUsize,
    pub body_memory: AtomicUsize,
    pub running: AtomicUsize,
    acceptors: RwLock<Arc<Vec<Arc<Acceptor>>>>,
    pub acceptors_version: AtomicU64,
    statics: RwLock<Arc<Statics>>,
    pub statics_version: AtomicU64,
}

impl Server {
    pub fn new(config: Config, owner: ErlNifPid) -> Self {
        let places = config.max_in_flight + config.max_waiting;
        let threads = (0..config.io_threads).map(|_| Shared::new(places)).collect();
        let running = AtomicUsize::new(config.io_threads);
        Server {
            config,
            owner,
            threads,
            held: AtomicUsize::new(0),
            open_connections: AtomicUsize::new(0),
            body_memory: AtomicUsize::new(0),
            running,
            acceptors: RwLock::default(),
            acceptors_version: AtomicU64::new(0),
            statics: RwLock::default(),
            statics_version: AtomicU64::new(0),
        }
    }

    pub fn push_all(&self, make: impl Fn() -> Command) {
        for thread in &self.threads {
            thread.push(make());
        }
    }

    /// Threads that have requests and found no credit look again.
    pub fn wake_starved(&self) {
        for thread in &self.threads {
            if thread.starved.load(SeqCst) && thread.starved.swap(false, SeqCst) {
                thread.push(Command::Credit);
            }
        }
    }

    pub fn acceptors(&self) -> Arc<Vec<Arc<Acceptor>>> {
        self.acceptors.read().unwrap().clone()
    }

    /// Also forgets the dead ones.
    pub fn join(&self, acceptor: Arc<Acceptor>) {
        self.change_acceptors(Some(acceptor));
        self.wake_starved();
    }

    /// What it has not taken goes to the others. More than once, if need be: an I/O thread may find out as well.
    pub fn has_ended(&self, acceptor: &Acceptor) {
        acceptor.dead.store(true, Release);
        let left = std::mem::take(&mut *acceptor.handed.lock().unwrap());
        for Handed { thread, key, .. } in left.into_iter().rev() {
            self.let_go();
            self.threads[thread].push(Command::Returned(key));
        }
        self.change_acceptors(None);
        self.wake_starved();
    }

    fn change_acceptors(&self, new: Option<Arc<Acceptor>>) {
        let mut acceptors = self.acceptors.write().unwrap();
        let living = acceptors.iter().filter(|a| !a.dead.load(Acquire)).cloned();
        *acceptors = Arc::new(living.chain(new).collect());
        self.acceptors_version.fetch_add(1, AcqRel);
    }

    pub fn statics(&self) -> Arc<Statics> {
        self.statics.read().unwrap().clone()
    }

    pub fn set_statics(&self, statics: Statics) {
        *self.statics.write().unwrap() = Arc::new(statics);
        self.statics_version.fetch_add(1, AcqRel);
    }

    /// One connection more, if there is room for it. If not, the thread is woken when there is.
    pub fn make_room(&self, thread: usize, waker: &Waker) -> bool {
        self.try_make_room() || {
            self.threads[thread].accepter.register(waker);
            self.try_make_room()
        }
    }

    fn try_make_room(&self) -> bool {
        let most = self.config.max_connections;
        self.open_connections.fetch_update(AcqRel, Acquire, |open| (open < most).then_some(open + 1)).is_ok()
    }

    /// One connection less. The next one may be in any thread's queue, so all look that found no room.
    pub fn give_room(&self) {
        if self.open_connections.fetch_sub(1, AcqRel) == self.config.max_connections {
            self.threads.iter().for_each(|thread| thread.accepter.wake())
        }
    }

    /// A request leaves Erlang's hands.
    pub fn let_go(&self) {
        if self.held.fetch_sub(1, AcqRel) >= self.config.max_in_flight {
            self.wake_starved();
        }
    }
}

