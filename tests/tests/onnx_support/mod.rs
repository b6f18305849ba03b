//! ONNX models for tests, written field by field.

#![allow(dead_code, reason = "each test uses a part")]

/// A message: its fields one after the other.
#[derive(Clone, Default)]
pub struct Message(pub Vec<u8>);

fn varint(mut number: u64, bytes: &mut Vec<u8>) {
    while number > 127 {
        bytes.push(number as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
}

impl Message {
    pub fn new() -> Message {
        Message::default()
    }

    /// With a number.
    pub fn int(mut self, field: u64, number: i64) -> Message {
        varint(field << 3, &mut self.0);
        varint(number as u64, &mut self.0);
        self
    }

    /// With a text, bytes, or another message.
    pub fn bytes(mut self, field: u64, bytes: impl AsRef<[u8]>) -> Message {
        varint(field << 3 | 2, &mut self.0);
        varint(bytes.as_ref().len() as u64, &mut self.0);
        self.0.extend(bytes.as_ref());
        self
    }
}

impl AsRef<[u8]> for Message {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// A value of a dtype's number and sizes; a negative size is the symbol `n`.
pub fn value(name: &str, dtype: i64, sizes: &[i64]) -> Message {
    let shape = sizes.iter().fold(Message::new(), |shape, size| {
        let dim = match size {
            0.. => Message::new().int(1, *size),
            _ => Message::new().bytes(2, "n"),
        };
        shape.bytes(1, dim)
    });
    let tensor = Message::new().int(1, dtype).bytes(2, shape);
    Message::new().bytes(1, name).bytes(2, Message::new().bytes(1, tensor))
}

pub fn node(operator: &str, inputs: &[&str], outputs: &[&str]) -> Message {
    let node = inputs.iter().fold(Message::new(), |node, input| node.bytes(1, input));
    let node = outputs.iter().fold(node, |node, output| node.bytes(2, output));
    node.bytes(3, format!("call_{operator}")).bytes(4, operator)
}

pub fn int_attribute(name: &str, number: i64) -> Message {
    Message::new().bytes(1, name).int(3, number).int(20, 2)
}

/// A tensor of a dtype's number, sizes and raw elements.
pub fn tensor(name: &str, dtype: i64, sizes: &[i64], raw: &[u8]) -> Message {
    let tensor = sizes.iter().fold(Message::new(), |tensor, size| tensor.int(1, *size));
    tensor.int(2, dtype).bytes(8, name).bytes(9, raw)
}

/// A graph from `x` to `y`, both `float32` with `n` elements, with further fields.
pub fn graph(nodes: &[Message], fields: Message) -> Message {
    let graph = nodes.iter().fold(Message::new(), |graph, node| graph.bytes(1, node));
    let mut graph = graph.bytes(11, value("x", 1, &[-1])).bytes(12, value("y", 1, &[-1]));
    graph.0.extend(fields.0);
    graph
}

pub fn model(version: i64, graph: &Message) -> Vec<u8> {
    Message::new().int(1, 9).bytes(7, graph).bytes(8, Message::new().int(2, version)).0
}

/// A model of these nodes, from `x` to `y`.
pub fn of_nodes(nodes: &[Message]) -> Vec<u8> {
    model(20, &graph(nodes, Message::new()))
}
