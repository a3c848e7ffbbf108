#include "server/base/client_shares.h"

#include <cassert>
#include <limits>

namespace sfmamba::server {

absl::string_view ClientOf(absl::string_view peer) {
  return peer.substr(0, peer.rfind(':'));
}

ClientShares::Hold::Hold(std::shared_ptr<Table> table, std::string client,
                         int64_t amount)
    : table_(std::move(table)), client_(std::move(client)), amount_(amount) {}

ClientShares::Hold& ClientShares::Hold::operator=(Hold&& other) noexcept {
  std::swap(table_, other.table_);
  std::swap(client_, other.client_);
  std::swap(amount_, other.amount_);
  return *this;
}

ClientShares::Hold ClientShares::Hold::Split(int64_t amount) {
  if (table_ == nullptr) return Hold();
  assert(amount <= amount_);
  amount_ -= amount;
  return Hold(table_, client_, amount);
}

void ClientShares::Hold::Release() {
  if (table_ == nullptr) return;
  {
    absl::MutexLock lock(&table_->mu);
    const auto held = table_->held.find(client_);
    if (held != table_->held.end()) {
      held->second -= amount_;
      if (held->second == 0) table_->held.erase(held);
    }
  }
  table_ = nullptr;
}

int64_t ClientShares::Hold::InEqualTurns() const {
  if (table_ == nullptr) return 0;
  absl::MutexLock lock(&table_->mu);
  const auto own = table_->held.find(client_);
  return own == table_->held.end() ? 0 : own->second * table_->held.size();
}

ClientShares::ClientShares(double most_alone)
    : times_free_(most_alone < 1 ? most_alone / (1 - most_alone)
                                 : std::numeric_limits<double>::infinity()) {}

std::optional<ClientShares::Hold> ClientShares::Take(absl::string_view client,
                                                     int64_t amount,
                                                     int64_t free) {
  if (amount <= 0) return Hold();
  absl::MutexLock lock(&table_->mu);
  const auto found = table_->held.find(client);
  const int64_t before = found == table_->held.end() ? 0 : found->second;
  if (!IsShare(before + amount, free)) return std::nullopt;
  table_->held[client] = before + amount;
  return Hold(table_, std::string(client), amount);
}

bool ClientShares::IsShare(double amount, double free) const {
  return times_free_ == std::numeric_limits<double>::infinity() ||
         amount <= times_free_ * free;
}

int64_t ClientShares::HeldBy(absl::string_view client) const {
  absl::MutexLock lock(&table_->mu);
  const auto found = table_->held.find(client);
  return found == table_->held.end() ? 0 : found->second;
}

int ClientShares::clients() const {
  absl::MutexLock lock(&table_->mu);
  return table_->held.size();
}

}  // namespace sfmamba::server
