//! hyper alone, both protocols: the settings, the runtime and the allocator of the library with one answer, and nothing else of it.
//! What a static route is compared with. With ASKS it asks another thread first, in batches, which has nothing to do but to say
//! yes: what an answer from Erlang is compared with.
//!
//!     alone PORT [ASKS]    says the port on which it listens, and ends with its standard input
use std::cell::RefCell;
use std::convert::Infallible;
use std::future::{poll_fn, Future};
use std::io::{read_to_string, stdin};
use std::mem::{replace, take};
use std::pin::Pin;
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Condvar, LazyLock, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use atomic_waker::AtomicWaker;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::header::{HeaderValue, CONTENT_TYPE};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::LocalOptions;
use tokio::task::spawn_local;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

struct Hello(Bytes);

impl Body for Hello {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = take(&mut self.0);
        Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len() as u64)
    }
}

#[derive(Clone)]
struct OnThisThread;

impl<F: Future<Output = ()> + 'static> hyper::rt::Executor<F> for OnThisThread {
    fn execute(&self, future: F) {
        spawn_local(future);
    }
}

/// Requests on their way to the other thread, and back: of each the waker of its task. Batches, as the library's are.
#[derive(Default)]
struct Batches {
    asked: Mutex<Vec<Waker>>,
    comes: Condvar,
    answered: Mutex<Vec<Waker>>,
    /// Of the task that hands them over; woken once until it has looked.
    handover: AtomicWaker,
    notified: AtomicBool,
}

static BATCHES: LazyLock<Batches> = LazyLock::new(Batches::default);

thread_local! {
    /// Those that came in this turn of the thread.
    static NEW: RefCell<Vec<Waker>> = const { RefCell::new(Vec::new()) };
}

/// Behind all connections that are ready: what came goes to the other thread, what it has answered is woken.
async fn hand_over() {
    poll_fn(|cx| {
        BATCHES.handover.register(cx.waker());
        BATCHES.notified.store(false, SeqCst);
        let mut new = NEW.take();
        if !new.is_empty() {
            BATCHES.asked.lock().unwrap().append(&mut new);
            BATCHES.comes.notify_one();
        }
        let answered = take(&mut *BATCHES.answered.lock().unwrap());
        answered.into_iter().for_each(Waker::wake);
        Poll::<()>::Pending
    })
    .await
}

fn answer_all() {
    let mut asked = BATCHES.asked.lock().unwrap();
    loop {
        let mut batch = take(&mut *asked);
        if batch.is_empty() {
            asked = BATCHES.comes.wait(asked).unwrap();
            continue;
        }
        drop(asked);
        BATCHES.answered.lock().unwrap().append(&mut batch);
        wake_handover();
        asked = BATCHES.asked.lock().unwrap();
    }
}

fn wake_handover() {
    if !BATCHES.notified.swap(true, SeqCst) {
        BATCHES.handover.wake()
    }
}

/// Answered when it is polled for the second time.
async fn ask() {
    let mut asked = false;
    poll_fn(|cx| {
        if replace(&mut asked, true) {
            return Poll::Ready(());
        }
        NEW.with_borrow_mut(|new| new.push(cx.waker().clone()));
        wake_handover();
        Poll::Pending
    })
    .await
}

async fn serve(stream: TcpStream, asks: bool) {
    let mut builder = Builder::new(OnThisThread);
    builder.http1().timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(10)).half_close(false);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(128);
    let answer = service_fn(|_: Request<Incoming>| async move {
        if asks {
            ask().await
        }
        let mut response = Response::new(Hello(Bytes::from_static(b"Hello world")));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        Ok::<_, Infallible>(response)
    });
    // Its errors are the client's.
    let _ = builder.serve_connection(TokioIo::new(stream), answer).await;
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let port = arguments.next().map_or(0, |port| port.parse().expect("a port"));
    let asks = arguments.next().is_some();
    if asks {
        thread::spawn(answer_all);
    }
    thread::spawn(|| {
        let _ = read_to_string(stdin());
        exit(0)
    });
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build_local(LocalOptions::default()).expect("a runtime");
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("a port that is free");
        spawn_local(hand_over());
        println!("{}", listener.local_addr().expect("an address").port());
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            let _ = stream.set_nodelay(true);
            spawn_local(serve(stream, asks));
        }
    })
}
