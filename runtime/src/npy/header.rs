//! The header of a `.npy` file: magic, version, and a Python dict in text.
//!
//! In: the first bytes of a file, from anywhere. Out: dtype, byte order and shape, or the mistake. The grammar is
//! that of NumPy's writer, no more; a general parser of Python literals takes exponential time, or the whole stack,
//! on brackets that someone nested on purpose.
//!
//! Source: NumPy Enhancement Proposal 1, and `numpy.lib.format`.

use std::io::Read;

use opsmith_core::DType;

use super::Problem;
use crate::layout::{Dims, checked_numel};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Longer headers than version 1.0 can have do not occur: three keys and at most [`MAX_DIMS`] sizes.
const MAX_LENGTH: usize = 1 << 16;
/// NumPy's own limit.
const MAX_DIMS: usize = 64;
/// The header's end is aligned to this.
const ALIGNMENT: usize = 64;

/// Element type, order and sizes of an array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Header {
    pub dtype: DType,
    pub big_endian: bool,
    pub fortran_order: bool,
    pub sizes: Dims,
}

/// Reads a header and stops at the first element.
pub(super) fn read(reader: &mut impl Read) -> Result<Header, Problem> {
    let mut start = [0; 8];
    reader.read_exact(&mut start).map_err(|error| truncated(error, "it ends before its header"))?;
    if &start[..6] != MAGIC {
        return Err(Problem::new("it does not begin with NumPy's magic bytes")
            .help("is it a .npz archive, or another format?"));
    }
    let length_bytes = match (start[6], start[7]) {
        (1, 0) => 2,
        (2 | 3, 0) => 4,
        (major, minor) => {
            return Err(Problem::new(format!("its format version is {major}.{minor}"))
                .help("versions 1.0, 2.0 and 3.0 are known"));
        }
    };
    let mut length = [0; 4];
    reader
        .read_exact(&mut length[..length_bytes])
        .map_err(|error| truncated(error, "it ends before its header"))?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_LENGTH {
        return Err(Problem::new(format!(
            "its header has {length} bytes, more than the {MAX_LENGTH} that are accepted"
        )));
    }
    let mut text = vec![0; length];
    reader.read_exact(&mut text).map_err(|error| truncated(error, "it ends inside its header"))?;
    Parser { text: &text, position: 0 }.header()
}

/// The header of row-major, native elements.
pub(super) fn write(dtype: DType, sizes: &[i64]) -> Result<Vec<u8>, Problem> {
    let order = match (dtype.size(), cfg!(target_endian = "big")) {
        (1, _) => '|',
        (_, true) => '>',
        (_, false) => '<',
    };
    let code = type_code(dtype)?;
    let shape: String = sizes.iter().map(|size| format!("{size}, ")).collect();
    // One size keeps its comma: `(3,)` is a tuple, `(3)` is not.
    let shape = if sizes.len() == 1 { shape.trim_end() } else { shape.trim_end_matches(", ") };
    let dict = format!("{{'descr': '{order}{code}', 'fortran_order': False, 'shape': ({shape}), }}");
    // Version 1.0 holds 65,535 bytes; more than NumPy's 64 sizes would be needed to exceed that.
    let prefix = MAGIC.len() + 4;
    let total = (prefix + dict.len() + 1).next_multiple_of(ALIGNMENT);
    let length = u16::try_from(total - prefix)
        .ok()
        .filter(|_| sizes.len() <= MAX_DIMS)
        .ok_or_else(|| Problem::new(format!("NumPy's arrays have at most {MAX_DIMS} dimensions")))?;
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend(length.to_le_bytes());
    bytes.extend(dict.bytes());
    bytes.resize(total - 1, b' ');
    bytes.push(b'\n');
    Ok(bytes)
}

pub(super) fn truncated(error: std::io::Error, what: &str) -> Problem {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => Problem::new(what),
        _ => error.into(),
    }
}

/// NumPy's kind and size, without the byte order.
fn type_code(dtype: DType) -> Result<&'static str, Problem> {
    dtype.numpy_code().ok_or_else(|| {
        let wider = if dtype.is_half() { dtype.to_compute() } else { dtype.to_computing() };
        Problem::new(format!("NumPy has no {dtype}"))
            .help(format!("convert the tensor to {wider} first, which holds every {dtype} value"))
    })
}

/// The dtype and whether it is big-endian.
fn parse_type(descr: &str) -> Result<(DType, bool), Problem> {
    let (order, code) = match descr.chars().next() {
        Some(order @ ('<' | '>' | '|' | '=')) => (order, &descr[1..]),
        _ => ('=', descr),
    };
    let known = DType::ALL.into_iter().find(|dtype| type_code(*dtype).is_ok_and(|known| known == code));
    let Some(dtype) = known else {
        let help = match code.chars().next() {
            Some('O') => "Python objects are stored by pickle, which can run any code; convert them first",
            Some('V') if code == "V1" => {
                "if these are floats of 8 bits (ml_dtypes), convert them with `array.astype(numpy.float32)` first"
            }
            Some('V') if code == "V2" => {
                "if these are bfloat16 (ml_dtypes), convert them with `array.astype(numpy.float32)` first"
            }
            _ => "convert the array to a bool, integer, float or complex type first",
        };
        return Err(
            Problem::new(format!("its elements have the type `{descr}`, which no tensor has")).help(help)
        );
    };
    let big_endian = match order {
        '>' => true,
        '<' => false,
        _ => cfg!(target_endian = "big"),
    };
    Ok((dtype, big_endian))
}

/// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`, keys in any order.
struct Parser<'a> {
    text: &'a [u8],
    position: usize,
}

impl<'a> Parser<'a> {
    fn header(mut self) -> Result<Header, Problem> {
        let (mut descr, mut fortran_order, mut sizes) = (None, None, None);
        self.expect(b'{')?;
        while !self.accept(b'}') {
            let key = self.string()?;
            self.expect(b':')?;
            match key {
                "descr" if descr.is_none() => descr = Some(parse_type(self.type_string()?)?),
                "fortran_order" if fortran_order.is_none() => fortran_order = Some(self.boolean()?),
                "shape" if sizes.is_none() => sizes = Some(self.shape()?),
                _ => {
                    return Err(Problem::new(format!("its header has the key `{}`", key.escape_debug()))
                        .help("`descr`, `fortran_order` and `shape` are expected, once each"));
                }
            }
            if !self.accept(b',') {
                self.expect(b'}')?;
                break;
            }
        }
        self.skip_spaces();
        if self.position != self.text.len() {
            return Err(self.unexpected("the end of the header"));
        }
        let missing = |key: &str| Problem::new(format!("its header lacks the key `{key}`"));
        let (dtype, big_endian) = descr.ok_or_else(|| missing("descr"))?;
        let header = Header {
            dtype,
            big_endian,
            fortran_order: fortran_order.ok_or_else(|| missing("fortran_order"))?,
            sizes: sizes.ok_or_else(|| missing("shape"))?,
        };
        checked_numel(&header.sizes).map_err(|error| Problem::new(error.message()))?;
        Ok(header)
    }

    fn type_string(&mut self) -> Result<&'a str, Problem> {
        self.skip_spaces();
        if self.text.get(self.position) == Some(&b'[') {
            return Err(Problem::new("it is a structured array")
                .help("save each field as an array of its own: `numpy.save(path, array[field])`"));
        }
        self.string()
    }

    fn string(&mut self) -> Result<&'a str, Problem> {
        self.skip_spaces();
        let quote = match self.text.get(self.position) {
            Some(quote @ (b'\'' | b'"')) => *quote,
            _ => return Err(self.unexpected("a string")),
        };
        let rest = &self.text[self.position + 1..];
        let length = rest
            .iter()
            .position(|byte| *byte == quote || *byte == b'\\')
            .filter(|end| rest[*end] == quote)
            .ok_or_else(|| self.unexpected("a string"))?;
        let string = std::str::from_utf8(&rest[..length]).map_err(|_| self.unexpected("a string"))?;
        self.position += length + 2;
        Ok(string)
    }

    fn boolean(&mut self) -> Result<bool, Problem> {
        self.skip_spaces();
        let rest = &self.text[self.position..];
        let (value, length) = match rest {
            _ if rest.starts_with(b"True") => (true, 4),
            _ if rest.starts_with(b"False") => (false, 5),
            _ => return Err(self.unexpected("True or False")),
        };
        self.position += length;
        Ok(value)
    }

    fn shape(&mut self) -> Result<Dims, Problem> {
        self.expect(b'(')?;
        let mut sizes = Dims::new();
        while !self.accept(b')') {
            sizes.push(self.size()?);
            if sizes.len() > MAX_DIMS {
                return Err(Problem::new(format!("its shape has more than {MAX_DIMS} dimensions")));
            }
            if !self.accept(b',') {
                self.expect(b')')?;
                break;
            }
        }
        Ok(sizes)
    }

    fn size(&mut self) -> Result<i64, Problem> {
        self.skip_spaces();
        let rest = &self.text[self.position..];
        let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let size = std::str::from_utf8(&rest[..length]).ok().and_then(|digits| digits.parse().ok());
        let size = size.ok_or_else(|| self.unexpected("a size below 2^63"))?;
        self.position += length;
        // Python 2 wrote long integers so.
        self.accept(b'L');
        Ok(size)
    }

    fn accept(&mut self, byte: u8) -> bool {
        self.skip_spaces();
        let found = self.text.get(self.position) == Some(&byte);
        self.position += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), Problem> {
        if self.accept(byte) { Ok(()) } else { Err(self.unexpected(&format!("`{}`", byte as char))) }
    }

    fn skip_spaces(&mut self) {
        let rest = &self.text[self.position..];
        self.position += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    }

    fn unexpected(&self, expected: &str) -> Problem {
        let end = (self.position + 20).min(self.text.len());
        let found = String::from_utf8_lossy(&self.text[self.position..end]);
        Problem::new(format!(
            "its header has `{}` at byte {} where {expected} should be",
            found.escape_debug(),
            self.position
        ))
    }
}
