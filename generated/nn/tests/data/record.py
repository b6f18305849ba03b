#!/usr/bin/env python3
"""Results of PyTorch's layers, optimizers, schedules and clipping, for the tests beside this folder.

In: nothing. Out: `layers.safetensors` and `optim.safetensors` in this folder. Run with `torch` and `safetensors`:

    python -m venv /tmp/venv && /tmp/venv/bin/pip install torch numpy safetensors
    /tmp/venv/bin/python generated/nn/tests/data/record.py
"""

from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn
from torch.optim import lr_scheduler

HERE = Path(__file__).parent
torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
layers, optim = {}, {}


def cotangent(tensor):
    """The gradient of each result: the cosine of its position."""
    return torch.cos(torch.arange(tensor.numel(), dtype=torch.float64)).reshape(tensor.shape)


def layer(name, module, *inputs, call=None, train=False):
    """Records state, inputs, result and gradients of a call."""
    module.train(train)
    for parameter in module.parameters():
        # Ones and zeros, as normalisations have at first, would hide mistakes.
        with torch.no_grad():
            parameter.add_(0.1 * torch.randn_like(parameter))
    for key, tensor in module.state_dict().items():
        if key.endswith("running_mean"):
            tensor.copy_(torch.randn_like(tensor))
        if key.endswith("running_var"):
            tensor.copy_(torch.rand_like(tensor) + 0.5)
        layers[f"{name}/state/{key}"] = tensor.clone()
    tracked = [x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
    result = (call or (lambda m, *xs: m(*xs)))(module, *tracked)
    results = [x for x in (result if isinstance(result, tuple) else (result,)) if x is not None]
    sum((x * cotangent(x)).sum() for x in results).backward()
    for position, x in enumerate(tracked):
        layers[f"{name}/input/{position}"] = x.detach()
        if x.grad is not None:
            layers[f"{name}/input_grad/{position}"] = x.grad
    for position, x in enumerate(results):
        layers[f"{name}/output/{position}"] = x.detach()
    for key, parameter in module.named_parameters():
        layers[f"{name}/grad/{key}"] = parameter.grad
    for key, buffer in module.named_buffers():
        layers[f"{name}/after/{key}"] = buffer.clone()


r = torch.randn
layer("linear", nn.Linear(3, 2), r(4, 3))
layer("linear_without_bias", nn.Linear(3, 2, bias=False), r(2, 2, 3))
layer("conv1d", nn.Conv1d(2, 4, 3, padding=1, groups=2), r(2, 2, 5))
layer("conv2d", nn.Conv2d(2, 3, (3, 2), stride=2, padding=(1, 0), dilation=(1, 2)), r(1, 2, 6, 7))
layer("conv2d_one_sample", nn.Conv2d(1, 2, 2, bias=False), r(1, 3, 3))
layer("conv3d", nn.Conv3d(1, 2, 2), r(1, 1, 3, 3, 2))
layer("conv_transpose1d", nn.ConvTranspose1d(4, 2, 3, stride=2, output_padding=1, groups=2), r(1, 4, 3))
layer("conv_transpose2d", nn.ConvTranspose2d(2, 3, 2, stride=(1, 2), padding=1, dilation=2), r(1, 2, 3, 4))
layer("conv_transpose3d", nn.ConvTranspose3d(1, 2, 2), r(1, 1, 2, 2, 2))
layer("batch_norm1d_train", nn.BatchNorm1d(3), r(4, 3), train=True)
layer("batch_norm1d_eval", nn.BatchNorm1d(3), r(2, 3, 2))
layer("batch_norm2d_train", nn.BatchNorm2d(2, momentum=None), r(2, 2, 2, 3), train=True)
layer("batch_norm2d_without", nn.BatchNorm2d(2, affine=False, track_running_stats=False), r(2, 2, 2, 2))
layer("batch_norm3d_train", nn.BatchNorm3d(2, eps=0.01, momentum=0.5), r(2, 2, 1, 2, 2), train=True)
layer("layer_norm", nn.LayerNorm([2, 3]), r(2, 2, 3))
layer("layer_norm_without_bias", nn.LayerNorm(3, bias=False), r(2, 3))
layer("rms_norm", nn.RMSNorm(4), r(2, 4))
layer("rms_norm_eps", nn.RMSNorm(4, eps=0.1), r(2, 4))
layer("group_norm", nn.GroupNorm(2, 4), r(2, 4, 3))
layer("instance_norm1d", nn.InstanceNorm1d(2), r(2, 2, 4))
layer("instance_norm2d", nn.InstanceNorm2d(2, affine=True), r(2, 2, 2, 3))
layer("instance_norm3d", nn.InstanceNorm3d(2, affine=True), r(2, 2, 2, 1))
layer("embedding", nn.Embedding(5, 3), torch.tensor([[1, 4], [1, 0]]))
layer("embedding_padding", nn.Embedding(5, 3, padding_idx=-1, scale_grad_by_freq=True), torch.tensor([1, 4, 1]))
layer("lstm", nn.LSTM(3, 2), r(4, 2, 3), call=lambda m, x: (m(x)[0], *m(x)[1]))
layer(
    "lstm_state",
    nn.LSTM(3, 2, num_layers=2, bidirectional=True, batch_first=True),
    r(2, 3, 3),
    r(4, 2, 2),
    r(4, 2, 2),
    call=lambda m, x, h, c: (lambda o, s: (o, *s))(*m(x, (h, c))),
)
layer("gru", nn.GRU(3, 2, num_layers=2), r(3, 2, 3))
layer("gru_one_sample", nn.GRU(3, 2, bias=False), r(3, 3))
layer("rnn_tanh", nn.RNN(3, 2, bidirectional=True), r(3, 2, 3))
layer("rnn_relu", nn.RNN(3, 2, nonlinearity="relu"), r(3, 1, 3), r(1, 1, 2))
attend = lambda m, q, k, v: m(q, k, v)
layer("attention", nn.MultiheadAttention(4, 2), r(3, 2, 4), r(5, 2, 4), r(5, 2, 4), call=attend)
mask = torch.triu(torch.ones(3, 3, dtype=torch.bool), 1)
layer("attention_causal", nn.MultiheadAttention(4, 2, bias=False, batch_first=True), r(2, 3, 4),
      call=lambda m, x: m(x, x, x, attn_mask=mask, is_causal=True))
padding = torch.tensor([[False, False, True], [False, True, False]])
layer("attention_padding", nn.MultiheadAttention(4, 2, batch_first=True), r(2, 3, 4),
      call=lambda m, x: m(x, x, x, attn_mask=mask, key_padding_mask=padding))
layer("attention_one_sample", nn.MultiheadAttention(4, 1), r(3, 4), call=lambda m, x: m(x, x, x))
layer("encoder_layer", nn.TransformerEncoderLayer(4, 2, 6, batch_first=True), r(2, 3, 4))
layer("encoder_layer_first", nn.TransformerEncoderLayer(4, 2, 6, activation="gelu", norm_first=True), r(3, 2, 4))
encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 3), 2, nn.LayerNorm(4), enable_nested_tensor=False)
layer("encoder", encoder, r(3, 1, 4), call=lambda m, x: m(x, mask=mask))
layer("max_pool1d", nn.MaxPool1d(2, stride=1), r(1, 2, 5))
layer("max_pool2d", nn.MaxPool2d((2, 3), padding=1, ceil_mode=True), r(1, 1, 5, 6))
layer("max_pool3d", nn.MaxPool3d(2), r(1, 1, 2, 4, 2))
layer("avg_pool1d", nn.AvgPool1d(3, stride=2, padding=1), r(1, 2, 6))
layer("avg_pool2d", nn.AvgPool2d(2, padding=1, count_include_pad=False), r(1, 1, 4, 5))
layer("avg_pool3d", nn.AvgPool3d((1, 2, 2)), r(1, 1, 2, 4, 2))
layer("adaptive_avg_pool1d", nn.AdaptiveAvgPool1d(2), r(1, 2, 5))
layer("adaptive_avg_pool2d", nn.AdaptiveAvgPool2d((2, 3)), r(1, 1, 5, 4))
layer("adaptive_avg_pool3d", nn.AdaptiveAvgPool3d(1), r(1, 2, 2, 2, 3))
layer("adaptive_max_pool1d", nn.AdaptiveMaxPool1d(3), r(1, 1, 5))
layer("adaptive_max_pool2d", nn.AdaptiveMaxPool2d(2), r(1, 1, 5, 4))
layer("adaptive_max_pool3d", nn.AdaptiveMaxPool3d((1, 2, 2)), r(1, 1, 2, 3, 4))
for name, module in {
    "relu": nn.ReLU(), "relu6": nn.ReLU6(), "silu": nn.SiLU(), "mish": nn.Mish(), "hardswish": nn.Hardswish(),
    "sigmoid": nn.Sigmoid(), "tanh": nn.Tanh(), "gelu": nn.GELU(), "gelu_tanh": nn.GELU(approximate="tanh"),
    "leaky_relu": nn.LeakyReLU(0.2), "elu": nn.ELU(0.5), "softplus": nn.Softplus(2.0, 1.0),
    "prelu": nn.PReLU(3), "softmax": nn.Softmax(-1), "log_softmax": nn.LogSoftmax(0),
}.items():
    layer(name, module, 3 * r(2, 3))
