#ifndef SFMAMBA_SERVER_HTTP_COSTLY_STEPS_H_
#define SFMAMBA_SERVER_HTTP_COSTLY_STEPS_H_

#include <chrono>
#include <deque>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "boost/asio/io_context.hpp"
#include "boost/asio/post.hpp"

namespace sfmamba::http {

// Runs costly steps for a while, one at least, and then lets all else that is
// ready run before it goes on. Used by the loop's thread.
class CostlySteps {
 public:
  using Clock = std::chrono::steady_clock;

  // A handler of Asio's that is bound to it runs here, and all steps that lead
  // to it.
  struct Executor {
    template <typename Step>
    void execute(Step&& step) const {
      steps->Add(std::forward<Step>(step));
    }
    operator CostlySteps*() const noexcept { return steps; }  // For == and !=.

    CostlySteps* steps;
  };

  CostlySteps(boost::asio::io_context& loop, Clock::duration limit)
      : loop_(loop), limit_(limit) {}

 private:
  void Add(absl::AnyInvocable<void()> step) {
    steps_.push_back(std::move(step));
    Post();
  }
  void Post() {
    if (steps_.empty() || std::exchange(is_posted_, true)) return;
    boost::asio::post(loop_, [this] { Run(); });
  }
  void Run() {
    is_posted_ = false;
    Post();  // First, as a step may throw.
    for (const auto begin = Clock::now(); !steps_.empty();) {
      auto step = std::move(steps_.front());
      steps_.pop_front();
      step();
      if (Clock::now() - begin >= limit_) break;
    }
  }

  boost::asio::io_context& loop_;
  const Clock::duration limit_;
  bool is_posted_ = false;
  std::deque<absl::AnyInvocable<void()>> steps_;
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_COSTLY_STEPS_H_
