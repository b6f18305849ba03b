//! Results do not depend on the number of threads: the same bits with one, two and five, of calls that are long enough to
//! be shared.

use opsmith::autograd::{self, Options};
use opsmith::runtime::parallel::set_num_threads;
use opsmith::runtime::random::Normal;
use opsmith::{
    AmaxOptions, ArgmaxOptions, Conv2dOptions, DType, Generator, GroupNormOptions, LayerNormOptions, Result,
    RmsNormOptions, RollOptions, Tensor, TensorOps,
};

fn normal(shape: &[i64]) -> Result<Tensor> {
    let mut elements = vec![0.0f32; shape.iter().product::<i64>() as usize];
    Generator::new(7).fill(&Normal::<f32>::new(), &mut elements);
    Tensor::from_slice(&elements, shape)
}

/// The bytes of results with each number of threads, which the program has one of: so one test has all calls.
fn compare(name: &str, call: impl Fn() -> Result<Vec<Tensor>>) {
    let results = |threads: usize| -> Result<Vec<Vec<u8>>> {
        set_num_threads(threads)?;
        call()?.iter().map(|result| result.contiguous()?.view_dtype_bytes()).collect()
    };
    let alone = results(1).unwrap_or_else(|error| panic!("{name}: {error}"));
    for threads in [2, 5] {
        // Several times: who takes which range differs.
        for _ in 0..3 {
            assert!(results(threads).unwrap() == alone, "{name} with {threads} threads");
        }
    }
}

/// The bytes of a tensor's elements.
trait Bytes {
    fn view_dtype_bytes(&self) -> Result<Vec<u8>>;
}

impl Bytes for Tensor {
    fn view_dtype_bytes(&self) -> Result<Vec<u8>> {
        Ok(match self.dtype() {
            DType::F32 => self.to_vec::<f32>()?.iter().flat_map(|element| element.to_ne_bytes()).collect(),
            DType::I64 => self.to_vec::<i64>()?.iter().flat_map(|element| element.to_ne_bytes()).collect(),
            DType::BF16 => {
                let elements = self.to_vec::<opsmith::runtime::bf16>()?;
                elements.iter().flat_map(|element| element.to_ne_bytes()).collect()
            }
            other => panic!("no bytes of {other}"),
        })
    }
}

/// Normalisations and their gradients.
fn norms(a: &Tensor, b: &Tensor, row: &Tensor) -> Result<Vec<Tensor>> {
    let (x, weight) = (a.detach().requires_grad_(true)?, row.detach().requires_grad_(true)?);
    let layer = x.layer_norm_with([900], LayerNormOptions::new().weight(&weight).bias(row))?;
    let rms = x.rms_norm_with([900], RmsNormOptions::new().weight(&weight))?;
    let mut gradients = autograd::grad(&[&layer], &[&x, &weight], &[Some(b)], Options::default())?;
    gradients.extend(autograd::grad(&[&rms], &[&x, &weight], &[Some(b)], Options::default())?);
    let group = x.reshape([6, 30, 3500])?.group_norm_with(
        5,
        GroupNormOptions::new().weight(&weight.narrow(0, 0, 30)?).bias(&row.narrow(0, 30, 30)?),
    )?;
    let like = b.reshape([6, 30, 3500])?;
    gradients.extend(autograd::grad(&[&group], &[&x, &weight], &[Some(&like)], Options::default())?);
    let mut results = vec![layer.detach(), rms.detach(), group.detach()];
    results.extend(gradients.into_iter().flatten());
    Ok(results)
}

/// Reads and writes at indices.
fn indexed(a: &Tensor, b: &Tensor, places: &Tensor) -> Result<Vec<Tensor>> {
    let rows = places.narrow(1, 0, 1)?.reshape([-1])?;
    Ok(vec![
        a.index_select(0, &rows)?,
        a.index_select(1, &rows)?,
        a.gather(0, places)?,
        a.t()?.gather(1, &places.t()?)?,
        a.embedding(&places.narrow(1, 3, 5)?)?,
        a.index_add(0, &rows, b)?,
        a.index_copy(0, &rows, b)?,
        a.index_add(1, &rows, &b.narrow(1, 0, 700)?)?,
        a.reshape([7, 100, 900])?.index_add(
            1,
            &rows.remainder(100)?,
            &b.repeat([7, 1])?.reshape([7, 700, 900])?,
        )?,
        a.scatter_add(0, places, b)?,
        a.t()?.scatter_add(1, &places.t()?, &b.t()?)?,
        a.scatter(0, places, b)?,
        // Rows that occur once, beside those of others.
        a.index_add(0, &rows.narrow(0, 0, 690)?.minimum(&rows.narrow(0, 3, 690)?)?, &b.narrow(0, 0, 690)?)?,
    ])
}

/// Random numbers: each thread computes those of its part.
fn random() -> Result<Vec<Tensor>> {
    let generator = Generator::new(3);
    let drawn = Some(&generator);
    let p = opsmith::rand_generator([501, 333], drawn)?;
    let normal = opsmith::randn_generator([501, 333], drawn)?;
    let scaled = normal.normal_with_(opsmith::NormalOptions::new().mean(1.5).std(0.5).generator(&generator));
    scaled?;
    Ok(vec![
        opsmith::randint(-5, 500, [100_003], drawn)?,
        p.bernoulli_with(opsmith::BernoulliOptions::new().generator(&generator))?,
        opsmith::randn_generator([100_001], drawn)?.to_dtype(DType::BF16)?,
        p,
        normal,
    ])
}

