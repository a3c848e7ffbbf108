#ifndef SFMAMBA_SERVER_HTTP_REQUEST_READER_H_
#define SFMAMBA_SERVER_HTTP_REQUEST_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "server/http/chunk_reader.h"
#include "server/http/request_head.h"
#include "server/http/room.h"

namespace sfmamba::http {

// Reads one request, however its bytes are cut, within limits.
// Thread-compatible.
class RequestReader {
 public:
  struct Limits {
    size_t head_bytes;
    int64_t body_bytes;
  };
  enum class Stage { kEmpty, kHead, kBody, kWhole, kRefused };

  // `hold` takes the body's room. It holds nothing yet.
  RequestReader(const Limits& limits, Room::Hold hold)
      : limits_(limits), hold_(std::move(hold)) {}

  // Takes in `bytes` until they end, the request does, or it is refused.
  // Returns how many it took. Not after kWhole or kRefused.
  size_t Read(absl::string_view bytes);

  Stage stage() const { return stage_; }
  // Of kBody and kWhole.
  RequestHead& head() { return head_; }
  // Bytes of the body that have come, and that are still to come for certain.
  int64_t body_read() const { return body_read_; }
  int64_t body_left() const { return head_.body_bytes - body_read_; }
  // The room of the body, which is in head().request. Of kWhole.
  Room::Hold TakeHold() { return std::move(hold_); }
  const Refusal& refusal() const { return refusal_; }  // Of kRefused.

 private:
  size_t ReadHead(absl::string_view bytes);
  size_t ReadBody(absl::string_view bytes);
  void EndHead();
  // False if it is refused.
  bool Append(absl::string_view bytes);
  // Each is false if the request is refused: a body of that size in all may
  // come; there is room for it.
  bool IsAllowed(int64_t body_bytes);
  bool TakeRoom(int64_t body_bytes);
  void Refuse(Refusal refusal);

  Limits limits_;
  Room::Hold hold_;
  Stage stage_ = Stage::kEmpty;
  std::string text_;  // Of the head.
  bool after_blank_ = false;
  RequestHead head_;
  ChunkReader chunks_;
  int64_t body_read_ = 0;
  Refusal refusal_ = {};
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_REQUEST_READER_H_
