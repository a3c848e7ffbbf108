// The server's command, with the engine of this build.

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

constexpr uint64_t kRandomSeed = 0;  // Seeds the weights of random_init.
constexpr int kInternalError = 1;

// Idle compute threads must sleep after a fraction of a millisecond. By default
// libgomp's spin far longer, and where they share the processors with decoding
// and gRPC a batch takes twice as long; sleeping at once makes a lone image
// slower. libgomp reads this before main, so that the process is started anew;
// if that is refused, it runs all the same.
void LetIdleThreadsSleep(char** argv) {
  if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT")) return;
  setenv("GOMP_SPINCOUNT", "20000", 1);
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) execv(self.c_str(), argv);
}

// glibc makes up to eight pools of memory for each processor, and each keeps
// what was freed in it for its own threads. The environment's MALLOC_ARENA_MAX
// decides if it is there. See mallopt(3).
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
