#ifndef SFMAMBA_SERVER_SHARES_HOLD_H_
#define SFMAMBA_SERVER_SHARES_HOLD_H_

#include <utility>

#include "absl/time/time.h"

namespace sfmamba::server {

// If a request is refused because other requests hold a resource, the error
// asks the client to retry after this delay.
inline constexpr absl::Duration kRetryAfter = absl::Milliseconds(100);

// Owns an amount of a resource that an Account has handed out. Release() or the
// destructor returns the amount to the account exactly once.
//
//   MemoryHold all = *budget.Take(MemoryUse::kInput, 300);
//   MemoryHold first = all.Split(100);  // 200 bytes stay in `all`.
//
// The account creates the holds and must outlive them. The account defines the
// type Part and the method GiveBack(const Part&). If Split() is used, Part must
// have a method Split(). Thread-compatible.
template <typename Account>
class Hold {
 public:
  using Part = typename Account::Part;

  Hold() = default;  // Creates an empty hold.
  Hold(Account* account, Part part)
      : account_(account), part_(std::move(part)) {}
  Hold(Hold&& other) noexcept
      : account_(std::exchange(other.account_, nullptr)),
        part_(std::exchange(other.part_, Part())) {}
  Hold& operator=(Hold&& other) noexcept {
    if (this == &other) return *this;
    Release();
    account_ = std::exchange(other.account_, nullptr);
    part_ = std::exchange(other.part_, Part());
    return *this;
  }
  ~Hold() { Release(); }

  bool empty() const { return account_ == nullptr; }
  const Part& operator*() const { return part_; }
  const Part* operator->() const { return &part_; }

  // Moves the given amounts into the returned hold. The amounts must not exceed
  // the amounts of this hold.
  template <typename... Amounts>
  Hold Split(Amounts... amounts) {
    if (empty()) return Hold();
    return Hold(account_, part_.Split(amounts...));
  }
  // Changes the amount. The hold must not be empty, and the account must have a
  // method Resize().
  template <typename Amount>
  auto Resize(Amount amount) {
    return account_->Resize(amount, &part_);
  }
  void Release() {
    if (empty()) return;
    std::exchange(account_, nullptr)->GiveBack(part_);
    part_ = Part();
  }

 private:
  Account* account_ = nullptr;
  Part part_;
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SHARES_HOLD_H_
