#include "server/http/connection.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "boost/asio/bind_executor.hpp"
#include "boost/asio/executor_work_guard.hpp"
#include "boost/asio/post.hpp"
#include "boost/asio/ssl/error.hpp"
#include "boost/asio/write.hpp"
#include "boost/beast/http/status.hpp"

namespace sfmamba::http {
namespace {

namespace asio = boost::asio;

// After the last response, the server reads and discards all further bytes of
// the client. It closes the connection after kEndTime or kMostDiscarded bytes.
// If the server closed the connection immediately, the client could lose the
// response.
constexpr absl::Duration kEndTime = absl::Seconds(1);
constexpr size_t kMostDiscarded = 4 << 20;
// The server reads at most kBlock bytes at once, except for some bodies (see
// below). A read may also return bytes of the next request. No memory limit
// counts these bytes, so kBlock must be small.
//
// If the length of a body is known and TLS is not used, the server reads the
// body in larger blocks. These blocks contain no bytes of the next request.
// With TLS, larger reads would be useless, because a TLS record contains at
// most kBlock bytes.
constexpr size_t kBlock = 16 << 10;
// While a response is pending, the server stops reading once the client has
// sent this many bytes of further requests. The server then notices a
// disconnect only after the response is sent.
constexpr size_t kMostAhead = 16 << 10;
constexpr absl::Duration kNever = absl::Hours(100'000);
constexpr char kContinue[] = "HTTP/1.1 100 Continue\r\n\r\n";
// The number of bytes that TLS needs for one connection. Each connection has
// five buffers of the size of a TLS record. Four of them belong to Asio, and
// the fifth is Connection::record_. The rest is OpenSSL's state.
constexpr int64_t kTlsBytes = 96 << 10;

bool IsOneLine(const std::string& text) {
  return text.find_first_of(std::string("\r\n\0", 3)) == text.npos;
}

}  // namespace

Connection::Connection(Environment& environment, Tcp::socket socket,
                       std::string peer)
    : environment_(environment),
      socket_(std::move(socket)),
      peer_(std::move(peer)),
      since_(Clock::now()),
      timer_(socket_.get_executor(), Clock::time_point::max()) {}

void Connection::Begin() {
  const HttpOptions& options = environment_.options;
  if (options.tls == nullptr) {
    Enter(State::kIdle, std::max(options.idle_time, options.head_time));
    return Read();
  }
  Enter(State::kGreeting, options.head_time);
  tls_hold_ = environment_.room.TakeAnyway(kTlsBytes);
  tls_ = std::make_unique<Tls>(socket_, options.tls->Current());
  tls_->async_handshake(
      Tls::server,
      asio::bind_executor(environment_.handshakes,
                          [self = shared_from_this()](Error error) {
                            self->OnGreeted(error);
                          }));
}

void Connection::OnGreeted(Error error) {
  if (state_ != State::kGreeting) return;
  const HttpOptions& options = environment_.options;
  if (!error) {
    Enter(State::kIdle, std::max(options.idle_time, options.head_time));
    return Read();
  }
  const bool is_tls = error.category() == asio::error::get_ssl_category();
  const char* reason = ERR_reason_error_string(is_tls ? error.value() : 0);
  options.handshake_failed(peer_, reason ? reason : "the peer has gone");
  tls_ = nullptr;
  if (is_tls && ERR_GET_REASON(error.value()) == SSL_R_HTTP_REQUEST) {
    return Refuse({400, "expected TLS, https, got HTTP in clear"});
  }
  // The connection stays open for a short time, so that the client can read the
  // TLS alert.
  EndSoon();
}

void Connection::Enter(State state, absl::Duration limit) {
  const Clock::time_point now = Clock::now();
  deadline_ = now + absl::ToChronoNanoseconds(limit);
  // Arm() makes a system call. It is therefore called only if the new deadline
  // is earlier than the time of the timer. If the timer fires before the
  // deadline, OnTimer() calls Arm() again.
  if (deadline_ < timer_.expiry()) Arm();
  if (state_ == state) return;
  state_ = state;
  since_ = now;
}

void Connection::Arm() {
  timer_.expires_at(deadline_);
  timer_.async_wait([self = shared_from_this()](Error error) {
    if (!error) self->OnTimer();
  });
}

void Connection::OnTimer() {
  if (state_ == State::kEnded) return;
  if (Clock::now() < deadline_) return Arm();
  timer_.expires_at(Clock::time_point::max());
  if (state_ == State::kHead) {
    Refuse({408, absl::StrCat(
                     "the request line and the headers did not come within ",
                     absl::FormatDuration(environment_.options.head_time))});
  } else if (state_ == State::kBody) {
    Refuse({408, absl::StrCat("the body came too slowly: ",
                              reader_->request().body.size(),
                              " bytes of it came in time")});
  } else {
    End();
  }
}

void Connection::Read() {
  if (is_reading_ || peer_closed_ || state_ <= State::kEnding ||
      (state_ >= State::kWriting && in_.size() >= kMostAhead)) {
    return;
  }
  if (tls_ == nullptr) return ReadSocket();
  is_reading_ = true;
  record_.resize(kBlock);
  tls_->async_read_some(asio::buffer(record_),
                        [self = shared_from_this()](Error error, size_t size) {
                          self->OnRead(error, {self->record_.data(), size});
                        });
}

// Reads into a buffer that all plaintext connections share. An idle connection
// therefore needs no buffer.
void Connection::ReadSocket() {
  is_reading_ = true;
  socket_.async_wait(
      Tcp::socket::wait_read, [self = shared_from_this()](Error error) {
        if (self->state_ == State::kEnded) return;
        auto& block = self->environment_.block;
        const auto& reader = self->reader_;
        const size_t left = reader ? reader->content_length_left() : 0;
        const size_t most = std::clamp(left, kBlock, block.size());
        size_t size = 0;
        if (!error) {
          size = self->socket_.read_some(asio::buffer(block, most), error);
        }
        self->OnRead(error == asio::error::would_block ? Error() : error,
                     {block.data(), size});
      });
}

void Connection::OnRead(Error error, absl::string_view bytes) {
  is_reading_ = false;
  if (state_ == State::kEnded) return;
  if (state_ == State::kEnding) {
    discarded_ += bytes.size();
    if (error || discarded_ > kMostDiscarded) return End();
    return ReadSocket();
  }
  if (error) {
    peer_closed_ = true;
    const bool is_half = error == asio::error::eof ||
                         error == asio::ssl::error::stream_truncated;
    if (is_half && state_ == State::kIdle) return EndSoon();
    if (!is_half || state_ < State::kWriting) return End();
    return EndOnReset();
  }
  if (state_ >= State::kWriting) {
    absl::StrAppend(&in_, bytes);
  } else {
    TakeIn(bytes);
  }
  Read();
}

void Connection::EndOnReset() {
  socket_.async_wait(Tcp::socket::wait_error,
                     [self = shared_from_this()](Error error) {
                       if (!error) self->End();
                     });
}

void Connection::TakeIn(absl::string_view bytes) {
  const HttpOptions& options = environment_.options;
  if (!reader_.has_value()) {
    reader_.emplace(
        RequestReader::Limits{options.max_head_bytes, options.max_body_bytes},
        environment_.room.MakeHold(server::ClientOf(peer_)));
  }
  if (!in_.empty()) {
    absl::StrAppend(&in_, bytes);
    bytes = in_;
  }
  in_ = std::string(bytes.substr(reader_->Read(bytes)));
  const State before = state_;
  const RequestReader::Stage stage = reader_->stage();
  if (stage == RequestReader::Stage::kRefused) {
    return Refuse(reader_->refusal());
  }
  if (stage == RequestReader::Stage::kHead && before != State::kHead) {
    Enter(State::kHead, options.head_time);
  }
  if (stage < RequestReader::Stage::kBody) return;
  if (before != State::kBody) {
    HttpRequest& request = reader_->request();
    request.peer = peer_;
    is_head_ = request.method == "HEAD";
    headers_ = options.headers(request);
    if (auto refusal = options.admit(request)) return Refuse(*refusal);
    if (!reader_->UseRoom(environment_.room.MakeHold(request.client()))) {
      return Refuse(reader_->refusal());
    }
    body_began_ = Clock::now();
  }
  if (stage == RequestReader::Stage::kWhole) return Start();
  Enter(State::kBody, BodyLimit());
  // "100 Continue" tells the client to send the body. If a part of the body has
  // already arrived, the client does not wait for this response.
  if (before != State::kBody && reader_->expects_continue() &&
      reader_->request().body.empty()) {
    out_.push_back(kContinue);
    Flush();
  }
}

absl::Duration Connection::BodyLimit() {
  const HttpOptions& options = environment_.options;
  const absl::Duration at_rate =
      absl::Seconds(static_cast<double>(reader_->request().body.size()) /
                    static_cast<double>(options.min_body_rate));
  return std::min(options.body_time, options.head_time + at_rate) -
         absl::FromChrono(Clock::now() - body_began_);
}

void Connection::Start() {
  HttpRequest request = std::move(reader_->request());
  keep_alive_ = reader_->keep_alive() &&
                environment_.options.idle_time > absl::ZeroDuration();
  auto post = [loop = environment_.loop, weak = weak_from_this(),
               open = asio::make_work_guard(*environment_.loop)](
                  std::shared_ptr<Call> call, Answered answered) {
    // `call` owns this lambda (`post`), and therefore the captured pointer
    // `loop`. asio::post() may destroy `call` before asio::post() returns. The
    // copy `living` keeps the event loop alive until asio::post() has returned.
    const auto living = loop;
    asio::post(*living, [weak, call = std::move(call),
                         answered = std::move(answered)]() mutable {
      const auto self = weak.lock();
      if (self != nullptr && self->call_ == call &&
          self->state_ == State::kAnswering) {
        self->OnAnswer(std::move(answered));
      }
    });
  };
  call_ = std::make_shared<Call>(reader_->TakeHold(), std::move(post));
  reader_.reset();
  Enter(State::kAnswering, kNever);
  environment_.start(call_, std::move(request));
}

void Connection::OnAnswer(Answered answered) {
  sent_ = std::move(answered.sent);
  Write(answered.response.has_value()
            ? *std::move(answered.response)
            : environment_.options.refusal(HttpRequest(), 500,
                                           "the request was dropped"));
}

void Connection::Refuse(Refusal refusal) {
  const HttpRequest request =
      reader_.has_value() ? std::move(reader_->request()) : HttpRequest();
  is_head_ = false;
  headers_ = environment_.options.headers(request);
  Refuse(
      environment_.options.refusal(request, refusal.status, refusal.message));
}

void Connection::Refuse(HttpResponse response) {
  keep_alive_ = false;
  reader_.reset();
  Write(std::move(response));
}

void Connection::Write(HttpResponse response) {
  const bool is_last = peer_closed_ && in_.empty();
  keep_alive_ &= !environment_.is_draining && !is_last;
  std::move(headers_.begin(), headers_.end(),
            std::back_inserter(response.headers));
  out_.push_back(ResponseHead(response, keep_alive_, absl::Now()));
  int64_t body_bytes = 0;
  if (!is_head_ && HasBody(response.status)) {
    for (std::string& piece : response.body) {
      body_bytes += piece.size();
      out_.push_back(std::move(piece));
    }
  }
  answer_hold_ = environment_.room.TakeAnyway(body_bytes);
  Enter(State::kWriting, environment_.options.answer_time);
  Flush();
}

void Connection::Flush() {
  if (!writing_.empty()) return;
  writing_ = std::exchange(out_, {});
  std::vector<asio::const_buffer> pieces;
  for (const std::string& piece : writing_) {
    pieces.push_back(asio::buffer(piece));
  }
  const auto done = [self = shared_from_this()](Error error, size_t) {
    self->writing_.clear();
    if (self->state_ == State::kEnded) return;
    if (error) return self->End();
    if (!self->out_.empty()) return self->Flush();
    if (self->state_ == State::kWriting) self->EndAnswer();
  };
  if (tls_ != nullptr) {
    asio::async_write(*tls_, pieces, done);
  } else {
    asio::async_write(socket_, pieces, done);
  }
}

void Connection::EndAnswer() {
  call_ = nullptr;
  answer_hold_.Release();
  sent_ = AtEnd();
  if (!keep_alive_) return EndSoon();
  Enter(State::kIdle, environment_.options.idle_time);
  if (!in_.empty()) TakeIn("");
  if (peer_closed_ && state_ < State::kWriting) return EndSoon();
  Read();
}

void Connection::EndSoon() {
  in_ = std::string();
  Enter(State::kEnding, kEndTime);
  const auto stop = [self = shared_from_this()](Error) {
    Error ignored;
    self->socket_.shutdown(Tcp::socket::shutdown_send, ignored);
    if (!self->is_reading_) self->ReadSocket();
  };
  if (tls_ != nullptr) {
    tls_->async_shutdown(stop);
  } else {
    stop({});
  }
  if (environment_.is_draining) environment_.ended(*this);
}

void Connection::End() {
  if (state_ == State::kEnded) return;
  state_ = State::kEnded;
  Error ignored;
  socket_.close(ignored);
  timer_.cancel(ignored);
  if (call_ != nullptr) {
    call_->Drop();
    call_->Cancel();
    call_ = nullptr;
  }
  reader_.reset();
  answer_hold_.Release();
  tls_hold_.Release();
  sent_ = AtEnd();
  environment_.ended(*this);
}

bool HasBody(int status) { return status != 204 && status != 304; }

std::string ResponseHead(const HttpResponse& response, bool keep_alive,
                         absl::Time now) {
  const boost::beast::string_view reason = boost::beast::http::obsolete_reason(
      boost::beast::http::int_to_status(response.status));
  std::string head = absl::StrCat(
      "HTTP/1.1 ", response.status, " ", std::string(reason), "\r\nDate: ",
      absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", now, absl::UTCTimeZone()),
      "\r\n");
  for (const auto& [name, value] : response.headers) {
    if (!IsOneLine(name) || !IsOneLine(value)) continue;
    absl::StrAppend(&head, name, ": ", value, "\r\n");
  }
  if (HasBody(response.status)) {
    size_t bytes = 0;
    for (const std::string& piece : response.body) bytes += piece.size();
    absl::StrAppend(&head, "Content-Length: ", bytes, "\r\n");
  }
  absl::StrAppend(&head, "Connection: ", keep_alive ? "keep-alive" : "close",
                  "\r\n\r\n");
  return head;
}

}  // namespace sfmamba::http
