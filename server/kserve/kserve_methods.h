#ifndef SFMAMBA_SERVER_KSERVE_KSERVE_METHODS_H_
#define SFMAMBA_SERVER_KSERVE_KSERVE_METHODS_H_

#include "inference/grpc_service.grpc.pb.h"

namespace sfmamba::kserve {

// All methods get the bytes of their messages, so that malformed ones are
// answered and counted like others, and none takes more memory parsed.

using Methods = inference::GRPCInferenceService;

template <typename Base>
using WithProbes = Methods::WithRawCallbackMethod_ServerLive<  //
    Methods::WithRawCallbackMethod_ServerReady<
        Methods::WithRawCallbackMethod_ModelReady<
            Methods::WithRawCallbackMethod_ServerMetadata<Base>>>>;

template <typename Base>
using WithInference = Methods::WithRawCallbackMethod_ModelInfer<
    Methods::WithRawCallbackMethod_ModelStreamInfer<Base>>;

template <typename Base>
using WithModels = Methods::WithRawCallbackMethod_ModelMetadata<
    Methods::WithRawCallbackMethod_ModelConfig<
        Methods::WithRawCallbackMethod_ModelStatistics<Base>>>;

template <typename Base>
using WithRepository = Methods::WithRawCallbackMethod_RepositoryIndex<
    Methods::WithRawCallbackMethod_RepositoryModelLoad<
        Methods::WithRawCallbackMethod_RepositoryModelUnload<Base>>>;

template <typename Base>
using WithSystemMemory =
    Methods::WithRawCallbackMethod_SystemSharedMemoryStatus<
        Methods::WithRawCallbackMethod_SystemSharedMemoryRegister<
            Methods::WithRawCallbackMethod_SystemSharedMemoryUnregister<Base>>>;

template <typename Base>
using WithCudaMemory = Methods::WithRawCallbackMethod_CudaSharedMemoryStatus<
    Methods::WithRawCallbackMethod_CudaSharedMemoryRegister<
        Methods::WithRawCallbackMethod_CudaSharedMemoryUnregister<Base>>>;

using KserveMethods = WithProbes<WithInference<WithModels<
    WithRepository<WithSystemMemory<WithCudaMemory<Methods::Service>>>>>>;

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_KSERVE_KSERVE_METHODS_H_
