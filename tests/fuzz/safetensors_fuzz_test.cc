// Mutations of valid files, the same ones in each run. Whatever the bytes, the
// reader refuses them or gives tensors that lie inside the file.
#include <sys/mman.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "model/weights/safetensors.h"

namespace sfmamba {
namespace {

constexpr int kMutants = 20000;
constexpr int kMaxEdits = 4;

// The path of a new file that exists in memory only.
std::string MemoryFile() {
  const int fd = memfd_create("fuzz", MFD_CLOEXEC);
  EXPECT_GE(fd, 0);
  return absl::StrCat("/proc/self/fd/", fd);
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(in)), {});
}

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Changes files at random, with some knowledge of what they are made of.
class Mutator {
 public:
  void Mutate(std::string* file) {
    for (int edits = Below(kMaxEdits) + 1; edits > 0; --edits) Edit(file);
    // Else most mutants would die of their length alone.
    if (file->size() >= 8 && Below(2) == 0) MendLength(file);
  }

 private:
  int Below(int limit) {
    return std::uniform_int_distribution<int>(0, limit - 1)(random_);
  }

  void Edit(std::string* file) {
    static constexpr absl::string_view kTokens[] = {"{",
                                                    "}",
                                                    "[",
                                                    "]",
                                                    "\"",
                                                    ",",
                                                    ":",
                                                    "\\",
                                                    "\\u",
                                                    "\\ud800",
                                                    "0",
                                                    "-1",
                                                    "1e9",
                                                    "\xff",
                                                    "\"dtype\"",
                                                    "\"shape\"",
                                                    "\"F32\"",
                                                    "\"data_offsets\"",
                                                    "\"__metadata__\"",
                                                    "9223372036854775807",
                                                    "18446744073709551616",
                                                    "null",
                                                    "[[[[[[[[",
                                                    " "};
    const int at = Below(file->size() + 1);
    switch (Below(5)) {
      case 0:
        if (!file->empty()) (*file)[at % file->size()] ^= 1 << Below(8);
        break;
      case 1:
        file->erase(at, Below(16));
        break;
      case 2:
        file->resize(at);
        break;
      case 3:
        file->insert(at, file->substr(Below(file->size() + 1), Below(64)));
        break;
      default: {
        const absl::string_view token = kTokens[Below(std::size(kTokens))];
        file->insert(at, token.data(), token.size());
      }
    }
  }

  // Makes the header end where its outermost brace seems to close.
  static void MendLength(std::string* file) {
    const size_t end = file->rfind('}');
    if (end == file->npos || end < 8) return;
    for (int i = 0; i < 8; ++i) {
      (*file)[i] = static_cast<char>(uint64_t{end + 1 - 8} >> (8 * i));
    }
  }

  std::mt19937 random_{20260321};
};

// Reads every byte of every tensor; the sum keeps the reads.
uint64_t Touch(const weights::SafetensorsFile& file, int64_t* bytes) {
  uint64_t sum = 0;
  for (const auto& [name, view] : file.tensors()) {
    int64_t size = weights::DTypeSize(view.dtype);
    for (const int64_t dimension : view.shape) size *= dimension;
    EXPECT_EQ(size, view.data.size()) << name;
    for (const uint8_t byte : view.data) sum += byte;
    *bytes += view.data.size();
  }
  return sum;
}

TEST(SafetensorsFuzzTest, NoMutantIsBelieved) {
  const std::string path = MemoryFile(), copy_path = MemoryFile();
  std::vector<uint8_t> data(64);
  for (size_t i = 0; i < data.size(); ++i) data[i] = i;
  const absl::Span<const uint8_t> bytes = data;
  ASSERT_EQ(
      weights::WriteSafetensors(
          path,
          {{"a.weight", {weights::DType::kF32, {2, 3}, bytes.subspan(0, 24)}},
           {"b.\xc3\xa9", {weights::DType::kBF16, {4}, bytes.subspan(24, 8)}},
           {"c", {weights::DType::kI64, {}, bytes.subspan(32, 8)}},
           {"empty", {weights::DType::kU8, {0, 7}, {}}}}),
      absl::OkStatus());
  const std::string valid = ReadFile(path);
  ASSERT_TRUE(weights::SafetensorsFile::Open(path).ok());
  Mutator mutator;
  int accepted = 0;
  uint64_t sum = 0;
  for (int i = 0; i < kMutants; ++i) {
    std::string mutant = valid;
    mutator.Mutate(&mutant);
    WriteFile(path, mutant);
    const auto file = weights::SafetensorsFile::Open(path);
    if (!file.ok()) {
      ASSERT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
      ASSERT_LT(file.status().message().size(), 2000);
      continue;
    }
    ++accepted;
    int64_t size = 0;
    sum += Touch(**file, &size);
    ASSERT_LT(size, mutant.size());
    // What was accepted can be said again.
    ASSERT_EQ(weights::WriteSafetensors(copy_path, (*file)->tensors()),
              absl::OkStatus());
    const auto copy = weights::SafetensorsFile::Open(copy_path);
    ASSERT_TRUE(copy.ok()) << copy.status();
    ASSERT_EQ((*copy)->tensors().size(), (*file)->tensors().size());
  }
  // Both ways out were taken, or the mutations are too coarse or too fine.
  EXPECT_GT(accepted, kMutants / 1000);
  EXPECT_LT(accepted, kMutants / 2);
  EXPECT_GT(sum, 0);
}

}  // namespace
}  // namespace sfmamba
