#include "server/kserve/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "server/errors/reasons.h"

namespace sfmamba::kserve {
namespace {

constexpr size_t kMaxName = 255;      // Bytes.
constexpr size_t kMaxNameShown = 64;  // Bytes.
constexpr char kRegion[] = ".parameters.shared_memory_region";
constexpr char kOffset[] = ".parameters.shared_memory_offset";
constexpr char kByteSize[] = ".parameters.shared_memory_byte_size";

std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", base::Utf8Prefix(text, kMaxNameShown), "\"");
}

absl::Status Refused(absl::string_view field, absl::string_view got,
                     absl::string_view expected) {
  return server::InvalidField(
      field, absl::StrCat("got ", got, ", expected ", expected));
}

// Whether shm_open() looks for the key in its own folder and nowhere else.
bool IsKey(absl::string_view key) {
  if (!key.empty() && key[0] == '/') key.remove_prefix(1);
  return !key.empty() && key.size() < kMaxName && key[0] != '.' &&
         key.find_first_of(absl::string_view("/\0", 2)) == key.npos;
}

// Whether `bytes` bytes from `offset` on are within `size`.
bool IsWithin(uint64_t offset, uint64_t bytes, uint64_t size) {
  return offset <= size && bytes <= size - offset;
}

// Returns a parameter that is a number of 0 or more; 0 if it is missing.
absl::StatusOr<int64_t> ReadNumber(const ParameterMap& parameters,
                                   const char* name, const char* field) {
  const auto found = parameters.find(name);
  if (found == parameters.end()) return 0;
  if (!found->second.has_int64_param() || found->second.int64_param() < 0) {
    return Refused(field, "another value", "an int64_param of 0 or more");
  }
  return found->second.int64_param();
}

}  // namespace

// Files of one shared memory object.
struct SharedMemory::Tensor::Object {
  ~Object() {
    if (read >= 0) close(read);
    if (write >= 0) close(write);
  }

  int read = -1;
  int write = -1;  // -1: this process may not write it.
};

absl::Status SharedMemory::Tensor::Read(uint8_t* to) const {
  for (int64_t done = 0; done < bytes_;) {
    const ssize_t got =
        pread(object_->read, to + done, bytes_ - done, position_ + done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      return Refused("", absl::StrCat(done, " bytes of shared memory"),
                     absl::StrCat(bytes_));
    }
    done += got;
  }
  return absl::OkStatus();
}

absl::Status SharedMemory::Tensor::Write(absl::string_view data) const {
  if (static_cast<int64_t>(data.size()) > bytes_) {
    return Refused("", absl::StrCat(bytes_, " bytes of shared memory"),
                   absl::StrCat("at least ", data.size()));
  }
  // Writing beyond the end of an object that was cut off would make it grow.
  struct stat file;
  if (object_->write < 0 || fstat(object_->write, &file) != 0 ||
      !IsWithin(position_, data.size(), file.st_size)) {
    return Refused("", "shared memory that cannot be written",
                   "an object as large as its region");
  }
  for (size_t done = 0; done < data.size();) {
    const ssize_t put = pwrite(object_->write, data.data() + done,
                               data.size() - done, position_ + done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      return Refused("",
                     absl::StrCat(strerror(errno), " after ", done,
                                  " bytes of shared memory"),
                     absl::StrCat(data.size()));
    }
    done += put;
  }
  return absl::OkStatus();
}

absl::Status SharedMemory::Register(
    const inference::SystemSharedMemoryRegisterRequest& request) {
  if (request.name().empty() || request.name().size() > kMaxName) {
    return Refused("name", absl::StrCat(request.name().size(), " bytes"),
                   absl::StrCat("1 to ", kMaxName));
  }
  if (!IsKey(request.key())) {
    return Refused("key", Quoted(request.key()),
                   "the name of a shared memory object");
  }
  auto object = std::make_shared<Tensor::Object>();
  // Without O_NONBLOCK a pipe that has this name would block the thread until
  // somebody writes to it.
  object->read = shm_open(request.key().c_str(), O_RDONLY | O_NONBLOCK, 0);
  struct stat file;
  if (object->read < 0 || fstat(object->read, &file) != 0 ||
      !S_ISREG(file.st_mode)) {
    return Refused("key", Quoted(request.key()),
                   "a shared memory object that the server may read");
  }
  if (request.byte_size() == 0 ||
      !IsWithin(request.offset(), request.byte_size(), file.st_size)) {
    return Refused("byte_size",
                   absl::StrCat(request.byte_size(), " bytes from ",
                                request.offset(), " on"),
                   absl::StrCat("a part of the object's ", file.st_size));
  }
  // The object that was looked at, whatever has its name by now. Without
  // O_NONBLOCK the lease of another process would block the thread for 45 s.
  object->write = open(absl::StrCat("/proc/self/fd/", object->read).c_str(),
                       O_RDWR | O_CLOEXEC | O_NONBLOCK);
  Region region;
  region.object = std::move(object);
  region.status.set_name(request.name());
  region.status.set_key(request.key());
  region.status.set_offset(request.offset());
  region.status.set_byte_size(request.byte_size());
  absl::MutexLock lock(&mu_);
  if (regions_.size() >= kMaxRegions) {
    return Refused("name", "one region more",
                   absl::StrCat("at most ", kMaxRegions));
  }
  if (!regions_.emplace(request.name(), std::move(region)).second) {
    return Refused("name", Quoted(request.name()),
                   "a name that is not registered");
  }
  return absl::OkStatus();
}

void SharedMemory::Unregister(const std::string& name) {
  absl::MutexLock lock(&mu_);
  if (name.empty()) {
    regions_.clear();
  } else {
    regions_.erase(name);
  }
}

inference::SystemSharedMemoryStatusResponse SharedMemory::Describe(
    const std::string& name) const {
  inference::SystemSharedMemoryStatusResponse response;
  absl::MutexLock lock(&mu_);
  for (const auto& [own, region] : regions_) {
    if (!name.empty() && name != own) continue;
    (*response.mutable_regions())[own] = region.status;
  }
  return response;
}

absl::StatusOr<SharedMemory::Tensor> SharedMemory::Find(
    const ParameterMap& parameters) const {
  const absl::StatusOr<int64_t> offset =
      ReadNumber(parameters, "shared_memory_offset", kOffset);
  if (!offset.ok()) return offset.status();
  const absl::StatusOr<int64_t> bytes =
      ReadNumber(parameters, "shared_memory_byte_size", kByteSize);
  if (!bytes.ok()) return bytes.status();
  if (*bytes == 0 || *bytes > max_tensor_bytes_) {
    return Refused(kByteSize, absl::StrCat(*bytes),
                   absl::StrCat("1 to ", max_tensor_bytes_, " bytes"));
  }
  const std::string& name =
      parameters.at("shared_memory_region").string_param();
  absl::MutexLock lock(&mu_);
  const auto found = regions_.find(name);
  if (found == regions_.end()) {
    return Refused(kRegion, Quoted(name), "a region that is registered");
  }
  const auto& region = found->second.status;
  if (!IsWithin(*offset, *bytes, region.byte_size())) {
    return Refused(kByteSize,
                   absl::StrCat(*bytes, " bytes from ", *offset, " on"),
                   absl::StrCat("a part of the region's ", region.byte_size()));
  }
  Tensor tensor;
  tensor.object_ = found->second.object;
  tensor.position_ = region.offset() + *offset;
  tensor.bytes_ = *bytes;
  return tensor;
}

}  // namespace sfmamba::kserve
