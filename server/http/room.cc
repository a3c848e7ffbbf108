#include "server/http/room.h"

namespace sfmamba::http {

Room::Hold Room::MakeHold(absl::string_view client) {
  return Hold(this, {std::string(client), 0, 0});
}

Room::Hold Room::TakeAnyway(int64_t bytes) {
  held_.fetch_add(bytes);
  return Hold(this, {"", bytes, 0});
}

bool Room::Resize(int64_t bytes, Part* part) {
  const int64_t more = bytes - part->bytes;
  const int64_t free = capacity_ - held_.fetch_add(more);
  if (more > free || !clients_.Take(part->client, more, free - more)) {
    held_.fetch_sub(more);
    return false;
  }
  part->bytes = part->shared = bytes;
  return true;
}

void Room::GiveBack(const Part& part) {
  held_.fetch_sub(part.bytes);
  clients_.GiveBack(part.client, part.shared);
}

}  // namespace sfmamba::http
