// A stand-in for the driver of CUDA's devices, for tests where there is none: the functions that the
// runtime calls, over host memory that is kept apart.
//
// Memory of a "device" lies in a range of its own that only copies and kernels can access, while they run, so
// an address of the wrong kind, or an access at the wrong time, ends the process; one by a kernel outside of
// the blocks of its device loses the context. Work of a stream is done when the host waits for it, not
// earlier: a caller that does not wait, or frees too soon, gets nonsense. Counts are printed when the process
// ends. The environment makes it fail:
//   STANDIN_INIT=CODE      cuInit returns the code
//   STANDIN_VERSION=N      the driver's version (13000)
//   STANDIN_DEVICES=N      the number of devices (1); CUDA_VISIBLE_DEVICES=1,0 hides others, as with the real driver
//   STANDIN_PEERS=1        devices access each other's memory
//   STANDIN_MEMORY=BYTES   the memory of each device
//   STANDIN_PINNED=BYTES   the most memory of the host that is pinned
//   STANDIN_FAIL_COPY=N    the N-th copy is refused
//   STANDIN_FAIL_ALLOC=N   the N-th allocation finds no memory
//   STANDIN_PAGEABLE=late  copies read pageable memory of the host when they are done
//   STANDIN_ORDER=ORDER    of threads and blocks: forward, reversed, random:SEED
// and, for texts that the stand-in for NVRTC compiles (nvrtc.cc):
//   STANDIN_PTX_VERSION=N  the newest version of PTX that the driver compiles, as 90 = 9.0
//   STANDIN_CHECK=1        each access of a kernel is checked

#include "driver.h"

// One unit: tests compile it with names of functions defined away.
#include "driver/context.cc"
#include "driver/memory.cc"
#include "driver/copies.cc"
#include "driver/streams.cc"
#include "driver/graphs.cc"
#include "driver/modules.cc"
#include "driver/block.cc"
#include "driver/launch.cc"
#include "driver/check.cc"
#include "driver/faults.cc"
#include "driver/errors.cc"
