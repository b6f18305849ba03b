//! `.npy` files: reading NumPy's files, round trips, and errors for damaged files.

mod support;

use std::os::unix::fs::symlink;

use opsmith_runtime::{Complex64, DType, Scalar, Tensor};
use proptest::prelude::*;
use support::{strided, temporary_folder};

const FILES: &str = include_str!("data/npy.txt");

fn bytes_of(hexadecimal: &str) -> Vec<u8> {
    let digits = |index: usize| u8::from_str_radix(&hexadecimal[index..index + 2], 16).unwrap();
    (0..hexadecimal.len()).step_by(2).map(digits).collect()
}

/// The bytes of one of NumPy's files.
fn file(name: &str) -> Vec<u8> {
    let line = FILES.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    bytes_of(line.unwrap_or_else(|| panic!("no file `{name}` in data/npy.txt")))
}

fn expected_element(dtype: DType, k: i64) -> Scalar {
    match dtype {
        DType::Bool => Scalar::Bool(k % 2 == 1),
        _ if dtype.is_complex() => Scalar::Complex(Complex64::new(k as f64, -(k as f64) - 1.0)),
        _ if dtype.is_float() => Scalar::Float(k as f64),
        _ => Scalar::Int(k),
    }
}

fn elements(tensor: &Tensor) -> Vec<Scalar> {
    use opsmith_runtime::Element;
    opsmith_runtime::with_dtype!(tensor.dtype(), T => {
        tensor.to_vec::<T>().unwrap().into_iter().map(Element::to_scalar).collect()
    })
}

#[test]
fn every_file_that_numpy_wrote_is_read() {
    let folder = temporary_folder("npy_read");
    let mut count = 0;
    for line in FILES.lines().filter(|line| !line.starts_with('#')) {
        let (name, hexadecimal) = line.split_once(' ').unwrap();
        let (dtype, rest) = name.split_once('/').unwrap();
        let (shape, _) = rest.split_once('/').unwrap();
        let dtype = DType::from_name(dtype).unwrap();
        let shape: Vec<i64> =
            shape.split('x').filter(|size| !size.is_empty()).map(|size| size.parse().unwrap()).collect();
        let bytes = bytes_of(hexadecimal);
        let path = folder.join("file.npy");
        std::fs::write(&path, &bytes).unwrap();
        for tensor in [Tensor::load_npy(&path).unwrap(), Tensor::read_npy(&bytes[..]).unwrap()] {
            assert_eq!((tensor.dtype(), tensor.shape()), (dtype, &shape[..]), "{name}");
            let expected: Vec<_> = (0..tensor.numel()).map(|k| expected_element(dtype, k)).collect();
            assert_eq!(elements(&tensor), expected, "{name}");
        }
        count += 1;
    }
    assert_eq!(count, 35);
}

#[test]
fn fortran_order_becomes_strides() {
    let tensor = Tensor::read_npy(&file("float32/2x3x4/fortran")[..]).unwrap();
    assert_eq!(tensor.strides(), [1, 2, 6]);
}

#[test]
fn a_reader_stops_after_the_array() {
    let bytes = [file("int16/2x3/little"), file("float64//scalar")].concat();
    let mut rest = &bytes[..];
    assert_eq!(Tensor::read_npy(&mut rest).unwrap().shape(), [2, 3]);
    assert_eq!(Tensor::read_npy(&mut rest).unwrap().dtype(), DType::F64);
    assert!(rest.is_empty());
}

#[test]
fn every_dtype_and_layout_comes_back() {
    let folder = temporary_folder("npy_write");
    let path = folder.join("tensor.npy");
    let check = |tensor: &Tensor| {
        tensor.save_npy(&path).unwrap();
        let back = Tensor::load_npy(&path).unwrap();
        assert_eq!((back.dtype(), back.shape()), (tensor.dtype(), tensor.shape()));
        assert_eq!(elements(&back), elements(tensor));
    };
    for dtype in DType::ALL.into_iter().filter(|dtype| dtype.numpy_code().is_some()) {
        check(&Tensor::scalar(expected_element(dtype, 3), dtype));
    }
    check(&Tensor::from_slice(&[0i32; 0], &[4, 0, 2]).unwrap());
    check(&strided(&[0, 1, 2, 3, 4, 5], &[3, 2], &[1, 3], 0));
    check(&strided(&[0.0, 1.0, 2.0, 3.0, 4.0], &[3], &[-2], 4));
    check(&strided(&[7u8], &[2, 3], &[0, 0], 0));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "temporary files are left");
}

