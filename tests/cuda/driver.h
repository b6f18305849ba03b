// Functions of the stand-in for the driver (driver.cc) beyond the driver's own, for kernels of tests.

#pragma once

#include <cstddef>

extern "C" {
// Asks a stream to run a function with a copy of its arguments, as a launch does.
int standin_launch(void *stream, void (*kernel)(void *), const void *arguments, size_t bytes);
// Whether an address is one of the device's.
int standin_is_device(const void *address);
// Counts as refused if this thread has not entered the context.
void standin_expect_context(void);
// Counts a request to another library as refused.
void standin_refuse(void);
// Loses the context, as an access outside of all blocks does.
void standin_lose(void);
// The same for a device, outside of its work.
void standin_lose_device(int device);
}