/// Kernels that move elements, and those that count and search.
fn moved(a: &Tensor, b: &Tensor) -> Result<Vec<Tensor>> {
    let image = a.reshape([2, 35, 90, 100])?;
    let mask = a.gt(b)?;
    let (sorted, _) = b.reshape([-1])?.narrow(0, 0, 1000)?.sort()?;
    let padded = image.detach().requires_grad_(true)?;
    let border = padded.reflection_pad2d([3, 2, 1, 4])?;
    let gradient = autograd::grad(&[&border], &[&padded], &[Some(&border.detach())], Options::default())?;
    let mut results = vec![
        border.detach(),
        image.replication_pad2d([1, 1, 2, -3])?,
        a.roll_with([3, -5], RollOptions::new().dims([1, 0]))?,
        a.flip([0, 1])?,
        mask.nonzero()?,
        a.masked_select(&mask)?,
        a.masked_scatter(&mask, b)?,
        a.searchsorted(&sorted)?,
        image.upsample_bilinear2d([120, 140], false)?,
        image.upsample_nearest2d([120, 140])?,
        a.histc()?,
        (a.abs()? * 10.0)?.to_dtype(DType::I64)?.reshape([-1])?.bincount()?,
        a.cumsum(1)?,
        a.count_nonzero()?,
        a.cdist(b)?,
    ];
    results.extend(gradient.into_iter().flatten());
    Ok(results)
}

/// Convolutions and their gradients, of one group of channels, several, and one for each channel.
fn convolutions() -> Result<Vec<Tensor>> {
    let mut results = Vec::new();
    for (channels, groups) in [(16, 1), (16, 2), (1, 1), (16, 16)] {
        let x = normal(&[3, channels, 40, 40])?.requires_grad_(true)?;
        let weight = normal(&[16, channels / groups, 3, 3])?.requires_grad_(true)?;
        let result = x.conv2d_with(&weight, Conv2dOptions::new().padding([1, 1]).groups(groups))?;
        let gradients =
            autograd::grad(&[&result], &[&x, &weight], &[Some(&result.detach())], Options::default())?;
        results.push(result.detach());
        results.extend(gradients.into_iter().flatten());
    }
    Ok(results)
}

#[test]
fn a_number_of_threads_changes_no_bit() {
    let (a, b) = (normal(&[700, 900]).unwrap(), normal(&[700, 900]).unwrap());
    let (row, column) = (normal(&[900]).unwrap(), normal(&[700, 1]).unwrap());
    let half = a.to_dtype(DType::BF16).unwrap();
    compare("element-wise", || {
        let inplace = a.clone().mul(1.0)?;
        inplace.mul_(&b)?;
        inplace.exp_()?;
        Ok(vec![a.add(&b)?, a.tanh()?, half.gelu()?, inplace, a.gt(&b)?.to_dtype(DType::I64)?])
    });
    compare("strided", || {
        let transposed = a.t()?.add(&b.t()?)?;
        Ok(vec![a.add(&row)?, a.mul(&column)?, transposed, a.t()?.contiguous()?, a.to_dtype(DType::BF16)?])
    });
    let places =
        Tensor::from_slice(&(0..630_000i64).map(|at| at * 7919 % 700).collect::<Vec<_>>(), &[700, 900])
            .unwrap();
    compare("indices", || indexed(&a, &b, &places));
    compare("reductions", || {
        Ok(vec![
            a.sum()?,
            a.sum_dim(Some(&[0]))?,
            a.sum_dim(Some(&[1]))?,
            a.var_dim(Some(&[-1]))?,
            a.amax_with(AmaxOptions::new().dim([0]))?,
            a.argmax_with(ArgmaxOptions::new().dim(0))?,
            a.argmax_with(ArgmaxOptions::new().dim(1))?,
            a.argmax()?,
            a.t()?.argmax()?,
            a.narrow(1, 0, 20)?.var_dim(Some(&[0]))?,
            a.reshape([7, 90_000])?.var_dim(Some(&[1]))?,
            a.cumsum(0)?,
            half.sum()?,
        ])
    });
    compare("softmax", || Ok(vec![a.softmax(-1)?, a.softmax(0)?, a.log_softmax(1)?]));
    compare("norms", || norms(&a, &b, &row));
    compare("products", || {
        let stack = normal(&[9, 64, 100])?;
        let (wide, high) = (normal(&[130, 900])?, normal(&[900, 2000])?);
        Ok(vec![
            a.mm(&b.t()?)?,
            a.t()?.mm(&b)?,
            stack.bmm(&stack.transpose(1, 2)?)?,
            a.mv(&row)?,
            wide.mm(&high)?,
            high.t()?.mm(&wide.t()?)?,
            half.mm(&half.t()?)?,
        ])
    });
    compare("random numbers", random);
    compare("moves and searches", || moved(&a, &b));
    compare("convolutions", convolutions);
}
