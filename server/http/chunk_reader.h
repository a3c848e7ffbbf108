#ifndef SFMAMBA_SERVER_HTTP_CHUNK_READER_H_
#define SFMAMBA_SERVER_HTTP_CHUNK_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace sfmamba::http {

// Reads a body in the chunked coding (RFC 9112, section 7.1), however its bytes
// are cut. Extensions and trailers are dropped. Thread-compatible.
class ChunkReader {
 public:
  enum class State {
    kSize,     // In a chunk's size and extensions,
    kData,     // in its bytes,
    kDataEnd,  // in the line break after them,
    kTrailer,  // or after the last chunk.
    kDone,
    kBad,  // It is no chunked coding, or has too much but data.
  };

  // Takes in `bytes` until they end or the body does. Returns how many it took.
  // `append` is called with the body's bytes; if it returns false, that was
  // the last call.
  size_t Read(absl::string_view bytes,
              absl::FunctionRef<bool(absl::string_view)> append);

  State state() const { return state_; }

 private:
  void ReadLine(char c);
  void EndLine();

  State state_ = State::kSize;
  std::string line_;   // That has come so far.
  uint64_t left_ = 0;  // Bytes of the chunk.
  size_t dropped_ = 0;
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_CHUNK_READER_H_
