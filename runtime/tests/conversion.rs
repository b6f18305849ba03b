//! Conversions of tensors from and to vectors, and by the feature `ndarray` arrays.

use opsmith_runtime::{DType, Tensor};

#[test]
fn vectors_slices_and_arrays_become_tensors() {
    for tensor in [Tensor::from(vec![1i32, 2]), Tensor::from(&[1i32, 2][..]), Tensor::from([1i32, 2])] {
        assert_eq!((tensor.dtype(), tensor.shape()), (DType::I32, &[2][..]));
        assert_eq!(tensor.to_vec::<i32>().unwrap(), [1, 2]);
    }
    assert_eq!(Tensor::from(Vec::<f64>::new()).shape(), [0]);
}

#[test]
fn tensors_become_vectors_of_their_dtype_alone() {
    let tensor = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2]).unwrap();
    assert_eq!(Vec::<f32>::try_from(&tensor).unwrap(), [1.0, 2.0, 3.0, 4.0]);
    let error = Vec::<f64>::try_from(&tensor).unwrap_err().to_string();
    assert!(error.contains("the tensor holds float32, not float64"), "{error}");
    let elements: Vec<f32> = tensor.try_into().unwrap();
    assert_eq!(elements.len(), 4);
}

#[cfg(feature = "ndarray")]
mod arrays {
    use ndarray::{Array2, Array3, ArrayD, ArrayViewD, Axis, arr0, arr2, s};
    use opsmith_runtime::{Error, Tensor};

    #[test]
    fn arrays_of_every_order_become_row_major() {
        let array = Array3::from_shape_fn((2, 3, 4), |(i, j, k)| (100 * i + 10 * j + k) as i64);
        assert_eq!(Tensor::from(&array).shape(), [2, 3, 4]);
        for view in [
            array.view().reversed_axes().into_dyn(),
            array.slice(s![.., ..;-1, 1..3]).into_dyn(),
            array.slice(s![1, .., ..;2]).into_dyn(),
            array.slice(s![.., 1..1, ..]).into_dyn(),
        ] {
            let tensor = Tensor::from(&view);
            assert_eq!(ArrayD::<i64>::try_from(&tensor).unwrap(), view);
        }
        let number = Tensor::from(arr0(2.5f32));
        assert_eq!((number.shape(), number.item().unwrap().to_f64()), (&[][..], 2.5));
    }

    #[test]
    fn views_have_the_tensors_memory_and_strides() {
        let tensor = Tensor::from(&arr2(&[[1.0f64, 2.0, 3.0], [4.0, 5.0, 6.0]]));
        let address = tensor.data_ptr();
        let seen = tensor.with_ndarray(|array: ArrayViewD<'_, f64>| {
            assert_eq!(array.as_ptr().cast::<u8>(), address.cast_const());
            array.sum_axis(Axis(0)).into_iter().collect::<Vec<_>>()
        });
        assert_eq!(seen.unwrap(), [5.0, 7.0, 9.0]);
        let error: Error = tensor.with_ndarray(|_: ArrayViewD<'_, f32>| ()).unwrap_err();
        assert!(error.to_string().contains("the tensor holds float64, not float32"), "{error}");
        let empty = Tensor::from(&Array2::<f32>::zeros((0, 3)));
        assert_eq!(empty.with_ndarray(|array: ArrayViewD<'_, f32>| array.shape().to_vec()).unwrap(), [0, 3]);
    }
}
