#ifndef SFMAMBA_MODEL_ENGINE_TENSOR_ACCOUNT_H_
#define SFMAMBA_MODEL_ENGINE_TENSOR_ACCOUNT_H_

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>

namespace sfmamba::engine {

// While an object of this class exists, it counts the tensors of at least 1 MiB
// that its thread makes and frees (see model/tensor_memory.h). The thread
// cannot make tensors that exceed a limit. A thread may have only one object of
// this class at a time.
//
// Must be destroyed by the thread that made it.
class TensorAccount {
 public:
  // Making a tensor throws std::bad_alloc if all counted tensors together would
  // then exceed `most_bytes` bytes. `stop` is called before each tensor is
  // made. Once `stop` has returned true, making any tensor throws
  // std::bad_alloc, and `stop` is not called again.
  TensorAccount(int64_t most_bytes, std::function<bool()> stop);
  ~TensorAccount();
  TensorAccount(const TensorAccount&) = delete;
  TensorAccount& operator=(const TensorAccount&) = delete;

  // Returns the peak memory of all counted tensors together, in bytes.
  int64_t peak() const { return peak_; }
  // Returns whether `stop` has returned true.
  bool stopped() const { return stopped_; }

  // The allocator calls these functions: Check() before it allocates memory,
  // Taken() with this memory, and Freed() before it frees memory. They do
  // nothing if the calling thread has no TensorAccount.
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
