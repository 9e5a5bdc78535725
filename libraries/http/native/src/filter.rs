//! What a proxy before us may read in another way than hyper does is refused: bare LF, a header on two lines, more than
//! one content-length, content-length beside transfer-encoding, transfer-encoding other than chunked.
//!
//! hyper accepts some of these, or hides them. So this looks at the bytes of an HTTP/1 connection before hyper does, and
//! where one is wrong puts there what hyper answers 400, a NUL, and nothing behind it. It knows no more of HTTP
//! than where heads end: a body's framing.
/// How much of a line is looked at: the two names and their values are shorter, and hyper bounds the head.
const SEEN: usize = 64;

#[derive(Clone, Copy, PartialEq, Debug)]
enum At {
    Head,
    /// This many bytes of a body, or of a chunk with its CRLF.
    Body(u64),
    Chunk(u64),
    ChunkSize,
    Trailers,
    Refused,
}

pub struct Filter {
    at: At,
    /// The beginning of the line that is being read, and its length.
    seen: [u8; SEEN],
    line: usize,
    /// Of a line that is not empty.
    last: u8,
    first_line: bool,
    length: Option<u64>,
    chunked: bool,
    /// That have ended.
    heads: u64,
}

impl Filter {
    pub fn new() -> Self {
        Filter { at: At::Head, seen: [0; SEEN], line: 0, last: 0, first_line: true, length: None, chunked: false, heads: 0 }
    }

    /// Which head has begun, and not ended.
    pub fn head(&self) -> Option<u64> {
        (self.at == At::Head && (!self.first_line || self.line > 0)).then_some(self.heads)
    }

    /// Nothing comes any more.
    pub fn is_refused(&self) -> bool {
        self.at == At::Refused
    }

    /// How many bytes hyper may have: all, or up to the NUL that is there now.
    pub fn filter(&mut self, bytes: &mut [u8]) -> usize {
        let mut i = 0;
        while i < bytes.len() {
            match self.at {
                At::Refused => return 0,
                At::Body(0) => self.begin_head(),
                At::Chunk(0) => self.at = At::ChunkSize,
                At::Body(left) | At::Chunk(left) => {
                    let skipped = left.min((bytes.len() - i) as u64);
                    i += skipped as usize;
                    let left = left - skipped;
                    self.at = if matches!(self.at, At::Body(_)) { At::Body(left) } else { At::Chunk(left) };
                }
                At::Head | At::ChunkSize | At::Trailers => {
                    let rest = &bytes[i..];
                    let found = find(b'\n', rest);
                    let part = &rest[..found.unwrap_or(rest.len())];
                    // Before the line's end: a line that continues one has no name.
                    let folds = self.line == 0 && matches!(part.first(), Some(b' ' | b'\t'));
                    if folds && self.at != At::ChunkSize {
                        return self.refuse(bytes, i);
                    }
                    self.remember(part);
                    i += part.len();
                    if found.is_some() {
                        if !self.end_of_line() {
                            return self.refuse(bytes, i);
                        }
                        i += 1;
                    }
                }
            }
        }
        i
    }

    /// In a chunk's extension hyper passes over all but a bare LF.
    fn refuse(&mut self, bytes: &mut [u8], at: usize) -> usize {
        let stays = self.at == At::ChunkSize && self.last != b'\r';
        self.at = At::Refused;
        if !stays {
            bytes[at] = 0;
        }
        at + 1
    }

    fn begin_head(&mut self) {
        (self.at, self.length, self.chunked, self.first_line) = (At::Head, None, false, true);
    }

    fn remember(&mut self, part: &[u8]) {
        if self.line < SEEN {
            let n = part.len().min(SEEN - self.line);
            self.seen[self.line..self.line + n].copy_from_slice(&part[..n]);
        }
        self.line += part.len();
        self.last = part.last().copied().unwrap_or(self.last);
    }

    /// False if the line is wrong, or with it the head.
    fn end_of_line(&mut self) -> bool {
        if self.line == 0 || self.last != b'\r' {
            return false;
        }
        let long = self.line > SEEN;
        let length = (self.line - 1).min(SEEN);
        let seen = self.seen;
        let line = &seen[..length];
        self.line = 0;
        match self.at {
            At::ChunkSize => self.chunk_size(line, long),
            At::Trailers => {
                if line.is_empty() {
                    self.begin_head()
                }
                true
            }
            _ if line.is_empty() => self.end_of_head(),
            _ if std::mem::take(&mut self.first_line) => true,
            _ => self.header(line, long),
        }
    }

    fn header(&mut self, line: &[u8], long: bool) -> bool {
        let Some(colon) = find(b':', line) else {
            return true; // hyper refuses it
        };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            let number = std::str::from_utf8(value).ok();
            let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
            let first = self.length.is_none() && !self.chunked && !long && digits;
            self.length = number.and_then(|number| number.parse().ok());
            return first && self.length.is_some();
        }
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            let first = self.length.is_none() && !self.chunked && !long;
            self.chunked = true;
            return first && value.eq_ignore_ascii_case(b"chunked");
        }
        true
    }

    fn end_of_head(&mut self) -> bool {
        if self.first_line {
            // hyper, too, passes over empty lines before a request.
            return true;
        }
        self.heads += 1;
        match (self.chunked, self.length) {
            (true, _) => self.at = At::ChunkSize,
            (false, Some(n)) => self.at = At::Body(n),
            (false, None) => self.begin_head(),
        }
        true
    }

    fn chunk_size(&mut self, line: &[u8], long: bool) -> bool {
        let end = find(b';', line).unwrap_or(line.len());
        let digits = line[..end].trim_ascii_end();
        let fits = !digits.is_empty() && digits.len() <= 15 && digits.iter().all(u8::is_ascii_hexdigit);
        if !fits || (long && end == line.len()) {
            return false;
        }
        let text = std::str::from_utf8(digits).expect("hex digits");
        let size = u64::from_str_radix(text, 16).expect("hex digits that fit");
        // With the CRLF behind it, at which hyper looks.
        self.at = if size == 0 { At::Trailers } else { At::Chunk(size + 2) };
        true
    }
}

fn find(byte: u8, bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|b| *b == byte)
}
