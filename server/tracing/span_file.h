#ifndef SFMAMBA_SERVER_TRACING_SPAN_FILE_H_
#define SFMAMBA_SERVER_TRACING_SPAN_FILE_H_

#include <cstdint>
#include <string>

#include "server/tracing/span_exporter.h"

namespace sfmamba::tracing {

// Appends requests to a file, one on each line. When a line would make it
// larger than `max_bytes`, the file is renamed to "<path>.1", in place of what
// was there, and begun anew: on disk are never more than twice as many bytes.
//
// Thread-compatible.
class SpanFile final : public SpanSink {
 public:
  SpanFile(std::string path, int64_t max_bytes);
  ~SpanFile() override;

  // An error says why the file could not be opened, renamed or written to, or
  // that the line is larger than max_bytes. Then nothing of the line is in it.
  absl::Status Write(const std::string& request,
                     absl::FunctionRef<bool()> stop) override;

 private:
  // Opens the file, which may exist, for its next line.
  absl::Status Open();
  absl::Status Rotate();
  absl::Status Append(const std::string& line);
  void Close();

  const std::string path_;
  const int64_t max_bytes_;
  int fd_ = -1;       // -1: not open.
  int64_t size_ = 0;  // Bytes in the open file.
};

}  // namespace sfmamba::tracing

#endif  // SFMAMBA_SERVER_TRACING_SPAN_FILE_H_
