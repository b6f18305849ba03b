//! State dicts in files: round trips, all differences in one error, and damaged files.

mod support;

use opsmith::{DType, Generator, Result, Tensor, TensorOps};
use opsmith_nn::*;
use support::{TemporaryFile, assert_close};

fn network(seed: u64) -> Result<Sequential> {
    let generator = Generator::new(seed);
    Ok(sequential![
        Conv1d::new(2, 3, 2, &generator)?,
        BatchNorm1d::new(3)?,
        Flatten::new(),
        Linear::new(9, 2, &generator)?,
    ])
}

fn assert_same(a: &StateDict, b: &StateDict) {
    assert_eq!(a.names(), b.names());
    a.iter().for_each(|(path, tensor)| assert_close(path, tensor, b.get(path).unwrap(), 0.0));
}

#[test]
fn a_network_survives_a_file() -> Result<()> {
    let (first, second) = (network(1)?, network(2)?);
    let x = opsmith::randn([4, 2, 4])?;
    first.forward(&x)?;
    for (name, npz) in [("a.safetensors", false), ("a.npz", true)] {
        let file = TemporaryFile::new(name);
        let dict = if npz {
            first.state_dict().save_npz(&file)?;
            StateDict::load_npz(&file)?
        } else {
            first.save(&file)?;
            StateDict::load(&file)?
        };
        assert_same(&dict, &first.state_dict());
        second.load_state_dict(&dict)?;
        assert_same(&second.state_dict(), &first.state_dict());
        assert!(
            second.parameters().iter().all(|parameter| parameter.requires_grad()),
            "parameters stay parameters"
        );
    }
    assert_eq!(first.forward(&x)?.to_vec::<f32>()?, second.forward(&x)?.to_vec::<f32>()?);
    Ok(())
}

#[test]
fn every_dtype_survives() -> Result<()> {
    for dtype in DType::ALL {
        let tensor = Tensor::of(&[0i64, 1, 1, 0, 1, 1]).reshape([2, 3])?.to_dtype(dtype)?;
        let dict: StateDict = [("x".to_owned(), tensor.t()?), ("empty".to_owned(), tensor.narrow(0, 0, 0)?)]
            .into_iter()
            .collect();
        let bytes = dict.to_bytes();
        if dtype.is_complex() || dtype.bits() < 8 {
            let error = bytes.unwrap_err().to_string();
            assert!(error.contains("cannot be written to a safetensors file"), "{error}");
            continue;
        }
        let read = StateDict::from_bytes(&bytes?)?;
        assert_eq!(read.get("x").unwrap().dtype(), dtype);
        assert_eq!(read.get("empty").unwrap().shape(), [0, 3]);
        assert_same(&read, &dict);
    }
    Ok(())
}

#[test]
fn all_differences_are_in_one_error_and_nothing_changes() -> Result<()> {
    let network = network(1)?;
    let before = network.state_dict().copied()?;
    let mut dict = self::network(2)?.state_dict();
    dict.remove("0.bias");
    dict.remove("1.num_batches_tracked");
    dict.insert("3.weight", opsmith::ones([2, 8])?);
    dict.insert("3.bias", opsmith::ones([2])?.to_dtype(DType::F64)?);
    dict.insert("4.weight", opsmith::ones([1])?);
    let error = network.load_state_dict(&dict).unwrap_err().to_string();
    let expected = "the state dict does not fit: 5 tensors differ, and nothing was loaded
  `0.bias` is missing
  `1.num_batches_tracked` is missing
  `3.bias` is float64, and the module's is float32
  `3.weight` has the shape [2, 8], and the module's is [2, 9]
  `4.weight` is unexpected
  help: load it into a module of the same structure, or use `load_state_dict_with` and a `LoadConfig` that allows missing or \
         unexpected tensors or converts dtypes";
    assert_eq!(error, expected);
    assert_same(&network.state_dict(), &before);
    Ok(())
}

#[test]
fn differences_are_accepted_on_request() -> Result<()> {
    let network = network(1)?;
    let mut dict = StateDict::new();
    dict.insert("3.bias", Tensor::of(&[1.5f64, 2.5]));
    dict.insert("other", Tensor::of(&[1.0f32]));
    let config = || LoadConfig::new().allow_missing(true).allow_unexpected(true);
    assert!(network.load_state_dict_with(&dict, config()).is_err(), "dtypes are converted only on request");
    network.load_state_dict_with(&dict, config().convert_dtypes(true))?;
    assert_eq!(network.state_dict().get("3.bias").unwrap().to_vec::<f32>()?, [1.5, 2.5]);
    assert!(
        network
            .load_state_dict_with(&dict, LoadConfig::new().allow_missing(true).convert_dtypes(true))
            .is_err()
    );
    dict.insert("3.bias", Tensor::of(&[1i64, 2]).to_dtype(DType::C64)?);
    let error = network.load_state_dict_with(&dict, config().convert_dtypes(true)).unwrap_err().to_string();
    assert!(error.contains("`3.bias` is complex64"), "{error}");
    Ok(())
}