sequence = nn.Sequential(nn.Conv2d(1, 2, 2), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3))
layer("sequential", sequence, r(3, 1, 3, 3), train=True)


def gradient(parameter, step):
    """A gradient that depends on the parameter, so that mistakes do not cancel."""
    return 0.5 * parameter + torch.cos(torch.arange(parameter.numel()) + step).reshape(parameter.shape)


def parameters():
    first = torch.linspace(-1, 1, 6).reshape(2, 3)
    return [first.clone().requires_grad_(), torch.linspace(2, -1, 4).requires_grad_()]


def optimizer(name, make):
    """Records the parameters after each of ten steps."""
    owned = parameters()
    made = make(owned)
    for step in range(10):
        for parameter in owned:
            parameter.grad = gradient(parameter.detach(), step)
        made.step()
        for position, parameter in enumerate(owned):
            optim[f"{name}/{step}/{position}"] = parameter.detach().clone()


o = torch.optim
optimizer("sgd", lambda p: o.SGD(p, lr=0.1))
optimizer("sgd_momentum", lambda p: o.SGD(p, lr=0.1, momentum=0.9, dampening=0.2, weight_decay=0.01))
optimizer("sgd_nesterov", lambda p: o.SGD(p, lr=0.05, momentum=0.9, nesterov=True))
optimizer("sgd_groups", lambda p: o.SGD([{"params": [p[0]]}, {"params": [p[1]], "lr": 0.5}], lr=0.1))
optimizer("adam", lambda p: o.Adam(p, lr=0.1))
optimizer("adam_amsgrad", lambda p: o.Adam(p, lr=0.1, betas=(0.8, 0.9), eps=1e-3, weight_decay=0.1, amsgrad=True))
optimizer("adamw", lambda p: o.AdamW(p, lr=0.1))
optimizer("adamw_amsgrad", lambda p: o.AdamW(p, lr=0.1, weight_decay=0.2, amsgrad=True))
optimizer("rms_prop", lambda p: o.RMSprop(p))
optimizer("rms_prop_centered", lambda p: o.RMSprop(p, lr=0.05, alpha=0.9, momentum=0.5, centered=True, weight_decay=0.1))
optimizer("adagrad", lambda p: o.Adagrad(p))
optimizer("adagrad_decay",
          lambda p: o.Adagrad(p, lr=0.1, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.5, eps=1e-3))


