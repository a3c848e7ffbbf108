#include "tests/emulator/fibre.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

// Switches to another stack. Saves the registers that the ABI requires a callee
// to preserve, stores the stack pointer in *save, and continues where `load`
// was saved.
extern "C" void SfmambaSwitchStack(void** save, void* load);
asm(R"(
  .text
  .globl SfmambaSwitchStack
  .type SfmambaSwitchStack, @function
SfmambaSwitchStack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size SfmambaSwitchStack, .-SfmambaSwitchStack
)");

// AddressSanitizer's function. It is null in programs without
// AddressSanitizer's run-time library.
extern "C" __attribute__((weak)) void __asan_unpoison_memory_region(
    const volatile void* address, size_t size);

namespace sfmamba::simt {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kStack = 16 * kPage;

// The Fibres object whose fibre runs on this thread. Enter() takes no argument,
// so it finds the object here.
thread_local Fibres* entering = nullptr;

void* MapStacks(int count) {
  void* memory = mmap(nullptr, count * kStack, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("mmap of the fibres' stacks");
    std::abort();
  }
  for (int i = 0; i < count; ++i) {  // A stack that overflows ends the program.
    mprotect(static_cast<char*>(memory) + i * kStack, kPage, PROT_NONE);
  }
  return memory;
}

// Fibres never return from Enter(), and some are dropped while they run.
// AddressSanitizer has marked the memory around the locals of these functions.
// Removes these marks.
void ForgetFrames(void* stacks, int count) {
  if (__asan_unpoison_memory_region == nullptr) return;
  __asan_unpoison_memory_region(stacks, count * kStack);
}

}  // namespace

Fibres::Fibres(int count, std::function<void()> body)
    : count_(count),
      body_(std::move(body)),
      stacks_(MapStacks(count)),
      pointers_(new void*[count]()) {}

Fibres::~Fibres() {
  ForgetFrames(stacks_, count_);
  munmap(stacks_, count_ * kStack);
  delete[] pointers_;
}

void Fibres::Start() {
  ForgetFrames(stacks_, count_);
  for (int i = 0; i < count_; ++i) {
    // The stack contains what SfmambaSwitchStack pops: six registers and the
    // address at which to continue. One more word aligns the stack as after a
    // call. The stacks begin at different offsets of their pages. With equal
    // offsets, they would compete for a few cache lines.
    auto top = reinterpret_cast<uintptr_t*>(static_cast<char*>(stacks_) +
                                            (i + 1) * kStack - i * 320 % kPage);
    *--top = 0;
    *--top = reinterpret_cast<uintptr_t>(&Fibres::Enter);
    for (int j = 0; j < 6; ++j) *--top = 0;
    pointers_[i] = top;
  }
}

void Fibres::Resume(int i) {
  running_ = i;
  entering = this;
  SfmambaSwitchStack(&resumer_, pointers_[i]);
}

void Fibres::Suspend() { SfmambaSwitchStack(&pointers_[running_], resumer_); }

void Fibres::Enter() {
  Fibres& fibres = *entering;
  fibres.body_();
  fibres.pointers_[fibres.running_] = nullptr;
  void* unused;
  SfmambaSwitchStack(&unused, fibres.resumer_);
}

}  // namespace sfmamba::simt
