#include "server/batching/devices.h"

namespace sfmamba::batching {

DeviceTurns& Devices::Get(const std::string& name, int at_once) {
  absl::MutexLock lock(&mu_);
  std::unique_ptr<DeviceTurns>& turns = devices_[name];
  if (turns == nullptr) turns = std::make_unique<DeviceTurns>(at_once);
  return *turns;
}

void Devices::ForEach(const std::function<void(const std::string& name,
                                               DeviceTurns& turns)>& body) {
  absl::MutexLock lock(&mu_);
  for (auto& [name, turns] : devices_) body(name, *turns);
}

}  // namespace sfmamba::batching
