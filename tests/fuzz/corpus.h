#ifndef SFMAMBA_TESTS_FUZZ_CORPUS_H_
#define SFMAMBA_TESTS_FUZZ_CORPUS_H_

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

namespace sfmamba {

inline std::string Byte(int value) {
  return std::string(1, static_cast<char>(value));
}

// A folder to which the fuzzers' first inputs are written.
class Corpus {
 public:
  explicit Corpus(std::string folder) : folder_(std::move(folder)) {}

  void Add(const std::string& fuzzer, const std::string& name,
           const std::string& bytes) const {
    const std::filesystem::path path =
        std::filesystem::path(folder_) / fuzzer / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
  }

 private:
  const std::string folder_;
};

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_FUZZ_CORPUS_H_
