#ifndef SFMAMBA_SERVER_HTTP_REQUEST_READER_H_
#define SFMAMBA_SERVER_HTTP_REQUEST_READER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "boost/beast/http/basic_parser.hpp"
#include "server/http/exchange.h"
#include "server/http/room.h"

namespace sfmamba::http {

// Splits a request's target into a path and a query and decodes both. For
// example, "/a%20b?x=1&y=c+d" becomes the path "/a b" and the query x = "1", y
// = "c d". The target "http://host/a" has the path "/a". Returns false if the
// target is empty, contains characters that are not visible ASCII, or has
// encoded control characters in its path.
bool ParseTarget(absl::string_view target, std::string* path,
                 std::multimap<std::string, std::string>* query);

// Reads one request with Beast's parser and enforces limits. Refuses requests
// that proxies and servers may interpret differently. Examples are requests
// with both Content-Length and Transfer-Encoding, with several Host headers, or
// with a transfer coding other than chunked. Thread-compatible.
class RequestReader : private boost::beast::http::basic_parser<true> {
 public:
  struct Limits {
    size_t head_bytes;
    int64_t body_bytes;
  };
  enum class Stage { kEmpty, kHead, kBody, kWhole, kRefused };

  // `hold` must be a hold of 0 bytes from Room::MakeHold(). The reader uses
  // `hold` to reserve memory for the body.
  RequestReader(const Limits& limits, Room::Hold hold);

  // Consumes `bytes`, which must begin with the bytes that the previous call
  // did not consume. Returns the number of consumed bytes. Incomplete lines and
  // the bytes after the request are not consumed. Must not be called at the
  // stages kWhole and kRefused.
  size_t Read(absl::string_view bytes);

  Stage stage() const { return stage_; }
  // Returns the request. Its member `peer` is not set. At stage kBody, the head
  // of the request is complete. At stage kWhole, the body is complete too. At
  // the other stages, only a part of the head may be present.
  HttpRequest& request() { return request_; }
  // Returns true if another request may follow on the connection.
  using basic_parser::keep_alive;
  // Returns the number of body bytes that have not arrived yet. Returns 0 if
  // the length of the body is unknown or no body is being read.
  size_t content_length_left() const {
    return stage_ == Stage::kBody ? content_length_remaining().value_or(0) : 0;
  }
  bool expects_continue() const { return expects_continue_; }
  // Reserves the body's memory through `hold` instead of the hold of the
  // constructor. `hold` must be a hold of 0 bytes. If `hold` cannot reserve the
  // bytes that the reader already uses, returns false and enters the stage
  // kRefused. May be called only at the stages kBody and kWhole.
  bool UseRoom(Room::Hold hold);
  // Returns the memory reservation for the body. May be called only at the
  // stage kWhole.
  Room::Hold TakeHold() { return std::move(hold_); }
  // Returns the reason why the request was refused. Valid at the stage
  // kRefused.
  const Refusal& refusal() const { return refusal_; }

 private:
  using Error = boost::beast::error_code;
  using Field = boost::beast::http::field;
  using Text = boost::beast::string_view;

  // The parser calls these methods. An error stops the parser.
  void on_request_impl(boost::beast::http::verb verb, Text method, Text target,
                       int version, Error& error) override;
  void on_field_impl(Field field, Text name, Text value, Error& error) override;
  void on_header_impl(Error& error) override;
  size_t on_body_impl(Text bytes, Error& error) override;
  void on_chunk_header_impl(uint64_t size, Text extensions,
                            Error& error) override;
  size_t on_chunk_body_impl(uint64_t left, Text bytes, Error& error) override;
  void on_body_init_impl(const boost::optional<uint64_t>& size,
                         Error& error) override {}
  void on_finish_impl(Error& error) override {}
  void on_response_impl(int, Text, int, Error&) override {}

  void TakeRoom(int64_t body_bytes, Error& error);
  void Refuse(int status, std::string message, Error& error);
  Refusal RefusalOf(Error error) const;

  const Limits limits_;
  Room::Hold hold_;
  Stage stage_ = Stage::kEmpty;
  bool after_blank_ = false;
  size_t head_bytes_ = 0;
  int version_ = 11;
  HttpRequest request_;
  bool expects_continue_ = false;
  size_t extension_bytes_ = 0;
  Refusal refusal_ = {};  // If the status is 0, there is no refusal.
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_REQUEST_READER_H_
