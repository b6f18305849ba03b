"""Frames of XLA made by hand, as a program on a device of CUDA gives them to a foreign function: run on the stand-ins by `test_devices.py`
for the package (`package`) and by `test_bridge_jax.py` for a folder's library (`folder`). Structures are those of `xla/ffi/api/c_api.h`."""

import array
import ctypes
import json
import sys

driver = ctypes.CDLL("libcuda.so.1")
pointer, size = ctypes.c_void_p, ctypes.c_size_t
FLOAT32, INT32, INT64, FLOAT64 = 11, 4, 5, 12
ARRAY, SCALAR, STRING, EXECUTE = 1, 3, 4, 3
ENTRIES = {FLOAT32: ctypes.c_float, INT32: ctypes.c_int32, INT64: ctypes.c_int64, FLOAT64: ctypes.c_double}
alive = []


def kept(made):
    alive.append(made)
    return made


def call(name, *arguments):
    code = getattr(driver, name)(*arguments)
    assert code == 0, (name, code)


def words(*values):
    """A structure of words, whose first is its size."""
    return kept((ctypes.c_uint64 * (len(values) + 1))(8 * (len(values) + 1), *values))


def at(made):
    return ctypes.addressof(made)


def memory(count):
    address = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(address), size(max(count, 1)))
    return address.value


def stream():
    made = pointer()
    call("cuStreamCreate", ctypes.byref(made), 1)
    return made.value


def is_done(handle):
    return driver.cuStreamQuery(pointer(handle)) == 0


class Buffer:
    """An array of a program: in memory of the device, with given elements or room for them."""

    def __init__(self, dtype, shape, elements=None, handle=0):
        self.entry = ENTRIES[dtype]
        self.count = 1
        for one in shape:
            self.count *= one
        self.address = memory(self.count * ctypes.sizeof(self.entry))
        dims = kept((ctypes.c_int64 * max(len(shape), 1))(*shape))
        self.words = words(0, dtype, self.address, len(shape), at(dims))
        if elements is not None:
            given = kept((self.entry * self.count)(*elements))
            count = size(ctypes.sizeof(given))
            call("cuMemcpyHtoDAsync_v2", ctypes.c_uint64(self.address), given, count, pointer(handle))

    def elements(self):
        found = (self.entry * self.count)()
        call("cuMemcpyDtoH_v2", found, ctypes.c_uint64(self.address), size(ctypes.sizeof(found)))
        return list(found)


def buffers(items):
    kinds = kept((ctypes.c_int32 * max(len(items), 1))(*[1] * len(items)))
    places = kept((pointer * max(len(items), 1))(*[at(one.words) for one in items]))
    return [40, 0, len(items), at(kinds), at(places)]


def text(value):
    encoded = kept(ctypes.create_string_buffer(value.encode()))
    return kept((ctypes.c_uint64 * 2)(at(encoded), len(value.encode())))


def attributes(given):
    """Attributes by name: texts, integers, lists of integers, and lists of real numbers as arrays."""
    kinds, names, items = [], [], []
    for name, value in sorted(given.items()):
        names.append(at(text(name)))
        if isinstance(value, str):
            kinds.append(STRING)
            items.append(at(text(value)))
        elif isinstance(value, int):
            kinds.append(SCALAR)
            items.append(at(kept((ctypes.c_uint64 * 2)(INT64, at(kept(ctypes.c_int64(value)))))))
        else:
            dtype = FLOAT64 if isinstance(value, array.array) else INT64
            listed = kept((ENTRIES[dtype] * len(value))(*value))
            kinds.append(ARRAY)
            items.append(at(kept((ctypes.c_uint64 * 3)(dtype, len(value), at(listed)))))
    lists = [kept((ctypes.c_int32 * len(kinds))(*kinds))]
    lists += [kept((pointer * len(kinds))(*one)) for one in (names, items)]
    return [48, 0, len(kinds), *map(at, lists)]


