//! The NIFs about a request: it is answered, whole or in pieces, its body is read, its client watched.
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue, CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING, UPGRADE};
use hyper::{Response, StatusCode};

use crate::binaries::Kept;
use crate::body;
use crate::nif::*;
use crate::request::Reference;
use crate::server::*;

/// From here on a body is not copied but referred to.
const KEPT: usize = 16 * 1024;
/// A piece of a body is a message, of which a host of an isolated module takes 64 MiB.
const MOST: u64 = 16 << 20;

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

unsafe fn header_map(
    env: Env,
    list: Term,
    mut allowed: impl FnMut(&HeaderName, &HeaderValue) -> bool,
) -> Result<HeaderMap, Fault> {
    let mut map = HeaderMap::new();
    each(env, list, |pair| {
        let pair = get_tuple(env, pair, 2)?;
        let name = HeaderName::from_bytes(get_bytes(env, pair[0])?).map_err(|_| Fault::Badarg)?;
        let value = HeaderValue::from_bytes(trimmed(get_bytes(env, pair[1])?)).map_err(|_| Fault::Badarg)?;
        if allowed(&name, &value) {
            map.try_append(name, value).map_err(|_| Fault::Badarg)?;
        }
        Ok(())
    })?;
    Ok(map)
}

/// Spaces around a value are no part of it (RFC 9110, 5.5), and an error over HTTP/2 (RFC 9113, 8.2.1).
fn trimmed(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest
    }
    value
}

/// What is said of a connection by hyper, or by nobody, and what clients alone say: HTTP/2 has no such headers in answers.
const OF_CONNECTIONS: [&str; 4] = ["connection", "keep-alive", "proxy-connection", "te"];

fn of_connection(name: &HeaderName) -> bool {
    OF_CONNECTIONS.contains(&name.as_str())
}

/// Of what handlers say of a connection, this is for hyper, and ends it behind the answer; `http2` drops it.
fn is_close(name: &HeaderName, value: &HeaderValue) -> bool {
    *name == CONNECTION && value.as_bytes().eq_ignore_ascii_case(b"close")
}

fn of_framing(name: &HeaderName) -> bool {
    *name == TRANSFER_ENCODING || *name == UPGRADE
}

