// Sets the options of AddressSanitizer, LeakSanitizer and
// UndefinedBehaviorSanitizer, and the reports that they suppress. The
// sanitizers' run-time libraries call these functions, which are linked into
// each binary of --config=asan.

extern "C" const char* __asan_default_options() {
  // Some tests make a thousand huge allocations that must be refused.
  return "allocator_may_return_null=1:detect_stack_use_after_return=0";
}

extern "C" const char* __ubsan_default_options() {
  return "print_stacktrace=1";
}

extern "C" const char* __lsan_default_suppressions() {
  // libtorch's registries of operators exist until the process ends.
  return "leak:libtorch_cpu.so\n";
}
