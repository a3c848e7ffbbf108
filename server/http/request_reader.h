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

// Takes a request's target apart: "/a%20b?x=1&y=c+d" is the path "/a b" and x =
// "1", y = "c d". "http://host/a" is the path "/a". False if it is empty, has
// other characters than visible ASCII, or stands for control characters.
bool ParseTarget(absl::string_view target, std::string* path,
                 std::multimap<std::string, std::string>* query);

// Reads one request with Beast's parser, within limits. Refuses what proxies
// and servers read in different ways: both lengths of a body, several hosts,
// codings other than chunks. Thread-compatible.
class RequestReader : private boost::beast::http::basic_parser<true> {
 public:
  struct Limits {
    size_t head_bytes;
    int64_t body_bytes;
  };
  enum class Stage { kEmpty, kHead, kBody, kWhole, kRefused };

  // `hold`, of MakeHold(), takes the body's room.
  RequestReader(const Limits& limits, Room::Hold hold);

  // Takes in `bytes`, of which the first are those that the last call left.
  // Returns how many it took; it leaves lines that have not come whole, and
  // what follows the request. Not after kWhole or kRefused.
  size_t Read(absl::string_view bytes);

  Stage stage() const { return stage_; }
  // From kBody on, without peer; whole from kWhole on. Before it and at
  // kRefused the part of the head that was read.
  HttpRequest& request() { return request_; }
  // The connection may have a next request after this.
  using basic_parser::keep_alive;
  // Bytes that are still to come of a body of known length, else 0.
  size_t content_length_left() const {
    return stage_ == Stage::kBody ? content_length_remaining().value_or(0) : 0;
  }
  bool expects_continue() const { return expects_continue_; }
  // Holds the body's memory by `hold`, which is empty, from now on. Returns
  // false and enters kRefused if there is no room for the bytes received so
  // far. To be called at kBody or kWhole.
  bool UseRoom(Room::Hold hold);
  // The room of the body, at kWhole.
  Room::Hold TakeHold() { return std::move(hold_); }
  const Refusal& refusal() const { return refusal_; }  // At kRefused.

 private:
  using Error = boost::beast::error_code;
  using Field = boost::beast::http::field;
  using Text = boost::beast::string_view;

  // Called by the parser; an error ends the request.
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
  Refusal refusal_ = {};  // Status 0: none.
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_REQUEST_READER_H_
