#ifndef SFMAMBA_SERVER_BATCHING_DEVICES_H_
#define SFMAMBA_SERVER_BATCHING_DEVICES_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/batching/device_turns.h"

namespace sfmamba::batching {

// The devices of this process, which its models share.
//
// Thread-safe. Must outlive its devices' members.
class Devices {
 public:
  // Returns the device of that name, such as "cpu" or "cuda:0". Who asks for it
  // first says how many turns of it may be taken at once.
  DeviceTurns& Get(const std::string& name, int at_once)
      ABSL_LOCKS_EXCLUDED(mu_);

  void ForEach(const std::function<void(const std::string& name,
                                        DeviceTurns& turns)>& body)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Mutex mu_;
  std::map<std::string, std::unique_ptr<DeviceTurns>> devices_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_DEVICES_H_
