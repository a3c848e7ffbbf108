#include "model/engine/tensor_account.h"

#include <algorithm>
#include <new>

namespace sfmamba::engine {

TensorAccount*& TensorAccount::OfThisThread() {
  thread_local TensorAccount* account = nullptr;
  return account;
}

TensorAccount::TensorAccount(int64_t most_bytes, std::function<bool()> stop)
    : most_bytes_(most_bytes), stop_(std::move(stop)) {
  OfThisThread() = this;
}

TensorAccount::~TensorAccount() { OfThisThread() = nullptr; }

void TensorAccount::Check(int64_t bytes) {
  TensorAccount* const account = OfThisThread();
  if (account == nullptr) return;
  account->stopped_ = account->stopped_ || account->stop_();
  if (account->stopped_ || bytes > account->most_bytes_ - account->bytes_) {
    throw std::bad_alloc();
  }
}

void TensorAccount::Taken(void* memory, int64_t bytes) {
  TensorAccount* const account = OfThisThread();
  if (account == nullptr) return;
  account->taken_[memory] = bytes;
  account->bytes_ += bytes;
  account->peak_ = std::max(account->peak_, account->bytes_);
}

void TensorAccount::Freed(void* memory) {
  TensorAccount* const account = OfThisThread();
  if (account == nullptr) return;
  const auto found = account->taken_.find(memory);
  if (found == account->taken_.end()) return;
  account->bytes_ -= found->second;
  account->taken_.erase(found);
}

}  // namespace sfmamba::engine
