"""Indexing: every key gives the elements that NumPy gives, to read and to write."""

import numpy as np
import pytest

import opsmith

BASE = np.arange(60).reshape(3, 4, 5)

KEYS = [
    0, -1, (1, 2), (1, 2, 3), slice(None), slice(1, 3), slice(None, None, 2), slice(-2, None), (0, slice(1, 3)), ...,
    (..., 0), (0, ...), (..., slice(1, 4, 2)), None, (None, 1), (1, None, 2), (slice(None), None), (..., None),
    (slice(2, 1), 0), slice(100), slice(-100, 2), [0, 2], ([0, 2], [1, 3]), ([0, 2], slice(None), [1, 3]), (slice(None), [0, -1]),
    (0, [1, 2], slice(1, 3)), np.array([2, 0]), (np.array([[0], [2]]), np.array([[1, 3]])), BASE > 30, (BASE[:, 0, 0] > 10,),
    (slice(None), BASE[0, :, 0] > 5), (slice(None), BASE[0] > 5), [True, False, True], (..., [0, 1]), [], (1, [], 2),
    np.int64(1), (np.int64(1), slice(None)), (None, [0, 1], None), True, False,
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_reading(key):
    found = opsmith.tensor(BASE)[key]
    np.testing.assert_array_equal(found.numpy(), BASE[key])


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_writing(key):
    expected, tensor = BASE.copy(), opsmith.tensor(BASE)
    expected[key] = 7
    tensor[key] = 7
    np.testing.assert_array_equal(tensor.numpy(), expected)
    value = np.arange(BASE[key].size).reshape(BASE[key].shape) - 5
    expected[key] = value
    tensor[key] = opsmith.asarray(value)
    np.testing.assert_array_equal(tensor.numpy(), expected)
    if value.ndim and value.shape[-1]:
        expected[key] = value[..., :1]
        tensor[key] = value[..., :1]
        np.testing.assert_array_equal(tensor.numpy(), expected)


@pytest.mark.parametrize("key", [slice(None, None, -1), slice(3, 0, -2), slice(-1, None, -3), (0, slice(None, None, -1))], ids=str)
def test_reading_from_the_end(key):
    np.testing.assert_array_equal(opsmith.tensor(BASE)[key].numpy(), BASE[key])
    with pytest.raises(ValueError, match="from the end"):
        opsmith.tensor(BASE)[key] = 1


def test_tensors_as_keys():
    x = opsmith.tensor(BASE)
    np.testing.assert_array_equal(x[opsmith.tensor([2, 0])].numpy(), BASE[[2, 0]])
    np.testing.assert_array_equal(x[x > 30].numpy(), BASE[BASE > 30])
    assert x[opsmith.tensor(1)].shape == (4, 5)


def test_parts_are_views():
    x = opsmith.tensor(BASE)
    part = x[1, :, 2:4]
    part += 100
    assert x[1, 0, 2].item() == BASE[1, 0, 2] + 100
    assert x[...].data_ptr() == x.data_ptr()


def test_values_are_converted():
    x = opsmith.zeros([2, 3])
    x[0] = [1, 2, 3]
    x[1] = True
    x[:, 0] = opsmith.tensor([5, 6])
    assert x.tolist() == [[5, 2, 3], [6, 1, 1]]
    with pytest.raises(TypeError, match="complex"):
        x[0] = 1j


@pytest.mark.parametrize(
    "key, kind", [(3, IndexError), ((0, 0, 0, 0), IndexError), ("a", TypeError), ((..., ...), IndexError), (1.5, TypeError),
                  ([0.5], IndexError), ([7], IndexError), (slice("a"), TypeError), (np.zeros((2, 2), bool), (IndexError, ValueError))]
)  # fmt: skip
def test_wrong_keys_are_errors(key, kind):
    with pytest.raises(kind):
        opsmith.tensor(BASE)[key]


def test_gradients_flow_through_parts():
    x = opsmith.tensor(BASE.astype(np.float32)).requires_grad_()
    (x[1, :, [0, 2]] * 2).sum().backward()
    expected = np.zeros_like(BASE)
    expected[1][:, [0, 2]] = 2
    np.testing.assert_array_equal(x.grad.numpy(), expected)
    y = opsmith.zeros([3]).requires_grad_()
    z = y * 1
    z[0] = 5
    z.sum().backward()
    assert y.grad.tolist() == [0, 1, 1]
