//! How a kernel is identified as a device's: by its record, its declaration, or its library's contents.

use opsmith::{DType, Result, Tensor};
use opsmith_aot::Declaration;
use opsmith_runtime::Backend;

use super::{floats, kernel};

/// A record as the other framework writes it.
pub fn records() -> Result<()> {
    let record = |target: &str| {
        format!(
            r#"{{"op_name": "square", "inputs": [{{"index": 0, "name": "x", "paramType": "required"}}],
                "outputs": [{{"index": 0, "name": "y", "paramType": "required"}}], "attr": [],
                "dtype_format": [[["float32", "DefaultFormat"], ["float32", "DefaultFormat"]]],
                "fusion_type": "OPAQUE", "target": "{target}"}}"#
        )
    };
    for target in ["GPU", "CUDA"] {
        let square = Declaration::from_record(kernel("Square"), &record(target))?
            .output_shape_fn(|call| Ok(vec![call.shape(0)?.to_vec()]))
            .declare()?;
        assert_eq!(floats(&square.call(&[&Tensor::of(&[1.0f32, 4.0, 9.0])])?), [1.0, 16.0, 81.0]);
    }
    let error = Declaration::from_record("square.cu:Square", &record("CPU"))?.declare().unwrap_err();
    assert!(error.to_string().contains("square.cu is a source for CUDA, and is declared for CPU"), "{error}");
    Ok(())
}

/// A source compiled here for a device, linked with the stand-in; its library is rejected for the host, and one
/// compiled for the host is rejected for a device.
pub fn sources() -> Result<()> {
    let library = std::env::var("AOT_DEVICE_LIBRARY").expect("the library is named");
    let driver = library.replace("kernels.so", "libcuda.so");
    let declare = |kernel: &str, target: Backend| {
        Declaration::new("device_source", kernel)
            .input("x")
            .output("y")
            .dtypes([DType::F32; 2])
            .output_shape_fn(|call| Ok(vec![call.shape(0)?.to_vec()]))
            .target(target)
            .flag(&driver)
            .unlisted()
            .declare()
    };
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/cuda/kernels.cc:Square");
    let x = Tensor::of(&[1.0f32, 4.0]);
    let on_device = declare(source, Backend::Cuda)?;
    assert_eq!(floats(&on_device.call(&[&x])?), [1.0, 16.0]);
    let on_host = declare(source, Backend::Cpu)?;
    for (built, target, difference) in [
        (on_device, Backend::Cpu, "`target` (CUDA) is not declared"),
        (on_host, Backend::Cuda, "`target` (CUDA) is not in the library"),
    ] {
        let library = built.inspect()?.library;
        let error = declare(&format!("{}:Square", library.display()), target)?.call(&[&x]).unwrap_err();
        assert!(error.to_string().contains(difference), "{error}");
    }
    Ok(())
}