#[test]
fn the_header_is_what_numpy_expects() {
    let mut bytes = Vec::new();
    Tensor::of(&[1.5f32]).write_npy(&mut bytes).unwrap();
    assert_eq!(bytes.len(), 128 + 4);
    assert_eq!(&bytes[..10], b"\x93NUMPY\x01\x00\x76\x00");
    let text = std::str::from_utf8(&bytes[10..128]).unwrap();
    assert_eq!(text.trim_end_matches(' ').len(), 118, "the header ends in a newline");
    assert_eq!(text.trim_end(), "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }");
}

#[test]
fn a_link_is_followed_and_a_failed_write_changes_nothing() {
    let folder = temporary_folder("npy_atomic");
    let (target, link) = (folder.join("target.npy"), folder.join("link.npy"));
    Tensor::of(&[1i64]).save_npy(&target).unwrap();
    symlink(&target, &link).unwrap();
    Tensor::of(&[2i64]).save_npy(&link).unwrap();
    assert!(link.is_symlink());
    assert_eq!(Tensor::load_npy(&target).unwrap().to_vec::<i64>().unwrap(), [2]);
    Tensor::scalar(1.0, DType::BF16).save_npy(&target).unwrap_err();
    assert_eq!(Tensor::load_npy(&target).unwrap().to_vec::<i64>().unwrap(), [2]);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
}

#[test]
fn errors_name_the_file_and_the_reason() {
    let folder = temporary_folder("npy_errors");
    let path = folder.join("a.npy");
    let shown = path.display();
    assert_eq!(
        Tensor::load_npy(&path).unwrap_err().to_string(),
        format!("cannot read {shown}: No such file or directory (os error 2)")
    );
    let bytes = file("float32/2x3/little");
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    assert_eq!(
        Tensor::load_npy(&path).unwrap_err().to_string(),
        format!(
            "cannot read {shown}: its header announces 24 bytes of elements, but 23 follow\n  \
             help: the file is damaged, or was not written completely"
        )
    );
    let inside = folder.join("missing/b.npy");
    assert_eq!(
        Tensor::of(&[1.0]).save_npy(&inside).unwrap_err().to_string(),
        format!("cannot write {}: No such file or directory (os error 2)", inside.display())
    );
    assert_eq!(
        Tensor::of(&[1.0]).save_npy("..").unwrap_err().to_string(),
        "cannot write ..: Is a directory (os error 21)"
    );
    let bfloat = Tensor::scalar(1.0, DType::BF16);
    assert_eq!(
        bfloat.save_npy(&path).unwrap_err().to_string(),
        format!(
            "cannot write {shown}: NumPy has no bfloat16\n  \
             help: convert the tensor to float32 first, which holds every bfloat16 value"
        )
    );
}

/// A file of version 1.0 with the given dict and no elements.
fn with_dict(dict: &str) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((dict.len() as u16).to_le_bytes());
    bytes.extend(dict.bytes());
    bytes
}

fn check_error(bytes: &[u8], expected: &str) {
    let error = Tensor::read_npy(bytes).unwrap_err().to_string();
    assert_eq!(error, format!("cannot read the .npy data: {expected}"));
}