def schedule(name, make, steps=30):
    """Records the learning rate of each step."""
    made = o.SGD(parameters(), lr=0.3)
    scheduler, rates = make(made), []
    for _ in range(steps):
        rates.append(made.param_groups[0]["lr"])
        made.step()
        scheduler.step()
    optim[f"schedule/{name}"] = torch.tensor(rates)


s = lr_scheduler
schedule("step", lambda m: s.StepLR(m, 4, 0.5))
schedule("exponential", lambda m: s.ExponentialLR(m, 0.9))
schedule("cosine", lambda m: s.CosineAnnealingLR(m, 20, eta_min=0.01))
schedule("warmup", lambda m: s.LinearLR(m, start_factor=0.1, total_iters=7))
cycle = dict(cycle_momentum=False)
schedule("one_cycle", lambda m: s.OneCycleLR(m, 0.5, total_steps=31, **cycle))
schedule("one_cycle_linear", lambda m: s.OneCycleLR(
    m, 0.5, total_steps=31, pct_start=0.4, div_factor=10, final_div_factor=100, anneal_strategy="linear", **cycle))
schedule("chained", lambda m: s.ChainedScheduler(
    [s.LinearLR(m, start_factor=0.25, total_iters=5), s.ExponentialLR(m, 0.9)]))
schedule("sequence", lambda m: s.SequentialLR(
    m, [s.LinearLR(m, start_factor=0.1, total_iters=5), s.CosineAnnealingLR(m, 25)], milestones=[5]))

for name, order in {"one": 1.0, "two": 2.0, "infinity": float("inf")}.items():
    owned = parameters()
    for parameter in owned:
        parameter.grad = gradient(parameter.detach(), 0)
    optim[f"clip/{name}/norm"] = torch.nn.utils.clip_grad_norm_(owned, 0.7, norm_type=order)
    for position, parameter in enumerate(owned):
        optim[f"clip/{name}/{position}"] = parameter.grad
owned = parameters()
for parameter in owned:
    parameter.grad = gradient(parameter.detach(), 0)
torch.nn.utils.clip_grad_value_(owned, 0.4)
for position, parameter in enumerate(owned):
    optim[f"clip/value/{position}"] = parameter.grad

for name, tensors in {"layers": layers, "optim": optim}.items():
    save_file({key: tensor.contiguous() for key, tensor in tensors.items()}, HERE / f"{name}.safetensors")
