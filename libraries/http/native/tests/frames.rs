//! The cutter alone, fed in pieces of every size and read as far as a socket takes.
#[path = "../src/frames.rs"]
#[allow(dead_code)]
mod frames;
use frames::{lengthen, Cutter, HEAD, SETTING};

fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    out.extend_from_slice(&[kind, flags, 0, 0, 0, 7]);
    out.extend_from_slice(payload);
    out
}

fn payload(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i % 251) as u8).collect()
}

/// What goes out of `input` if it comes in pieces of `size` and no more than `most` of a payload goes at once.
fn cut(input: &[u8], size: usize, most: usize) -> Vec<u8> {
    let mut cutter = Cutter::default();
    let mut out = Vec::new();
    for mut piece in input.chunks(size) {
        while let Some(piece) = cutter.next(&mut piece, most) {
            out.extend_from_slice(piece.bytes());
        }
        assert!(piece.is_empty());
    }
    out
}

fn cuts(input: &[u8], expected: &[u8]) {
    for size in [1, 2, 8, 9, 10, 100, 16_384, 16_393, 50_000, input.len()] {
        for most in [1, 1000, usize::MAX] {
            assert!(cut(input, size, most) == expected, "in pieces of {size}, {most} at once");
        }
    }
}

#[test]
fn frames_that_every_client_takes_stay_as_they_are() {
    let mut all = frame(4, 0, &[]);
    all.extend(frame(1, 4, &payload(20)));
    all.extend(frame(0, 1, &payload(16_384)));
    all.extend(frame(0, 1, &[]));
    all.extend(frame(3, 0, &payload(4)));
    cuts(&all, &all);
}

#[test]
fn data_ends_the_stream_by_its_last_frame() {
    let whole = payload(40_000);
    let mut input = frame(0, 1, &whole);
    input.extend(frame(6, 1, &payload(8)));
    let mut expected = frame(0, 0, &whole[..16_384]);
    expected.extend(frame(0, 0, &whole[16_384..32_768]));
    expected.extend(frame(0, 1, &whole[32_768..]));
    expected.extend(frame(6, 1, &payload(8)));
    cuts(&input, &expected);
    // Exactly twice as long: nothing is left for a third.
    let mut expected = frame(0, 0, &whole[..16_384]);
    expected.extend(frame(0, 0, &whole[16_384..32_768]));
    cuts(&frame(0, 0, &whole[..32_768]), &expected);
}

#[test]
fn headers_go_on_in_continuations_and_the_last_ends_them() {
    let whole = payload(70_000);
    let mut input = frame(1, 1 | 4, &whole[..40_000]);
    input.extend(frame(0, 1, &payload(3)));
    let mut expected = frame(1, 1, &whole[..16_384]);
    expected.extend(frame(9, 0, &whole[16_384..32_768]));
    expected.extend(frame(9, 4, &whole[32_768..40_000]));
    expected.extend(frame(0, 1, &payload(3)));
    cuts(&input, &expected);
    // A continuation of h2's own.
    let mut input = frame(1, 0, &whole[..40_000]);
    input.extend(frame(9, 4, &whole[40_000..]));
    let mut expected = frame(1, 0, &whole[..16_384]);
    expected.extend(frame(9, 0, &whole[16_384..32_768]));
    expected.extend(frame(9, 0, &whole[32_768..40_000]));
    expected.extend(frame(9, 0, &whole[40_000..56_384]));
    expected.extend(frame(9, 4, &whole[56_384..]));
    cuts(&input, &expected);
}

#[test]
fn a_clients_settings_get_one_more_and_what_is_none_stays() {
    let head = |bytes: [u8; HEAD]| {
        let mut head = [0; HEAD + SETTING];
        head[..HEAD].copy_from_slice(&bytes);
        let length = lengthen(&mut head);
        head[..length].to_vec()
    };
    assert_eq!(head([0, 0, 0, 4, 0, 0, 0, 0, 0]), [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 5, 0, 16, 0, 0]);
    assert_eq!(head([0, 0, 18, 4, 0, 0, 0, 0, 0]), [0, 0, 24, 4, 0, 0, 0, 0, 0, 0, 5, 0, 16, 0, 0]);
    for wrong in [
        [0, 0, 0, 4, 1, 0, 0, 0, 0],
        [0, 0, 0, 6, 0, 0, 0, 0, 0],
        [0, 0, 0, 4, 0, 0, 0, 0, 1],
        [0, 0, 7, 4, 0, 0, 0, 0, 0],
        [0, 64, 0, 4, 0, 0, 0, 0, 0],
        [255, 255, 252, 4, 0, 0, 0, 0, 0],
    ] {
        assert_eq!(head(wrong), wrong);
    }
}
