// Tells ThreadSanitizer that what gRPC receives is written before it is read.
// gRPC hands a message from the thread that receives it to the one that its
// service runs on through queues whose atomic operations are not seen, and the
// stack of the receiving thread, by which such a report would be suppressed, is
// lost by the time the bytes are read.

#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>
#include <sys/socket.h>

#include <vector>

#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "grpcpp/support/status.h"

namespace {

// Stands for everything that was received.
char received;

}  // namespace

// The definitions here come before those of the shared libraries, and call
// them.

extern "C" ssize_t recvmsg(int fd, msghdr* message, int flags) {
  using Function = ssize_t(int, msghdr*, int);
  static auto* const real =
      reinterpret_cast<Function*>(dlsym(RTLD_NEXT, "recvmsg"));
  const ssize_t size = real(fd, message, flags);
  __tsan_release(&received);
  return size;
}

namespace grpc {

Status ByteBuffer::Dump(std::vector<Slice>* slices) const {
  using Function = Status(const ByteBuffer*, std::vector<Slice>*);
  static auto* const real = reinterpret_cast<Function*>(dlsym(
      RTLD_NEXT, "_ZNK4grpc10ByteBuffer4DumpEPSt6vectorINS_5SliceESaIS2_EE"));
  __tsan_acquire(&received);
  return real(this, slices);
}

}  // namespace grpc
