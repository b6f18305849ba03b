"""Arrays of other libraries: DLPack, buffers, NumPy's protocols; memory is shared, kept alive, and not written if it must not be."""

import array
import ctypes
import gc
import weakref

import numpy as np
import pytest

import opsmith

DTYPES = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64",
          "complex64", "complex128"]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_dlpack_copies_nothing_in_either_direction(dtype):
    array = np.array([[1, 0, 1], [0, 1, 1]], dtype=dtype)
    tensor = opsmith.from_dlpack(array)
    assert tensor.data_ptr() == array.ctypes.data and tensor.dtype.name == dtype and tensor.shape == (2, 3)
    back = np.from_dlpack(tensor)
    assert back.ctypes.data == array.ctypes.data and back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)


@pytest.mark.parametrize("dtype", DTYPES)
def test_buffers_copy_nothing(dtype):
    tensor = opsmith.tensor([[1, 0], [1, 1]], dtype=dtype)
    array = np.asarray(tensor)
    assert array.ctypes.data == tensor.data_ptr() and array.dtype.name == dtype and array.flags.writeable
    assert tensor.numpy().ctypes.data == tensor.data_ptr()
    view = memoryview(tensor)
    assert (view.shape, view.strides, view.readonly) == ((2, 2), (2 * tensor.itemsize, tensor.itemsize), False)


def test_writes_are_seen_on_the_other_side():
    array = np.zeros(3)
    tensor = opsmith.asarray(array)
    array[1] = 5
    tensor += 1
    assert array.tolist() == tensor.tolist() == [1, 6, 1]
    tensor.numpy()[0] = 9
    assert array[0] == 9


def test_views_with_any_strides():
    array = np.arange(24.0).reshape(4, 6)
    for part in (array[1:3], array[:, ::2], array.T, array[::-1], array[::-2, 1::2], array[2], array[:, 3:4], array[:0]):
        tensor = opsmith.from_dlpack(part)
        np.testing.assert_array_equal(tensor.numpy(), part)
        if part.size:
            assert tensor.data_ptr() == part.ctypes.data
        np.testing.assert_array_equal(np.from_dlpack(tensor), part)
    assert opsmith.from_dlpack(np.array(3.0)).shape == ()


def test_memory_lives_as_long_as_either_side_needs_it():
    class Array(np.ndarray):
        pass

    array = np.arange(1000.0).view(Array)
    gone = weakref.ref(array)
    tensor = opsmith.from_dlpack(array)
    part = tensor[10:20]
    del array, tensor
    gc.collect()
    assert gone() is not None and part.tolist() == list(range(10, 20))
    del part
    gc.collect()
    assert gone() is None
    made = opsmith.ones([1000])
    found, view = np.from_dlpack(made), memoryview(made)
    del made
    gc.collect()
    assert found.sum() == 1000 and view[999] == 1


def test_capsules_that_nobody_takes_are_freed():
    tensor = opsmith.ones([4])
    for _ in range(1000):
        tensor.__dlpack__()
        tensor.__dlpack__(max_version=(1, 0))
    capsule = tensor.__dlpack__()

    class Holder:
        def __dlpack__(self, **named):
            return capsule

        def __dlpack_device__(self):
            return (1, 0)

    assert opsmith.from_dlpack(Holder()).tolist() == [1, 1, 1, 1]
    with pytest.raises(TypeError, match="not used before"):
        opsmith.from_dlpack(Holder())


def test_memory_that_must_not_be_written_is_copied():
    array = np.arange(3.0)
    array.flags.writeable = False
    if np.lib.NumpyVersion(np.__version__) < "2.1.0":
        # It does not know the version with flags, and gives no such array away.
        with pytest.raises(BufferError, match="readonly"):
            opsmith.from_dlpack(array)
    else:
        tensor = opsmith.from_dlpack(array)
        assert tensor.data_ptr() != array.ctypes.data
        tensor += 1
        assert array.tolist() == [0, 1, 2] and tensor.tolist() == [1, 2, 3]
    shared = opsmith.asarray(array)
    shared += 1
    assert array.tolist() == [0, 1, 2]
    with pytest.raises((BufferError, ValueError)):
        opsmith.from_dlpack(array, copy=False)


