// Fuzzes safetensors files. The reader must refuse a file or return tensors
// that lie inside the file. Writing and reading these tensors must not change
// them.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "model/weights/safetensors.h"
#include "tests/fuzz/check.h"

namespace sfmamba {
namespace {

// A file that exists only in memory. It is never destroyed.
class MemoryFile {
 public:
  MemoryFile()
      : fd_(memfd_create("fuzz", MFD_CLOEXEC)),
        path_(absl::StrCat("/proc/self/fd/", fd_)) {
    Check(fd_ >= 0, "there is a file in memory");
  }

  void Write(absl::string_view bytes) const {
    Check(
        ftruncate(fd_, 0) == 0 && pwrite(fd_, bytes.data(), bytes.size(), 0) ==
                                      static_cast<ssize_t>(bytes.size()),
        "a file in memory can be written");
  }
  const std::string& path() const { return path_; }

 private:
  const int fd_;
  const std::string path_;
};

// Reads every byte of all tensors and returns their size in bytes.
int64_t CheckTensors(const weights::SafetensorsFile& file) {
  int64_t total = 0;
  uint64_t sum = 0;
  for (const auto& [name, view] : file.tensors()) {
    int64_t size = weights::DTypeSize(view.dtype);
    for (const int64_t dimension : view.shape) size *= dimension;
    Check(size == static_cast<int64_t>(view.data.size()),
          "a tensor's data has the size of its shape");
    Check(file.Find(name) != nullptr, "each tensor is found");
    for (const uint8_t byte : view.data) sum += byte;
    total += size;
  }
  volatile uint64_t read = sum;
  (void)read;
  return total;
}

}  // namespace
}  // namespace sfmamba

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using sfmamba::Check;
  using sfmamba::weights::SafetensorsFile;
  static const sfmamba::MemoryFile& original = *new sfmamba::MemoryFile();
  static const sfmamba::MemoryFile& copy = *new sfmamba::MemoryFile();
  original.Write(sfmamba::Input(data, size).bytes());
  const auto file = SafetensorsFile::Open(original.path());
  if (!file.ok()) {
    Check(file.status().code() == absl::StatusCode::kInvalidArgument,
          "a file is refused as an invalid argument");
    Check(file.status().message().size() < 2000, "in few words");
    return 0;
  }
  Check(sfmamba::CheckTensors(**file) < static_cast<int64_t>(size),
        "tensors lie inside the file");
  Check(
      sfmamba::weights::WriteSafetensors(copy.path(), (*file)->tensors()).ok(),
      "what was read can be written");
  const auto again = SafetensorsFile::Open(copy.path());
  Check(again.ok(), "and read again");
  Check((*again)->tensors().size() == (*file)->tensors().size(), "all of it");
  return 0;
}
