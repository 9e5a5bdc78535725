//! What NIFs tell an I/O thread, and what becomes of it: answers find their requests, orders open and close the listener.
use std::collections::VecDeque;
use std::future::poll_fn;
use std::net::TcpListener;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use tokio::task::spawn_local;

use super::{Local, Phase};
use crate::nif::ErlNifPid;
use crate::places::{Answer, Client, End, Left, Reader, State, Streaming};
use crate::server::*;
use crate::upload;

impl Local {
    /// Ends when the server has closed.
    pub(super) async fn obey(self: Rc<Self>, listener: TcpListener) {
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

    pub(super) fn wake_closer(&self) {
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
                    self.tell_room_all(&flow.close(), key)
                }
                taken
            }
            Command::Chunk(key, bytes) => self.stream(key, |s| s.chunks.push_back(bytes)),
            Command::End(key, trailers) => self.stream(key, |s| s.end = Some(End::Complete(trailers))),
            Command::Dropped(key) => {
                self.stream(key, |s| s.end = Some(End::Cut)) || self.answer(key, Answer::Failed(500))
            }
            Command::Read(key, most, pid) => upload::read(self, key, most, pid),
            Command::Unread(key, pid) => upload::unread(self, key, pid),
            Command::Watch(key, pid) => self.watch(key, pid),
            Command::Credit => self.ask_flush(),
            Command::Returned(key) => self.wait_again(key),
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
        if !matches!(place.state, State::Held | State::Waiting) {
            return false;
        }
        match std::mem::take(&mut place.client) {
            Client::Stream(stream) => {
                drop(places);
                stream.answer(answer)
            }
            mut client => {
                place.state = State::Answered(answer);
                client.wake()
            }
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
        place.client.wake();
        true
    }

    /// Ends a request's place. What its handler asked to be told, it is told if the client left.
    pub fn give_back(&self, key: Key, gone: bool) {
        let Left { watcher, body, reader, senders, queued } = self.places.borrow_mut().give_back(key, self.shared());
        self.left_in_queue.set(self.left_in_queue.get() + usize::from(queued));
        // Not when the thread ends: its tasks are dropped then, in which this runs.
        let ends = self.closing.get() == Some(0) || std::thread::panicking();
        if let (Some(upload), false) = (body, ends) {
            upload.linger()
        }
        if let Some(Reader { pid, task, .. }) = reader {
            if let Some(pid) = pid {
                self.tell_body_closed(&pid, key)
            }
            if let Some(task) = task {
                task.wake()
            }
        }
        // That nobody makes any, they find out.
        self.tell_room_all(&senders, key);
        if let (Some(pid), true) = (watcher, gone) {
            self.tell_gone(&pid, key)
        }
    }

    pub fn tell_room_all(&self, senders: &[ErlNifPid], key: Key) {
        for pid in senders {
            self.tell_room(pid, key)
        }
    }
}