def test_the_version_without_flags():
    class Old:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, stream=None):
            return self.array.__dlpack__()

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    array = np.arange(3.0)
    tensor = opsmith.from_dlpack(Old(array))
    assert tensor.data_ptr() == array.ctypes.data
    get = ctypes.pythonapi.PyCapsule_IsValid
    get.argtypes = [ctypes.py_object, ctypes.c_char_p]
    assert get(tensor.__dlpack__(), b"dltensor") and get(tensor.__dlpack__(max_version=(1, 3)), b"dltensor_versioned")


def test_copies_on_demand():
    array = np.arange(3.0)
    assert opsmith.from_dlpack(array, copy=True).data_ptr() != array.ctypes.data
    assert opsmith.asarray(array, copy=True).data_ptr() != array.ctypes.data
    assert opsmith.asarray(array, copy=False).data_ptr() == array.ctypes.data
    assert opsmith.asarray(array, dtype="float32").dtype is opsmith.float32
    with pytest.raises(ValueError, match="needs a copy"):
        opsmith.asarray(array, dtype="float32", copy=False)
    with pytest.raises(ValueError, match="without a copy"):
        opsmith.asarray([1, 2], copy=False)
    assert np.array(opsmith.ones([2]), copy=True).tolist() == [1, 1]


def test_gradients_are_not_lost_silently():
    x = opsmith.ones([2]).requires_grad_()
    with pytest.raises(BufferError, match="detach"):
        x.__dlpack__()
    with pytest.raises(BufferError, match="detach"):
        memoryview(x)
    with pytest.raises(TypeError, match="detach"):
        x.numpy()
    assert x.numpy(force=True).tolist() == x.detach().numpy().tolist() == [1, 1]


def test_other_orders_of_bytes_and_types():
    assert opsmith.asarray(np.array([1, 256], dtype=">i4")).tolist() == [1, 256]
    assert opsmith.asarray(np.array([1.5], dtype=">f8")).tolist() == [1.5]
    with pytest.raises(TypeError):
        opsmith.asarray(np.array(["a"]))
    with pytest.raises(TypeError):
        opsmith.asarray(np.array([object()]))
    x = opsmith.tensor([1.5, 2.0], dtype="bfloat16")
    assert x.numpy().dtype == np.float32 and opsmith.from_dlpack(x).dtype is opsmith.bfloat16
    with pytest.raises(BufferError, match="no format"):
        memoryview(x)


def test_bytes_that_are_no_truth_values_are_an_error():
    array = np.array([0, 1, 2], dtype=np.uint8).view(bool)
    for make in (opsmith.from_dlpack, opsmith.asarray, opsmith.tensor):
        with pytest.raises((BufferError, ValueError), match="neither 0 nor 1"):
            make(array)


def test_a_buffer_without_strides_needs_rows_without_gaps():
    x = opsmith.ones([2, 3])
    assert bytes(x) == b"\0\0\x80\x3f" * 6
    assert np.frombuffer(x, dtype=np.float32).tolist() == [1.0] * 6
    with pytest.raises((BufferError, ValueError)):
        np.frombuffer(x.T, dtype=np.float32)


def test_functions_of_numpy_take_tensors():
    x = opsmith.tensor([1.0, 4.0])
    assert np.sqrt(x).tolist() == [1.0, 2.0] and np.sum(x) == 5.0
    assert np.stack([x, x]).shape == (2, 2)


def test_pytorch_exchanges_memory():
    torch = pytest.importorskip("torch")
    given = torch.arange(6.0).reshape(2, 3)
    tensor = opsmith.from_dlpack(given)
    assert tensor.data_ptr() == given.data_ptr()
    back = torch.from_dlpack(tensor)
    assert back.data_ptr() == given.data_ptr() and torch.equal(back, given)
    half = torch.ones(2, dtype=torch.bfloat16)
    assert opsmith.from_dlpack(half).dtype is opsmith.bfloat16
    for name in ("float8_e4m3fn", "float8_e5m2"):
        given = torch.tensor([0.3, -1.5, 1e6]).to(getattr(torch, name))
        tensor = opsmith.from_dlpack(given)
        assert tensor.dtype is getattr(opsmith, name) and tensor.data_ptr() == given.data_ptr()
        assert tensor.tolist() == given.float().tolist()
        back = torch.from_dlpack(tensor)
        assert back.dtype is given.dtype and back.data_ptr() == given.data_ptr()


