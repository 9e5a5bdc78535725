//! Time: requests and connections that take too long are ended.
use std::rc::Rc;
use std::time::Duration;

use super::{Local, Phase};
use crate::places::{Answer, Place, State};
use crate::server::Key;

impl Local {
    /// Ends what takes too long: at a fraction of the shortest bound, so that each is kept to about an eighth.
    pub(super) async fn sweep(self: Rc<Self>) {
        let c = &self.server.config;
        let bounds = [c.header_timeout_ms, c.request_timeout_ms, c.idle_timeout_ms, c.wait_timeout_ms];
        let tick = (bounds.into_iter().min().unwrap_or(1000) / 8).clamp(5, 500);
        loop {
            tokio::time::sleep(Duration::from_millis(tick)).await;
            self.panic_told.set(false);
            self.now_ms.set(self.began.elapsed().as_millis() as u64);
            self.sweep_requests();
            self.forget_gone();
            self.sweep_connections();
        }
    }

    fn sweep_requests(&self) {
        let (c, now) = (&self.server.config, self.now_ms.get());
        let late: Vec<(Key, u16)> = {
            let places = self.places.borrow();
            let late = |(key, place): (Key, &Place)| {
                let age = now.saturating_sub(place.since_ms);
                match place.state {
                    State::Waiting if age > c.wait_timeout_ms => Some((key, 503)),
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
            if let Some((head, since_ms)) = connection.head.get() {
                if connection.active.get() > 0 || connection.at_once.get() == 0 && connection.has_asked() {
                    // There are answers before it, to be made or to be taken: idle_timeout_ms bounds that.
                    connection.head.set(Some((head, now)))
                } else if now.saturating_sub(since_ms) > c.header_timeout_ms {
                    connection.advance(Phase::Ended);
                    continue;
                }
            }
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
}
