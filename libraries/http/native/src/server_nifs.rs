//! The NIFs about a server: it is opened, joined by acceptors, told of static routes, and closed.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::*};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, Weak};

use bytes::Bytes;
use hyper::StatusCode;
use socket2::{Domain, SockRef, Socket, Type};

use crate::nif::*;
use crate::request::{term, Reference};
use crate::request_nifs::head;
use crate::server::*;
use crate::{build, io, tls};

/// What Erlang has of a server. Its owner's end, or the last reference's, ends the server.
pub struct Handle(Arc<Server>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.push_all(|| Command::Close { grace_ms: 0 });
    }
}

/// What an acceptor has of itself.
pub struct Joined(Arc<Acceptor>, Arc<Server>);

/// What monitors a process: the owner of a server, or an acceptor. It lives until the process has ended, because a resource
/// that has monitored a process must not be destroyed before: `tame/watch.h` says why.
pub struct Watch(Weak<Server>, Option<Weak<Acceptor>>);

pub unsafe extern "C" fn process_down(_: Env, object: *mut libc::c_void, _: *const ErlNifPid, _: *const ErlNifMonitor) {
    guard((), || {
        let Watch(server, acceptor) = &*object.cast::<Watch>();
        match (server.upgrade(), acceptor.as_ref().map(Weak::upgrade)) {
            (Some(server), None) => server.push_all(|| Command::Close { grace_ms: 0 }),
            (Some(server), Some(Some(acceptor))) => {
                server.has_ended(&acceptor);
            }
            _ => (), // it has ended before
        }
    });
    enif_release_resource(object); // the one that `watch` left
}

unsafe fn watch(env: Env, pid: &ErlNifPid, watch: Watch) -> Result<(), Fault> {
    let object = new_resource(types().watch, watch);
    if enif_monitor_process(env, object.cast(), pid, std::ptr::null_mut()) != 0 {
        enif_release_resource(object.cast());
        return Err(Fault::Badarg);
    }
    Ok(())
}

unsafe fn config(env: Env, map: Term) -> Result<Config, Fault> {
    let a = atoms();
    let number = |key| get_key(env, map, key).and_then(|value| get_u64(env, value));
    let flag = |key| Ok(get_key(env, map, key)? == a.true_);
    let ip = match get_bytes(env, get_key(env, map, a.ip)?)? {
        bytes if bytes.len() == 4 => IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).unwrap())),
        bytes if bytes.len() == 16 => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).unwrap())),
        _ => return Err(Fault::Badarg),
    };
    let port = u16::try_from(number(a.port)?).map_err(|_| Fault::Badarg)?;
    let tls = match get_key(env, map, a.tls)? {
        none if none == a.undefined => None,
        pair => {
            let pair = get_tuple(env, pair, 2)?;
            let made = tls::config(get_bytes(env, pair[0])?, get_bytes(env, pair[1])?);
            Some(made.map_err(|text| Fault::Error(tuple(env, &[a.tls, binary(env, text.as_bytes())])))?)
        }
    };
    Ok(Config {
        address: SocketAddr::new(ip, port),
        io_threads: number(a.io_threads)?.clamp(1, 64) as usize,
        h2c: flag(a.h2c)?,
        tls,
        max_in_flight: number(a.max_in_flight)?.clamp(1, 1 << 20) as usize,
        max_waiting: number(a.max_waiting)?.clamp(1, 1 << 20) as usize,
        max_connections: number(a.max_connections)? as usize,
        max_streams: number(a.max_streams)? as u32,
        body_limit: number(a.body_limit)?,
        body_memory: number(a.body_memory)? as usize,
        stream_bodies: get_key(env, map, a.body)? == a.stream,
        header_timeout_ms: number(a.header_timeout_ms)?,
        request_timeout_ms: number(a.request_timeout_ms)?,
        idle_timeout_ms: number(a.idle_timeout_ms)?,
        wait_timeout_ms: number(a.wait_timeout_ms)?,
        credit: number(a.credit)? as i64,
    })
}

