// Launches of kernels: limits as on a device, arguments copied, then a task of the stream.

#include <cstring>

#include "block.h"
#include "modules.h"
#include "state.h"

namespace driver {

static bool fits(unsigned x, unsigned y, unsigned z, unsigned most_x, unsigned most_y, unsigned most_z) {
  return x >= 1 && y >= 1 && z >= 1 && x <= most_x && y <= most_y && z <= most_z;
}

// Copies of the arguments, each aligned as the kernel needs it.
struct Arguments {
  std::vector<char> bytes;
  std::vector<void *> pointers;
};

static std::shared_ptr<Arguments> copy_arguments(const standin::Kernel &kernel, void *const *parameters) {
  auto copied = std::make_shared<Arguments>();
  std::vector<size_t> offsets;
  size_t end = 0;
  for (int i = 0; i < kernel.count; ++i) {
    const standin::Parameter &parameter = kernel.parameters[i];
    offsets.push_back((end + parameter.alignment - 1) / parameter.alignment * parameter.alignment);
    end = offsets.back() + parameter.size;
  }
  copied->bytes.resize((end + 7) / 8 * 8);
  for (int i = 0; i < kernel.count; ++i) {
    copied->pointers.push_back(copied->bytes.data() + offsets[i]);
    memcpy(copied->pointers.back(), parameters[i], kernel.parameters[i].size);
  }
  return copied;
}

static void run_kernel(const Function &function, Launch launch, Arguments &arguments) {
  launch.module = &function.module->module;
  launch.kernel = function.kernel;
  launch.parameters = arguments.pointers.data();
  const std::string failure = run_grid(launch);
  if (failure.empty()) return;
  const bool access = failure.find(" accessed ") != std::string::npos || failure.find(" wrote ") != std::string::npos;
  lose(function.module->device, access ? kIllegalAddress : kLaunchFailed,
       std::string(function.kernel->name) + ": " + failure);
}

}  // namespace driver

using namespace driver;

extern "C" {

int cuLaunchKernel(void *handle, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                   unsigned block_z, unsigned dynamic_shared, void *stream_handle, void **parameters, void **extra) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  const Function *function = find_function(handle);
  std::shared_ptr<Stream> stream;
  if (function == nullptr || !find_stream(stream_handle, &stream)) return refuse(kInvalidHandle);
  const int device = stream == nullptr ? current_ordinal() : stream->device;
  if (function->module->device != device || device != current_ordinal()) return refuse(kInvalidHandle);
  if (extra != nullptr || (function->kernel->count > 0 && parameters == nullptr)) return refuse(kInvalidValue);
  if (!fits(grid_x, grid_y, grid_z, 2147483647, 65535, 65535)) return refuse(kInvalidValue);
  if (!fits(block_x, block_y, block_z, 1024, 1024, 64)) return refuse(kInvalidValue);
  if (block_x * block_y * block_z > static_cast<unsigned>(function->kernel->most_threads)) return refuse(kInvalidValue);
  const auto limit = static_cast<size_t>(function->dynamic_shared_limit);
  if (dynamic_shared > limit || (limit <= 49152 && dynamic_shared + static_shared(*function) > 49152)) {
    return refuse(kInvalidValue);
  }
  auto arguments = copy_arguments(*function->kernel, parameters);
  // A device's space for arguments.
  if (arguments->bytes.size() > 32764) return refuse(kInvalidValue);
  if (!is_captured(stream)) ++state.counts.launches;
  Launch launch = {};
  launch.grid = {grid_x, grid_y, grid_z};
  launch.block = {block_x, block_y, block_z};
  launch.dynamic_shared = dynamic_shared;
  Task task;
  task.name = function->kernel->name;
  task.operands = arguments->bytes;
  task.run = [=] { run_kernel(*function, launch, *arguments); };
  return enqueue(stream, std::move(task));
}

int standin_launch(void *stream_handle, void (*kernel)(void *), const void *arguments, size_t bytes) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  std::shared_ptr<Stream> stream;
  if (!find_stream(stream_handle, &stream)) return refuse(kInvalidHandle);
  ++state.counts.launches;
  const auto *first = static_cast<const char *>(arguments);
  auto kept = std::make_shared<std::vector<char>>(first, first + bytes);
  Task task;
  task.name = "a kernel of the host";
  task.operands = *kept;
  task.run = [kernel, kept] { kernel(kept->data()); };
  return enqueue(stream, std::move(task));
}
}
