#ifndef SFMAMBA_TESTS_EMULATOR_FIBRE_H_
#define SFMAMBA_TESTS_EMULATOR_FIBRE_H_

#include <cstddef>
#include <functional>

namespace sfmamba::simt {

// Functions that run on their own stacks and are resumed and suspended
// explicitly, all on the thread that calls Resume(). x86-64 only.
//
//   Fibres fibres(2, [&] { ...; fibres.Suspend(); ... });
//   fibres.Start();
//   while (!fibres.ended(0)) fibres.Resume(0);
class Fibres {
 public:
  // Makes `count` fibres, each of which runs `body`.
  Fibres(int count, std::function<void()> body);
  ~Fibres();
  Fibres(const Fibres&) = delete;
  Fibres& operator=(const Fibres&) = delete;

  // Makes each fibre start `body` again at its next Resume(). Drops the stacks
  // of suspended fibres without unwinding them.
  void Start();

  // Runs fibre `i` until it suspends or ends.
  void Resume(int i);
  bool ended(int i) const { return pointers_[i] == nullptr; }

  // Suspends the calling fibre. The Resume() that runs it then returns.
  void Suspend();

 private:
  static void Enter();  // The first function of every fibre.

  const int count_;
  const std::function<void()> body_;
  void* const stacks_;       // count_ stacks, each above an inaccessible page.
  void** const pointers_;    // [count_] stack pointers; null for ended fibres.
  void* resumer_ = nullptr;  // The stack pointer of Resume().
  int running_ = -1;
};

}  // namespace sfmamba::simt

#endif  // SFMAMBA_TESTS_EMULATOR_FIBRE_H_
