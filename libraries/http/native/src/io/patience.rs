//! Before an I/O thread sleeps for an answer that comes at once, it waits for it awake: to be woken costs more than the
//! handler takes, where requests come one by one.
use std::cell::Cell;
use std::hint::spin_loop;
use std::sync::atomic::Ordering::*;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use crate::server::{Server, Shared};

/// How long: about what the two wakes of a process and of this thread take.
const PATIENCE: Duration = Duration::from_micros(100);
/// With more requests under way there is other work meanwhile, and answers come in batches.
const FEW: usize = 2;
/// After answers that did not come in time it is left out for as many times, twice as many with each, up to this.
const MOST: u32 = 1024;

thread_local! {
    /// How often it is left out from now on, and how often after the next time in vain.
    static LEFT_OUT: Cell<(u32, u32)> = const { Cell::new((0, 1)) };
}

/// On one core the answer would wait for us.
pub fn helps() -> bool {
    available_parallelism().is_ok_and(|n| n.get() > 1)
}

/// Returns when there is something to do, or when it is time to sleep.
pub fn wait(server: &Server, shared: &Shared) {
    // Once for each batch.
    let has_asked = shared.has_asked.load(Relaxed);
    if !has_asked || shared.has_news() {
        return;
    }
    shared.has_asked.store(false, Relaxed);
    if server.held.load(Relaxed) > FEW {
        return;
    }
    let (left_out, then) = LEFT_OUT.get();
    if left_out > 0 {
        return LEFT_OUT.set((left_out - 1, then));
    }
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        // Not yield_now: where others want this core, it is theirs for longer than an answer takes.
        (0..32).for_each(|_| spin_loop());
        if shared.has_news() {
            return LEFT_OUT.set((0, 1));
        }
    }
    LEFT_OUT.set((then, (2 * then).min(MOST)));
}
