//! The requests of one I/O thread that are not answered whole: a table of places, each with a generation.
use std::task::Waker;

use bytes::Bytes;
use hyper::{HeaderMap, Response};
use std::collections::VecDeque;
use std::sync::atomic::Ordering::Release;
use std::sync::Arc;

use crate::http2;
use crate::nif::ErlNifPid;
use crate::request::Request;
use crate::server::{Flow, Key, Shared};
use crate::upload::Upload;

pub enum State {
    Free,
    /// For an acceptor with credit.
    Waiting,
    /// In Erlang's hands, or on the way there.
    Held,
    Answered(Answer),
    /// Its head is on its way, its body comes from Erlang.
    Streaming(Streaming),
}

pub enum Answer {
    Whole(Response<Bytes>),
    Stream(Response<()>, Streaming),
    /// No answer comes: what the client is told instead.
    Failed(u16),
}

pub struct Streaming {
    pub flow: Arc<Flow>,
    pub chunks: VecDeque<Bytes>,
    pub end: Option<End>,
}

impl Streaming {
    /// Of the first chunk, at most so much: what HTTP/2 has taken is held however long the client takes nothing of it.
    pub fn next(&mut self, most: usize) -> Option<Bytes> {
        match self.chunks.front_mut() {
            Some(chunk) if chunk.len() > most => Some(chunk.split_to(most)),
            _ => self.chunks.pop_front(),
        }
    }
}

pub enum End {
    Complete(Option<HeaderMap>),
    /// To be aborted, behind what was sent before.
    Cut,
    Aborted,
}

/// Who waits for the answer, or for more of it.
#[derive(Default)]
pub enum Client {
    #[default]
    Nobody,
    /// The future of the service, or of the body.
    Task(Waker),
    Stream(http2::Stream),
}

impl Client {
    /// Of those that are woken.
    pub fn wake(&mut self) {
        if let Client::Task(waker) = std::mem::take(self) {
            waker.wake()
        }
    }
}

pub struct Place {
    pub generation: u32,
    /// When the request came, in the thread's ms.
    pub since_ms: u64,
    /// Whether it is in the queue for Erlang.
    pub queued: bool,
    pub state: State,
    /// Shared with the process that takes it, and dropped here: allocated memory goes back to where it came from.
    pub request: Option<Arc<Request>>,
    pub client: Client,
    pub watcher: Option<ErlNifPid>,
    pub body: Option<Upload>,
    /// Who reads it just now.
    pub reader: Option<Reader>,
    /// How much of the body Erlang has read.
    pub read: u64,
}

/// A process that reads a body, how much of it, and the task that does it, once that waits. Where the process has given up,
/// the task keeps what it has for the next one.
pub struct Reader {
    pub pid: Option<ErlNifPid>,
    pub most: usize,
    pub task: Option<Waker>,
}

/// What a place that is given back leaves.
#[derive(Default)]
pub struct Left {
    pub watcher: Option<ErlNifPid>,
    pub body: Option<Upload>,
    pub reader: Option<Reader>,
    /// Who wait for room in the answer.
    pub senders: Vec<ErlNifPid>,
    /// Its key is in the queue for Erlang.
    pub queued: bool,
}

pub struct Places {
    places: Vec<Place>,
    free: Vec<u32>,
    limit: usize,
}

impl Places {
    pub fn new(limit: usize) -> Self {
        Places { places: Vec::new(), free: Vec::new(), limit }
    }

    /// None where all are taken.
    pub fn take(&mut self, since_ms: u64) -> Option<Key> {
        if let Some(place) = self.free.pop() {
            let taken = &mut self.places[place as usize];
            taken.since_ms = since_ms;
            return Some(Key { place, generation: taken.generation });
        }
        let place = self.places.len();
        if place == self.limit {
            return None;
        }
        let (state, client) = (State::Free, Client::Nobody);
        self.places.push(Place {
            generation: 0,
            since_ms,
            queued: false,
            state,
            request: None,
            client,
            watcher: None,
            body: None,
            reader: None,
            read: 0,
        });
        Some(Key { place: place as u32, generation: 0 })
    }

    /// From now on the key is bad, for every thread. What is left of the place is the caller's.
    pub fn give_back(&mut self, key: Key, shared: &Shared) -> Left {
        let Some(place) = self.get(key) else { return Left::default() };
        place.generation = place.generation.wrapping_add(1);
        shared.generations[key.place as usize].store(place.generation, Release);
        let (watcher, body, reader) = (place.watcher.take(), place.body.take(), place.reader.take());
        let queued = std::mem::take(&mut place.queued);
        let mut left = Left { watcher, body, reader, senders: Vec::new(), queued };
        (place.request, place.client) = (None, Client::Nobody);
        place.read = 0;
        if let State::Streaming(s) | State::Answered(Answer::Stream(_, s)) =
            std::mem::replace(&mut place.state, State::Free)
        {
            left.senders = s.flow.close()
        }
        self.free.push(key.place);
        left
    }

    /// The client waits for the answer from now on, or gets it and itself back.
    pub fn wait(&mut self, key: Key, client: Client) -> Option<(Client, Answer)> {
        let place = self.get(key).expect("given back by its ticket alone");
        if !matches!(place.state, State::Answered(_)) {
            place.client = client;
            return None;
        }
        match std::mem::replace(&mut place.state, State::Held) {
            State::Answered(answer) => Some((client, answer)),
            _ => unreachable!("looked at above"),
        }
    }

    pub fn get(&mut self, key: Key) -> Option<&mut Place> {
        self.places.get_mut(key.place as usize).filter(|place| place.generation == key.generation)
    }

    pub fn iter(&self) -> impl Iterator<Item = (Key, &Place)> {
        let key = |(i, place): (usize, &Place)| Key { place: i as u32, generation: place.generation };
        self.places.iter().enumerate().map(move |(i, place)| (key((i, place)), place))
    }
}
