#ifndef SFMAMBA_SERVER_KSERVE_SHARED_MEMORY_H_
#define SFMAMBA_SERVER_KSERVE_SHARED_MEMORY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "google/protobuf/map.h"
#include "inference/grpc_service.pb.h"

namespace sfmamba::kserve {

using ParameterMap =
    google::protobuf::Map<std::string, inference::InferParameter>;

// Regions of POSIX shared memory that clients on this machine have registered,
// so that tensors need not be sent.
//
// Nothing is mapped: the objects are read and written as files. A client may
// cut an object off at any time, which would end a process that had it mapped.
//
// Thread-safe.
class SharedMemory {
 public:
  static constexpr int kMaxRegions = 64;

  // A part of a region that holds one tensor. It stays usable when the region
  // is unregistered.
  class Tensor {
   public:
    int64_t bytes() const { return bytes_; }
    // Copies all of it. INVALID_ARGUMENT, without a field, if the object has
    // been cut off.
    absl::Status Read(uint8_t* to) const;
    // Copies `data` to its beginning. INVALID_ARGUMENT, without a field, if
    // `data` is longer or cannot be written.
    absl::Status Write(absl::string_view data) const;

   private:
    friend class SharedMemory;
    struct Object;

    std::shared_ptr<const Object> object_;
    int64_t position_ = 0;  // In the object.
    int64_t bytes_ = 0;
  };

  // The most bytes of a tensor.
  explicit SharedMemory(int64_t max_tensor_bytes)
      : max_tensor_bytes_(max_tensor_bytes) {}

  // INVALID_ARGUMENT, naming the field, if the name is empty, too long or
  // registered already, if `key` is not the name of a shared memory object that
  // this process may read, if the region is not within the object, or if there
  // are kMaxRegions.
  absl::Status Register(
      const inference::SystemSharedMemoryRegisterRequest& request)
      ABSL_LOCKS_EXCLUDED(mu_);
  // An empty name means all regions. One that is not registered is no error.
  void Unregister(const std::string& name) ABSL_LOCKS_EXCLUDED(mu_);
  // Describes the region of this name, if there is one, or all regions.
  inference::SystemSharedMemoryStatusResponse Describe(
      const std::string& name) const ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the tensor that an input's or output's parameters say.
  // INVALID_ARGUMENT, naming a field of the parameters
  // (".parameters.shared_memory_region"), if it is not within a registered
  // region or larger than a tensor may be.
  absl::StatusOr<Tensor> Find(const ParameterMap& parameters) const
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Region {
    std::shared_ptr<const Tensor::Object> object;
    inference::SystemSharedMemoryStatusResponse::RegionStatus status;
  };

  const int64_t max_tensor_bytes_;
  mutable absl::Mutex mu_;
  std::map<std::string, Region> regions_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_KSERVE_SHARED_MEMORY_H_
