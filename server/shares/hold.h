#ifndef SFMAMBA_SERVER_SHARES_HOLD_H_
#define SFMAMBA_SERVER_SHARES_HOLD_H_

#include <utility>

#include "absl/time/time.h"

namespace sfmamba::server {

// The wait that a client is asked for when others hold what it needs.
inline constexpr absl::Duration kRetryAfter = absl::Milliseconds(100);

// A part of what an Account counts, which gets it back once: on Release() or
// when the hold ends.
//
//   MemoryHold all = *budget.Take(MemoryUse::kInput, 300);
//   MemoryHold first = all.Split(100);  // 200 bytes stay in `all`.
//
// The account hands holds out and outlives them. It has a type Part, with a
// method Split() if that is called, and GiveBack(const Part&).
// Thread-compatible.
template <typename Account>
class Hold {
 public:
  using Part = typename Account::Part;

  Hold() = default;  // Holds nothing.
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

  // Moves some of what is held, at most all, into the returned hold.
  template <typename... Amounts>
  Hold Split(Amounts... amounts) {
    if (empty()) return Hold();
    return Hold(account_, part_.Split(amounts...));
  }
  // Changes how much is held, if the account has Resize(). Not when empty.
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
