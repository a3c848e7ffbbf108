#ifndef SFMAMBA_TESTS_FUZZ_MUTATOR_H_
#define SFMAMBA_TESTS_FUZZ_MUTATOR_H_

#include <random>
#include <string>

namespace sfmamba {

// Overwrites, inserts, removes and repeats bytes at random. Each run makes the
// same changes.
class Mutator {
 public:
  std::string Mutate(std::string bytes) {
    for (int edits = 1 + Below(4); edits > 0; --edits) Edit(&bytes);
    return bytes;
  }
  int Below(int limit) {
    return std::uniform_int_distribution<int>(0, limit - 1)(random_);
  }

 private:
  void Edit(std::string* bytes) {
    const size_t at = Below(bytes->size() + 1);
    switch (Below(4)) {
      case 0:
        if (at < bytes->size()) (*bytes)[at] = Below(256);
        break;
      case 1:
        bytes->insert(at, 1 + Below(4), static_cast<char>(Below(256)));
        break;
      case 2:
        bytes->erase(at, 1 + Below(8));
        break;
      default:
        bytes->insert(at, bytes->substr(Below(bytes->size() + 1), Below(64)));
    }
  }

  std::mt19937 random_{1};
};

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_FUZZ_MUTATOR_H_
