// The same kernels for the stand-in of the driver.

#include "kernels.cu"
