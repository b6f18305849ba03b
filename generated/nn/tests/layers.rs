//! Layers give PyTorch's results and gradients from the same state dicts.
//!
//! In: `data/layers.safetensors`, which `data/record.py` recorded. Out: the largest difference of each layer.

mod support;

use opsmith::{DType, Generator, Result, Tensor, TensorOps};
use opsmith_nn::*;
use support::{assert_close, cotangent, layers};

type Run = fn(&dyn Case, &[Tensor]) -> Result<Vec<Tensor>>;

/// A module under test, as the type that it is.
trait Case: Module {
    fn any(&self) -> &dyn std::any::Any;
}

impl<M: Module + 'static> Case for M {
    fn any(&self) -> &dyn std::any::Any {
        self
    }
}

fn of<M: 'static>(case: &dyn Case) -> &M {
    case.any().downcast_ref().unwrap()
}

/// Loads the recorded state, and compares results, gradients and buffers.
#[track_caller]
fn check(name: &str, mut module: impl Module + 'static, train: bool, run: Run) {
    let recorded = layers().below(name);
    module.to_dtype(DType::F64).unwrap();
    module.set_training(train);
    module.load_state_dict(&recorded.below("state")).unwrap();
    let inputs: Vec<Tensor> = numbered(&recorded, "input")
        .into_iter()
        .map(|x| x.requires_grad_(x.dtype().is_float()).unwrap())
        .collect();
    let outputs = run(&module, &inputs).unwrap();
    let expected = numbered(&recorded, "output");
    assert_eq!(outputs.len(), expected.len(), "{name}: number of results");
    let mut total = Tensor::scalar(0.0, DType::F64);
    for (position, (output, expected)) in outputs.iter().zip(&expected).enumerate() {
        assert_close(&format!("{name}: result {position}"), output, expected, 1e-9);
        total = total.add(&output.mul(&cotangent(output.shape())).unwrap().sum().unwrap()).unwrap();
    }
    total.backward().unwrap();
    for (path, expected) in recorded.below("input_grad").iter() {
        let grad = inputs[path.parse::<usize>().unwrap()].grad().unwrap();
        assert_close(&format!("{name}: gradient of input {path}"), &grad, expected, 1e-8);
    }
    let parameters = module.named_parameters();
    assert_eq!(parameters.len(), recorded.below("grad").len(), "{name}: parameters");
    for (path, parameter) in parameters {
        let grad = parameter.grad().unwrap_or_else(|| panic!("{name}: no gradient of {path}"));
        assert_close(&format!("{name}: {path}"), &grad, recorded.get(&format!("grad.{path}")).unwrap(), 1e-8);
    }
    for (path, buffer) in module.named_buffers() {
        assert_close(
            &format!("{name}: {path}"),
            &buffer,
            recorded.get(&format!("after.{path}")).unwrap(),
            1e-9,
        );
    }
}

fn numbered(recorded: &StateDict, kind: &str) -> Vec<Tensor> {
    let all = recorded.below(kind);
    (0..all.len()).map(|position| all.get(&position.to_string()).unwrap().clone()).collect()
}

#[track_caller]
fn layer<L: Layer + 'static>(name: &str, layer: L) {
    check(name, layer, false, |case, x| Ok(vec![of::<L>(case).forward(&x[0])?]));
}

#[track_caller]
fn trained<L: Layer + 'static>(name: &str, layer: L) {
    check(name, layer, true, |case, x| Ok(vec![of::<L>(case).forward(&x[0])?]));
}

fn g() -> Generator {
    Generator::new(0)
}

#[test]
fn linear_layers_and_embeddings() {
    layer("linear", Linear::new(3, 2, &g()).unwrap());
    let config = LinearConfig::new().bias(false);
    layer("linear_without_bias", Linear::new_with(3, 2, config, &g()).unwrap());
    layer("embedding", Embedding::new(5, 3, &g()).unwrap());
    let config = EmbeddingConfig::new().padding_index(-1).scale_grad_by_freq(true);
    layer("embedding_padding", Embedding::new_with(5, 3, config, &g()).unwrap());
}

#[test]
fn convolutions() {
    layer("conv1d", Conv1d::new_with(2, 4, 3, ConvConfig::new().padding(1).groups(2), &g()).unwrap());
    let config = ConvConfig::new().stride(2).padding([1, 0]).dilation([1, 2]);
    layer("conv2d", Conv2d::new_with(2, 3, [3, 2], config, &g()).unwrap());
    layer("conv2d_one_sample", Conv2d::new_with(1, 2, 2, ConvConfig::new().bias(false), &g()).unwrap());
    layer("conv3d", Conv3d::new(1, 2, 2, &g()).unwrap());
    let config = ConvTransposeConfig::new().stride(2).output_padding(1).groups(2);
    layer("conv_transpose1d", ConvTranspose1d::new_with(4, 2, 3, config, &g()).unwrap());
    let config = ConvTransposeConfig::new().stride([1, 2]).padding(1).dilation(2);
    layer("conv_transpose2d", ConvTranspose2d::new_with(2, 3, 2, config, &g()).unwrap());
    layer("conv_transpose3d", ConvTranspose3d::new(1, 2, 2, &g()).unwrap());
}

