#include "server/rpc/port/channelz.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "base/steady_clock.h"
#include "grpc/grpc.h"
#include "grpc/support/alloc.h"

namespace sfmamba::rpc {
namespace {

// Most connections on one page.
constexpr int64_t kAllConnections = 1 << 20;
// Most numbers of connections kept. Beyond it, those of closed ones are
// dropped.
constexpr size_t kMostIds = 1 << 16;

// Frees the text that gRPC returns.
std::string TakeJson(char* json) {
  const std::string text = json == nullptr ? "" : json;
  gpr_free(json);
  return text;
}

// The number in quotes behind `name` in the JSON; 0 if there is none.
int64_t NumberAfter(absl::string_view json, absl::string_view name) {
  const size_t at = json.find(name);
  if (at == json.npos) return 0;
  json.remove_prefix(at + name.size());
  int64_t number = 0;
  return absl::SimpleAtoi(json.substr(0, json.find('"')), &number) ? number : 0;
}

// Calls fn(text behind `name`) for each occurrence in the JSON.
template <typename Fn>
void ForEachBehind(absl::string_view json, absl::string_view name, Fn fn) {
  for (size_t at = json.find(name); at != json.npos; at = json.find(name)) {
    json.remove_prefix(at + name.size());
    fn(json);
  }
}

}  // namespace

int64_t Channelz::IdOf(const std::string& peer) {
  ReadNewIds();
  const absl::Time now = base::SteadyNow();
  if ((!ids_.contains(peer) || ids_.size() > kMostIds) &&
      now - listed_ >= interval_) {
    // Connections are not listed quite in the order of their numbers.
    listed_ = now;
    ids_.clear();
    next_ids_.clear();
    ReadNewIds();
  }
  const auto found = ids_.find(peer);
  return found == ids_.end() ? 0 : found->second;
}

Channelz::Calls Channelz::CallsOf(int64_t id) {
  const std::string counts = TakeJson(grpc_channelz_get_socket(id));
  return {NumberAfter(counts, "\"streamsStarted\":\""),
          NumberAfter(counts, "\"streamsSucceeded\":\""),
          NumberAfter(counts, "\"streamsFailed\":\"")};
}

void Channelz::ReadNewIds() {
  const std::string servers = TakeJson(grpc_channelz_get_servers(0));
  ForEachBehind(servers, "\"serverId\":\"", [this](absl::string_view text) {
    const int64_t server = NumberAfter(text, "");
    int64_t& next = next_ids_[server];
    const std::string page = TakeJson(
        grpc_channelz_get_server_sockets(server, next, kAllConnections));
    ForEachBehind(page, "\"name\":\"chttp2 ", [&](absl::string_view entry) {
      const int64_t id = NumberAfter(entry, "\",\"socketId\":\"");
      ids_[entry.substr(0, entry.find('"'))] = id;
      next = std::max(next, id + 1);
    });
  });
}

}  // namespace sfmamba::rpc
