"""Tensors of a made-up library on a device, exchanged by the C functions of its class: run by `test_devices.py` on the stand-ins."""

import ctypes

import opsmith

driver = ctypes.CDLL("libcuda.so.1")
python = ctypes.pythonapi
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
python.PyCapsule_GetPointer.restype = ctypes.c_void_p
python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
NAME, USED, API = b"dltensor_versioned", b"used_dltensor_versioned", b"dlpack_exchange_api"
current, asked, living = [0], [], []


class Other:
    # An array of another library on a device, whose class has the C functions of DLPack.
    def __init__(self, tensor):
        self.tensor = tensor


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
def from_object(other, out):
    # Stream -1: the caller orders its work itself.
    capsule = other.tensor.__dlpack__(max_version=(1, 1), stream=-1)
    out[0] = python.PyCapsule_GetPointer(capsule, NAME)
    python.PyCapsule_SetName(capsule, USED)
    return 0


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
def to_object(head, out):
    made = Other(python.PyCapsule_New(head, NAME, None))
    living.append(made)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
    out[0] = id(made)
    return 0


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
def current_stream(kind, number, out):
    asked.append((kind, number))
    out[0] = current[0]
    return 0


class Functions(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32 * 2), ("previous", ctypes.c_void_p)] + [
        (name, ctypes.c_void_p) for name in ("allocate", "from_object", "to_object", "describe", "stream")
    ]


class Result:
    # The receiver's side of an object that a kernel gave.
    def __init__(self, other):
        self.other = other

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, **_):
        return self.other.tensor


def stream():
    made = ctypes.c_void_p()
    # The flag of streams that do not wait for the default stream, as those of other libraries.
    assert driver.cuStreamCreate(ctypes.byref(made), 1) == 0
    return made.value


def is_done(handle):
    return driver.cuStreamQuery(ctypes.c_void_p(handle)) == 0


cast = lambda function: ctypes.cast(function, ctypes.c_void_p)  # noqa: E731
functions = Functions((1, 3), None, None, cast(from_object), cast(to_object), None, cast(current_stream))
Other.__dlpack_c_exchange_api__ = python.PyCapsule_New(ctypes.addressof(functions), API, None)

definitions = {one.name: one for one in opsmith._opsmith._definitions()}
x = opsmith.arange(6).to(dtype="float32").to("cuda")
add = definitions["add.Tensor"].kernel(Other)
current[0] = stream()
result = add(Other(x), Other(x))
assert asked == [(2, 0)], asked
# The work is in the stream of the other library, and nobody waited for it.
assert not is_done(current[0])
assert driver.cuStreamSynchronize(ctypes.c_void_p(current[0])) == 0 and is_done(current[0])
taken = opsmith.from_dlpack(Result(result))
assert taken.tolist() == [0, 2, 4, 6, 8, 10]

# Work of this library's own stream comes first.
y = (x * 3)
result = add(Other(y), Other(x))
assert driver.cuStreamSynchronize(ctypes.c_void_p(current[0])) == 0
assert opsmith.from_dlpack(Result(result)).tolist() == [0, 4, 8, 12, 16, 20]

# The default stream, and gradients.
current[0] = 0
pullback = definitions["mul.Tensor"].pullback(Other)
product = definitions["mul.Tensor"].kernel(Other)(Other(x), Other(y))
first, second = pullback([Other(opsmith.ones([6]).to("cuda"))], [Other(x * y)], [True, True], Other(x), Other(y))
assert opsmith.from_dlpack(Result(first)).tolist() == y.tolist()
assert opsmith.from_dlpack(Result(second)).tolist() == x.tolist()

# After a call this thread's own stream is current again.
before = len(asked)
assert (x + x).tolist() == [0, 2, 4, 6, 8, 10] and len(asked) == before

# A stream whose work the other library records is refused.
current[0] = stream()
assert driver.cuStreamBeginCapture_v2(ctypes.c_void_p(current[0]), 1) == 0
try:
    add(Other(x), Other(x))
except opsmith.DeviceError as error:
    assert "recorded by another library" in str(error), error
else:
    raise AssertionError("a stream that is recorded was taken")
current[0] = 2
try:
    add(Other(x), Other(x))
except opsmith.DeviceError as error:
    assert "default stream of each thread" in str(error), error
else:
    raise AssertionError("the default stream of each thread was taken")
print("in the other library's stream")
