//! Traces in Perfetto's binary format, read back.

use std::collections::HashMap;

type Failure = Box<dyn std::error::Error>;

/// A field of a protocol buffer: a number, or bytes.
#[derive(Clone, Debug)]
pub enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

/// The fields of a message by their numbers.
pub fn fields(mut bytes: &[u8]) -> Result<Vec<(u64, Field)>, Failure> {
    fn varint(bytes: &mut &[u8]) -> Result<u64, Failure> {
        let (mut value, mut shift) = (0, 0);
        loop {
            let (&first, rest) = bytes.split_first().ok_or("a number ends early")?;
            *bytes = rest;
            value |= u64::from(first & 0x7f) << shift;
            shift += 7;
            if first < 0x80 {
                return Ok(value);
            }
        }
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let value = match key & 7 {
            0 => Field::Number(varint(&mut bytes)?),
            1 => {
                let (number, rest) = bytes.split_first_chunk::<8>().ok_or("8 bytes end early")?;
                bytes = rest;
                Field::Number(u64::from_le_bytes(*number))
            }
            2 => {
                let length = varint(&mut bytes)? as usize;
                let (text, rest) = bytes.split_at_checked(length).ok_or("bytes end early")?;
                bytes = rest;
                Field::Bytes(text.to_vec())
            }
            other => return Err(format!("wire type {other}").into()),
        };
        found.push((key >> 3, value));
    }
    Ok(found)
}

/// The first number of a field.
pub fn number(message: &[(u64, Field)], field: u64) -> Option<u64> {
    message.iter().find_map(|(found, value)| match value {
        Field::Number(value) if *found == field => Some(*value),
        _ => None,
    })
}

/// The messages of a field.
pub fn parts(message: &[(u64, Field)], field: u64) -> Result<Vec<Vec<(u64, Field)>>, Failure> {
    let parts = message.iter().filter(|(found, _)| *found == field);
    let bytes = parts.filter_map(|(_, value)| match value {
        Field::Bytes(bytes) => Some(bytes),
        Field::Number(_) => None,
    });
    bytes.map(|bytes| fields(bytes)).collect()
}

/// The first text of a field.
pub fn text(message: &[(u64, Field)], field: u64) -> Option<String> {
    message.iter().find_map(|(found, value)| match value {
        Field::Bytes(bytes) if *found == field => String::from_utf8(bytes.clone()).ok(),
        _ => None,
    })
}

/// The slices of a trace that end, by name, with begin and end; interned names are resolved.
pub fn slices(trace: &[u8]) -> Result<Vec<(String, u64, u64)>, Failure> {
    let mut names: HashMap<u64, String> = HashMap::new();
    let mut open: HashMap<u64, Vec<(String, u64)>> = HashMap::new();
    let mut found = Vec::new();
    for packet in parts(&fields(trace)?, 1)? {
        assert_eq!(number(&packet, 10), Some(1), "a packet without its sequence: {packet:?}");
        for interned in parts(&packet, 12)? {
            for name in parts(&interned, 2)? {
                names.insert(number(&name, 1).ok_or("no number")?, text(&name, 2).ok_or("no name")?);
            }
        }
        for event in parts(&packet, 11)? {
            let (at, track) = (number(&packet, 8).ok_or("no time")?, number(&event, 11).ok_or("no track")?);
            match number(&event, 9) {
                Some(1) => {
                    let name = names.get(&number(&event, 10).ok_or("no name")?).ok_or("an unknown name")?;
                    open.entry(track).or_default().push((name.clone(), at));
                }
                Some(2) => {
                    let (name, start) = open.get_mut(&track).and_then(Vec::pop).ok_or("an end alone")?;
                    found.push((name, start, at));
                }
                // Memory of the host, or of a device.
                Some(4) => assert_eq!(track & 15, 2),
                other => return Err(format!("type {other:?}").into()),
            }
        }
    }
    assert!(open.values().all(Vec::is_empty), "{open:?}");
    Ok(found)
}