/// Sockets for one address, one for each thread: the system spreads connections over them. The first is made as one that shares
/// with nobody, so that a port where somebody listens is in use, also where that is a server like this one.
fn listen(address: SocketAddr, threads: usize) -> std::io::Result<(SocketAddr, Vec<TcpListener>)> {
    let first = listener(&address, false)?;
    let address = first.local_addr()?;
    if threads > 1 {
        SockRef::from(&first).set_reuse_port(true)?;
    }
    let mut all = vec![first];
    for _ in 1..threads {
        all.push(listener(&address, true)?);
    }
    Ok((address, all))
}

fn listener(address: &SocketAddr, share: bool) -> std::io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(*address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    if share {
        socket.set_reuse_port(true)?;
    }
    socket.bind(&(*address).into())?;
    socket.listen(1024)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// open(Options) -> {ok, Server, Port} | {error, {listen, Errno} | {tls, Text} | threads}. The caller owns the server.
pub unsafe fn open(env: Env, args: &[Term]) -> Return {
    let a = atoms();
    let config = config(env, args[0])?;
    let fail = |error: std::io::Error| {
        let errno = error.raw_os_error().unwrap_or(0) as u64;
        Fault::Error(tuple(env, &[integer(env, errno), binary(env, error.to_string().as_bytes())]))
    };
    let threads = config.io_threads;
    let (address, listeners) = listen(config.address, threads).map_err(fail)?;
    let owner = self_pid(env);
    let server = Arc::new(Server::new(config, owner));
    let term = make_resource(env, types().server, Handle(server.clone()));
    watch(env, &owner, Watch(Arc::downgrade(&server), None))?;
    let (say, begun) = channel();
    for (index, listener) in listeners.into_iter().enumerate() {
        let (server, say) = (server.clone(), say.clone());
        let thread = std::thread::Builder::new().name(format!("tame_http_{index}"));
        // Those that run end with the handle, which is dropped here.
        thread
            .spawn(move || {
                build().io_threads.fetch_add(1, SeqCst);
                io::run(server, index, listener, say);
                build().io_threads.fetch_sub(1, SeqCst);
            })
            .map_err(fail)?;
    }
    drop(say);
    for _ in 0..threads {
        begun.recv().unwrap_or_else(|gone| Err(std::io::Error::other(gone))).map_err(fail)?;
    }
    Ok(tuple(env, &[a.ok, term, integer(env, address.port() as u64)]))
}

unsafe fn server<'a>(env: Env, term: Term) -> Result<&'a Arc<Server>, Fault> {
    get_resource::<Handle>(env, term, types().server).map(|handle| &handle.0)
}

/// accept(Server) -> ok
pub unsafe fn accept(env: Env, args: &[Term]) -> Return {
    server(env, args[0])?.push_all(|| Command::Accept);
    Ok(atoms().ok)
}

/// close(Server, GraceMs) -> ok. When all threads have ended the owner gets {tame_http, stopped}.
pub unsafe fn close(env: Env, args: &[Term]) -> Return {
    let grace_ms = get_u64(env, args[1])?;
    server(env, args[0])?.push_all(|| Command::Close { grace_ms });
    Ok(atoms().ok)
}

/// join(Server) -> Acceptor. The caller gets {tame_http, requests, N}: that many requests may be taken.
pub unsafe fn join(env: Env, args: &[Term]) -> Return {
    let server = server(env, args[0])?;
    let pid = self_pid(env);
    let credit = AtomicI64::new(server.config.credit);
    let (dead, handed) = (AtomicBool::new(false), Mutex::default());
    let acceptor = Arc::new(Acceptor { pid, credit, dead, handed });
    let term = make_resource(env, types().acceptor, Joined(acceptor.clone(), server.clone()));
    watch(env, &pid, Watch(Arc::downgrade(server), Some(Arc::downgrade(&acceptor))))?;
    server.join(acceptor);
    Ok(term)
}

/// take(Acceptor) -> Request | none. By whoever has the acceptor's term. Those whose clients have left meanwhile are passed over.
pub unsafe fn take(env: Env, args: &[Term]) -> Return {
    let Joined(acceptor, server) = get_resource(env, args[0], types().acceptor)?;
    loop {
        let Some(Handed { thread, key, request, .. }) = acceptor.handed.lock().unwrap().pop_front() else {
            return Ok(atoms().none);
        };
        if server.threads[thread].is_good(key) {
            let reference = make_resource(env, types().request, Reference::new(server.clone(), thread, key));
            return Ok(term(env, reference, &request));
        }
        server.let_go();
    }
}

/// credit(Acceptor, N) -> Overdue. N further requests may be sent to it; so many that it was told of are still not taken.
pub unsafe fn credit(env: Env, args: &[Term]) -> Return {
    let joined = get_resource::<Joined>(env, args[0], types().acceptor)?;
    let n = get_u64(env, args[1])?.min(1 << 20) as i64;
    joined.0.credit.fetch_add(n, SeqCst);
    joined.1.wake_starved();
    Ok(integer(env, joined.0.overdue() as u64))
}

/// set_static(Server, [{Path, Status, Headers, Body}]) -> ok. Takes the place of all there were.
pub unsafe fn set_static(env: Env, args: &[Term]) -> Return {
    let server = server(env, args[0])?;
    let mut statics = Statics::new();
    each(env, args[1], |route| {
        let route = get_tuple(env, route, 4)?;
        let body = get_bytes(env, route[3])?;
        let head = head(env, route[1], route[2], true)?;
        let has_body = head.status() != StatusCode::RESET_CONTENT;
        let answer = head.map(|()| if has_body { Bytes::copy_from_slice(body) } else { Bytes::new() });
        statics.insert(get_bytes(env, route[0])?.to_vec(), answer);
        Ok(())
    })?;
    server.set_statics(statics);
    Ok(atoms().ok)
}

/// info(Server) -> [{Name, Count}]
pub unsafe fn info(env: Env, args: &[Term]) -> Return {
    let (a, server) = (atoms(), server(env, args[0])?);
    let sum = |f: fn(&Counters) -> u64| server.threads.iter().map(|thread| f(&thread.counters)).sum::<u64>();
    // Ends before beginnings: a request that ends between the two looks is open, never less than none.
    let [answered, refused, failed, gone] = [
        sum(|c| c.answered.load(Acquire)),
        sum(|c| c.refused.load(Acquire)),
        sum(|c| c.failed.load(Acquire)),
        sum(|c| c.gone.load(Acquire)),
    ];
    let requests = sum(|c| c.requests.load(Acquire));
    let pairs = [
        (a.requests, requests),
        (a.answered, answered),
        (a.refused, refused),
        (a.failed, failed),
        (a.gone, gone),
        (a.open_requests, requests.saturating_sub(answered + refused + failed + gone)),
        (a.in_flight, server.held.load(Acquire) as u64),
        (a.waiting, sum(|c| c.waiting.load(Relaxed))),
        (a.connections, sum(|c| c.connections.load(Relaxed))),
        (a.connections_total, sum(|c| c.connections_total.load(Relaxed))),
        (a.accept_errors, sum(|c| c.accept_errors.load(Relaxed))),
        (a.batches, sum(|c| c.batches.load(Relaxed))),
        (a.wakes, sum(|c| c.wakes.load(Relaxed))),
        (a.acceptors, server.acceptors().len() as u64),
        (a.body_memory, server.body_memory.load(Relaxed) as u64),
        (a.io_threads, server.threads.len() as u64),
    ];
    Ok(list(env, &pairs.map(|(name, n)| tuple(env, &[name, integer(env, n)]))))
}