/// Status and headers. The length of a body that is known here is said for the handler; what belongs to the connection, too.
pub unsafe fn head(env: Env, status: Term, headers: Term, known: bool) -> Result<Response<()>, Fault> {
    let code = u16::try_from(get_u64(env, status)?).map_err(|_| Fault::Badarg)?;
    if !(200..=599).contains(&code) {
        return Err(Fault::Badarg);
    }
    let (mut refused, mut lengths) = (false, 0);
    let map = header_map(env, headers, |name, value| {
        refused |= of_framing(name);
        lengths += usize::from(*name == CONTENT_LENGTH);
        // A 204 has none, a 205 that of nothing.
        let is_said = (known || matches!(code, 204 | 205)) && *name == CONTENT_LENGTH;
        !is_said && (!of_connection(name) || is_close(name, value))
    })?;
    let length = map.get(CONTENT_LENGTH).map(|value| value.as_bytes());
    let is_length = |text: &[u8]| !text.is_empty() && text.len() < 19 && text.iter().all(u8::is_ascii_digit);
    if refused || length.is_some_and(|length| lengths > 1 || !is_length(length)) {
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
pub unsafe fn reply(env: Env, args: &[Term]) -> Return {
    let reference = reference(env, args[0])?;
    let given = bytes(env, args[3])?;
    // One of nothing may be that of an answer to HEAD, whose length its handler knows.
    let response = head(env, args[1], args[2], !given.is_empty())?.map(|()| Bytes::new());
    let body = if response.status() == StatusCode::RESET_CONTENT { Bytes::new() } else { given };
    let good = reference.is_open();
    if !reference.finish() {
        return late(false);
    }
    late(reference.push(Command::Reply(reference.key, response.map(|_| body))) && good)
}

/// start(Ref, Status, Headers) -> ok | {error, closed}. Its body follows by chunk/2 and finish/2.
pub unsafe fn start(env: Env, args: &[Term]) -> Return {
    let reference = reference(env, args[0])?;
    let head = head(env, args[1], args[2], false)?;
    if !reference.is_open() || !reference.start() {
        return late(false);
    }
    let (bytes, waiting, closed) = (AtomicUsize::new(0), Mutex::default(), AtomicBool::new(false));
    let flow = Arc::new(Flow { bytes, waiting, closed });
    let _ = reference.flow.set(flow.clone()); // the only one: start() is true once
    late(reference.push(Command::Start(reference.key, head, flow)))
}

/// chunk(Ref, Data) -> ok | wait | {error, closed}. After wait the caller gets {tame_http, room, Id}.
pub unsafe fn chunk(env: Env, args: &[Term]) -> Return {
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
        let me = self_pid(env);
        flow.waiting.lock().unwrap().push(me);
    }
    // Closed meanwhile, by a thread that found nobody to tell.
    let lost = flow.closed.load(SeqCst) || !reference.push(Command::Chunk(reference.key, data));
    if lost && !(full && was_told(flow, self_pid(env))) {
        return late(false);
    }
    Ok(if full { atoms().wait } else { atoms().ok })
}

/// Whether there is a message for who waited for room. If not, it waits no more.
fn was_told(flow: &Flow, pid: ErlNifPid) -> bool {
    let mut waiting = flow.waiting.lock().unwrap();
    let at = waiting.iter().position(|other| is_same(other, &pid));
    at.map(|at| waiting.swap_remove(at)).is_none()
}

/// finish(Ref, Trailers) -> ok | {error, closed}
pub unsafe fn finish(env: Env, args: &[Term]) -> Return {
    let reference = reference(env, args[0])?;
    let trailers = header_map(env, args[1], |name, _| {
        !(of_connection(name) || of_framing(name) || *name == CONTENT_LENGTH)
    })?;
    let good = reference.is_open();
    if !reference.end() {
        return late(false);
    }
    let trailers = (!trailers.is_empty()).then_some(trailers);
    late(reference.push(Command::End(reference.key, trailers)) && good)
}

/// read(Ref, Bytes) -> Id | {error, closed}.
/// The caller gets {tame_http, body, Id, {more, Data} | {done, Data, Trailers} | {error, Reason}}.
pub unsafe fn read(env: Env, args: &[Term]) -> Return {
    let reference = reference(env, args[0])?;
    let most = get_u64(env, args[1])?.clamp(1, MOST) as usize;
    asked(env, reference, Command::Read(reference.key, most, self_pid(env)))
}

/// unread(Ref) -> Id | {error, closed}. The caller gets {tame_http, unread, Id}, and nothing of the body behind it.
pub unsafe fn unread(env: Env, args: &[Term]) -> Return {
    let reference = reference(env, args[0])?;
    asked(env, reference, Command::Unread(reference.key, self_pid(env)))
}

/// Where the thread has ended, nothing comes.
fn asked(env: Env, reference: &Reference, command: Command) -> Return {
    if reference.push(command) { Ok(integer(env, reference.id())) } else { late(false) }
}

/// watch(Ref) -> Id | {error, closed}. The caller gets {tame_http, gone, Id} if the client leaves before it is answered.
pub unsafe fn watch(env: Env, args: &[Term]) -> Return {
    let reference = reference(env, args[0])?;
    asked(env, reference, Command::Watch(reference.key, self_pid(env)))
}

/// id(Ref) -> Id
pub unsafe fn request_id(env: Env, args: &[Term]) -> Return {
    Ok(integer(env, reference(env, args[0])?.id()))
}

/// is_alive(Ref) -> boolean()
pub unsafe fn is_alive(env: Env, args: &[Term]) -> Return {
    Ok(boolean(reference(env, args[0])?.is_open()))
}