#[test]
fn batch_normalisation() {
    trained("batch_norm1d_train", BatchNorm1d::new(3).unwrap());
    layer("batch_norm1d_eval", BatchNorm1d::new(3).unwrap());
    let config = BatchNormConfig::new().momentum(None);
    trained("batch_norm2d_train", BatchNorm2d::new_with(2, config).unwrap());
    let config = BatchNormConfig::new().affine(false).track_running_stats(false);
    layer("batch_norm2d_without", BatchNorm2d::new_with(2, config).unwrap());
    let config = BatchNormConfig::new().eps(0.01).momentum(Some(0.5));
    trained("batch_norm3d_train", BatchNorm3d::new_with(2, config).unwrap());
}

#[test]
fn other_normalisations() {
    layer("layer_norm", LayerNorm::new([2, 3]).unwrap());
    let config = LayerNormConfig::new().bias(false);
    layer("layer_norm_without_bias", LayerNorm::new_with([3], config).unwrap());
    layer("rms_norm", RmsNorm::new([4]).unwrap());
    layer("rms_norm_eps", RmsNorm::new_with([4], RmsNormConfig::new().eps(0.1)).unwrap());
    layer("group_norm", GroupNorm::new(2, 4).unwrap());
    layer("instance_norm1d", InstanceNorm1d::new(2).unwrap());
    let affine = || InstanceNormConfig::new().affine(true);
    layer("instance_norm2d", InstanceNorm2d::new_with(2, affine()).unwrap());
    layer("instance_norm3d", InstanceNorm3d::new_with(2, affine()).unwrap());
}

#[test]
fn recurrent_layers() {
    check("lstm", Lstm::new(3, 2, &g()).unwrap(), false, |case, x| {
        let (output, (hidden, cell)) = of::<Lstm>(case).run(&x[0], None)?;
        Ok(vec![output, hidden, cell])
    });
    let config = RecurrentConfig::new().layers(2).bidirectional(true).batch_first(true);
    check("lstm_state", Lstm::new_with(3, 2, config, &g()).unwrap(), false, |case, x| {
        let (output, (hidden, cell)) = of::<Lstm>(case).run(&x[0], Some((&x[1], &x[2])))?;
        Ok(vec![output, hidden, cell])
    });
    let gru: Run = |case, x| of::<Gru>(case).run(&x[0], None).map(|(output, state)| vec![output, state]);
    check("gru", Gru::new_with(3, 2, RecurrentConfig::new().layers(2), &g()).unwrap(), false, gru);
    let config = RecurrentConfig::new().bias(false);
    check("gru_one_sample", Gru::new_with(3, 2, config, &g()).unwrap(), false, gru);
    let config = RnnConfig::new().recurrent(RecurrentConfig::new().bidirectional(true));
    check("rnn_tanh", Rnn::new_with(3, 2, config, &g()).unwrap(), false, |case, x| {
        of::<Rnn>(case).run(&x[0], None).map(|(output, state)| vec![output, state])
    });
    let config = RnnConfig::new().nonlinearity(RnnNonlinearity::Relu);
    check("rnn_relu", Rnn::new_with(3, 2, config, &g()).unwrap(), false, |case, x| {
        of::<Rnn>(case).run(&x[0], Some(&x[1])).map(|(output, state)| vec![output, state])
    });
}

/// True for a key after the query.
fn later() -> Tensor {
    let rows = [[0u8, 1, 1], [0, 0, 1], [0, 0, 0]].concat();
    Tensor::from_slice(&rows, &[3, 3]).unwrap().to_dtype(DType::Bool).unwrap()
}

#[test]
fn attention() {
    let with_weights: Run = |case, x| {
        let layer = of::<MultiheadAttention>(case);
        Ok(vec![layer.attend(&x[0], &x[1], &x[2])?, layer.weights(&x[0], &x[1], AttentionMasks::new())?])
    };
    check("attention", MultiheadAttention::new(4, 2, &g()).unwrap(), false, with_weights);
    let config = || AttentionConfig::new().batch_first(true);
    let causal: Run = |case, x| {
        let layer = of::<MultiheadAttention>(case);
        let masks = AttentionMasks::new().causal(true);
        let masked = AttentionMasks::new().mask(&later());
        let (y, masked) = (
            layer.attend_with(&x[0], &x[0], &x[0], masks.clone())?,
            layer.attend_with(&x[0], &x[0], &x[0], masked)?,
        );
        assert_close("a causal mask in two ways", &y, &masked, 1e-12);
        Ok(vec![y, layer.weights(&x[0], &x[0], masks)?])
    };
    let without = MultiheadAttention::new_with(4, 2, config().bias(false), &g()).unwrap();
    check("attention_causal", without, false, causal);
    check(
        "attention_padding",
        MultiheadAttention::new_with(4, 2, config(), &g()).unwrap(),
        false,
        |case, x| {
            let padding = Tensor::from_slice(&[false, false, true, false, true, false], &[2, 3])?;
            let masks = AttentionMasks::new().causal(true).key_padding(&padding);
            let layer = of::<MultiheadAttention>(case);
            Ok(vec![
                layer.attend_with(&x[0], &x[0], &x[0], masks.clone())?,
                layer.weights(&x[0], &x[0], masks)?,
            ])
        },
    );
    check("attention_one_sample", MultiheadAttention::new(4, 1, &g()).unwrap(), false, |case, x| {
        let layer = of::<MultiheadAttention>(case);
        let weights = layer.weights(&x[0], &x[0], AttentionMasks::new())?.squeeze_dim(0)?;
        Ok(vec![layer.forward(&x[0])?, weights])
    });
}

