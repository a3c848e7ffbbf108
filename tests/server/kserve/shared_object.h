#ifndef SFMAMBA_TESTS_SERVER_KSERVE_SHARED_OBJECT_H_
#define SFMAMBA_TESTS_SERVER_KSERVE_SHARED_OBJECT_H_

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "inference/grpc_service.pb.h"

namespace sfmamba::kserve {

// A POSIX shared memory object, as a client makes it. It loses its name at the
// end.
class SharedObject {
 public:
  explicit SharedObject(const std::string& bytes)
      : key_(absl::StrCat("/sfmamba_test_", getpid(), "_",
                          reinterpret_cast<uintptr_t>(this))),
        file_(shm_open(key_.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600)) {
    EXPECT_GE(file_, 0);
    Write(bytes);
  }
  ~SharedObject() {
    close(file_);
    shm_unlink(key_.c_str());
  }

  const std::string& key() const { return key_; }

  void Write(const std::string& bytes) {
    EXPECT_EQ(pwrite(file_, bytes.data(), bytes.size(), 0), bytes.size());
  }
  void Truncate(int64_t bytes) { EXPECT_EQ(ftruncate(file_, bytes), 0); }
  std::string Bytes() const {
    struct stat file;
    EXPECT_EQ(fstat(file_, &file), 0);
    std::string bytes(file.st_size, '?');
    EXPECT_EQ(pread(file_, bytes.data(), bytes.size(), 0), bytes.size());
    return bytes;
  }

  // To register a part of it.
  inference::SystemSharedMemoryRegisterRequest Request(
      const std::string& name, uint64_t bytes, uint64_t offset = 0) const {
    inference::SystemSharedMemoryRegisterRequest request;
    request.set_name(name);
    request.set_key(key_);
    request.set_offset(offset);
    request.set_byte_size(bytes);
    return request;
  }

 private:
  const std::string key_;
  const int file_;
};

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_TESTS_SERVER_KSERVE_SHARED_OBJECT_H_
