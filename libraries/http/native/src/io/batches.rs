//! Requests on their way to Erlang: one message for a batch of them, to the acceptors in turns, as far as they have credit.
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::Ordering::*;
use std::sync::Arc;
use std::task::Poll;

use super::Local;
use crate::nif::*;
use crate::places::{Answer, State};
use crate::request::{term, Body, Reference};
use crate::server::*;

/// Requests in one message at most, so that several acceptors share.
const BATCH: usize = 64;

impl Local {
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
    pub(super) fn ask_flush(&self) -> bool {
        if !self.flush_asked.replace(true) {
            if let Some(waker) = self.flusher.borrow().as_ref() {
                waker.wake_by_ref()
            }
        }
        true
    }

    pub(super) async fn flush_when_asked(self: Rc<Self>) {
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
        let mut is_lost = |key: &Key| match &places.get(*key).expect("looked at above").state {
            State::Waiting(request) => matches!(request.body, Body::Whole(..)),
            _ => true,
        };
        let (lost, left): (Vec<Key>, Vec<Key>) = keys.into_iter().partition(&mut is_lost);
        left.into_iter().rev().for_each(|key| queue.push_front(key));
        drop((queue, places));
        for key in lost {
            self.answer(key, Answer::Failed(500));
        }
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
}
