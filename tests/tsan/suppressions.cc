// The reports that ThreadSanitizer suppresses, by function or library, with the
// reasons. A name is searched for in both stacks of a report. They contain only
// functions that are built with ThreadSanitizer, and libraries that allocate,
// free, copy or lock.

// Both functions are linked into each binary of --config=tsan.
// ThreadSanitizer's run-time library calls them. A report shows that a thread
// of gRPC is involved only if that thread's stack is still known. The longest
// history keeps it for as long as possible.
extern "C" const char* __tsan_default_options() { return "history_size=7"; }

extern "C" const char* __tsan_default_suppressions() {
  return
      // gRPC, upb and protobuf are not built with ThreadSanitizer. They pass
      // objects between threads through queues, and ThreadSanitizer does not
      // see the queues' atomic operations.
      "race:libgrpc.so\n"
      "race:libgrpc++.so\n"
      "race:libgpr.so\n"
      "race:libupb.so\n"
      "race:libprotobuf.so\n"
      // gRPC also calls recvmsg() and memcpy(), whose accesses are not ordered
      // for ThreadSanitizer. When the message is read, the stack of the thread
      // that received it is already lost, so a report could not be suppressed
      // by that stack.
      "called_from_lib:libgrpc.so\n"
      // This function is in gRPC's own headers. A call's operations end before
      // its server is deleted, but only gRPC's library knows this.
      "race:grpc::internal::Call::PerformOps\n"
      // gRPC also orders the accesses to a SendWatch. A call uses the SendWatch
      // before the call ends. The SendWatch is deleted after the gRPC server,
      // and the server's deletion waits for the end of all calls.
      "race:sfmamba::rpc::SendWatch::~SendWatch\n"
      // Abseil is not built with ThreadSanitizer, either. Copies of a Status or
      // of a Cord share data and count references to it. gRPC stores times in
      // Cords of a Status.
      "race:absl::debian3::Status::Unref\n"
      "race:libabsl_status.so\n"
      "race:libabsl_cord.so\n"
      "race:libabsl_cord_internal.so\n"
      "race:libabsl_time.so\n"
      // OpenTelemetry's SDK is not built with ThreadSanitizer, either. Its
      // queue uses atomic operations to pass spans to another thread.
      "race:libopentelemetry_trace.so\n"
      // Abseil's detection of deadlocks has a lock that ThreadSanitizer does
      // not see.
      "race:libabsl_graphcycles_internal.so\n"
      // gRPC acquires some locks in different orders. Its own state guarantees
      // that two threads never do this at the same time.
      "deadlock:libgrpc.so\n"
      "deadlock:libgrpc++.so\n"
      "mutex:libgrpc.so\n";
}