#[test]
fn damaged_and_hostile_headers_are_errors() {
    let check = |dict: &str, expected: &str| check_error(&with_dict(dict), expected);
    let with_shape = |shape: &str| format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}");
    check_error(b"", "it ends before its header");
    check_error(
        b"PK\x03\x04 a .npz archive",
        "it does not begin with NumPy's magic bytes\n  help: is it a .npz archive, or another format?",
    );
    check_error(
        b"\x93NUMPY\x04\x00\x00\x00",
        "its format version is 4.0\n  help: versions 1.0, 2.0 and 3.0 are known",
    );
    check_error(
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff",
        "its header has 4294967295 bytes, more than the 65536 that are accepted",
    );
    check_error(b"\x93NUMPY\x01\x00\x76\x00{'descr'", "it ends inside its header");
    check("", "its header has `` at byte 0 where `{` should be");
    check("{}", "its header lacks the key `descr`");
    check("{'descr': '<f4', 'fortran_order': False}", "its header lacks the key `shape`");
    check(
        "{'descr': '<f4', 'descr': '<f4'}",
        "its header has the key `descr`\n  help: `descr`, `fortran_order` and `shape` are expected, once each",
    );
    check(
        "{'descr': '<f4', 'fortran_order': 1}",
        "its header has `1}` at byte 34 where True or False should be",
    );
    check(
        &with_shape("() ").replace('}', "} x"),
        "its header has `x` at byte 55 where the end of the header should be",
    );
    check(&with_shape("(1 2)"), "its header has `2)}` at byte 53 where `)` should be");
    check(&with_shape("(-1,)"), "its header has `-1,)}` at byte 51 where a size below 2^63 should be");
    check(
        &with_shape("(9223372036854775808,)"),
        "its header has `9223372036854775808,` at byte 51 where a size below 2^63 should be",
    );
    let huge = "more elements than memory can hold";
    check(&with_shape("(4294967296, 4294967296)"), &format!("the shape (4294967296, 4294967296) has {huge}"));
    check(
        &with_shape("(0, 4294967296, 4294967296)"),
        &format!("the shape (0, 4294967296, 4294967296) has {huge}"),
    );
    check(
        &with_shape("(4294967296,)"),
        "its header announces 17179869184 bytes of elements, but 0 follow\n  \
         help: the data is damaged, or was not written completely",
    );
    check(&with_shape(&format!("({})", "1, ".repeat(65))), "its shape has more than 64 dimensions");
    check(
        &with_shape(&"(".repeat(5000)),
        "its header has `((((((((((((((((((((` at byte 51 where a size below 2^63 should be",
    );
}

#[test]
fn types_that_no_tensor_has_are_errors() {
    let check = |dict: &str, expected: &str| check_error(&with_dict(dict), expected);
    let with_type = |descr: &str| format!("{{'descr': {descr}, 'fortran_order': False, 'shape': ()}}");
    check(
        &with_type("[('x', '<f4')]"),
        "it is a structured array\n  \
         help: save each field as an array of its own: `numpy.save(path, array[field])`",
    );
    check(
        &with_type("'|O'"),
        "its elements have the type `|O`, which no tensor has\n  \
         help: Python objects are stored by pickle, which can run any code; convert them first",
    );
    check(
        &with_type("'<V2'"),
        "its elements have the type `<V2`, which no tensor has\n  \
         help: if these are bfloat16 (ml_dtypes), convert them with `array.astype(numpy.float32)` first",
    );
    check(
        &with_type("'<U3'"),
        "its elements have the type `<U3`, which no tensor has\n  \
         help: convert the array to a bool, integer, float or complex type first",
    );
}

#[test]
fn a_python_2_header_is_read() {
    let mut bytes = with_dict("{'descr': '<i2', 'shape': (2L,), 'fortran_order': False}\n");
    bytes.extend([1, 0, 2, 0]);
    assert_eq!(Tensor::read_npy(&bytes[..]).unwrap().to_vec::<i16>().unwrap(), [1, 2]);
}

#[test]
fn bytes_of_a_bool_array_become_truth_values() {
    let mut bytes = with_dict("{'descr': '|b1', 'shape': (3,), 'fortran_order': False}");
    bytes.extend([0, 1, 255]);
    assert_eq!(Tensor::read_npy(&bytes[..]).unwrap().to_vec::<bool>().unwrap(), [false, true, true]);
}

proptest! {
    /// For any change of a file, reading it gives a tensor or an error.
    #[test]
    fn changed_bytes_never_panic(
        changes in prop::collection::vec((0usize..200, any::<u8>()), 0..6),
        length in 0usize..200,
    ) {
        let mut bytes = file("float32/2x3/big");
        for (position, byte) in changes {
            if let Some(target) = bytes.get_mut(position) {
                *target = byte;
            }
        }
        bytes.truncate(length);
        let _ = Tensor::read_npy(&bytes[..]);
    }

    #[test]
    fn any_header_text_never_panics(dict in "[ '{}(),:<>|=a-zA-Z0-9\\[\\]]{0,80}") {
        let _ = Tensor::read_npy(&with_dict(&dict)[..]);
    }
}
