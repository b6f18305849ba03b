// Element types under the names of dtypes.
//
// In: the types. Out: `opsmith::dtype::F32` for the dtype `F32`, as generated text names them.

namespace opsmith {
namespace dtype {

using Bool = bool;
using U8 = u8;
using U16 = u16;
using U32 = u32;
using U64 = u64;
using I8 = i8;
using I16 = i16;
using I32 = i32;
using I64 = i64;
using F16 = f16;
using BF16 = bf16;
using F32 = float;
using F64 = double;
using C64 = c32;
using C128 = c64;

}  // namespace dtype
}  // namespace opsmith
