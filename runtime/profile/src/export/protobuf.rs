//! Messages of protocol buffers, as they are written.

use smallvec::SmallVec;

/// A message, field by field.
pub(super) struct Message(SmallVec<[u8; 96]>);

/// Wire types of fields.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const DELIMITED: u32 = 2;

impl Message {
    pub fn new() -> Message {
        Message(SmallVec::new())
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// A field of an integer type; of a signed one, its two's complement.
    #[must_use]
    pub fn uint(mut self, field: u32, value: u64) -> Message {
        self.key(field, VARINT);
        self.varint(value);
        self
    }

    /// A field of 64 bits of fixed length.
    #[must_use]
    pub fn fixed(mut self, field: u32, value: u64) -> Message {
        self.key(field, FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    #[must_use]
    pub fn text(self, field: u32, text: &str) -> Message {
        self.delimited(field, text.as_bytes())
    }

    #[must_use]
    pub fn message(self, field: u32, message: &Message) -> Message {
        self.delimited(field, &message.0)
    }

    fn delimited(mut self, field: u32, bytes: &[u8]) -> Message {
        self.key(field, DELIMITED);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn key(&mut self, field: u32, wire: u32) {
        self.varint(u64::from(field << 3 | wire));
    }

    /// Seven bits a byte, the lowest first; the highest bit says that more follow.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_as_the_format_says() {
        // The examples of the format's description: 150 as field 1, "testing" as field 2.
        assert_eq!(Message::new().uint(1, 150).bytes(), [0x08, 0x96, 0x01]);
        assert_eq!(Message::new().text(2, "testing").bytes(), b"\x12\x07testing");
        let inner = Message::new().uint(1, 150);
        assert_eq!(Message::new().message(3, &inner).bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        assert_eq!(Message::new().fixed(47, 1).bytes(), [0xf9, 0x02, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Message::new().uint(1, -1i64 as u64).bytes().len(), 11);
    }
}