class Context:
    """The program's stream and device, and the interface's functions that tell them; all others are missing."""

    def __init__(self, handle, number, is_on_device=True):
        self.handle, self.number, self.messages, self.scratch = handle, number, {}, []
        self.refusal = None if is_on_device else "no stream in a program of the host"
        functions = [None] * 18
        functions[0] = self.function(self.make_error)
        functions[1] = self.function(self.message)
        functions[2] = self.function(lambda arguments: self.messages.pop(arguments[2]) and None)
        functions[4] = self.function(self.stream)
        functions[9] = self.function(self.allocate)
        functions[10] = self.function(lambda arguments: self.free(arguments[4]))
        functions[17] = self.function(self.ordinal)
        addresses = [0 if one is None else ctypes.cast(one, pointer).value for one in functions]
        version = [24, 0, 3 << 32]  # Major 0, minor 3.
        self.interface = words(0, *version, 0, *addresses)

    @staticmethod
    def function(body):
        def called(arguments):
            return body(ctypes.cast(arguments, ctypes.POINTER(ctypes.c_uint64))) or 0

        return kept(ctypes.CFUNCTYPE(ctypes.c_uint64, pointer)(called))

    def error(self, message):
        self.messages[len(self.messages) + 1] = kept(ctypes.create_string_buffer(message.encode()))
        return len(self.messages)

    def make_error(self, arguments):
        return self.error(ctypes.string_at(arguments[2]).decode())

    def message(self, arguments):
        arguments[3] = at(self.messages[arguments[2]])

    def stream(self, arguments):
        assert arguments[2] == at(self.interface)
        arguments[3] = self.handle
        return None if self.refusal is None else self.error(self.refusal)

    def ordinal(self, arguments):
        # The last field has 32 bits.
        assert arguments[0] == 28
        ctypes.cast(ctypes.addressof(arguments.contents) + 24, ctypes.POINTER(ctypes.c_int32))[0] = self.number

    def allocate(self, arguments):
        self.scratch.append(memory(arguments[3]))
        arguments[5] = self.scratch[-1]

    def free(self, address):
        # As XLA's memory, it is reused in the order of the stream, and so not before the work.
        self.scratch.remove(address)

    def frame(self, handler, arguments, results, given):
        """Calls a handler; returns the text of its error, or None."""
        frame = words(0, at(self.interface), at(self.interface), EXECUTE, *buffers(arguments), *buffers(results), *attributes(given), 0)
        frame[0] -= 8  # The last field, for results that come later, is not counted.
        error = ctypes.CFUNCTYPE(ctypes.c_uint64, pointer)(handler)(at(frame))
        return None if error == 0 else self.messages.pop(error).value.decode()


def close(found, expected):
    assert len(found) == len(expected) and all(abs(a - b) < 1e-5 for a, b in zip(found, expected)), (found, expected)


def package():
    import opsmith

    definitions = {one.name: one for one in opsmith._opsmith._definitions()}

    def decoder(described):
        name, arguments, derivative = json.loads(described)
        return definitions[name], [tuple(one) for one in arguments], derivative and tuple(derivative)

    capsule = opsmith._opsmith._xla_handler(decoder, True)
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = pointer, [ctypes.py_object, ctypes.c_char_p]
    handler = get(capsule, b"xla._CUSTOM_CALL_TARGET")
    assert opsmith.ones([1]).to("cuda").tolist() == [1.0]
    context = Context(stream(), 0)
    x = Buffer(FLOAT32, [2, 3], [1, 2, 3, 4, 5, 6], context.handle)
    row = Buffer(FLOAT32, [3], [3, 2, 1], context.handle)
    arguments = [["self", "array", 0, []], ["other", "array", 1, []]]
    product = Buffer(FLOAT32, [2, 3])
    described = json.dumps(["mul.Tensor", arguments, None])
    assert context.frame(handler, [x, row], [product], {"call": described}) is None
    assert not is_done(context.handle), "the host waited"
    call("cuStreamSynchronize", pointer(context.handle))
    close(product.elements(), [3, 4, 3, 12, 10, 6])
    # The gradient of the second argument, a sum over rows, recorded from the result.
    start, gradient = Buffer(FLOAT32, [2, 3], [1] * 6, context.handle), Buffer(FLOAT32, [3])
    derivative = json.dumps(["mul.Tensor", arguments, [False, 1, [True], [False, False], [False, True]]])
    assert context.frame(handler, [x, row, product, start], [gradient], {"call": derivative}) is None
    assert not is_done(context.handle), "the host waited"
    call("cuStreamSynchronize", pointer(context.handle))
    close(gradient.elements(), [5, 7, 9])
    # Forward mode.
    tangent = Buffer(FLOAT32, [2, 3])
    derivative = json.dumps(["mul.Tensor", arguments, [True, 0, [True], [True, False], [False, False]]])
    assert context.frame(handler, [x, row, start], [tangent], {"call": derivative}) is None
    call("cuStreamSynchronize", pointer(context.handle))
    close(tangent.elements(), [3, 2, 1, 3, 2, 1])
    # Without 64-bit integers JAX's buffer has 32 bits.
    values, indices = Buffer(FLOAT32, [2]), Buffer(INT32, [2])
    described_max = json.dumps(["max.dim", [["self", "array", 0, []], ["dim", "value", 1, []]], None])
    assert context.frame(handler, [x], [values, indices], {"call": described_max}) is None
    assert not is_done(context.handle), "the host waited"
    call("cuStreamSynchronize", pointer(context.handle))
    assert (values.elements(), indices.elements()) == ([3, 6], [2, 2])
    # Mistakes, after which the stream is left.
    error = context.frame(handler, [x, row], [row], {"call": described})
    assert "another shape" in error, error
    error = Context(0, 0, is_on_device=False).frame(handler, [x, row], [product], {"call": described})
    assert error.startswith("XLA: no stream in a program of the host"), error
    error = Context(context.handle, 9).frame(handler, [x, row], [product], {"call": described})
    assert "9" in error, error
    assert (opsmith.ones([2]).to("cuda") + 1).tolist() == [2, 2]
    print("the package's handler ran in the program's stream")


