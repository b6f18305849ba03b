//! Pickles that are damaged, or name functions.

use super::*;

fn run(bytes: &[u8]) -> Result<Value> {
    Machine { rest: bytes, ..Machine::default() }.run()
}

fn refused(bytes: &[u8]) -> String {
    run(bytes).err().expect("refused").to_string()
}

#[test]
fn no_function_is_called() {
    let error = refused(b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00true\x85R.");
    assert!(error.starts_with("`os.system` in a pickle, which is not called is not supported"), "{error}");
    assert!(error.contains("help: save the program again"), "{error}");
}

#[test]
fn damage_is_an_error_in_bounded_time() {
    for bytes in
        [&b""[..], b".", b"X\xff\xff\xff\xff", b"t.", b"0.", b"h\x01.", b"Q.", b"R.", b"\x8a\x09123456789."]
    {
        refused(bytes);
    }
    // Nested values are refused before they are too deep to be dropped.
    let mut deep = vec![b')'];
    deep.resize(1_000_000, 0x85);
    assert!(refused(&deep).contains("nested too deeply"));
    let marks = vec![b'('; 1_000_000];
    refused(&marks);
    // Entries of one dictionary that is remembered and changed again and again.
    let mut entries = b"}".to_vec();
    (0..100_000).for_each(|_| entries.extend_from_slice(b"q\x00X\x00\x00\x00\x00Ns"));
    entries.push(b'.');
    assert!(matches!(run(&entries), Ok(Value::Dict(0))));
}
