//! Archives: images are read as they were written, and a damaged file is an error.

use std::fs;

use super::index::ArchivedKernel;
use super::*;

fn image(key: &str, line: &str, target: ImageTarget, image: &[u8]) -> CompiledImage {
    CompiledImage {
        key: key.to_owned(),
        name: "some.cuh".to_owned(),
        line: line.to_owned(),
        target,
        compiler: "nvcc 13.0".to_owned(),
        resources: target.is_cubin().then(|| KernelResources { registers: 32, ..KernelResources::default() }),
        image: image.to_vec(),
    }
}

fn some() -> Vec<CompiledImage> {
    vec![
        image("b", "ROW(2)", ImageTarget::Ptx(75), b"// a text"),
        image("a", "ROW(1)", ImageTarget::Cubin(90), &[7; 5000]),
        image("a", "ROW(1)", ImageTarget::Ptx(75), &[9; 300]),
        image("a", "ROW(1)", ImageTarget::Cubin(80), b""),
        image("a", "ROW(1)", ImageTarget::CubinOfOne(90), &[5; 100]),
    ]
}

fn opened(bytes: Vec<u8>) -> opsmith_runtime::Result<ImageArchive> {
    ImageArchive::of_bytes("test", bytes.leak())
}

#[test]
fn an_archive_has_the_images_that_were_written() {
    let bytes = archive(some()).unwrap();
    let mut others = some();
    others.reverse();
    others.push(image("b", "ROW(2)", ImageTarget::Ptx(75), b"// a text"));
    assert_eq!(archive(others).unwrap(), bytes, "order and repetition change nothing");

    let path = std::env::temp_dir().join(format!("opsmith-images-{}", std::process::id()));
    fs::write(&path, &bytes).unwrap();
    let file = ImageArchive::open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    for archive in [opened(bytes).unwrap(), file] {
        let keys: Vec<&str> = archive.kernels().iter().map(|kernel| kernel.key.as_str()).collect();
        assert_eq!(keys, ["a", "b"]);
        assert!(archive.kernel("c").is_none());
        for one in some() {
            let kernel: &ArchivedKernel = archive.kernel(&one.key).unwrap();
            assert_eq!((kernel.name.as_str(), &kernel.line), ("some.cuh", &one.line));
            let found = kernel.images.iter().find(|found| found.target == one.target).unwrap();
            assert_eq!(archive.image(found).unwrap(), one.image);
            assert_eq!((found.resources, &found.compiler), (one.resources, &one.compiler));
        }
        assert_eq!(archive.kernel("a").unwrap().images.len(), 4);
    }
}

#[test]
fn an_archive_without_kernels_is_one() {
    assert!(opened(archive(Vec::new()).unwrap()).unwrap().kernels().is_empty());
}

/// All images of an archive, or the first error.
fn all(archive: &ImageArchive) -> opsmith_runtime::Result<Vec<(String, Vec<u8>)>> {
    let images =
        archive.kernels().iter().flat_map(|kernel| kernel.images.iter().map(move |image| (kernel, image)));
    images
        .map(|(kernel, image)| Ok((format!("{} {}", kernel.key, image.target), archive.image(image)?)))
        .collect()
}

/// No damage gives other bytes, or a panic; but for a few bytes that no one reads, each is found.
#[test]
fn damage_is_found() {
    let whole = archive(some()).unwrap();
    let expected = all(&opened(whole.clone()).unwrap()).unwrap();
    for position in 0..whole.len() {
        for change in [1, 0x80] {
            let mut damaged = whole.clone();
            damaged[position] ^= change;
            if let Ok(found) = opened(damaged).and_then(|archive| all(&archive)) {
                assert_eq!(found, expected, "byte {position}");
            }
        }
    }
    for length in 0..whole.len() {
        assert!(opened(whole[..length].to_vec()).and_then(|archive| all(&archive)).is_err(), "{length}");
    }
}

#[test]
fn mistakes_are_named() {
    let says = |bytes: &[u8], part: &str| {
        let Err(error) = opened(bytes.to_vec()).and_then(|archive| all(&archive)) else {
            panic!("an error with `{part}` was expected")
        };
        let text = error.to_string();
        assert!(text.contains(part) && text.contains("opsmith cuda build"), "{text}");
    };
    let whole = archive(some()).unwrap();
    says(b"", "test is no archive of images");
    says(&[b'x'; 100], "test is no archive of images");
    let mut other = whole.clone();
    other[8] = 9;
    says(&other, "has format 9, and this version of opsmith reads 1");
    let mut other = whole.clone();
    other[whole.len() - 1] ^= 1;
    says(&other, "is damaged: the hash of its index is another");
    let mut other = whole;
    other[60] ^= 1;
    says(&other, "the archive of images test is damaged");
    let Err(error) = ImageArchive::open(std::path::Path::new("/nonexistent.images")) else {
        panic!("no file")
    };
    assert!(error.to_string().contains("/nonexistent.images cannot be read"), "{error}");
}

#[test]
fn targets_fit_devices() {
    let fits = |text: &str, device| text.parse::<ImageTarget>().unwrap().fits(device);
    assert!(fits("sm_90", 90) && fits("sm_80", 86) && fits("compute_75", 90) && fits("compute_90", 90));
    assert!(!fits("sm_90", 100) && !fits("sm_86", 80) && !fits("compute_100", 90) && !fits("sm_80", 90));
    assert!(fits("sm_100", 103) && !fits("sm_103", 100) && !fits("sm_100", 110));
    // Features of one architecture are those of no other device.
    assert!(fits("sm_90a", 90) && fits("compute_90a", 90) && fits("sm_100a", 100));
    assert!(
        !fits("sm_90a", 100) && !fits("sm_100a", 103) && !fits("compute_90a", 100) && !fits("sm_90a", 86)
    );
    for text in
        ["", "sm_", "90", "sm_a", "sm_80a", "sm_90b", "sm_90aa", "compute_9", "sm_-90", "sm_+90", "SM_90"]
    {
        assert!(text.parse::<ImageTarget>().is_err(), "{text}");
    }
    for text in ["sm_90", "sm_90a", "compute_75", "compute_100a"] {
        let target: ImageTarget = text.parse().unwrap();
        assert_eq!((target.to_string(), target.is_of_one()), (text.to_owned(), text.ends_with('a')));
        assert_eq!(target.of_all().to_string(), text.trim_end_matches('a'));
    }
}

#[test]
fn keys_are_of_whole_texts() {
    static SOURCE: DeviceSource = DeviceSource { name: "a.cuh", headers: &["one", "two\n"], text: "three" };
    assert_eq!(text_of(&SOURCE, "LINE()"), "one\ntwo\nthree\nLINE()\n");
    assert_eq!(text_key("a"), text_key("a"));
    assert_ne!(text_key("a"), text_key("b"));
    assert_eq!(text_key("").len(), 32);
}
