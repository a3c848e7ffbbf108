#ifndef SFMAMBA_TESTS_EMULATOR_FIBRE_H_
#define SFMAMBA_TESTS_EMULATOR_FIBRE_H_

#include <cstddef>
#include <functional>

namespace sfmamba::simt {

// Functions on stacks of their own, entered and left by hand: all on the one
// thread that calls Resume(). x86-64 only.
//
//   Fibres fibres(2, [&] { ...; fibres.Suspend(); ... });
//   fibres.Start();
//   while (!fibres.ended(0)) fibres.Resume(0);
class Fibres {
 public:
  // `count` fibres that run `body`.
  Fibres(int count, std::function<void()> body);
  ~Fibres();
  Fibres(const Fibres&) = delete;
  Fibres& operator=(const Fibres&) = delete;

  // Makes each fibre begin anew with its next Resume(). What was running is
  // forgotten, without unwinding.
  void Start();

  // Runs fibre `i` until it suspends or ends.
  void Resume(int i);
  bool ended(int i) const { return pointers_[i] == nullptr; }

  // Returns from the Resume() that the caller, a fibre, runs under.
  void Suspend();

 private:
  static void Enter();  // The bottom of every fibre's stack.

  const int count_;
  const std::function<void()> body_;
  void* const stacks_;       // count_ stacks, each above a page without access.
  void** const pointers_;    // [count_], where each fibre stands; null: ended.
  void* resumer_ = nullptr;  // Where Resume() stands.
  int running_ = -1;
};

}  // namespace sfmamba::simt

#endif  // SFMAMBA_TESTS_EMULATOR_FIBRE_H_
