#include "server/http/connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/http/response_head.h"

namespace sfmamba::http {
namespace {

// How long a connection may still send after its last answer, and how much. One
// that is closed before the client's bytes are read may lose the answer.
constexpr absl::Duration kEndTime = absl::Seconds(1);
constexpr size_t kMaxDiscarded = 4 << 20;
// Of a body of known length, what is read at a time. Else less, as what follows
// a request is kept without being counted.
constexpr int64_t kBodyBlock = 256 << 10;
constexpr int64_t kBlock = 16 << 10;
// What is written at a time.
constexpr size_t kMaxPieces = 64;
constexpr size_t kWriteBlock = 1 << 20;
constexpr char kContinue[] = "HTTP/1.1 100 Continue\r\n\r\n";

// Of TLS, while a connection lives: what the library keeps for it, and a record
// that is read or written.
constexpr int64_t kTlsBytes = 48 << 10;

}  // namespace

Connection::Connection(Environment& environment, std::unique_ptr<Socket> socket,
                       uint64_t id, std::string peer, absl::Time now)
    : environment_(environment),
      socket_(std::move(socket)),
      id_(id),
      peer_(std::move(peer)),
      since_(now),
      deadline_(now + FirstWait()),
      reader_(NewReader()) {
  if (!socket_->greets()) return;
  state_ = State::kGreeting;
  deadline_ = now + environment.options.head_time;
  tls_hold_ = Room::Hold(environment.room, peer_);
  tls_hold_.TakeAnyway(kTlsBytes);
}

Connection::~Connection() {
  socket_ = nullptr;
  if (call_ != nullptr) {
    call_->Drop();
    if (!peer_closed_) call_->Cancel();
  }
  out_.clear();
  if (sent_) sent_();
}

absl::Duration Connection::FirstWait() const {
  return std::max(environment_.options.idle_time,
                  environment_.options.head_time);
}

RequestReader Connection::NewReader() const {
  return RequestReader({environment_.options.max_head_bytes,
                        environment_.options.max_body_bytes},
                       Room::Hold(environment_.room, peer_));
}

void Connection::Enter(State state, absl::Time deadline, absl::Time now) {
  deadline_ = deadline;
  if (state_ == state) return;
  state_ = state;
  since_ = now;
}

uint32_t Connection::events() const {
  const uint32_t out = out_.empty() ? 0u : EPOLLOUT;
  switch (state_) {
    case State::kWriting:
      return out;
    case State::kAnswering:
      return out | (peer_closed_ ? 0u : EPOLLRDHUP);
    case State::kEnding:
      return out | EPOLLIN;
    default:
      return out | EPOLLIN | (socket_->wants_to_write() ? EPOLLOUT : 0u);
  }
}

bool Connection::OnEvents(uint32_t events, absl::Time now) {
  if ((events & (EPOLLERR | EPOLLHUP)) != 0) return false;
  if ((events & EPOLLOUT) != 0) {
    if (out_.empty()) {
      events |= EPOLLIN;  // TLS may have to write before it reads on.
    } else if (!Flush(now)) {
      return false;
    }
  }
  if ((events & EPOLLRDHUP) != 0 && state_ == State::kAnswering) OnPeerClosed();
  if ((events & EPOLLIN) == 0) return true;
  switch (state_) {
    case State::kEnding:
      return Discard();
    case State::kGreeting:
      return Greet(now);
    case State::kIdle:
    case State::kHead:
    case State::kBody:
      return Read(now);
    default:
      return true;
  }
}

void Connection::OnPeerClosed() {
  peer_closed_ = true;
  call_->Cancel();
}

bool Connection::OnDeadline(absl::Time now) {
  if (state_ != State::kHead && state_ != State::kBody) return false;
  return Refuse(
      {408,
       state_ == State::kHead
           ? absl::StrCat("the request line and the headers did "
                          "not come within ",
                          absl::FormatDuration(environment_.options.head_time))
           : absl::StrCat("the body came too slowly: ", reader_.body_read(),
                          " bytes of it came in time")},
      now);
}

bool Connection::Greet(absl::Time now) {
  switch (socket_->Greet()) {
    case Socket::Outcome::kAgain:
      return true;
    case Socket::Outcome::kDone:
      Enter(State::kIdle, now + FirstWait(), now);
      return true;
    case Socket::Outcome::kPlaintext:
      environment_.options.handshake_failed(peer_, socket_->failure());
      socket_ = std::make_unique<PlainSocket>(socket_->Release());
      return Refuse({400, "expected TLS, https, got HTTP in clear"}, now);
    case Socket::Outcome::kEnded:
      environment_.options.handshake_failed(peer_, socket_->failure());
      EndSoon(now);  // The client may read why.
      return true;
  }
  return false;  // Not reached: the cases are all there are.
}

bool Connection::Read(absl::Time now) {
  std::array<char, kBodyBlock> bytes;
  do {
    const bool is_counted =
        state_ == State::kBody && !reader_.head().is_chunked;
    size_t size = 0;
    const Socket::Outcome outcome = socket_->Read(
        bytes.data(),
        is_counted ? std::min(kBodyBlock, reader_.body_left()) : kBlock, &size);
    if (outcome == Socket::Outcome::kAgain) return true;
    if (outcome != Socket::Outcome::kDone) return false;
    if (!TakeIn({bytes.data(), size}, now)) return false;
  } while (HasMore());
  return true;
}

bool Connection::HasMore() const {
  return (state_ == State::kIdle || state_ == State::kHead ||
          state_ == State::kBody) &&
         socket_->has_more();
}

bool Connection::TakeIn(absl::string_view bytes, absl::Time now) {
  const State before = state_;
  const size_t read = reader_.Read(bytes);
  const absl::string_view rest = bytes.substr(read);
  const HttpOptions& options = environment_.options;
  switch (reader_.stage()) {
    case RequestReader::Stage::kEmpty:
      return true;
    case RequestReader::Stage::kHead:
      if (before != State::kHead) {
        Enter(State::kHead, now + options.head_time, now);
      }
      return true;
    case RequestReader::Stage::kBody:
      if (before != State::kBody) {
        if (auto refusal = Admit()) return Refuse(*std::move(refusal), now);
        body_began_ = now;
        // A client that sends the body without waiting needs no answer.
        if (reader_.head().expects_continue && reader_.body_read() == 0) {
          out_.push_back(kContinue);
        }
      }
      Enter(State::kBody, BodyDeadline(), now);
      return out_.empty() || Flush(now);
    case RequestReader::Stage::kWhole:
      if (before != State::kBody) {
        if (auto refusal = Admit()) return Refuse(*std::move(refusal), now);
      }
      ahead_ = std::string(rest);
      Start(now);
      return true;
    case RequestReader::Stage::kRefused:
      return Refuse(reader_.refusal(), now);
  }
  return false;  // Not reached: the cases are all there are.
}

absl::Time Connection::BodyDeadline() const {
  const HttpOptions& options = environment_.options;
  const absl::Duration at_rate =
      absl::Seconds(static_cast<double>(reader_.body_read()) /
                    static_cast<double>(options.min_body_rate));
  return body_began_ + std::min(options.body_time, options.head_time + at_rate);
}

void Connection::Start(absl::Time now) {
  HttpRequest request = std::move(reader_.head().request);
  keep_alive_ = reader_.head().keep_alive &&
                environment_.options.idle_time > absl::ZeroDuration();
  call_ = std::make_shared<Call>(id_, reader_.TakeHold());
  reader_ = NewReader();
  Enter(State::kAnswering, absl::InfiniteFuture(), now);
  if (peer_closed_) call_->Cancel();
  environment_.start(call_, std::move(request));
}

std::optional<HttpResponse> Connection::Admit() {
  HttpRequest& request = reader_.head().request;
  request.peer = peer_;
  is_head_ = request.method == "HEAD";
  return environment_.options.admit(request);
}

bool Connection::Refuse(Refusal refusal, absl::Time now) {
  is_head_ = false;
  HttpResponse response =
      environment_.options.refusal(refusal.status, refusal.message);
  if (refusal.status == 503) response.headers.push_back({"Retry-After", "1"});
  return Refuse(std::move(response), now);
}

bool Connection::Refuse(HttpResponse response, absl::Time now) {
  keep_alive_ = false;
  reader_ = NewReader();
  return Write(std::move(response), now);
}

bool Connection::OnAnswer(Answered answered, absl::Time now) {
  if (answered.response.has_value()) {
    sent_ = std::move(answered.sent);
    return Write(*std::move(answered.response), now);
  }
  return Write(environment_.options.refusal(500, "the request was dropped"),
               now);
}

bool Connection::Write(HttpResponse response, absl::Time now) {
  keep_alive_ &= !environment_.is_draining;
  out_.push_back(ResponseHead(response, keep_alive_, absl::Now()));
  answer_hold_ = Room::Hold(environment_.room, peer_);
  if (!is_head_ && HasBody(response.status)) {
    for (std::string& piece : response.body) {
      if (piece.empty()) continue;
      answer_hold_.TakeAnyway(piece.size());
      out_.push_back(std::move(piece));
    }
  }
  Enter(State::kWriting, now + environment_.options.answer_time, now);
  return Flush(now);
}

bool Connection::Flush(absl::Time now) {
  std::array<iovec, kMaxPieces> pieces;
  size_t count = 0, bytes = 0;
  for (size_t i = piece_;
       i < out_.size() && count < kMaxPieces && bytes < kWriteBlock; ++i) {
    const size_t begin = i == piece_ ? offset_ : 0;
    const size_t size = std::min(out_[i].size() - begin, kWriteBlock - bytes);
    pieces[count++] = {out_[i].data() + begin, size};
    bytes += size;
  }
  size_t sent = 0;
  const Socket::Outcome outcome = socket_->Write({pieces.data(), count}, &sent);
  if (outcome == Socket::Outcome::kAgain) return true;
  if (outcome != Socket::Outcome::kDone) return false;
  offset_ += sent;
  while (piece_ < out_.size() && offset_ >= out_[piece_].size()) {
    offset_ -= out_[piece_].size();
    out_[piece_++] = std::string();
  }
  if (piece_ < out_.size()) return true;
  out_.clear();
  piece_ = offset_ = 0;
  return state_ != State::kWriting || EndAnswer(now);
}

bool Connection::EndAnswer(absl::Time now) {
  call_ = nullptr;
  answer_hold_.Release();
  if (sent_) std::exchange(sent_, nullptr)();
  if (!keep_alive_) {
    EndSoon(now);
    return true;
  }
  Enter(State::kIdle, now + environment_.options.idle_time, now);
  if (!ahead_.empty() && !TakeIn(std::exchange(ahead_, std::string()), now)) {
    return false;
  }
  return !HasMore() || Read(now);
}

void Connection::EndSoon(absl::Time now) {
  socket_->CloseSending();
  ahead_ = std::string();
  Enter(State::kEnding, now + kEndTime, now);
}

// Reads what it throws away as it is on the wire.
bool Connection::Discard() {
  std::array<char, kBlock> bytes;
  const ssize_t size = recv(fd(), bytes.data(), bytes.size(), 0);
  if (size <= 0) return size < 0 && (errno == EAGAIN || errno == EINTR);
  discarded_ += size;
  return discarded_ <= kMaxDiscarded;
}

}  // namespace sfmamba::http