#[test]
fn transformers() {
    let config = TransformerLayerConfig::new().feed_forward(6).batch_first(true);
    layer("encoder_layer", TransformerEncoderLayer::new_with(4, 2, config, &g()).unwrap());
    let config = TransformerLayerConfig::new()
        .feed_forward(6)
        .activation(FeedForwardActivation::Gelu)
        .norm_first(true);
    layer("encoder_layer_first", TransformerEncoderLayer::new_with(4, 2, config, &g()).unwrap());
    let config = TransformerLayerConfig::new().feed_forward(3);
    let layers =
        (0..2).map(|_| TransformerEncoderLayer::new_with(4, 2, config.clone(), &g()).unwrap()).collect();
    let encoder = TransformerEncoder::new(layers, Some(LayerNorm::new([4]).unwrap()));
    check("encoder", encoder, false, |case, x| {
        let masks = AttentionMasks::new().mask(&later());
        Ok(vec![of::<TransformerEncoder>(case).forward_with(&x[0], &masks)?])
    });
}

#[test]
fn pooling() {
    layer("max_pool1d", MaxPool1d::new_with(2, MaxPoolConfig::new().stride(1)));
    layer("max_pool2d", MaxPool2d::new_with([2, 3], MaxPoolConfig::new().padding(1).ceil_mode(true)));
    layer("max_pool3d", MaxPool3d::new(2));
    layer("avg_pool1d", AvgPool1d::new_with(3, AvgPoolConfig::new().stride(2).padding(1)));
    layer("avg_pool2d", AvgPool2d::new_with(2, AvgPoolConfig::new().padding(1).count_include_pad(false)));
    layer("avg_pool3d", AvgPool3d::new([1, 2, 2]));
    layer("adaptive_avg_pool1d", AdaptiveAvgPool1d::new(2));
    layer("adaptive_avg_pool2d", AdaptiveAvgPool2d::new([2, 3]));
    layer("adaptive_avg_pool3d", AdaptiveAvgPool3d::new(1));
    layer("adaptive_max_pool1d", AdaptiveMaxPool1d::new(3));
    layer("adaptive_max_pool2d", AdaptiveMaxPool2d::new(2));
    layer("adaptive_max_pool3d", AdaptiveMaxPool3d::new([1, 2, 2]));
}

#[test]
fn activations() {
    layer("relu", Relu);
    layer("relu6", Relu6);
    layer("silu", Silu);
    layer("mish", Mish);
    layer("hardswish", Hardswish);
    layer("sigmoid", Sigmoid);
    layer("tanh", Tanh);
    layer("gelu", Gelu::exact());
    layer("gelu_tanh", Gelu::tanh());
    layer("leaky_relu", LeakyRelu::new(0.2));
    layer("elu", Elu::new(0.5));
    layer("softplus", Softplus::new(2.0, 1.0));
    layer("prelu", Prelu::new(3).unwrap());
    layer("softmax", Softmax { dim: -1 });
    layer("log_softmax", LogSoftmax { dim: 0 });
}

#[test]
fn sequences() {
    let network = sequential![
        Conv2d::new(1, 2, 2, &g()).unwrap(),
        BatchNorm2d::new(2).unwrap(),
        Relu,
        Flatten::new(),
        Linear::new(8, 3, &g()).unwrap(),
    ];
    trained("sequential", network);
}

/// Every recorded case is compared by a test above.
#[test]
fn every_recorded_layer_is_compared() {
    let source = include_str!("layers.rs");
    let all = layers();
    let names = all.names();
    let cases: std::collections::BTreeSet<&str> =
        names.iter().filter_map(|name| Some(name.split_once('.')?.0)).collect();
    assert!(cases.len() > 55, "only {} cases", cases.len());
    let missing: Vec<&&str> = cases.iter().filter(|case| !source.contains(&format!("\"{case}\""))).collect();
    assert!(missing.is_empty(), "no test compares {missing:?}");
}
