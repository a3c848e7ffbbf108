#ifndef SFMAMBA_SERVER_RPC_WIRE_WIRE_COPIER_H_
#define SFMAMBA_SERVER_RPC_WIRE_WIRE_COPIER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/rpc/wire/wire_cursor.h"

namespace sfmamba::rpc {

// Walks over a message and copies the small part of it that protobuf is to
// parse, up to a limit. Thread-compatible; `parts` and `rest` outlive it.
class WireCopier {
 public:
  WireCopier(absl::Span<const absl::string_view> parts, int64_t max_rest_bytes,
             std::string* rest)
      : cursor_(parts), max_rest_bytes_(max_rest_bytes), rest_(*rest) {}

  WireCursor& cursor() { return cursor_; }
  // Why a method returned false: the rest would be too large, or else the
  // message is malformed.
  bool too_large() const { return too_large_; }

  // Copies the field after `tag`. Groups, nested `depth` deep, are dropped, as
  // nothing known is one.
  bool Keep(uint32_t tag, int64_t end, int depth);

  // Writes a length-delimited field of these bytes.
  bool Put(uint32_t tag, absl::string_view bytes);

  // Begins a copy of the message after `tag`, whose end is written to
  // `inner_end`; what is copied until EndMessage(*start) belongs to it.
  bool BeginMessage(uint32_t tag, int64_t end, int64_t* inner_end,
                    size_t* start);
  void EndMessage(size_t start);

 private:
  bool KeepBytes(uint32_t tag, int64_t bytes, int64_t end);
  // Whether `bytes` more may join the rest, with a header of their own.
  bool HasRoom(int64_t bytes);

  WireCursor cursor_;
  const int64_t max_rest_bytes_;
  std::string& rest_;
  bool too_large_ = false;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_WIRE_WIRE_COPIER_H_