#[test]
fn a_copy_does_not_follow_the_module() -> Result<()> {
    let layer = Linear::new(2, 2, &Generator::new(0))?;
    let (own, copy) = (layer.state_dict(), layer.state_dict().copied()?);
    init::constant_(layer.weight(), 7.0)?;
    assert_eq!(own.get("weight").unwrap().to_vec::<f32>()?, [7.0; 4]);
    assert_ne!(copy.get("weight").unwrap().to_vec::<f32>()?, [7.0; 4]);
    Ok(())
}

/// Every byte of the header changed, and every length: an error or other values, never a panic.
#[test]
fn damaged_files_are_errors() -> Result<()> {
    let bytes = network(1)?.state_dict().to_bytes()?;
    for length in 0..bytes.len() {
        assert!(StateDict::from_bytes(&bytes[..length]).is_err(), "{length} bytes of {}", bytes.len());
    }
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    for position in 0..header {
        for byte in [0, b'9', b'-', b'"', 0xff] {
            let mut damaged = bytes.clone();
            damaged[position] = byte;
            _ = StateDict::from_bytes(&damaged);
        }
    }
    let error = StateDict::from_bytes(b"PK\x03\x04 a checkpoint of torch.save").unwrap_err().to_string();
    assert!(error.contains("is no safetensors file"), "{error}");
    let mut truth = StateDict::new();
    truth.insert("x", Tensor::from_slice(&[true, false], &[2])?);
    let mut bytes = truth.to_bytes()?;
    *bytes.last_mut().unwrap() = 2;
    let error = StateDict::from_bytes(&bytes).unwrap_err().to_string();
    assert!(error.contains("neither 0 nor 1") && error.contains("in the tensor `x`"), "{error}");
    Ok(())
}

#[test]
fn a_header_of_a_huge_shape_allocates_nothing() {
    let file = |header: &str, data: usize| {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.extend(std::iter::repeat_n(0, data));
        StateDict::from_bytes(&bytes)
    };
    let tensor = |shape: &str, end: u64| {
        format!(r#"{{"x":{{"dtype":"F32","shape":{shape},"data_offsets":[0,{end}]}}}}"#)
    };
    assert!(file(&tensor("[1]", 4), 4).is_ok());
    assert!(file(&tensor("[1000000000000]", 4_000_000_000_000), 4).is_err());
    assert!(file(&tensor("[4294967296,4294967296,4294967296]", 4), 4).is_err());
    assert!(file(&tensor("[18446744073709551615,0]", 0), 0).is_err());
    assert!(file(&tensor("[2]", 4), 4).is_err());
    let error =
        file(r#"{"x":{"dtype":"F8_E8M0","shape":[4],"data_offsets":[0,4]}}"#, 4).unwrap_err().to_string();
    assert!(error.contains("are no dtype of tensors") && error.contains("in the tensor `x`"), "{error}");
}

#[test]
fn files_that_are_not_there_or_are_no_archives() -> Result<()> {
    let file = TemporaryFile::new("missing");
    for error in [StateDict::load(&file).unwrap_err(), StateDict::load_npz(&file).unwrap_err()] {
        assert!(error.to_string().contains("cannot read"), "{error}");
    }
    std::fs::write(&file, b"no archive").unwrap();
    let error = StateDict::load_npz(&file).unwrap_err().to_string();
    assert!(error.contains("is no NumPy archive"), "{error}");
    let half =
        [("x".to_owned(), opsmith::ones([2])?.to_dtype(DType::BF16)?)].into_iter().collect::<StateDict>();
    let error = half.save_npz(&file).unwrap_err().to_string();
    assert!(error.contains("in the array \"x\""), "{error}");
    assert_eq!(std::fs::read(&file).unwrap(), b"no archive", "a failed save leaves the older file");
    npz::save(&file, [("y", Tensor::of(&[1i64]))])?;
    let error = npz::NpzArchive::open(&file)?.read("x").unwrap_err().to_string();
    assert!(error.contains("has no array \"x\"; there are y"), "{error}");
    let folder = std::env::temp_dir().join("no such folder").join("x.safetensors");
    let error = StateDict::new().save(folder).unwrap_err().to_string();
    assert!(error.contains("cannot write"), "{error}");
    Ok(())
}
