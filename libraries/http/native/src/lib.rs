//! tame_http's native half: NIFs by which Erlang starts servers and answers requests. HTTP itself is hyper's, on I/O
//! threads of our own (`io`); no BEAM thread waits for a socket here.
mod body;
mod connection;
mod filter;
mod io;
mod nif;
mod places;
mod request;
mod server;
mod strict;
mod tls;
mod upload;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue, CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING, UPGRADE};
use hyper::{Response, StatusCode};

use nif::*;
use request::Reference;
use server::*;

/// What Erlang has of a server. Its owner's end, or the last reference's, ends the server.
struct Handle(Arc<Server>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.push_all(|| Command::Close { grace_ms: 0 });
    }
}

/// What an acceptor has of itself.
struct Joined(Arc<Acceptor>, Arc<Server>);

unsafe extern "C" fn owner_down(_: Env, object: *mut libc::c_void, _: *const ErlNifPid, _: *const ErlNifMonitor) {
    guard((), || (*object.cast::<Handle>()).0.push_all(|| Command::Close { grace_ms: 0 }))
}

unsafe extern "C" fn acceptor_down(_: Env, object: *mut libc::c_void, _: *const ErlNifPid, _: *const ErlNifMonitor) {
    guard((), || {
        let joined = &*object.cast::<Joined>();
        joined.0.dead.store(true, Release);
        joined.1.forget_dead();
    })
}

// ---- a server ----

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
    let panic_path = match get_key(env, map, a.panic_path)? {
        none if none == a.undefined => None,
        path => Some(get_bytes(env, path)?.to_vec()),
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
        panic_path,
    })
}

