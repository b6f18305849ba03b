//! Indices along the rows that they are in.

use super::*;

#[test]
fn gathered_and_scattered_along_rows() {
    let (rows, width, count) = (37, 50, 403);
    let places: Vec<i64> =
        (0..rows * count).map(|number| if number % 90 < 40 { 7 } else { number * 7919 % width }).collect();
    let (data, index, source) = (dense(&[rows, width]), ints(&[rows, count], &places), dense(&[rows, count]));
    let mut expected = data.clone();
    for at in indices(&index.sizes) {
        expected.set(&[at[0], index.at(&at)], source.at(&at));
    }
    with_threads(|| {
        let mut out = Array::zeros(&[rows, count]);
        gather(data.view(), 1, index.view(), out.view_mut()).unwrap();
        assert!(indices(&index.sizes).iter().all(|at| out.at(at) == data.at(&[at[0], index.at(at)])));
        let mut put = data.clone();
        scatter(1, index.view(), source.view(), put.view_mut()).unwrap();
        assert_eq!(put.to_vec(), expected.to_vec());
        let mut index = index.clone();
        for (at, value) in [([3, 44], -1), ([30, 0], width)] {
            index.set(&at, value);
        }
        let refused = gather(data.view(), 1, index.view(), out.view_mut()).unwrap_err();
        assert!(refused.to_string().contains("the index -1 is out of range"), "{refused}");
        let refused = scatter(1, index.view(), source.view(), put.view_mut()).unwrap_err();
        assert!(refused.to_string().contains("the index -1 is out of range"), "{refused}");
        assert_eq!(put.to_vec(), expected.to_vec());
    });
}