def folder():
    import opsmith_example_custom_op_jax as ops

    kinds = ops._abi.KINDS
    context_of_device = pointer()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context_of_device), 0)
    call("cuCtxSetCurrent", context_of_device)
    context = Context(stream(), 0)

    def described(name, values, **more):
        flat = [number for kind, count, *_ in values for number in (kinds[kind], count)]
        integers = [one for value in values for one in value[2:]]
        return {"operator": name, "kinds": flat, "integers": [*integers, 0], "reals": array.array("d", [0.0]), "texts": "", **more}

    def run(kind, arguments, results, given):
        handler = ctypes.cast(getattr(ops._HANDLERS, f"opsmith_jax_{kind}_cuda"), pointer).value
        return context.frame(handler, arguments, results, given)

    x = Buffer(FLOAT32, [2, 3], [1, 2, 3, 4, 5, 6], context.handle)
    row = Buffer(FLOAT32, [3], [3, 2, 1], context.handle)
    product = Buffer(FLOAT32, [2, 3])
    two = [("TENSOR", 0), ("TENSOR", 0)]
    error = run("run", [x, row], [product], described("mul.Tensor", two))
    assert error is None, error
    assert not is_done(context.handle), "the host waited"
    call("cuStreamSynchronize", pointer(context.handle))
    close(product.elements(), [3, 4, 3, 12, 10, 6])
    start, gradient = Buffer(FLOAT32, [2, 3], [1] * 6, context.handle), Buffer(FLOAT32, [3])
    masks = {"kept": 1, "flows": [1], "moved": [0, 0], "others": [0, 1]}
    assert run("gradient", [x, row, product, start], [gradient], described("mul.Tensor", two, **masks)) is None
    call("cuStreamSynchronize", pointer(context.handle))
    close(gradient.elements(), [5, 7, 9])
    tangent = Buffer(FLOAT32, [2, 3])
    masks = {"kept": 0, "flows": [1], "moved": [1, 0], "others": [0, 0]}
    assert run("tangent", [x, row, start], [tangent], described("mul.Tensor", two, **masks)) is None
    call("cuStreamSynchronize", pointer(context.handle))
    close(tangent.elements(), [3, 2, 1, 3, 2, 1])
    # Integers of 64 bits are narrowed on the device, in memory of the program.
    values, indices = Buffer(FLOAT32, [2]), Buffer(INT32, [2])
    one = [("TENSOR", 0), ("INT", 0, 1), ("DEFAULT", 0)]
    assert run("run", [x], [values, indices], described("max.dim", one)) is None
    assert not is_done(context.handle) and not context.scratch
    call("cuStreamSynchronize", pointer(context.handle))
    assert (values.elements(), indices.elements()) == ([3, 6], [2, 2])
    error = run("run", [x, row], [row], described("mul.Tensor", two))
    assert "another shape, element type or device" in error, error
    print("the folder's handlers ran in the program's stream")


if __name__ == "__main__":
    {"package": package, "folder": folder}[sys.argv[1]]()