/// One socket for each thread: the system spreads connections over them. A single one shares its port with nobody.
fn listen(address: &SocketAddr, share: bool) -> std::io::Result<TcpListener> {
    use socket2::{Domain, Socket, Type};
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
unsafe fn open(env: Env, args: &[Term]) -> Return {
    let a = atoms();
    let config = config(env, args[0])?;
    let fail = |error: std::io::Error| {
        let errno = error.raw_os_error().unwrap_or(0) as u64;
        Fault::Error(tuple(env, &[integer(env, errno), binary(env, error.to_string().as_bytes())]))
    };
    let threads = config.io_threads;
    let mut address = config.address;
    let mut listeners = Vec::new();
    for _ in 0..threads {
        let listener = listen(&address, threads > 1).map_err(fail)?;
        address = listener.local_addr().map_err(fail)?;
        listeners.push(listener);
    }
    let owner = self_pid(env);
    let server = Arc::new(Server::new(config, owner));
    let (term, handle) = make_resource(env, types().server, Handle(server.clone()));
    if enif_monitor_process(env, handle.cast(), &owner, std::ptr::null_mut()) != 0 {
        return Err(Fault::Badarg);
    }
    for (index, listener) in listeners.into_iter().enumerate() {
        let server = server.clone();
        let thread = std::thread::Builder::new().name(format!("tame_http_{index}"));
        // Those that run end with the handle, which is dropped here.
        thread
            .spawn(move || {
                build().io_threads.fetch_add(1, SeqCst);
                io::run(server, index, listener);
                build().io_threads.fetch_sub(1, SeqCst);
            })
            .map_err(fail)?;
    }
    Ok(tuple(env, &[a.ok, term, integer(env, address.port() as u64)]))
}

unsafe fn server<'a>(env: Env, term: Term) -> Result<&'a Arc<Server>, Fault> {
    get_resource::<Handle>(env, term, types().server).map(|handle| &handle.0)
}

/// accept(Server) -> ok
unsafe fn accept(env: Env, args: &[Term]) -> Return {
    server(env, args[0])?.push_all(|| Command::Accept);
    Ok(atoms().ok)
}

/// close(Server, GraceMs) -> ok. When all threads have ended the owner gets {tame_http, stopped}.
unsafe fn close(env: Env, args: &[Term]) -> Return {
    let grace_ms = get_u64(env, args[1])?;
    server(env, args[0])?.push_all(|| Command::Close { grace_ms });
    Ok(atoms().ok)
}

/// join(Server) -> Acceptor. The caller gets {tame_http, requests, N, Requests}.
unsafe fn join(env: Env, args: &[Term]) -> Return {
    let server = server(env, args[0])?;
    let pid = self_pid(env);
    let credit = AtomicI64::new(server.config.credit);
    let acceptor = Arc::new(Acceptor { pid, credit, dead: AtomicBool::new(false) });
    let (term, object) = make_resource(env, types().acceptor, Joined(acceptor.clone(), server.clone()));
    if enif_monitor_process(env, object.cast(), &pid, std::ptr::null_mut()) != 0 {
        return Err(Fault::Badarg);
    }
    server.join(acceptor);
    Ok(term)
}

/// credit(Acceptor, N) -> ok. N further requests may be sent to it.
unsafe fn credit(env: Env, args: &[Term]) -> Return {
    let joined = get_resource::<Joined>(env, args[0], types().acceptor)?;
    let n = get_u64(env, args[1])?.min(1 << 20) as i64;
    joined.0.credit.fetch_add(n, SeqCst);
    joined.1.wake_starved();
    Ok(atoms().ok)
}

/// set_static(Server, [{Path, Status, Headers, Body}]) -> ok. Takes the place of all there were.
unsafe fn set_static(env: Env, args: &[Term]) -> Return {
    let server = server(env, args[0])?;
    let mut statics = Statics::new();
    each(env, args[1], |route| {
        let route = get_tuple(env, route, 4)?;
        let body = Bytes::copy_from_slice(get_bytes(env, route[3])?);
        let answer = head(env, route[1], route[2], true)?.map(|()| body);
        statics.insert(get_bytes(env, route[0])?.to_vec(), answer);
        Ok(())
    })?;
    server.set_statics(statics);
    Ok(atoms().ok)
}

/// info(Server) -> [{Name, Count}]
unsafe fn info(env: Env, args: &[Term]) -> Return {
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

// ---- a request ----

/// From here on a body is not copied but referred to.
const KEPT: usize = 16 * 1024;

unsafe fn reference<'a>(env: Env, term: Term) -> Result<&'a Reference, Fault> {
    get_resource(env, term, types().request)
}

unsafe fn bytes(env: Env, term: Term) -> Result<Bytes, Fault> {
    let seen = get_bytes(env, term)?;
    if seen.len() >= KEPT {
        if let Some(kept) = Kept::new(term) {
            return Ok(Bytes::from_owner(kept));
        }
    }
    Ok(Bytes::copy_from_slice(seen))
}

unsafe fn header_map(env: Env, list: Term, mut allowed: impl FnMut(&HeaderName) -> bool) -> Result<HeaderMap, Fault> {
    let mut map = HeaderMap::new();
    each(env, list, |pair| {
        let pair = get_tuple(env, pair, 2)?;
        let name = HeaderName::from_bytes(get_bytes(env, pair[0])?).map_err(|_| Fault::Badarg)?;
        let value = HeaderValue::from_bytes(get_bytes(env, pair[1])?).map_err(|_| Fault::Badarg)?;
        if allowed(&name) {
            map.try_append(name, value).map_err(|_| Fault::Badarg)?;
        }
        Ok(())
    })?;
    Ok(map)
}

/// Status and headers. The length of a body that is known here is said by hyper; what belongs to the connection, too.
unsafe fn head(env: Env, status: Term, headers: Term, whole: bool) -> Result<Response<()>, Fault> {
    let code = u16::try_from(get_u64(env, status)?).map_err(|_| Fault::Badarg)?;
    if !(200..=599).contains(&code) {
        return Err(Fault::Badarg);
    }
    let mut refused = false;
    let map = header_map(env, headers, |name| {
        refused |= *name == TRANSFER_ENCODING || *name == UPGRADE || *name == CONNECTION;
        !(whole && *name == CONTENT_LENGTH)
    })?;
    if refused {
        return Err(Fault::Badarg);
    }
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(code).map_err(|_| Fault::Badarg)?;
    *response.headers_mut() = map;
    Ok(response)
}

fn late(done: bool) -> Return {
    if done { Ok(atoms().ok) } else { Err(Fault::Error(atoms().closed)) }
}

/// reply(Ref, Status, Headers, Body) -> ok | {error, closed}
unsafe fn reply(env: Env, args: &[Term]) -> Return {
    let reference = reference(env, args[0])?;
    let response = head(env, args[1], args[2], true)?.map(|()| Bytes::new());
    let body = bytes(env, args[3])?;
    let good = reference.is_open();
    if !reference.finish() {
        return late(false);
    }
    reference.push(Command::Reply(reference.key, response.map(|_| body)));
    late(good)
}

/// start(Ref, Status, Headers) -> ok | {error, closed}. Its body follows by chunk/2 and finish/2.
unsafe fn start(env: Env, args: &[Term]) -> Return {
    let reference = reference(env, args[0])?;
    let head = head(env, args[1], args[2], false)?;
    if !reference.is_open() || !reference.start() {
        return late(false);
    }
    let (bytes, waiting, closed) = (AtomicUsize::new(0), Mutex::new(None), AtomicBool::new(false));
    let flow = Arc::new(Flow { bytes, waiting, closed });
    let _ = reference.flow.set(flow.clone()); // the only one: start() is true once
    reference.push(Command::Start(reference.key, head, flow));
    late(true)
}

/// chunk(Ref, Data) -> ok | wait | {error, closed}. After wait the caller gets {tame_http, room, Id}.
unsafe fn chunk(env: Env, args: &[Term]) -> Return {
    let reference = reference(env, args[0])?;
    let flow = reference.flow.get().ok_or(Fault::Badarg)?;
    let data = bytes(env, args[1])?;
    if flow.closed.load(Acquire) || !reference.is_open() {
        return late(false);
    }
    if data.is_empty() {
        return late(true);
    }
    let before = flow.bytes.fetch_add(data.len(), AcqRel);
    let full = before + data.len() > body::WINDOW;
    if full {
        // Before the chunk is there: the thread that takes it finds whom to tell.
        *flow.waiting.lock().unwrap() = Some(self_pid(env));
    }
    reference.push(Command::Chunk(reference.key, data));
    Ok(if full { atoms().wait } else { atoms().ok })
}

/// finish(Ref, Trailers) -> ok | {error, closed}
unsafe fn finish(env: Env, args: &[Term]) -> Return {
    let reference = reference(env, args[0])?;
    let trailers = header_map(env, args[1], |name| *name != TRANSFER_ENCODING && *name != CONTENT_LENGTH)?;
    if !reference.end() {
        return late(false);
    }
    let trailers = (!trailers.is_empty()).then_some(trailers);
    reference.push(Command::End(reference.key, trailers));
    late(true)
}

/// read(Ref, Bytes) -> Id. The caller gets {tame_http, body, Id, {more, Data} | {done, Data, Trailers} | {error, Reason}}.
unsafe fn read(env: Env, args: &[Term]) -> Return {
    let reference = reference(env, args[0])?;
    let most = get_u64(env, args[1])?.clamp(1, 1 << 30) as usize;
    reference.push(Command::Read(reference.key, most, self_pid(env)));
    Ok(integer(env, reference.id()))
}

/// watch(Ref) -> Id. The caller gets {tame_http, gone, Id} if the client leaves before it is answered.
unsafe fn watch(env: Env, args: &[Term]) -> Return {
    let reference = reference(env, args[0])?;
    reference.push(Command::Watch(reference.key, self_pid(env)));
    Ok(integer(env, reference.id()))
}

/// id(Ref) -> Id
unsafe fn request_id(env: Env, args: &[Term]) -> Return {
    Ok(integer(env, reference(env, args[0])?.id()))
}

/// is_alive(Ref) -> boolean()
unsafe fn is_alive(env: Env, args: &[Term]) -> Return {
    Ok(boolean(reference(env, args[0])?.is_open()))
}

// ---- the library ----

/// What a build tells the next one of itself, by the VM: the only thing that two builds share, so it never changes.
#[repr(C)]
struct Build {
    /// Which mapping this is.
    identity: usize,
    io_threads: AtomicUsize,
}

static BUILD: OnceLock<&'static Build> = OnceLock::new();

fn build() -> &'static Build {
    // For ever: the VM keeps the address.
    let new = || Build { identity: std::ptr::addr_of!(BUILD) as usize, io_threads: AtomicUsize::new(0) };
    BUILD.get_or_init(|| Box::leak(Box::new(new())))
}

unsafe extern "C" fn load(env: Env, data: *mut *mut libc::c_void, _: Term) -> i32 {
    let down = [owner_down as ErlNifResourceDown, acceptor_down];
    let dtors = [drop_resource::<Handle>, drop_resource::<Joined>, drop_resource::<Reference>];
    guard(1, || {
        *data = build() as *const Build as *mut libc::c_void;
        // Last, because the VM takes back the types of a load that fails, and we open them once.
        if nif::load(env, down, dtors) { 0 } else { 1 }
    })
}

/// The same file again is the same mapping: types and servers go on. Another build is refused while servers of the old one
/// run: it could not answer their requests.
unsafe extern "C" fn upgrade(
    env: Env,
    data: *mut *mut libc::c_void,
    old: *mut *mut libc::c_void,
    info: Term,
) -> i32 {
    let before = *old as *const Build;
    let other = !before.is_null() && (*before).identity != build().identity;
    if other && (*before).io_threads.load(SeqCst) > 0 {
        return 2;
    }
    load(env, data, info)
}

macro_rules! table {
    ($($name:literal / $arity:literal = $function:path, $flags:expr;)*) => {
        [$({
            unsafe extern "C" fn raw(env: Env, argc: i32, argv: *const Term) -> Term {
                call(env, argc, argv, $function)
            }
            ErlNifFunc { name: $name.as_ptr(), arity: $arity, function: raw, flags: $flags }
        }),*]
    };
}

const DIRTY_IO: u32 = ERL_NIF_DIRTY_JOB_IO_BOUND;

#[no_mangle]
pub extern "C" fn nif_init() -> *const ErlNifEntry {
    let functions = table! {
        c"open"/1 = open, DIRTY_IO;
        c"accept"/1 = accept, 0;
        c"close"/2 = close, 0;
        c"join"/1 = join, 0;
        c"credit"/2 = credit, 0;
        c"set_static"/2 = set_static, DIRTY_IO;
        c"info"/1 = info, 0;
        c"reply"/4 = reply, 0;
        c"start"/3 = start, 0;
        c"chunk"/2 = chunk, 0;
        c"finish"/2 = finish, 0;
        c"read"/2 = read, 0;
        c"watch"/1 = watch, 0;
        c"id"/1 = request_id, 0;
        c"is_alive"/1 = is_alive, 0;
    };
    // The VM keeps both for as long as the library is loaded, and it never is unloaded.
    let functions = Box::leak(Box::new(functions));
    let mut entry = ErlNifEntry::new(c"tame_http_nif", functions, load);
    entry.upgrade = Some(upgrade);
    entry.options = ERL_NIF_ENTRY_OPTIONS;
    Box::leak(Box::new(entry))
}
