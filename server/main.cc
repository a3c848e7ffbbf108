// The main function of the server's command.

#include <malloc.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <system_error>

#include "base/version.h"
#include "model/gpus.h"
#include "model/scan_tuning.h"
#include "model/tensor_memory.h"
#include "model/torch_runtime.h"
#include "model/vision_model.h"
#include "server/host/processors.h"
#include "server/revision.h"
#include "server/server_main.h"

namespace sfmamba::server {
namespace {

constexpr uint64_t kRandomSeed = 0;  // Seed for the weights of random_init.
constexpr int kInternalError = 1;

// Lets idle compute threads spin for only a fraction of a millisecond before
// they sleep. The default of libgomp is much longer. With the default, a batch
// takes twice as long if decoding and gRPC use the same CPUs. If threads slept
// immediately, single images would be slower.
//
// libgomp reads the variable GOMP_SPINCOUNT before main(). This function
// therefore sets the variable and executes the program again. If the program
// cannot be executed, libgomp's default stays in effect.
void LetIdleThreadsSleep(char** argv) {
  if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT")) return;
  setenv("GOMP_SPINCOUNT", "20000", 1);
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) execv(self.c_str(), argv);
}

// Limits glibc's malloc arenas to two per CPU. The default is eight per CPU.
// Each arena keeps freed memory for its own threads, so fewer arenas use less
// memory. If the environment variable MALLOC_ARENA_MAX is set, its value
// applies instead. See mallopt(3).
void LimitMallocPools() {
  if (getenv("MALLOC_ARENA_MAX")) return;
  mallopt(M_ARENA_MAX, 2 * UsableProcessors());
}

Engine ThisEngine() {
  Engine engine;
  engine.build.version = base::kVersion;
  engine.build.revision = BuildRevision();
  engine.build.cuda = model::CudaVersion();
  engine.build.torch = model::TorchVersion();
  engine.check_environment = model::CheckEnvironment;
  engine.find_gpus = model::FindGpus;
  engine.load = [](const model::ModelConfig& config,
                   absl::Span<const std::string> paths,
                   const model::ModelOptions& options) {
    return paths.empty()
               ? model::VisionModel::Random(config, kRandomSeed, options)
               : model::VisionModel::Load(config, paths, options);
  };
  engine.make_scan_tuner = model::ScanTuner::Create;
  engine.tune_scans = model::TuneScans;
  engine.set_compute_threads = model::SetComputeThreads;
  engine.compute_alone = model::ComputeAlone;
  engine.release_memory = model::ReleaseIdleTensorMemory;
  return engine;
}

}  // namespace
}  // namespace sfmamba::server

int main(int argc, char** argv) {
  sfmamba::server::LetIdleThreadsSleep(argv);
  sfmamba::server::LimitMallocPools();
  sfmamba::model::KeepTensorMemory();
  try {
    return sfmamba::server::ServerMain(argc, argv,
                                       sfmamba::server::ThisEngine());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "internal error: %s\n", error.what());
    return sfmamba::server::kInternalError;
  }
}
