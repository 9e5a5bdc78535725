//! HTTP/2's frames on their way out: h2 makes long ones, and they are cut to the length that every client takes.
//!
//! A frame costs h2 more than its bytes do. So h2 is told that the client takes longer ones than it does (`lengthen`), and what
//! it makes then is cut here (`Cutter`), where a frame costs nine bytes and payloads are not copied.
pub const HEAD: usize = 9;
/// A setting in a frame of settings.
pub const SETTING: usize = 6;
/// No client may take less.
const EACH: usize = 16 * 1024;
/// What h2 makes at most, for a client that takes all at once.
pub const LONG: usize = 1024 * 1024;
/// What it makes of a body for others: streams take turns by frames.
pub const SHORT: usize = 128 * 1024;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const CONTINUATION: u8 = 9;

const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// The head of a client's first frame, as h2 is to see it: with one setting more, the first, so that the client's own counts
/// where it has one. How much of `head` there is then; a frame that is no good stays as it is.
pub fn lengthen(head: &mut [u8; HEAD + SETTING]) -> usize {
    let length = length(head);
    let is_settings = head[3] == SETTINGS && head[4] & ACK == 0 && head[5..HEAD] == [0; 4];
    if !is_settings || length % SETTING != 0 || length + SETTING > EACH {
        return HEAD;
    }
    set_length(head, length + SETTING);
    head[HEAD..HEAD + 2].copy_from_slice(&[0, 5]); // MAX_FRAME_SIZE
    head[HEAD + 2..].copy_from_slice(&(LONG as u32).to_be_bytes());
    HEAD + SETTING
}

fn length(head: &[u8]) -> usize {
    u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize
}

fn set_length(head: &mut [u8], length: usize) {
    head[..3].copy_from_slice(&(length as u32).to_be_bytes()[1..]);
}

/// Where in h2's frames the output is. A copy looks ahead.
#[derive(Clone, Copy, Default)]
pub struct Cutter {
    /// The head of h2's frame, as far as it has come; of what is left of that frame, later.
    head: [u8; HEAD],
    come: usize,
    /// Of the payload of the frame that goes out.
    left: usize,
    /// Of h2's frame, behind that.
    rest: usize,
}

#[derive(Clone, Copy)]
pub enum Piece<'a> {
    Head([u8; HEAD]),
    Payload(&'a [u8]),
}

impl Piece<'_> {
    pub fn bytes(&self) -> &[u8] {
        match self {
            Piece::Head(head) => head,
            Piece::Payload(payload) => payload,
        }
    }
}

impl Cutter {
    /// The next piece that goes out, of a payload `most` bytes at most. What it is made of is taken from `input`; None when
    /// that has come to its end.
    pub fn next<'a>(&mut self, input: &mut &'a [u8], most: usize) -> Option<Piece<'a>> {
        if self.left > 0 {
            let (piece, behind) = input.split_at(self.left.min(most).min(input.len()));
            *input = behind;
            self.left -= piece.len();
            return (!piece.is_empty()).then_some(Piece::Payload(piece));
        }
        if self.rest == 0 {
            let (piece, behind) = input.split_at((HEAD - self.come).min(input.len()));
            *input = behind;
            self.head[self.come..self.come + piece.len()].copy_from_slice(piece);
            self.come += piece.len();
            if self.come < HEAD {
                return None;
            }
            self.come = 0;
            self.rest = length(&self.head);
        }
        Some(Piece::Head(self.begin()))
    }

    fn begin(&mut self) -> [u8; HEAD] {
        self.left = self.rest.min(EACH);
        self.rest -= self.left;
        let mut head = self.head;
        set_length(&mut head, self.left);
        if self.rest > 0 {
            // The end of the stream is said by the last frame of data, but by the first of headers.
            match head[3] {
                DATA => head[4] &= !END_STREAM,
                HEADERS | CONTINUATION => {
                    head[4] &= !END_HEADERS;
                    (self.head[3], self.head[4]) = (CONTINUATION, self.head[4] & END_HEADERS);
                }
                _ => (), // h2 makes no other that is long
            }
        }
        head
    }
}