def test_integers_of_4_bits_have_a_byte_each():
    x = opsmith.tensor([-9, -8, 7, 8]).to(opsmith.int4)
    assert x.tolist() == [7, -8, 7, -8] and x.itemsize == 1 and not x.dtype.is_floating_point
    assert x.numpy().dtype == np.int8 and x.to(opsmith.uint4).numpy().dtype == np.uint8
    assert x.to(opsmith.uint4).tolist() == [7, 8, 7, 8]
    again = opsmith.from_dlpack(x)
    assert again.dtype is opsmith.int4 and again.data_ptr() == x.data_ptr()
    with pytest.raises(BufferError, match="a byte for each element"):
        x.__dlpack__()
    with pytest.raises(opsmith.Error, match=r"to\(int8\)"):
        x + x
    assert opsmith.unpack_int4(opsmith.pack_int4(x)).tolist() == x.tolist()
    with pytest.raises(TypeError, match="convert `x` first"):
        opsmith.save_file({"x": x}, "never.safetensors")


def test_floats_of_8_bits_are_stored_and_converted():
    for dtype, largest in ((opsmith.float8_e4m3fn, 448.0), (opsmith.float8_e5m2, float("inf"))):
        x = opsmith.tensor([0.3, -1.5, 1e6], dtype=dtype)
        assert x.tolist() == [0.3125, -1.5, largest] and x.itemsize == 1 and dtype.is_floating_point
        assert x.numpy().dtype == np.float32
        assert x.to(opsmith.float32).to(dtype).tolist() == x.tolist()
        assert opsmith.from_dlpack(x).data_ptr() == x.data_ptr()
        with pytest.raises(BufferError, match="no format"):
            memoryview(x)
        for wrong in (lambda: x + x, lambda: x + 1, lambda: x + opsmith.tensor([1.0])):
            with pytest.raises(opsmith.Error, match=r"to\(float32\)"):
                wrong()


class Known:
    """An array of a library that knows the version with flags, and gives the one without."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, *, stream=None, max_version=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_the_version_without_flags_must_not_be_written_where_the_other_is_known():
    array = np.arange(3.0)
    for make in (opsmith.from_dlpack, opsmith.asarray):
        tensor = make(Known(array))
        tensor += 1
        assert tensor.tolist() == [1, 2, 3] and array.tolist() == [0, 1, 2]
    with pytest.raises(BufferError, match="must not be written"):
        opsmith.from_dlpack(Known(array), copy=False)
    for call in (lambda: opsmith.add_(Known(array), 1), lambda: opsmith.add(tensor, 1, out=Known(array))):
        with pytest.raises(opsmith.ArgumentError, match="must not be written|readonly"):
            call()
    assert opsmith.add(Known(array), 1).tolist() == [1, 2, 3] and array.tolist() == [0, 1, 2]


def test_arrays_of_jax_are_not_written():
    numpy = pytest.importorskip("jax.numpy")
    x = numpy.ones(3)
    for make in (opsmith.from_dlpack, opsmith.asarray):
        tensor = make(x)
        tensor += 1
        assert tensor.tolist() == [2, 2, 2]
    for call in (lambda: opsmith.add_(x, 1), lambda: opsmith.add(tensor, 1, out=x)):
        with pytest.raises(opsmith.ArgumentError, match="is written"):
            call()
    assert x.tolist() == [1, 1, 1]


def test_buffers_without_a_shape_are_shared():
    data, numbers = bytearray(b"abc"), array.array("d", [1, 2])
    shared = opsmith.asarray(data)
    shared += 1
    assert data == b"bcd" and shared.dtype is opsmith.uint8
    assert opsmith.asarray(numbers).tolist() == [1, 2] and opsmith.asarray(numbers, copy=False).dtype is opsmith.float64
    opsmith.mul_(numbers, 2)
    opsmith.add(opsmith.ones([3], dtype="uint8"), 1, out=data)
    assert numbers.tolist() == [2, 4] and data == b"\2\2\2"
    assert opsmith.tensor(memoryview(numbers)).tolist() == [2, 4] and opsmith.add(numbers, 1).tolist() == [3, 5]
    frozen = memoryview(b"abc")
    tensor = opsmith.asarray(frozen)
    tensor += 1
    assert bytes(frozen) == b"abc" and tensor.tolist() == [98, 99, 100]
    with pytest.raises(opsmith.ArgumentError, match="must not be written|readonly"):
        opsmith.add_(frozen, 1)


def test_unaligned_memory_is_copied_or_refused():
    unaligned = np.zeros(13, np.uint8)[1:].view(np.float32)
    assert opsmith.asarray(unaligned).tolist() == [0, 0, 0]
    with pytest.raises(BufferError, match="not aligned"):
        opsmith.from_dlpack(unaligned)
