//! Requests on their way to Erlang: one message for a batch of them, to the acceptors in turns, as far as they have credit.
//! The message only says how many. Terms are made where they are taken, by the process that has them then (`take`): those made here
//! would be copied there, and freed there, for which the VM wakes a thread of its own.
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::Ordering::*;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use tokio::task::yield_now;

use super::Local;
use crate::nif::*;
use crate::places::State;
use crate::server::*;

/// Requests in one message at most, so that several acceptors share.
const BATCH: usize = 64;

impl Local {
    /// False if too many wait already.
    pub fn enqueue(&self, key: Key) -> bool {
        if self.queue.borrow().len() >= self.server.config.max_waiting {
            self.flush();
        }
        if self.queue.borrow().len() >= self.server.config.max_waiting {
            self.forget_gone()
        }
        let mut queue = self.queue.borrow_mut();
        if queue.len() >= self.server.config.max_waiting {
            return false;
        }
        queue.push_back(key);
        self.places.borrow_mut().get(key).expect("the caller's").queued = true;
        self.ask_flush();
        true
    }

    /// Those whose clients have left do not wait any more.
    pub(super) fn forget_gone(&self) {
        if self.left_in_queue.take() == 0 {
            return;
        }
        let (mut queue, mut places) = (self.queue.borrow_mut(), self.places.borrow_mut());
        queue.retain(|key| places.get(*key).is_some());
        self.counters().waiting.store(queue.len() as u64, Relaxed)
    }

    /// Once for all that come until the flusher runs, behind the connections that are ready now.
    pub(super) fn ask_flush(&self) -> bool {
        if !self.flush_asked.replace(true) {
            if let Some(waker) = self.flusher.borrow().as_ref() {
                waker.wake_by_ref()
            }
        }
        true
    }

    /// Waits as long as each look at the sockets brings more: a message wakes a scheduler, which costs as much as some
    /// requests do.
    pub(super) async fn flush_when_asked(self: Rc<Self>) {
        loop {
            self.flush_is_asked().await;
            let mut seen = 0;
            while seen < self.queue.borrow().len().min(BATCH) {
                seen = self.queue.borrow().len();
                yield_now().await // behind those that are ready, and those that the system says are
            }
            self.flush_asked.set(false);
            self.flush()
        }
    }

    async fn flush_is_asked(&self) {
        poll_fn(|cx| {
            *self.flusher.borrow_mut() = Some(cx.waker().clone());
            if self.flush_asked.get() { Poll::Ready(()) } else { Poll::Pending }
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
        let (mut queue, mut places) = (self.queue.borrow_mut(), self.places.borrow_mut());
        let mut handed = acceptor.handed.lock().unwrap();
        let (before, since) = (handed.len(), Instant::now());
        while handed.len() - before < most {
            let Some(key) = queue.pop_front() else { break };
            let Some(place) = places.get(key) else {
                self.left_in_queue.set(self.left_in_queue.get() - 1);
                continue;
            };
            place.queued = false;
            if let (State::Waiting, Some(request)) = (&place.state, &place.request) {
                handed.push_back(Handed { thread: self.index, key, request: request.clone(), since });
                place.state = State::Held
            }
        }
        let n = handed.len() - before;
        // Before one is taken, and perhaps answered.
        self.server.held.fetch_add(n, AcqRel);
        acceptor.credit.fetch_sub(n as i64, AcqRel);
        drop((queue, places, handed));
        if n == 0 {
            return true;
        }
        let a = atoms();
        let sent = self.env.send(&acceptor.pid, |env| tuple(env, &[a.tame_http, a.requests, integer(env, n as u64)]));
        if sent {
            count(&self.counters().batches)
        } else {
            self.server.has_ended(&acceptor)
        }
        true
    }

    /// An acceptor ended before it took it: the next one gets it.
    pub(super) fn wait_again(&self, key: Key) -> bool {
        match self.places.borrow_mut().get(key) {
            Some(place) if matches!(place.state, State::Held) => (place.state, place.queued) = (State::Waiting, true),
            _ => return false,
        }
        self.queue.borrow_mut().push_front(key);
        self.ask_flush()
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
}
