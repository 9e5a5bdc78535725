//! The filter alone, cut at every place.
#[path = "../src/filter.rs"]
#[allow(dead_code)]
mod filter;
use filter::Filter;

/// What hyper gets of this, read in pieces of each size: all cuts agree.
fn kept(input: &[u8]) -> Vec<u8> {
    let whole = run(input, input.len());
    for size in 1..input.len() {
        assert_eq!(run(input, size), whole, "in pieces of {size} bytes");
    }
    whole
}

fn run(input: &[u8], size: usize) -> Vec<u8> {
    let mut filter = Filter::new();
    let mut out = Vec::new();
    for piece in input.chunks(size) {
        let mut piece = piece.to_vec();
        let n = filter.filter(&mut piece);
        out.extend_from_slice(&piece[..n]);
    }
    out
}

fn passes(input: &[u8]) {
    assert_eq!(kept(input), input);
}

/// Ends with the NUL, at this place.
fn refused(input: &[u8], at: usize) {
    refused_by(0, input, at)
}

fn refused_by(byte: u8, input: &[u8], at: usize) {
    let mut expected = input[..at].to_vec();
    expected.push(byte);
    assert_eq!(kept(input), expected);
}

#[test]
fn requests_with_and_without_bodies_pass() {
    passes(b"GET / HTTP/1.1\r\nhost: a\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n");
    passes(b"POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\na\nb\n GET / HTTP/1.1\r\n\r\n");
    passes(b"POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n3;a=b\r\n\n \n\r\n0\r\nx: y\r\n\r\nGET / HTTP/1.1\r\n\r\n");
    passes(b"\r\nGET / HTTP/1.1\r\n\r\n");
    passes(b"GET / HTTP/1.1\r\nx: a very long value that is longer than what the filter remembers of a line, and ends\r\n\r\n");
}

#[test]
fn bodies_are_not_looked_at() {
    passes(b"POST / HTTP/1.1\r\ncontent-length: 47\r\n\r\ncontent-length: 1\ncontent-length: 2\n fold\n\n\n\n\n\nGET / HTTP/1.1\r\n\r\n");
}

#[test]
fn http2_does_not_begin_within_http1() {
    refused(b"GET / HTTP/1.1\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\n", 38);
}

#[test]
fn bare_lf_and_folded_lines_are_refused() {
    refused(b"GET / HTTP/1.1\nhost: a\r\n\r\n", 14);
    refused(b"GET / HTTP/1.1\r\nhost: a\n\r\n", 23);
    refused(b"GET / HTTP/1.1\r\nhost: a\r\n\n", 25);
    refused(b"GET / HTTP/1.1\r\nhost: a\r\n b\r\n\r\n", 25);
    refused(b"GET / HTTP/1.1\r\nhost: a\r\n\tb\r\n\r\n", 25);
}

#[test]
fn doubts_about_the_length_are_refused() {
    refused(b"POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\na", 54);
    refused(b"POST / HTTP/1.1\r\ncontent-length: 1, 1\r\n\r\na", 38);
    refused(b"POST / HTTP/1.1\r\ncontent-length: +1\r\n\r\na", 36);
    refused(b"POST / HTTP/1.1\r\nContent-Length:\r\n\r\na", 33);
    refused(b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\ncontent-length: 1\r\n\r\na", 63);
    refused(b"POST / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\na", 63);
    refused(b"POST / HTTP/1.1\r\ntransfer-encoding: gzip, chunked\r\n\r\na", 50);
    refused(b"POST / HTTP/1.1\r\ntransfer-encoding: \x0bchunked\r\n\r\na", 45);
    refused(b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0x1\r\na\r\n", 51);
    refused(b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n10000000000000000\r\na", 65);
}

#[test]
fn a_bare_lf_behind_the_size_of_a_chunk_is_what_hyper_refuses() {
    refused_by(b'\n', b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\na\r\n", 48);
    refused_by(b'\n', b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1;a=b\na\r\n", 52);
    refused(b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n\na\r\n", 47);
}
