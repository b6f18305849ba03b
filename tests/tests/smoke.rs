//! The narrow path: an operator exists because the spec declares it.

use opsmith::{Tensor, TensorOps};

#[test]
fn forms_and_gradient() {
    let a = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2]).unwrap();
    let b = Tensor::of(&[10.0f32, 20.0]);
    assert_eq!(a.add(&b).unwrap().to_vec::<f32>().unwrap(), [11.0, 22.0, 13.0, 24.0]);
    assert_eq!((&a + &b).unwrap().to_vec::<f32>().unwrap(), [11.0, 22.0, 13.0, 24.0]);
    assert_eq!((2.0 * &a).unwrap().to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0, 8.0]);
    a.add_with_(&b, opsmith::AddOptions::new().alpha(0.5)).unwrap();
    assert_eq!(a.to_vec::<f32>().unwrap(), [6.0, 12.0, 8.0, 14.0]);
    println!("{}", a.add(&Tensor::of(&[1.0f32, 2.0, 3.0])).unwrap_err());
    println!("{}", opsmith::call("ad.Tensor", &[], &[]).unwrap_err());
    println!("{}", opsmith::call("add.Tensor", &[], &[]).unwrap_err());
    println!("{}", b.add_(&a).unwrap_err());
}
