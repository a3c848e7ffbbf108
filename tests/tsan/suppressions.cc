// What ThreadSanitizer does not report, by function or library, and why. A name
// is looked for in both stacks, in which only functions appear that are built
// with ThreadSanitizer, and libraries that allocate, free, copy or lock.

// Both are linked into each binary of --config=tsan; its run-time library calls
// them. What a thread of gRPC's received and handed on is only known to be
// gRPC's while the thread's stack is: the longest history keeps it.
extern "C" const char* __tsan_default_options() { return "history_size=7"; }

extern "C" const char* __tsan_default_suppressions() {
  return
      // gRPC, upb and protobuf are not built with ThreadSanitizer. What they
      // hand from thread to thread goes through queues of theirs, whose atomic
      // operations it does not see.
      "race:libgrpc.so\n"
      "race:libgrpc++.so\n"
      "race:libgpr.so\n"
      "race:libupb.so\n"
      "race:libprotobuf.so\n"
      // Nor are the accesses of recvmsg() and memcpy() seen that gRPC calls.
      // The stack of the thread that received a message, by which a report
      // would be suppressed, is lost by the time the message is read.
      "called_from_lib:libgrpc.so\n"
      // gRPC's own headers: a call's operations are done before its server is
      // deleted, which is known to the library alone.
      "race:grpc::internal::Call::PerformOps\n"
      // gRPC orders these too: an answer is watched before its call can end,
      // and the watch is deleted after its server.
      "race:sfmamba::rpc::SendWatch::~SendWatch\n"
      // Nor is Abseil. Copies of a Status and of a Cord share what they hold
      // and count references to it; gRPC keeps times in Cords of a Status.
      "race:absl::debian3::Status::Unref\n"
      "race:libabsl_status.so\n"
      "race:libabsl_cord.so\n"
      "race:libabsl_cord_internal.so\n"
      "race:libabsl_time.so\n"
      // Nor is OpenTelemetry's SDK. Its queue hands spans to its thread by
      // atomic operations.
      "race:libopentelemetry_trace.so\n"
      // What Abseil finds deadlocks with has a lock that is not seen.
      "race:libabsl_graphcycles_internal.so\n"
      // gRPC takes its locks in different orders where its own state rules out
      // that both threads are there at once.
      "deadlock:libgrpc.so\n"
      "deadlock:libgrpc++.so\n"
      "mutex:libgrpc.so\n";
}
