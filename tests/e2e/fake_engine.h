#ifndef SFMAMBA_TESTS_E2E_FAKE_ENGINE_H_
#define SFMAMBA_TESTS_E2E_FAKE_ENGINE_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "model/config.h"
#include "model/vision_model.h"
#include "server/server_main.h"

namespace sfmamba {

// Returns an engine for ServerMain(). The engine finds no GPU and calls `load`
// to load a model.
server::Engine FakeEngine(
    std::function<absl::StatusOr<std::unique_ptr<model::VisionModel>>(
        const model::ModelConfig& config)>
        load);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_E2E_FAKE_ENGINE_H_
