#ifndef SFMAMBA_MODEL_ENGINE_TENSOR_ACCOUNT_H_
#define SFMAMBA_MODEL_ENGINE_TENSOR_ACCOUNT_H_

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>

namespace sfmamba::engine {

// While one exists, counts the tensors of at least 1 MiB that the calling
// thread makes and frees (see model/tensor_memory.h), and refuses those that
// exceed a limit. A thread has at most one.
//
// Must be destroyed by the thread that made it.
class TensorAccount {
 public:
  // A tensor throws std::bad_alloc if all together would exceed `most_bytes`,
  // or if `stop` returns true.
  TensorAccount(int64_t most_bytes, std::function<bool()> stop);
  ~TensorAccount();
  TensorAccount(const TensorAccount&) = delete;
  TensorAccount& operator=(const TensorAccount&) = delete;

  // The most bytes that the tensors had at once.
  int64_t peak() const { return peak_; }
  // Whether `stop` has returned true.
  bool stopped() const { return stopped_; }

  // Called by the allocator before it takes memory, with the memory, and before
  // it frees some. Do nothing if the calling thread has no account.
  static void Check(int64_t bytes);
  static void Taken(void* memory, int64_t bytes);
  static void Freed(void* memory);

 private:
  static TensorAccount*& OfThisThread();

  const int64_t most_bytes_;
  const std::function<bool()> stop_;
  std::unordered_map<void*, int64_t> taken_;
  int64_t bytes_ = 0, peak_ = 0;
  bool stopped_ = false;
};

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_TENSOR_ACCOUNT_H_
